//! What the watches tell, and how it reaches the actors: unlike the controller's, which only need to know that something
//! changed, these get every change in its order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::actor::Shadows;
use crate::cluster::{Change, Store};
use crate::engine::{Supervisor, Wake};
use crate::model::{CronJob, Job, ObjectKey, WallTime};
use crate::reconcile::{Settings, on_cronjob_updated};

/// Most changes that wait for one actor. Beyond, the oldest are dropped, and the actor begins anew with what the caches show.
const MOST_WAITING: usize = 1024;

/// One change about a CronJob or its Jobs.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// The CronJob was listed at the start.
    Listed,
    /// The CronJob is new or another version.
    CronJob { old: Option<Arc<CronJob>>, new: Arc<CronJob>, edited: Option<WallTime> },
    /// The CronJob is gone.
    Gone,
    /// A Job whose controller has the CronJob's name is new or another version.
    Job(Arc<Job>),
    /// Such a Job is gone.
    JobGone(Arc<Job>),
}

/// The changes that an actor has not looked at yet.
#[derive(Default)]
pub(super) struct Inbox {
    changes: VecDeque<(u64, Heard)>,
    /// Number of the next change.
    next: u64,
    /// Everything below was looked at; written by the actor, so that collecting takes nothing out.
    read: Arc<AtomicU64>,
    /// Number of the newest change that was dropped unread.
    dropped: Option<u64>,
}

/// A change, and when the watch told it.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub(super) news: News,
    pub(super) at: WallTime,
}

/// What a step takes with it.
pub(super) struct Mail {
    pub(super) changes: Vec<Heard>,
    /// Whether changes before these were lost.
    pub(super) incomplete: bool,
    upto: u64,
    read: Arc<AtomicU64>,
}

impl Mail {
    /// Notes that the step has taken everything in.
    pub(super) fn done(&self) {
        self.read.store(self.upto, Ordering::Release);
    }
}

impl Inbox {
    pub(super) fn put(&mut self, news: News, at: WallTime) {
        let read = self.read.load(Ordering::Acquire);
        while self.changes.front().is_some_and(|(number, _)| *number < read) {
            self.changes.pop_front();
        }
        if self.changes.len() >= MOST_WAITING {
            self.dropped = self.changes.pop_front().map(|(number, _)| number).or(self.dropped);
        }
        self.changes.push_back((self.next, Heard { news, at }));
        self.next += 1;
    }

    pub(super) fn collect(&self) -> Mail {
        let read = self.read.load(Ordering::Acquire);
        let unread = self.changes.iter().filter(|(number, _)| *number >= read);
        Mail {
            changes: unread.map(|(_, heard)| heard.clone()).collect(),
            incomplete: self.dropped.is_some_and(|dropped| dropped >= read),
            upto: self.next,
            read: self.read.clone(),
        }
    }
}

/// Takes the changes of both watches to the actors.
#[derive(Clone)]
pub(super) struct Feed {
    pub(super) settings: Settings,
    pub(super) supervisor: Supervisor<Shadows>,
    pub(super) cronjobs: Store<CronJob>,
}

impl Feed {
    pub(super) fn on_cronjob(&self, change: Change<CronJob>, now: WallTime) {
        let (key, news) = match change {
            Change::Synced | Change::Relisted | Change::Unreadable { .. } => return,
            Change::Applied { new, initial: true, .. } => (new.key.clone(), News::Listed),
            Change::Applied { old, new, .. } => {
                let edited = old.as_ref().and_then(|old| on_cronjob_updated(self.settings, old, &new, now).edited);
                (new.key.clone(), News::CronJob { old, new, edited })
            }
            Change::Deleted { last } => (last.key.clone(), News::Gone),
        };
        self.supervisor.send(key, news);
    }

    /// Jobs that are listed at the start are part of what the actors begin with.
    pub(super) fn on_job(&self, change: Change<Job>) {
        match change {
            Change::Synced | Change::Relisted | Change::Unreadable { .. } | Change::Applied { initial: true, .. } => {}
            Change::Applied { old, new, .. } => {
                if let Some(old) = old.filter(|old| old.controller != new.controller) {
                    self.tell_owner_of(&old, News::Job(new.clone()));
                }
                self.tell_owner_of(&new, News::Job(new.clone()));
            }
            Change::Deleted { last } => self.tell_owner_of(&last, News::JobGone(last.clone())),
        }
    }

    /// Tells whom the controller reference of `job` names; by name only, as one of the peers looks no further.
    fn tell_owner_of(&self, job: &Job, news: News) {
        let Some(owner) = &job.controller else { return };
        let key = ObjectKey::new(job.key.namespace.clone(), &*owner.name);
        if self.cronjobs.get(&key).is_some() {
            self.supervisor.send(key, news);
        }
    }
}

/// When a change wants a step.
pub(super) fn wake_of(news: &News) -> Wake {
    match news {
        News::Listed => Wake::Listed,
        News::CronJob { .. } | News::Gone | News::Job(_) | News::JobGone(_) => Wake::Now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_keeps_what_no_step_has_looked_at() {
        let (mut inbox, at) = (Inbox::default(), WallTime::UNIX_EPOCH);
        inbox.put(News::Gone, at);
        inbox.put(News::Gone, at);
        let lost = inbox.collect();
        assert_eq!((lost.changes.len(), lost.incomplete), (2, false));
        drop(lost);
        let mail = inbox.collect();
        inbox.put(News::Gone, at);
        mail.done();
        assert_eq!(inbox.collect().changes.len(), 1);
        inbox.put(News::Gone, at);
        assert_eq!(inbox.changes.len(), 2, "what was looked at is forgotten");
    }

    #[test]
    fn an_inbox_is_bounded_and_tells_that_it_lost_something() {
        let (mut inbox, at) = (Inbox::default(), WallTime::UNIX_EPOCH);
        (0..=MOST_WAITING).for_each(|_| inbox.put(News::Gone, at));
        let mail = inbox.collect();
        assert_eq!((mail.changes.len(), mail.incomplete), (MOST_WAITING, true));
        mail.done();
        assert!(!inbox.collect().incomplete);
    }
}
