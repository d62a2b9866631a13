//! What an actor remembers between steps: own writes that its caches may not show yet, and what it has said already.
//!
//! Invariants
//! - An own write is believed until the watch shows a version at least as new, and not longer than [`BELIEVED_FOR`].
//! - Everything belongs to one incarnation (uid) of the CronJob; another uid empties it, but for the edit floor.
//! - Bounded: each list holds at most as many entries as the CronJob has children, or [`MAX_CREATED`].

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::num::NonZeroI64;
use std::sync::Arc;

use chrono::TimeDelta;

use crate::model::{CronJob, Job, ObjectKey, Uid, WallTime, newer_version};

/// The cache of Jobs, as a step reads it.
pub trait JobCache: Sync {
    /// The Jobs whose controller reference carries this uid, in a settled order (events come out in it).
    fn children(&self, owner: &Uid) -> Vec<Arc<Job>>;

    /// The Job of this name, whoever owns it.
    fn get(&self, key: &ObjectKey) -> Option<Arc<Job>>;

    /// The newest resource version up to which the cache is complete; `None` when it cannot tell.
    fn version(&self) -> Option<Box<str>> {
        None
    }
}

/// How long a created Job is believed to exist that the cache doesn't show, when versions don't settle it.
pub const BELIEVED_FOR: TimeDelta = TimeDelta::minutes(10);

/// How many created Jobs are remembered; each lives until the watch catches up, normally milliseconds.
const MAX_CREATED: usize = 16;

/// Kept by the actor of one CronJob; handed to each of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The incarnation that everything here belongs to.
    uid: Uid,
    /// The CronJob as the server returned it from our last status write.
    written: Option<Box<Written>>,
    /// Jobs created that the cache has not shown yet.
    created: Vec<Created>,
    /// Jobs deleted that the cache still shows.
    deleted: BTreeSet<Uid>,
    /// Unknown Jobs spoken of, as long as the cache shows them.
    unknown: BTreeSet<Uid>,
    /// Newest due instant for which each was said, in unix minutes (of 1970's first one every time).
    said: [Option<NonZeroI64>; Once::COUNT],
    /// The run whose creation was sent and not answered: it may have a Job that no cache shows yet.
    unanswered: Option<WallTime>,
    /// The newest run whose Job was created or found, whether or not the status could be written.
    started: Option<WallTime>,
    /// The server does not know this incarnation any more: the version that the cache showed then, and since when.
    gone: Option<Box<(Box<str>, WallTime)>>,
    /// Nothing due at or before it starts.
    floor: Option<WallTime>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    /// The version that the write was based on.
    over: Box<str>,
    cronjob: Arc<CronJob>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Created {
    job: Arc<Job>,
    since: WallTime,
}

/// What is said once per due instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Once {
    /// Skipped by Forbid.
    Skip,
    /// Found after its deadline.
    Miss,
    /// More than 100 pending.
    TooMany,
    /// The name is taken by somebody else's Job.
    Foreign,
    /// Several instants of an `@every` in a minute; by its seconds.
    Taken,
}

impl Once {
    const COUNT: usize = 5;
}

impl Memory {
    /// Somebody changed schedule or zone, seen at `now` ([`super::Reaction::edited`]): nothing due until then starts (rule `edit-floor`).
    pub fn raise_floor(&mut self, now: WallTime) {
        self.floor = self.floor.max(Some(now));
    }

    /// Notes that the creation of a run was not answered; `None` when that was cleared up.
    pub(super) fn set_unanswered(&mut self, at: Option<WallTime>) {
        self.unanswered = at;
    }

    pub(super) fn unanswered(&self) -> Option<WallTime> {
        self.unanswered
    }

    /// The edit floor. One that lies ahead was set under a wrong clock and holds nothing back.
    pub(super) fn floor(&self, now: WallTime) -> Option<WallTime> {
        self.floor.filter(|floor| *floor <= now)
    }

    /// Notes that the run of `at` has its Job: it never starts again, even if the status cannot be written and the Job vanishes.
    pub(super) fn on_started(&mut self, at: WallTime) {
        self.started = self.started.max(Some(at));
    }

    /// The newest run that this actor started or found started. It lies ahead if the clock went back since.
    pub fn started(&self) -> Option<WallTime> {
        self.started
    }

    /// Notes that the server does not know the object that `cached` shows.
    pub fn on_gone(&mut self, cached: &CronJob, now: WallTime) {
        self.belongs_to(&cached.uid);
        self.gone = Some(Box::new((cached.resource_version.clone(), now)));
    }

