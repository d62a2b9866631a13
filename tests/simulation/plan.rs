//! What a run consists of, drawn from its seed before it begins: the replicas, the objects, and every action with its time. So a
//! run can be told, repeated, and made smaller.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::cluster::Timing;
use cronjob_controller::model::WallTime;

use crate::dice::Dice;
use crate::people::{self, CronSpec};
use crate::troubles::{self, Trouble};

/// Milliseconds since the run began.
pub(crate) type Ms = u64;

pub(crate) const SECOND: Ms = 1000;
pub(crate) const MINUTE: Ms = 60 * SECOND;
pub(crate) const HOUR: Ms = 60 * MINUTE;

/// Which of the APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Api {
    Kubernetes,
    Volcano,
}

/// What happens at some time.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Somebody creates this CronJob.
    Create(CronSpec),
    /// Somebody edits the spec of a CronJob: a merge patch.
    Edit { cron: Named, patch: serde_json::Value },
    /// Somebody deletes a CronJob; its Jobs go too.
    Delete(Named),
    /// Somebody deletes one of the Jobs of a CronJob, the `pick`-th of those that stand.
    DeleteJob { cron: Named, pick: u64 },
    /// Somebody creates a Job by hand whose controller is the CronJob.
    ManualJob { cron: Named, number: u64 },
    /// Somebody creates a Job of their own whose name is that of the run due in so many minutes from now.
    ForeignJob { cron: Named, minutes_ahead: u64 },
    /// Somebody deletes what Jobs of their own have names like those of its runs.
    FreeNames(Named),
    /// A quota on the number of Jobs of both kinds in a namespace; `None` lifts it.
    Quota { namespace: String, jobs: Option<u64> },
    /// Somebody deletes a namespace.
    DeleteNamespace(String),
    /// A trouble begins; its number is the place in the plan.
    Begin(usize),
    /// It ends.
    End(usize),
    /// A replica starts (again).
    Start(usize),
}

/// A CronJob of the plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) api: Api,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) start: WallTime,
    /// Until then troubles happen; afterwards everything must come right.
    pub(crate) chaos: Ms,
    pub(crate) replicas: usize,
    /// The durations of the election, if there is one.
    pub(crate) timing: Option<Timing>,
    pub(crate) namespaces: Vec<String>,
    pub(crate) troubles: Vec<Trouble>,
    /// In order of time.
    pub(crate) actions: Vec<(Ms, Action)>,
}

/// Days around which offsets change somewhere, or leap days; runs begin on the day or the day before.
const DAYS: [&str; 9] = [
    "2026-03-07",
    "2026-03-28",
    "2026-04-04",
    "2026-10-24",
    "2026-10-31",
    "2028-02-28",
    "2026-06-15",
    "2026-12-31",
    "2027-02-28",
];

impl Plan {
    /// The plan of `seed` for a run of so many hours.
    pub(crate) fn draw(seed: u64, hours: u64) -> Self {
        let mut dice = Dice::new(seed, "world");
        let day: DateTime<Utc> = format!("{}T00:00:00Z", dice.pick(&DAYS)).parse().unwrap();
        let start = day + TimeDelta::milliseconds(i64::try_from(dice.between(0, 30 * HOUR)).unwrap());
        let chaos = hours * HOUR;
        let is_large = seed % 50 == 49;
        let elects = dice.percent(60);
        let replicas = if elects { usize::try_from(dice.between(1, 3)).unwrap() } else { 1 };
        let timing = elects.then(|| timing(&mut dice, hours));
        let namespaces: Vec<String> = (0..dice.between(1, 5)).map(|number| format!("n{number}")).collect();
        let crons = people::draw_crons(&mut dice, &namespaces, is_large, hours);
        let mut actions: Vec<(Ms, Action)> = crons.iter().map(|cron| (cron.at, Action::Create(cron.clone()))).collect();
        people::draw_script(&mut Dice::new(seed, "people"), &crons, &namespaces, chaos, &mut actions);
        people::draw_templates(&mut Dice::new(seed, "templates"), &crons, chaos, &mut actions);
        let settle = timing.map_or(0, |timing| ms(timing.lease_duration) * 4);
        let troubles = troubles::draw(&mut Dice::new(seed, "troubles"), chaos, replicas, settle);
        people::draw_deeds_in_trouble(&mut Dice::new(seed, "people in trouble"), &crons, &troubles, &mut actions);
        let start_ms = Ms::try_from(start.timestamp_millis()).unwrap();
        people::draw_names(&mut Dice::new(seed, "names"), &crons, start_ms, chaos, &mut actions);
        for (number, trouble) in troubles.iter().enumerate() {
            actions.push((trouble.at, Action::Begin(number)));
            actions.push((trouble.at + trouble.lasts, Action::End(number)));
        }
        for replica in 0..replicas {
            actions.push((dice.between(0, 3 * SECOND), Action::Start(replica)));
        }
        // Stable: what is due at one time happens in the order in which it was drawn.
        actions.sort_by_key(|(at, _)| *at);
        Self { seed, start, chaos, replicas, timing, namespaces, troubles, actions }
    }

    /// The same without some of the troubles: for finding out which of them it takes.
    pub(crate) fn without(&self, dropped: &[usize]) -> Self {
        let mut plan = self.clone();
        plan.actions.retain(|(_, action)| !matches!(action, Action::Begin(n) | Action::End(n) if dropped.contains(n)));
        plan
    }

    /// The same with CronJobs of these names only.
    pub(crate) fn only(&self, keep: &dyn Fn(&Named) -> bool) -> Self {
        let mut plan = self.clone();
        plan.actions.retain(|(_, action)| match action {
            Action::Create(cron) => keep(&cron.named),
            Action::Edit { cron, .. }
            | Action::Delete(cron)
            | Action::FreeNames(cron)
            | Action::DeleteJob { cron, .. }
            | Action::ManualJob { cron, .. }
            | Action::ForeignJob { cron, .. } => keep(cron),
            _ => true,
        });
        plan
    }
}

/// Long runs get long leases: renewals cost time, and hand-overs are the same but for their length.
fn timing(dice: &mut Dice, hours: u64) -> Timing {
    let lease_s = if hours <= 3 { *dice.pick(&[15, 30, 60]) } else { *dice.pick(&[60, 240, 300, 300]) };
    Timing {
        lease_duration: Duration::from_secs(lease_s),
        renew_deadline: Duration::from_secs(lease_s * 2 / 3),
        retry_period: Duration::from_secs((lease_s / 6).max(2)),
    }
}

pub(crate) fn ms(duration: Duration) -> Ms {
    Ms::try_from(duration.as_millis()).unwrap()
}
