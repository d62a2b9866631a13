//! The Jobs that replicas delete.

use super::Oracle;
use super::facts::{Job, Policy, job_name};
use super::scene::Key;
use crate::plan::Ms;

impl Oracle {
    /// A replica deleted a Job.
    pub(super) fn on_removed(&mut self, at: Ms, key: &Key, job: &Job) {
        let cron = job.owner.as_ref().and_then(|uid| self.scene.crons.get(uid));
        let Some(cron) = cron else {
            return self.blame(8, at, key, "a replica deleted somebody else's Job".to_owned());
        };
        let window = self.scene.window(at);
        let mut wrongs = Vec::new();
        // Replace may meet a run in the moment of its end.
        let unfinished_seen = job.ended_at.is_none_or(|ended| ended >= window);
        let may_replace = unfinished_seen && cron.since(window).any(|version| version.policy == Policy::Replace);
        match job.end {
            None if !may_replace => wrongs.push((8, "a replica deleted an unfinished Job".to_owned())),
            Some(end) if !may_replace => {
                // History keeps the newest. One that is gone may still be seen.
                let order = job.order(&key.2);
                let left = cron.left.iter().filter(|left| left.at >= window && left.end == end && left.order > order);
                let newer = self.scene.finished(cron, end).filter(|(key, job)| job.order(&key.2) > order);
                let newer = newer.count() + left.count();
                if !cron.since(window).any(|version| version.limit(end).is_some_and(|limit| newer >= limit)) {
                    wrongs.push((7, format!("deleted although only {newer} newer ones of its kind stood")));
                }
                if job
                    .due
                    .is_some_and(|due| key.2 == job_name(&cron.key.2, due) && cron.version().last_schedule < Some(due))
                {
                    wrongs.push((7, "deleted before its run was recorded".to_owned()));
                }
            }
            _ => {}
        }
        for (invariant, what) in wrongs {
            self.blame(invariant, at, key, what);
        }
    }
}
