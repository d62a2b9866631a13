//! What stands on the stage at a moment of the history: CronJobs with their versions, Jobs, replicas, who leads, and whether
//! everything must be right.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{End, Job, Order, Version, Wall, job_name};
use super::owed::CONDITIONS;
use crate::plan::{Api, MINUTE, Ms, Plan, ms};
use crate::world::replica_in;

/// Namespace and name of an object of one API.
pub(super) type Key = (Api, String, String);

/// One incarnation of a CronJob.
pub(super) struct Cron {
    pub(super) key: Key,
    /// Each with the time until which it was the present one; the last is the present one.
    pub(super) versions: Vec<(Ms, Version)>,
    /// When it went.
    pub(super) gone: Option<Ms>,
    /// Every due instant for which a Job was created, and the newest such Job.
    pub(super) started: BTreeMap<Wall, Started>,
    /// Every Job of its own that ever stood under the name of a run: unix minutes in the name, instants in the annotation.
    pub(super) named: BTreeMap<i64, BTreeSet<Wall>>,
    /// The minutes of those names that a creation found taken, as far as is known: such a run takes up the Job that is there.
    pub(super) taken: BTreeSet<i64>,
    /// When Jobs of its own succeeded.
    pub(super) completions: BTreeSet<Wall>,
    /// Nothing due at or before it is owed: somebody edited schedule or zone when a replica's clock showed this.
    pub(super) floor: Option<Wall>,
    /// When schedule or zone were last edited.
    pub(super) edited: Option<Ms>,
    /// When they were, while all was calm, and what the slowest clock showed: the leader's may be that one.
    pub(super) calm_edit: Option<(Ms, Wall)>,
    /// Finished runs that were deleted, and when, while an old cache may still count them.
    pub(super) left: Vec<Left>,
    /// Since when each condition is not as it should be.
    pub(super) wrong_since: [Option<Ms>; CONDITIONS],
    /// The last time at which a step must have been taken.
    pub(super) hint: Ms,
    /// When a deletion of history was refused for good.
    pub(super) refused_at: Option<Ms>,
    /// What was said about instants: reason and unix minutes.
    pub(super) said: BTreeSet<(&'static str, i64)>,
    /// What was said of Jobs that nobody knows.
    pub(super) unknown_said: BTreeSet<String>,
    /// Conditions that have been reported.
    pub(super) reported: BTreeSet<usize>,
    /// The newest instant that was counted as due.
    pub(super) counted: Wall,
}

/// The start of a run.
pub(super) struct Started {
    pub(super) job: String,
    pub(super) by: usize,
    pub(super) term: u64,
}

/// A finished Job that was deleted.
pub(super) struct Left {
    pub(super) at: Ms,
    pub(super) end: End,
    pub(super) order: Order,
}

impl Cron {
    pub(super) fn version(&self) -> &Version {
        &self.versions.last().unwrap().1
    }

    /// The versions that were the present one at `from` or later.
    pub(super) fn since(&self, from: Ms) -> impl Iterator<Item = &Version> {
        let last = self.versions.len() - 1;
        let recent = self.versions.iter().enumerate().filter(move |(n, (until, _))| *n == last || *until >= from);
        recent.map(|(_, (_, version))| version)
    }

    /// The unix minutes in the name of the Job of a run; `None` for other names.
    pub(super) fn minutes_in(&self, job: &str) -> Option<i64> {
        job.strip_prefix(&*self.key.2)?.strip_prefix('-')?.parse().ok()
    }

    /// Whether a Job of its own ever stood for the run of `at`: its annotation says so, or the run found its name taken by it.
    pub(super) fn had_job(&self, at: Wall) -> bool {
        let minutes = at / 60_000;
        self.named.get(&minutes).is_some_and(|dues| dues.contains(&at) || self.taken.contains(&minutes))
    }
}

pub(super) struct Replica {
    pub(super) off_ms: i64,
    pub(super) process: Option<u32>,
}

#[derive(Default)]
pub(super) struct Scene {
    start: Wall,
    elects: bool,
    pub(super) replicas: Vec<Replica>,
    /// When which offsets held: from then on.
    offsets: Vec<(Ms, i64)>,
    /// By uid.
    pub(super) crons: BTreeMap<String, Cron>,
    /// The present incarnation.
    pub(super) uids: BTreeMap<Key, String>,
    /// By place.
    pub(super) jobs: BTreeMap<Key, Job>,
    /// Namespaces that are going or gone.
    pub(super) closed: BTreeSet<String>,
    /// Most Jobs of a namespace.
    pub(super) quotas: BTreeMap<String, usize>,
    holder: Option<(usize, u32)>,
    /// After so long without a renewal a leader gives up, and forgets.
    renew_deadline: Ms,
    /// When the Lease was last written.
    renewed_at: Ms,
    /// Counts the terms of leadership.
    pub(super) term: u64,
    /// Nothing must be right before this.
    pub(super) calm_from: Ms,
    /// When it was last calm before that.
    pub(super) chaos_since: Ms,
}

impl Scene {
    pub(super) fn new(plan: &Plan) -> Self {
        let replicas = (0..plan.replicas).map(|_| Replica { off_ms: 0, process: None }).collect();
        let start = plan.start.timestamp_millis();
        let renew_deadline = plan.timing.map_or(Ms::MAX, |timing| ms(timing.renew_deadline));
        let elects = plan.timing.is_some();
        Self { start, elects, renew_deadline, replicas, offsets: vec![(0, 0)], ..Self::default() }
    }

