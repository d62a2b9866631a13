//! What the processes say of CronJobs, and the events of it that reach the server.

use std::collections::{BTreeMap, VecDeque};

use super::Oracle;
use super::scene::Key;
use crate::history::{Changed, Said};
use crate::plan::{Api, Ms};

/// An event must be in the store this long after it was said, where all was calm meanwhile.
const PATIENCE: Ms = 30_000;
/// So much of what a process says about a CronJob is followed into the store: what it says later may be combined, or dropped as spam.
const FOLLOWED: u32 = 9;

/// Of which CronJob, with which reason and message.
type Words = (Key, String, String);

#[derive(Default)]
pub(super) struct Speech {
    /// When each process last said what: CronJob (uid), reason, minutes.
    said: BTreeMap<(usize, u32, String, &'static str, i64), Ms>,
    /// How much each process has said of a CronJob.
    counts: BTreeMap<(usize, u32, Key), u32>,
    /// When each event was last written.
    written: BTreeMap<Words, Ms>,
    /// What was said while all was calm, and when; whether an event of an instant, which others may have written before.
    awaited: VecDeque<(Ms, bool, Words)>,
}

impl Oracle {
    pub(super) fn on_said(&mut self, at: Ms, said: &Said) {
        let api = if said.controller == "kubernetes-cronjob" { Api::Kubernetes } else { Api::Volcano };
        let key = (api, said.about.namespace.to_string(), said.about.name.to_string());
        self.follow(at, &key, said);
        let Some(uid) = self.scene.uids.get(&key).cloned() else { return };
        if let Some(minutes) = said.minutes {
            self.on_said_of_run(at, &key, &uid, said, minutes);
        } else if matches!(said.reason, "UnexpectedJob" | "OrphanedJob") {
            let words = said.message.split_whitespace().map(str::to_owned);
            self.scene.crons.get_mut(&uid).into_iter().for_each(|cron| cron.unknown_said.extend(words.clone()));
        }
        self.look(&uid, at, true);
    }

    fn on_said_of_run(&mut self, at: Ms, key: &Key, uid: &str, said: &Said, minutes: i64) {
        let Said { replica, process, reason, .. } = *said;
        // A process that lost the lead and won it again begins anew, and may say it again.
        let before = self.speech.said.insert((replica, process, uid.to_owned(), reason, minutes), at);
        if before.is_some_and(|before| before >= self.scene.calm_from && self.scene.is_calm(at)) {
            self.blame(9, at, key, format!("{reason} was said twice of minute {minutes}"));
        }
        if let Some(cron) = self.scene.crons.get_mut(uid) {
            cron.said.insert((reason, minutes));
        }
    }

    /// Sees to it that what was said comes to the server.
    fn follow(&mut self, at: Ms, key: &Key, said: &Said) {
        let count = self.speech.counts.entry((said.replica, said.process, key.clone())).or_default();
        *count += 1;
        if *count <= FOLLOWED && self.scene.is_calm(at) {
            let words = (key.clone(), said.reason.to_owned(), said.message.clone());
            self.speech.awaited.push_back((at, said.minutes.is_some(), words));
        }
    }

    /// An event was written.
    pub(super) fn on_event(&mut self, at: Ms, changed: &Changed) {
        let event = changed.object.value();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let about = &event["involvedObject"];
        let api = if about["apiVersion"] == "batch/v1" { Api::Kubernetes } else { Api::Volcano };
        let key = (api, text(&about["namespace"]), text(&about["name"]));
        self.speech.written.insert((key, text(&event["reason"]), text(&event["message"])), at);
    }

    /// Looks for the events that must have come by `at`.
    pub(super) fn miss_events(&mut self, at: Ms) {
        while let Some((said, _, _)) = self.speech.awaited.front()
            && said + PATIENCE < at
        {
            let Some((said, once, words)) = self.speech.awaited.pop_front() else { return };
            let written = self.speech.written.get(&words).copied();
            let came = written.is_some_and(|written| once || written >= said);
            let (key, reason, _) = words;
            if !came && self.scene.calm_from <= said && !self.scene.closed.contains(&key.1) {
                self.blame(9, said + PATIENCE, &key, format!("{reason} was said at {said} ms and no event came"));
            }
        }
    }
}
