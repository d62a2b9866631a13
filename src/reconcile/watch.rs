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

/// A Job is gone that belongs to nobody in the cache, or to another than the CronJob after whose run it is named: that CronJob is
/// looked at, since the run may be waiting for the name (rule `freed-name-wakes`).
pub fn on_name_freed(job: &Job, owners: Owners<'_>) -> Reaction {
    let cronjob = job.key.name.rsplit_once('-').map(|(name, _)| ObjectKey::new(job.key.namespace.clone(), name));
    let uid = cronjob.as_ref().and_then(owners);
    let is_its_own = uid.is_some() && uid.as_ref() == job.controller.as_ref().map(|owner| &owner.uid);
    reaction(cronjob.filter(|_| uid.is_some() && !is_its_own))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CronJob;
    use crate::reconcile::fixtures::{at, child_of, cronjob};
    use crate::schedule::Zone;

    const BOTH: [Flavor; 2] = [Flavor::Kubernetes, Flavor::Volcano];

    fn update(flavor: Flavor, change: impl FnOnce(&mut CronJob)) -> Reaction {
        let mut new = CronJob { resource_version: "10".into(), ..cronjob() };
        change(&mut new);
        on_cronjob_updated(Settings { flavor, local_zone: Zone::UTC }, &cronjob(), &new, at(5))
    }

    fn key() -> ObjectKey {
        cronjob().key
    }

    #[test]
    fn a_new_schedule_or_zone_is_waited_for_and_known_as_an_edit() {
        for flavor in BOTH {
            let reaction = update(flavor, |new| new.spec.schedule = "30 * * * *".into());
            let delay = Duration::from_millis(25 * 60_000 + 100);
            assert_eq!((reaction.operations, reaction.edited), (vec![Operation::AddAfter(key(), delay)], Some(at(5))));
            assert_eq!(update(flavor, |new| new.spec.time_zone = Some("UTC".into())).edited, Some(at(5)));
        }
    }

    #[test]
    fn a_schedule_that_does_not_parse_is_spoken_of_and_wakes_nobody() {
        for flavor in BOTH {
            let reaction = update(flavor, |new| new.spec.schedule = "x".into());
            assert_eq!(reaction.happenings[0].message, "unparseable schedule for cronjob: x");
            assert_eq!((reaction.operations, reaction.edited), (vec![], Some(at(5))));
        }
    }

    #[test]
    fn any_other_change_is_looked_at_at_once_and_is_no_edit() {
        for flavor in BOTH {
            let reaction = update(flavor, |new| new.spec.suspend = true);
            assert_eq!((reaction.operations, reaction.edited), (vec![Operation::Add(key())], None));
        }
        let resync = |new: &mut CronJob| new.resource_version = cronjob().resource_version;
        assert_eq!(update(Flavor::Kubernetes, resync).operations, [Operation::Add(key())]);
        assert_eq!(update(Flavor::Volcano, resync).operations, []);
    }

    #[test]
    fn a_job_wakes_the_cached_cronjob_of_its_uid_only() {
        for flavor in BOTH {
            let job = child_of(flavor, "job", 0);
            let owned_by = |uid: &'static str| on_job_added(flavor, &job, &|_| Some(uid.into())).operations;
            assert_eq!(owned_by("cj-uid"), [Operation::Add(key())]);
            assert_eq!(owned_by("recreated"), []);
            assert_eq!(on_job_deleted(flavor, &job, &|_| None).operations, []);
        }
    }
}