    pub(super) fn is_calm(&self, at: Ms) -> bool {
        at >= self.calm_from
    }

    pub(super) fn unsettle(&mut self, at: Ms, until: Ms) {
        if self.is_calm(at) {
            self.chaos_since = at;
        }
        self.calm_from = self.calm_from.max(until);
    }

    /// From when on what somebody saw may be what somebody acts on at `at`.
    pub(super) fn window(&self, at: Ms) -> Ms {
        let from = if self.is_calm(at) { at } else { self.chaos_since.min(at) };
        from.saturating_sub(1000)
    }

    pub(super) fn set_offset(&mut self, at: Ms, replica: usize, off_ms: i64) {
        self.replicas[replica].off_ms = off_ms;
        self.offsets.push((at, off_ms));
        // An edit of the same moment may have been seen by the clock as it shows now.
        let latest = self.latest_wall(at);
        for cron in self.crons.values_mut().filter(|cron| cron.edited.is_some_and(|edited| edited + 1000 >= at)) {
            cron.floor = cron.floor.max(Some(latest));
        }
    }

    /// The replica that leads, if one does.
    pub(super) fn leader(&self) -> Option<usize> {
        if !self.elects {
            return self.replicas[0].process.map(|_| 0);
        }
        let (replica, process) = self.holder?;
        (self.replicas[replica].process == Some(process)).then_some(replica)
    }

    /// The Lease was written. The same holder begins a new term if it could not renew for too long.
    pub(super) fn set_holder(&mut self, at: Ms, holder: &str) {
        let holder = replica_in(holder);
        if holder != self.holder || at - self.renewed_at >= self.renew_deadline {
            self.term += 1;
            self.holder = holder;
        }
        self.renewed_at = at;
    }

    pub(super) fn wall(&self, replica: usize, at: Ms) -> Wall {
        self.start + i64::try_from(at).unwrap() + self.replicas[replica].off_ms
    }

    /// The latest that any clock has shown within the last minute and a half.
    pub(super) fn latest_wall(&self, at: Ms) -> Wall {
        let now = self.start + i64::try_from(at).unwrap();
        now + self.recent_offsets(at).max().unwrap_or_default()
    }

    /// What the slowest clock among the replicas shows, or showed lately.
    pub(super) fn slowest_wall(&self, at: Ms) -> Wall {
        self.start + i64::try_from(at).unwrap() + self.recent_offsets(at).min().unwrap_or_default()
    }

    /// The earliest likewise, with what its steps may take.
    pub(super) fn earliest_wall(&self, at: Ms) -> Wall {
        let now = self.start + i64::try_from(at).unwrap();
        now - 90_000 + self.recent_offsets(at).min().unwrap_or_default()
    }

    fn recent_offsets(&self, at: Ms) -> impl Iterator<Item = i64> {
        let from = at.saturating_sub(MINUTE * 3 / 2).min(self.window(at));
        let present = self.replicas.iter().map(|replica| replica.off_ms);
        // An offset that was replaced since then held at its beginning at the least.
        let first = self.offsets.partition_point(|(since, _)| *since < from).saturating_sub(self.replicas.len());
        present.chain(self.offsets[first..].iter().map(|(_, off)| *off))
    }

    /// The Jobs whose controller is this incarnation.
    pub(super) fn children<'s>(&'s self, cron: &'s Cron) -> impl Iterator<Item = (&'s Key, &'s Job)> {
        let uid = &cron.version().uid;
        let (api, namespace, name) = &cron.key;
        let first = (*api, namespace.clone(), name.clone());
        let all = self.jobs.range(first..);
        let near = all.take_while(move |(key, _)| key.0 == *api && key.1 == *namespace && key.2.starts_with(&**name));
        near.filter(move |(_, job)| job.owner.as_ref() == Some(uid))
    }

    /// Its runs: the annotation gives the minute in the name.
    pub(super) fn runs<'s>(&'s self, cron: &'s Cron) -> impl Iterator<Item = (Wall, &'s Job)> {
        let own = self.children(cron).filter_map(|(key, job)| job.due.map(|due| (key, due, job)));
        own.filter(|(key, due, _)| key.2 == job_name(&cron.key.2, *due)).map(|(_, due, job)| (due, job))
    }

    pub(super) fn unfinished<'s>(&'s self, cron: &'s Cron) -> impl Iterator<Item = (Wall, &'s Job)> {
        self.runs(cron).filter(|(_, job)| job.end.is_none() && !job.deleting)
    }

    pub(super) fn finished<'s>(&'s self, cron: &'s Cron, end: End) -> impl Iterator<Item = (&'s Key, &'s Job)> {
        self.children(cron).filter(move |(_, job)| job.end == Some(end))
    }

    pub(super) fn jobs_in(&self, api: Api, namespace: &str) -> usize {
        self.jobs.keys().filter(|key| key.0 == api && key.1 == namespace).count()
    }
}
