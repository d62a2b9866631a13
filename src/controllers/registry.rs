//! Which controllers exist: the names that `--controllers` knows, and what each needs to start.

use crate::model::Flavor;

/// A controller that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name in `--controllers`, logs and metrics.
    pub name: &'static str,
    /// Other names; the one of both peers stands for both of ours.
    pub aliases: &'static [&'static str],
    /// Whether `*` includes it.
    pub on_by_default: bool,
    /// Feature gates that must all be on for it to start.
    pub gates: &'static [Gate],
    /// The CronJob API it serves.
    pub flavor: Flavor,
}

/// All controllers, in the order in which they start.
pub static REGISTRY: [Registration; 2] = [
    Registration {
        name: "kubernetes-cronjob",
        aliases: &["cronjob-controller"],
        on_by_default: true,
        gates: &[],
        flavor: Flavor::Kubernetes,
    },
    Registration {
        name: "volcano-cronjob",
        aliases: &["cronjob-controller"],
        on_by_default: true,
        gates: &[Gate::VolcanoJobSupport, Gate::CronVolcanoJobSupport],
        flavor: Flavor::Volcano,
    },
];

impl Registration {
    /// Whether `name` means this controller.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// A feature that can be switched off; on by default, as in Volcano.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// Volcano's own gate of its Jobs.
    VolcanoJobSupport,
    /// Volcano's own gate of its CronJobs.
    CronVolcanoJobSupport,
}

impl Gate {
    /// Every gate.
    pub const ALL: [Self; 2] = [Self::VolcanoJobSupport, Self::CronVolcanoJobSupport];

    /// Its name in `--feature-gates`.
    pub fn name(self) -> &'static str {
        match self {
            Self::VolcanoJobSupport => "VolcanoJobSupport",
            Self::CronVolcanoJobSupport => "CronVolcanoJobSupport",
        }
    }
}