    /// Whether the object that `cached` shows is gone on the server, as far as is known; believed like own writes.
    pub(super) fn is_gone(&self, cached: &CronJob, now: WallTime) -> bool {
        self.gone.as_deref().is_some_and(|(version, since)| {
            *version == cached.resource_version && now.signed_duration_since(*since) < BELIEVED_FOR
        })
    }

    /// Forgets what concerns another CronJob of the same name; an edit's floor is a moment, whoever was edited.
    fn belongs_to(&mut self, uid: &Uid) {
        if self.uid != *uid {
            *self = Self { uid: uid.clone(), floor: self.floor, ..Self::default() };
        }
    }

    /// The newer of what the cache shows and what our own last status write returned.
    pub(super) fn newest(&mut self, cached: Arc<CronJob>) -> Arc<CronJob> {
        self.belongs_to(&cached.uid);
        match &self.written {
            Some(written) if written.is_newer_than(&cached) => written.cronjob.clone(),
            _ => {
                self.written = None;
                cached
            }
        }
    }

    /// The children as they are by now: what the cache shows, with what we created and without what we deleted. Forgets what
    /// the cache shows too.
    pub(super) fn children(&mut self, cache: &dyn JobCache, now: WallTime) -> Vec<Arc<Job>> {
        let mut children = cache.children(&self.uid);
        let remembers_none = self.deleted.is_empty() && self.unknown.is_empty() && self.created.is_empty();
        if remembers_none {
            return children;
        }
        let shown: BTreeSet<&Uid> = children.iter().map(|child| &child.uid).collect();
        self.deleted.retain(|uid| shown.contains(uid));
        self.unknown.retain(|uid| shown.contains(uid));
        let version = if self.created.is_empty() { None } else { cache.version() };
        self.created
            .retain(|created| !shown.contains(&created.job.uid) && created.is_believed(version.as_deref(), now));
        children.retain(|child| !self.deleted.contains(&child.uid));
        children.extend(self.created.iter().map(|created| created.job.clone()));
        children
    }

    /// The Job of this name in the cache, with own writes taken into account.
    pub(super) fn job(&self, cache: &dyn JobCache, key: &ObjectKey) -> Option<Arc<Job>> {
        let own = self.created.iter().map(|created| &created.job).find(|job| job.key == *key).cloned();
        own.or_else(|| cache.get(key)).filter(|job| !self.deleted.contains(&job.uid))
    }

    pub(super) fn on_created(&mut self, job: Arc<Job>, now: WallTime) {
        if self.created.len() >= MAX_CREATED {
            self.created.remove(0);
        }
        self.created.push(Created { job, since: now });
    }

    pub(super) fn on_deleted(&mut self, uid: &Uid) {
        self.created.retain(|created| created.job.uid != *uid);
        self.deleted.insert(uid.clone());
    }

    /// The server took a status based on `base` and returned `cronjob`.
    pub(super) fn on_written(&mut self, base: &CronJob, cronjob: Arc<CronJob>) {
        if cronjob.uid == self.uid {
            let over = base.resource_version.clone();
            self.written = Some(Box::new(Written { over, cronjob: sharing_template(cronjob, base) }));
        }
    }

    /// The server showed `live` where the cache shows `cached`: believed like an own write until the cache is as new.
    pub fn on_read(&mut self, cached: &Arc<CronJob>, live: Arc<CronJob>) {
        self.belongs_to(&cached.uid);
        self.on_written(cached, live);
    }

    /// Whether this is said for the first time for the due instant of `minutes`; notes it.
    pub(super) fn first(&mut self, what: Once, minutes: i64) -> bool {
        let Some(said) = self.said.get_mut(what as usize) else { return true };
        let minutes = NonZeroI64::new(minutes);
        let first = *said != minutes || minutes.is_none();
        *said = minutes;
        first
    }

    /// Whether this unknown Job is spoken of for the first time; notes it.
    pub(super) fn first_unknown(&mut self, uid: &Uid) -> bool {
        self.unknown.insert(uid.clone())
    }
}

impl Written {
    fn is_newer_than(&self, cached: &CronJob) -> bool {
        match newer_version(&self.cronjob.resource_version, &cached.resource_version) {
            Some(order) => order == Ordering::Greater,
            // Versions that can't be ordered: newer only if the cache still shows what we wrote over.
            None => self.over == cached.resource_version,
        }
    }
}

