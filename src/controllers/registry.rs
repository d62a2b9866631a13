//! Which controllers exist: the names that `--controllers` knows, and what each needs to start.

use crate::model::Flavor;

/// A controller that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The name in `--controllers`, logs and metrics.
    pub name: &'static str,
    /// The peer's names; that of the CronJob controllers stands for both of ours.
    pub aliases: &'static [&'static str],
    /// Whether `*` includes it.
    pub on_by_default: bool,
    /// Feature gates that must all be on for it to start.
    pub gates: &'static [Gate],
    /// What it does.
    pub serves: Serves,
}

/// What a controller does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Starts the Jobs of the CronJobs of this API.
    CronJobs(Flavor),
    /// Runs the Pods of `batch/v1` Jobs.
    Jobs,
    /// Deletes `batch/v1` Jobs `ttlSecondsAfterFinished` after their end.
    ExpiredJobs,
}

/// All controllers, in the order in which they start.
pub static REGISTRY: [Registration; 4] = [
    Registration {
        name: "kubernetes-cronjob",
        aliases: &["cronjob-controller"],
        on_by_default: true,
        gates: &[],
        serves: Serves::CronJobs(Flavor::Kubernetes),
    },
    Registration {
        name: "volcano-cronjob",
        aliases: &["cronjob-controller"],
        on_by_default: true,
        gates: &[Gate::VolcanoJobSupport, Gate::CronVolcanoJobSupport],
        serves: Serves::CronJobs(Flavor::Volcano),
    },
    Registration {
        name: "kubernetes-job",
        aliases: &["job-controller"],
        on_by_default: false,
        gates: &[],
        serves: Serves::Jobs,
    },
    Registration {
        name: "kubernetes-ttl-after-finished",
        aliases: &["ttl-after-finished-controller"],
        on_by_default: false,
        gates: &[],
        serves: Serves::ExpiredJobs,
    },
];

impl Registration {
    /// Those that `*` includes.
    pub fn by_default() -> Vec<&'static Self> {
        REGISTRY.iter().filter(|controller| controller.on_by_default).collect()
    }

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
