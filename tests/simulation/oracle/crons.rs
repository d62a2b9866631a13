//! The versions of a CronJob: what users may change, and what of it replicas may.

use std::collections::{BTreeMap, BTreeSet};

use super::Oracle;
use super::facts::{Version, Wall, text};
use super::owed::CONDITIONS;
use super::scene::{Cron, Key};
use crate::history::Changed;
use crate::plan::Ms;

impl Oracle {
    pub(super) fn on_cron(&mut self, at: Ms, key: Key, changed: &Changed, gone: bool) {
        let version = Version::read(&changed.object);
        let uid = version.uid.clone();
        if gone {
            self.scene.uids.remove(&key);
            if let Some(cron) = self.scene.crons.get_mut(&uid) {
                cron.gone = Some(at);
            }
            return;
        }
        let (calm, window, latest) = (self.scene.is_calm(at), self.scene.window(at), self.scene.latest_wall(at));
        let (calm_from, slowest) = (self.scene.calm_from, self.scene.slowest_wall(at));
        self.scene.uids.insert(key.clone(), uid.clone());
        let Some(cron) = self.scene.crons.get_mut(&uid) else {
            // What an actor knows of edits it knows of the name: an edit is a moment, whoever was edited.
            let floor = self.scene.crons.values().filter(|cron| cron.key == key).filter_map(|cron| cron.floor).max();
            let counted = floor.map_or(version.created, |floor| floor.max(version.created));
            let cron = Cron {
                key,
                versions: vec![(at, version)],
                gone: None,
                started: BTreeMap::new(),
                named: BTreeMap::new(),
                taken: BTreeSet::new(),
                completions: BTreeSet::new(),
                floor,
                edited: None,
                calm_edit: None,
                left: Vec::new(),
                wrong_since: [None; CONDITIONS],
                hint: at,
                refused_at: None,
                said: BTreeSet::new(),
                unknown_said: BTreeSet::new(),
                reported: BTreeSet::new(),
                counted,
            };
            self.scene.crons.insert(uid.clone(), cron);
            return self.look(&uid, at, true);
        };
        let before = cron.version().clone();
        // An edit of schedule or zone only sets the timer anew.
        let stepped = before.timetable == version.timetable;
        cron.versions.last_mut().unwrap().0 = at;
        cron.versions.retain(|(until, _)| *until >= window);
        if before.timetable != version.timetable {
            cron.edited = Some(at);
            cron.calm_edit = calm.then_some((at, slowest));
            // Seen at once when all is calm, and at any time until it is otherwise.
            let seen_late = i64::try_from(calm_from.saturating_sub(at)).unwrap();
            let floor = latest + if calm { 0 } else { seen_late };
            cron.floor = cron.floor.max(Some(floor));
            cron.counted = cron.counted.max(floor);
        }
        cron.versions.push((at, version.clone()));
        self.judge_edit(at, &key, (&before, &version), changed.by.is_some());
        self.look(&uid, at, stepped);
    }

    /// Another version took the place of the one before; `by_replica` if a replica's request made it.
    fn judge_edit(&mut self, at: Ms, key: &Key, (before, version): (&Version, &Version), by_replica: bool) {
        let times = [
            ("lastScheduleTime", before.last_schedule, version.last_schedule),
            ("lastSuccessfulTime", before.last_success, version.last_success),
        ];
        for (name, old, new) in times {
            if new < old {
                self.blame(6, at, key, format!("{name} went back from {old:?} to {new:?}"));
            }
        }
        if !by_replica {
            return;
        }
        if !version.has_spec_of(before) {
            self.blame(8, at, key, "a replica changed the spec".to_owned());
        }
        let Some(cron) = self.scene.crons.get(&version.uid) else { return };
        let moved = |old: Option<Wall>, new: Option<Wall>| new.filter(|_| new != old);
        let run = moved(before.last_schedule, version.last_schedule).filter(|run| !cron.had_job(*run));
        let success = moved(before.last_success, version.last_success).filter(|time| !cron.completions.contains(time));
        if let Some(run) = run {
            self.blame(6, at, key, format!("lastScheduleTime is {}, an instant that never had a Job", text(run)));
        }
        if let Some(time) = success {
            self.blame(6, at, key, format!("lastSuccessfulTime is {}, when no Job of its own succeeded", text(time)));
        }
    }
}