impl Created {
    fn is_believed(&self, version: Option<&str>, now: WallTime) -> bool {
        let passed = version.and_then(|version| newer_version(version, &self.job.resource_version));
        match passed {
            Some(order) => order == Ordering::Less,
            None => now.signed_duration_since(self.since) < BELIEVED_FOR,
        }
    }
}

/// The answer to a status write brings the template again; keep one copy of it.
fn sharing_template(cronjob: Arc<CronJob>, base: &CronJob) -> Arc<CronJob> {
    if cronjob.spec.template != base.spec.template || Arc::ptr_eq(&cronjob.spec.template, &base.spec.template) {
        return cronjob;
    }
    let mut cronjob = Arc::unwrap_or_clone(cronjob);
    cronjob.spec.template = base.spec.template.clone();
    Arc::new(cronjob)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::fixtures::{at, child, cronjob};

    struct Cache(Vec<Arc<Job>>, Option<&'static str>);

    impl JobCache for Cache {
        fn children(&self, _: &Uid) -> Vec<Arc<Job>> {
            self.0.clone()
        }
        fn get(&self, key: &ObjectKey) -> Option<Arc<Job>> {
            self.0.iter().find(|job| job.key == *key).cloned()
        }
        fn version(&self) -> Option<Box<str>> {
            self.1.map(Into::into)
        }
    }

    fn versioned(version: &str) -> Arc<CronJob> {
        Arc::new(CronJob { resource_version: version.into(), ..cronjob() })
    }

    fn memory() -> Memory {
        Memory { uid: cronjob().uid, ..Memory::default() }
    }

    #[test]
    fn an_own_status_is_believed_until_the_watch_is_as_new() {
        let mut memory = memory();
        memory.on_written(&versioned("9"), versioned("10"));
        assert_eq!(&*memory.newest(versioned("9")).resource_version, "10");
        assert_eq!(&*memory.newest(versioned("11")).resource_version, "11");
        assert_eq!(memory.written, None);
    }

    #[test]
    fn versions_without_an_order_are_settled_by_what_was_written_over() {
        let mut memory = memory();
        memory.on_written(&versioned("x"), versioned("y"));
        assert_eq!(&*memory.newest(versioned("x")).resource_version, "y");
        assert_eq!(&*memory.newest(versioned("z")).resource_version, "z");
    }

    #[test]
    fn a_created_job_is_a_child_until_the_cache_shows_it_or_must_have_seen_it() {
        let job = Arc::new(Job { resource_version: "50".into(), ..child("a", 1) });
        let later = |minutes| at(0) + TimeDelta::minutes(minutes);
        let mut memory = memory();
        memory.on_created(job.clone(), at(0));
        assert_eq!(memory.children(&Cache(vec![], None), later(9)).len(), 1);
        assert_eq!(memory.children(&Cache(vec![], Some("49")), later(11)).len(), 1);
        assert_eq!(memory.clone().children(&Cache(vec![], Some("50")), later(0)).len(), 0);
        assert_eq!(memory.clone().children(&Cache(vec![], None), later(11)).len(), 0);
        assert_eq!(memory.children(&Cache(vec![job], None), later(0)).len(), 1);
        assert_eq!(memory.created, vec![]);
    }

    #[test]
    fn a_deleted_job_is_no_child_and_forgotten_when_the_cache_has_dropped_it() {
        let job = Arc::new(child("a", 1));
        let mut memory = memory();
        memory.on_deleted(&job.uid);
        let cache = Cache(vec![job.clone()], None);
        assert_eq!(memory.children(&cache, at(0)), vec![]);
        assert_eq!(memory.job(&cache, &job.key), None);
        assert_eq!(memory.children(&Cache(vec![], None), at(0)), vec![]);
        assert_eq!(memory.deleted, BTreeSet::new());
    }

    #[test]
    fn another_incarnation_empties_everything_but_the_floor() {
        let mut memory = memory();
        memory.raise_floor(at(5));
        memory.on_started(at(4));
        memory.set_unanswered(Some(at(4)));
        memory.on_deleted(&"j".into());
        assert!(memory.first(Once::Skip, 7) && !memory.first(Once::Skip, 7) && memory.first(Once::Miss, 7));
        let other = Arc::new(CronJob { uid: "other".into(), ..cronjob() });
        memory.newest(other.clone());
        assert_eq!(memory, Memory { uid: other.uid.clone(), floor: Some(at(5)), ..Memory::default() });
    }

    #[test]
    fn it_is_small() {
        assert!(size_of::<Memory>() <= 224, "{}", size_of::<Memory>());
    }
}
