//! What a watch event means: which keys go into the queue, and what is said. Pure, for both controllers.

use std::time::Duration;

use super::due::{Timetable, WAKE_DELAY};
use super::profile::profile;
use super::step::Settings;
use crate::model::{CronJob, EventType, Flavor, Happening, Job, ObjectKey, OwnerReference, Uid, WallTime};

/// Something for the work queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Now.
    Add(ObjectKey),
    /// After a delay; the earlier of two delays of one key wins.
    AddAfter(ObjectKey, Duration),
}

/// What a watch event leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    /// For the queue, in order.
    pub operations: Vec<Operation>,
    /// To be told about the CronJob.
    pub happenings: Vec<Happening>,
    /// Schedule or zone changed: the instant for [`super::Memory::raise_floor`].
    pub edited: Option<WallTime>,
}

impl Reaction {
    fn add(key: &ObjectKey) -> Self {
        Self { operations: vec![Operation::Add(key.clone())], ..Self::default() }
    }
}

/// A CronJob appeared.
pub fn on_cronjob_added(cronjob: &CronJob) -> Reaction {
    Reaction::add(&cronjob.key)
}

/// A CronJob is gone.
pub fn on_cronjob_deleted(cronjob: &CronJob) -> Reaction {
    Reaction::add(&cronjob.key)
}

/// A CronJob changed from `old` to `new`, or a resync shows it again. A new schedule or zone is waited for, any other change is looked
/// at at once.
pub fn on_cronjob_updated(settings: Settings, old: &CronJob, new: &CronJob, now: WallTime) -> Reaction {
    let resync = old.resource_version == new.resource_version;
    if resync && settings.flavor == Flavor::Volcano {
        return Reaction::default();
    }
    if old.spec.schedule == new.spec.schedule && old.spec.time_zone == new.spec.time_zone {
        return Reaction::add(&new.key);
    }
    let edited = Some(now);
    let Ok(timetable) = Timetable::new(new, new.status.last_schedule_time, settings.local_zone, None, now) else {
        let message = format!("unparseable schedule for cronjob: {}", new.spec.schedule);
        let reason = "UnParseableCronJobSchedule";
        let happening = Happening { event_type: EventType::Warning, reason, message, due_minutes: None };
        return Reaction { happenings: vec![happening], edited, ..Reaction::default() };
    };
    // A schedule that never fires has no delay; the step then says so at once.
    let wake = timetable.next_due().and_then(|due| due.checked_add_signed(WAKE_DELAY));
    let delay = wake.and_then(|wake| wake.signed_duration_since(now).to_std().ok()).unwrap_or_default();
    let operation = if delay.is_zero() && settings.flavor == Flavor::Volcano {
        Operation::Add(new.key.clone())
    } else {
        Operation::AddAfter(new.key.clone(), delay)
    };
    Reaction { operations: vec![operation], edited, ..Reaction::default() }
}

/// The cache of CronJobs: the uid of the one of this name.
pub type Owners<'a> = &'a dyn Fn(&ObjectKey) -> Option<Uid>;

/// A Job appeared: its CronJob is looked at.
pub fn on_job_added(flavor: Flavor, job: &Job, owners: Owners<'_>) -> Reaction {
    reaction(resolve(flavor, job, owners))
}

/// A Job is gone: its CronJob is looked at.
pub fn on_job_deleted(flavor: Flavor, job: &Job, owners: Owners<'_>) -> Reaction {
    on_job_added(flavor, job, owners)
}

/// A Job changed: its CronJob is looked at, and so is the one it belonged to before, if that is another.
pub fn on_job_updated(flavor: Flavor, old: &Job, new: &Job, owners: Owners<'_>) -> Reaction {
    if old.resource_version == new.resource_version {
        return Reaction::default();
    }
    let before = if old.controller == new.controller { None } else { resolve(flavor, old, owners) };
    let after = resolve(flavor, new, owners);
    match flavor {
        Flavor::Kubernetes => reaction(before.into_iter().chain(after)),
        Flavor::Volcano => reaction(after.into_iter().chain(before)),
    }
}

fn reaction(keys: impl IntoIterator<Item = ObjectKey>) -> Reaction {
    Reaction { operations: keys.into_iter().map(Operation::Add).collect(), ..Reaction::default() }
}

/// The cached CronJob that a Job's controller reference names. Volcano compares the apiVersion as well.
fn resolve(flavor: Flavor, job: &Job, owners: Owners<'_>) -> Option<ObjectKey> {
    let OwnerReference { api_version, kind, name, uid } = job.controller.as_ref()?;
    let api_fits = flavor == Flavor::Kubernetes || **api_version == *profile(flavor).api_version;
    if &**kind != "CronJob" || !api_fits {
        return None;
    }
    let key = ObjectKey::new(job.key.namespace.clone(), &**name);
    (owners(&key)? == *uid).then_some(key)
}
