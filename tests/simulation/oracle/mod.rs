//! The oracle: knows from the history of a run what had to happen, and says where something else did.
//!
//! It shares no code with `reconcile/`. Of `schedule/` it uses next and newest instants, which the golden vectors hold. Its
//! judgement is exact where all is calm: a while after the last trouble. Within a trouble whatever somebody may still have seen
//! since it began excuses what they do, and nothing is owed; what never may be, may not be there either.

mod facts;
mod owed;
mod scene;

use std::collections::{BTreeMap, BTreeSet};

use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::store::Change;

use self::facts::{Job, Policy, Version, Wall, is_due, job_name};
use self::owed::{MEANING, needs_a_step, next_due, patience, wrongs};
use self::scene::{Cron, Key, Scene, Started};
use crate::history::{Asked, Changed, Entry, What, text_of};
use crate::plan::{Api, MINUTE, Ms, Plan};

/// Requests about one CronJob within a minute, at most, and so many more for each of its Jobs that started in it.
const REQUESTS_A_MINUTE: u64 = 100;

/// Something that must not be.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    /// Its number in docs/simulation.md.
    pub(crate) invariant: u8,
    pub(crate) at: Ms,
    /// The CronJob, or what else it is about.
    pub(crate) about: String,
    pub(crate) what: String,
}

/// What the oracle counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) due: u64,
    pub(crate) started: u64,
    /// Requests of the replicas.
    pub(crate) requests: u64,
    /// The most within a minute about one CronJob.
    pub(crate) busiest: u64,
    /// Changes in the store.
    pub(crate) changes: u64,
    /// Virtual time in which all was calm.
    pub(crate) calm: Ms,
    pub(crate) length: Ms,
}

struct Oracle {
    scene: Scene,
    violations: Vec<Violation>,
    tally: Tally,
    /// When to look at which CronJob again.
    wakes: BTreeSet<(Ms, String)>,
    /// By replica and CronJob: the minute and the requests in it.
    requests: BTreeMap<(usize, Key), (Ms, u64)>,
    /// When each process last said what: CronJob (uid), reason, minutes.
    said: BTreeMap<(usize, u32, String, &'static str, i64), Ms>,
}

/// Judges a run.
pub(crate) fn judge(plan: &Plan, entries: &[Entry]) -> (Vec<Violation>, Tally) {
    let mut oracle = Oracle {
        scene: Scene::new(plan),
        violations: Vec::new(),
        tally: Tally::default(),
        wakes: BTreeSet::new(),
        requests: BTreeMap::new(),
        said: BTreeMap::new(),
    };
    let mut before = 0;
    for entry in entries {
        if oracle.scene.is_calm(before) {
            oracle.tally.calm += entry.at - before;
        }
        before = entry.at;
        oracle.pass_until(entry.at);
        oracle.take_in(entry);
    }
    oracle.tally.length = before;
    (oracle.violations, oracle.tally)
}

impl Oracle {
    fn blame(&mut self, invariant: u8, at: Ms, about: &Key, what: String) {
        let about = format!("{}/{} ({:?})", about.1, about.2, about.0);
        self.violations.push(Violation { invariant, at, about, what });
    }

    /// Looks at everything that was to be looked at before `at`.
    fn pass_until(&mut self, at: Ms) {
        while let Some((wake, uid)) = self.wakes.first().cloned() {
            if wake >= at {
                return;
            }
            self.wakes.pop_first();
            self.look(&uid, wake, false);
        }
    }

    fn take_in(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.what {
            What::Changed(changed) => self.on_changed(at, changed),
            What::Served { replica, request } => self.on_served(at, *replica, request),
            What::Said { replica, process, controller, about, reason, minutes } => {
                let api = if *controller == "kubernetes-cronjob" { Api::Kubernetes } else { Api::Volcano };
                let key = (api, about.namespace.to_string(), about.name.to_string());
                if let Some(minutes) = minutes {
                    self.on_said(at, (*replica, *process), &key, reason, *minutes);
                }
            }
            What::Started { replica, process } => {
                self.scene.replicas[*replica].process = Some(*process);
                self.scene.term += 1;
            }
            What::Ended { replica, .. } => self.scene.replicas[*replica].process = None,
            What::Clock { replica, off_ms } => {
                self.scene.set_offset(at, *replica, *off_ms);
                self.look_at_all(at);
            }
            What::Unsettled { until } => {
                self.scene.unsettle(at, *until);
                for uid in self.scene.crons.keys() {
                    self.wakes.insert((*until, uid.clone()));
                }
            }
            What::Breach(text) | What::Leftovers(text) => {
                let own = matches!(entry.what, What::Breach(_));
                self.violations.push(Violation {
                    invariant: if own { 12 } else { 11 },
                    at,
                    about: "memory".to_owned(),
                    what: text.clone(),
                });
            }
            What::Note(_) => {}
        }
    }

    fn look_at_all(&mut self, at: Ms) {
        let uids: Vec<String> = self.scene.crons.keys().cloned().collect();
        uids.iter().for_each(|uid| self.look(uid, at, false));
    }

    /// Looks at a CronJob: is everything as it should be, and when must it be looked at again?
    fn look(&mut self, uid: &str, at: Ms, stepped: bool) {
        let scene = &self.scene;
        let Some(cron) = scene.crons.get(uid).filter(|cron| cron.gone.is_none()) else { return };
        let Some(leader) = scene.leader() else { return };
        let now = scene.wall(leader, at);
        let (wrongs, patience) = (wrongs(scene, cron, now), patience(scene, cron));
        let next = next_due(cron, now);
        let (calm_from, is_calm) = (scene.calm_from, scene.is_calm(at));
        let Some(cron) = self.scene.crons.get_mut(uid) else { return };
        if stepped {
            cron.hint = at;
        }
        let mut blamed = Vec::new();
        for (condition, wrong) in wrongs.into_iter().enumerate() {
            let Some(about) = wrong else {
                cron.wrong_since[condition] = None;
                cron.reported.remove(&condition);
                continue;
            };
            let since = *cron.wrong_since[condition].get_or_insert(at);
            let since = since.max(calm_from);
            let seen = !needs_a_step(condition) || (cron.hint >= since && cron.hint + patience <= at);
            if is_calm && at >= since + patience && seen && cron.reported.insert(condition) {
                blamed.push((condition, about, since));
            } else {
                self.wakes.insert((since.max(at) + patience, uid.to_owned()));
            }
        }
        if let Some(due) = next {
            let wait = u64::try_from(due - now).unwrap_or_default();
            self.wakes.insert((at + wait, uid.to_owned()));
        }
        self.count_due(uid, at, now);
        let key = self.scene.crons[uid].key.clone();
        for (condition, about, since) in blamed {
            let (invariant, what) = MEANING[condition];
            let about = text_of(chrono::DateTime::from_timestamp_millis(about).unwrap());
            self.blame(invariant, at, &key, format!("{what}: {about}, since {since} ms"));
        }
    }

    /// Counts instants as they come.
    fn count_due(&mut self, uid: &str, at: Ms, now: Wall) {
        let Some(cron) = self.scene.crons.get_mut(uid) else { return };
        let version = cron.version();
        if version.suspend || version.deleting {
            cron.counted = cron.counted.max(now);
            return;
        }
        let Some(schedule) = version.schedule else { return };
        let mut from = cron.counted;
        while let Some(due) = facts::next(&schedule, from).filter(|due| *due <= now) {
            from = due;
            // When an instant comes, a step comes with it.
            cron.hint = at;
            self.tally.due += 1;
        }
        cron.counted = from.max(cron.counted);
    }

    fn on_changed(&mut self, at: Ms, changed: &Changed) {
        self.tally.changes += 1;
        let object = &changed.object;
        let api = if changed.resource.group == "batch" { Api::Kubernetes } else { Api::Volcano };
        let key = (api, object.namespace().to_owned(), object.name().to_owned());
        let gone = changed.change == Change::Deleted;
        match changed.resource.plural {
            "cronjobs" => self.on_cron(at, key, changed, gone),
            "jobs" => self.on_job(at, key, changed, gone),
            "namespaces" if gone || object.deleting => drop(self.scene.closed.insert(object.name().to_owned())),
            "resourcequotas" => self.on_quota(at, changed, gone),
            "leases" => {
                let lease: serde_json::Value = object.value();
                self.scene.set_holder(lease["spec"]["holderIdentity"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn on_quota(&mut self, at: Ms, changed: &Changed, gone: bool) {
        let namespace = changed.object.namespace().to_owned();
        if gone {
            // What was refused comes after a back-off.
            self.scene.unsettle(at, at + 65_000);
            self.scene.quotas.remove(&namespace);
        } else {
            let most = changed.object.value()["spec"]["hard"]["count/jobs.batch"].as_str().unwrap().parse().unwrap();
            self.scene.quotas.insert(namespace, most);
        }
    }

    fn on_cron(&mut self, at: Ms, key: Key, changed: &Changed, gone: bool) {
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
            let counted = version.created;
            let cron = Cron {
                key,
                versions: vec![(at, version)],
                gone: None,
                started: BTreeMap::new(),
                excused: BTreeSet::new(),
                floor: Wall::MIN,
                edited: None,
                calm_edit: None,
                left: Vec::new(),
                wrong_since: [None; 8],
                hint: at,
                said: BTreeSet::new(),
                reported: BTreeSet::new(),
                counted,
            };
            self.scene.crons.insert(uid.clone(), cron);
            // Jobs of an earlier incarnation keep their names until the garbage collector has come.
            let standing: Vec<(Key, Job)> =
                self.scene.jobs.iter().map(|(key, job)| (key.clone(), job.clone())).collect();
            standing.iter().for_each(|(key, job)| self.excuse(key, job));
            return self.look(&uid, at, true);
        };
        let before = cron.version().clone();
        cron.versions.last_mut().unwrap().0 = at;
        cron.versions.retain(|(until, _)| *until >= window);
        if before.timetable != version.timetable {
            cron.edited = Some(at);
            cron.calm_edit = calm.then_some((at, slowest));
            // Seen at once when all is calm, and at any time until it is otherwise.
            let seen_late = i64::try_from(calm_from.saturating_sub(at)).unwrap();
            cron.floor = cron.floor.max(latest + if calm { 0 } else { seen_late });
            cron.counted = cron.counted.max(cron.floor);
        }
        cron.versions.push((at, version.clone()));
        for (name, old, new) in [
            ("lastScheduleTime", before.last_schedule, version.last_schedule),
            ("lastSuccessfulTime", before.last_success, version.last_success),
        ] {
            if new < old {
                self.blame(6, at, &key, format!("{name} went back from {old:?} to {new:?}"));
            }
        }
        let same_spec = (&before.timetable, before.policy, before.suspend, before.deadline_s)
            == (&version.timetable, version.policy, version.suspend, version.deadline_s);
        if changed.by.is_some() && !same_spec {
            self.blame(8, at, &key, "a replica changed the spec".to_owned());
        }
        self.look(&uid, at, true);
    }

    fn on_job(&mut self, at: Ms, key: Key, changed: &Changed, gone: bool) {
        let mut job = Job::read(key.0, &changed.object);
        let known = self.scene.jobs.get(&key).and_then(|before| before.ended_at);
        job.ended_at = known.or(job.end.map(|_| at));
        let before = if gone { self.scene.jobs.remove(&key) } else { self.scene.jobs.insert(key.clone(), job.clone()) };
        let owner = job.owner.clone();
        match (before, changed.by) {
            (None, Some(replica)) => self.on_start(at, &key, &job, replica),
            (Some(before), Some(replica)) if gone || (job.deleting && !before.deleting) => {
                self.on_removed(at, &key, &before, replica);
                // The answer may be lost, and the old cache count it all the same.
                if !self.scene.is_calm(at) {
                    self.on_left(at, &before);
                }
            }
            (Some(_), Some(_)) => self.blame(8, at, &key, "a replica changed a Job".to_owned()),
            (None, None) => self.excuse(&key, &job),
            (Some(before), None) if gone => self.on_left(at, &before),
            (Some(_), None) => {}
        }
        if let Some(uid) = owner {
            self.look(&uid, at, true);
        }
    }

    /// A Job was deleted, by somebody else or, in a trouble, by a replica.
    fn on_left(&mut self, at: Ms, job: &Job) {
        let window = self.scene.window(at);
        let cron = job.owner.as_ref().and_then(|uid| self.scene.crons.get_mut(uid));
        if let (Some(cron), Some(end)) = (cron, job.end) {
            cron.left.retain(|(when, _)| *when >= window);
            cron.left.push((at, end));
        }
    }

    /// A Job that somebody else made takes the name of a run.
    fn excuse(&mut self, key: &Key, job: &Job) {
        let Some((name, minutes)) = key.2.rsplit_once('-') else { return };
        let Ok(minutes) = minutes.parse::<i64>() else { return };
        let uid = self.scene.uids.get(&(key.0, key.1.clone(), name.to_owned())).cloned();
        let Some(cron) = uid.and_then(|uid| self.scene.crons.get_mut(&uid)) else { return };
        if job.owner.as_deref() != Some(&*cron.version().uid) {
            cron.excused.extend((0..60).map(|second| minutes * 60_000 + second * 1000));
        }
    }

    /// A replica created a Job.
    fn on_start(&mut self, at: Ms, key: &Key, job: &Job, replica: usize) {
        self.tally.started += 1;
        let Some(uid) = job.owner.clone() else {
            return self.blame(8, at, key, "a replica created a Job without an owner".to_owned());
        };
        let Some(due) = job.due else {
            return self.blame(3, at, key, "a replica created a Job without a due instant".to_owned());
        };
        let (window, term) = (self.scene.window(at), self.scene.term);
        let Some(cron) = self.scene.crons.get(&uid) else {
            return self.blame(8, at, key, "a replica created a Job for nobody".to_owned());
        };
        let mut wrongs: Vec<(u8, String)> = Vec::new();
        let text = text_of(chrono::DateTime::from_timestamp_millis(due).unwrap());
        if key.2 != job_name(&cron.key.2, due) {
            wrongs.push((1, format!("the name is not that of the run of {text}")));
        }
        if cron.gone.is_some_and(|gone| gone < window) {
            wrongs.push((3, "its CronJob is gone".to_owned()));
        }
        // Nobody can know of a Job that vanished before it was recorded, once whoever made it is dead.
        let first = cron.started.get(&due);
        let stands = |first: &Started| self.scene.jobs.values().any(|job| job.uid == first.job);
        let forgotten = |first: &Started| first.term != term && !stands(first);
        if let Some(first) = first.filter(|first| !forgotten(first)) {
            wrongs.push((1, format!("the run of {text} was started before, by r{}: {}", first.by, first.job)));
        }
        if cron.version().last_schedule >= Some(due) {
            wrongs.push((1, format!("the run of {text} is in lastScheduleTime already")));
        }
        self.check_due(at, cron, due, &text, &mut wrongs);
        self.check_policy(at, cron, job, &mut wrongs);
        if let Some(cron) = self.scene.crons.get_mut(&uid) {
            cron.started.insert(due, Started { job: job.uid.clone(), by: replica, term });
        }
        for (invariant, what) in wrongs {
            self.blame(invariant, at, key, what);
        }
    }

    /// Invariant 3.
    fn check_due(&self, at: Ms, cron: &Cron, due: Wall, text: &str, wrongs: &mut Vec<(u8, String)>) {
        let scene = &self.scene;
        // A step reads the time once, at its begin, and may take long while answers are slow.
        let (latest, earliest) = (scene.latest_wall(at), scene.earliest_wall(scene.window(at)));
        if due > latest {
            wrongs.push((3, format!("the run of {text} is not due yet on any clock")));
        }
        let started = cron.started.keys().rev().take(5).copied();
        let fits = |version: &Version| {
            let Some(schedule) = &version.schedule else { return false };
            // The chain may begin at an edit, or with a deadline at the start of its window, which matters where the clock goes back by
            // half an hour.
            let window = version.deadline_s.map(|deadline_s| due - deadline_s.saturating_mul(1000));
            let mut bases = started.clone().chain([version.base(), version.created, cron.floor]).chain(window);
            let in_time = version.deadline_s.is_none_or(|s| due > earliest - s.saturating_mul(1000));
            !version.suspend && !version.deleting && in_time && bases.any(|base| is_due(schedule, base, due))
        };
        let window = scene.window(at);
        if !cron
            .versions
            .iter()
            .enumerate()
            .any(|(n, (until, version))| (n + 1 == cron.versions.len() || *until >= window) && fits(version))
        {
            wrongs.push((3, format!("the run of {text} is not due")));
        }
        let calm_since_edit = cron.calm_edit.filter(|(edit, _)| *edit >= scene.calm_from && scene.is_calm(at));
        if calm_since_edit.is_some_and(|(_, floor)| due <= floor) {
            wrongs.push((3, format!("the run of {text} lies before the edit of the schedule")));
        }
    }

    /// Invariants 4 and 5.
    fn check_policy(&self, at: Ms, cron: &Cron, job: &Job, wrongs: &mut Vec<(u8, String)>) {
        let window = self.scene.window(at);
        let always = |policy: Policy| {
            let mut recent = cron
                .versions
                .iter()
                .enumerate()
                .filter(|(n, (until, _))| n + 1 == cron.versions.len() || *until >= window);
            recent.all(|(_, (_, version))| version.policy == policy)
        };
        let others = self.scene.unfinished(cron).filter(|(_, other)| other.uid != job.uid);
        let others: Vec<String> = others.map(|(due, _)| job_name(&cron.key.2, due)).collect();
        if others.is_empty() {
            return;
        }
        if always(Policy::Forbid) {
            wrongs.push((4, format!("Forbid, and unfinished already: {others:?}")));
        }
        if always(Policy::Replace) {
            wrongs.push((5, format!("Replace, and not replaced: {others:?}")));
        }
    }

    /// A replica deleted a Job.
    fn on_removed(&mut self, at: Ms, key: &Key, job: &Job, _replica: usize) {
        let cron = job.owner.as_ref().and_then(|uid| self.scene.crons.get(uid));
        let Some(cron) = cron else {
            return self.blame(8, at, key, "a replica deleted somebody else's Job".to_owned());
        };
        let window = self.scene.window(at);
        let recent: Vec<&Version> = cron
            .versions
            .iter()
            .enumerate()
            .filter(|(n, (until, _))| n + 1 == cron.versions.len() || *until >= window)
            .map(|(_, (_, version))| version)
            .collect();
        let mut wrongs = Vec::new();
        // Replace may meet a run in the moment of its end.
        let unfinished_seen = job.ended_at.is_none_or(|ended| ended >= window);
        let may_replace = unfinished_seen && recent.iter().any(|version| version.policy == Policy::Replace);
        match job.end {
            None if !may_replace => wrongs.push((8, "a replica deleted an unfinished Job".to_owned())),
            Some(end) if !may_replace => {
                // The Job itself is no longer on the stage.
                let left = cron.left.iter().filter(|(when, kind)| *when >= window && *kind == end).count();
                let stood = self.scene.finished(cron, end) + left + 1;
                if !recent.iter().any(|version| version.limit(end).is_some_and(|limit| stood > limit)) {
                    wrongs.push((7, format!("deleted although only {stood} of its kind stood")));
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

    fn on_served(&mut self, at: Ms, replica: usize, request: &Asked) {
        self.tally.requests += 1;
        let name = match request.resource.plural {
            "cronjobs" => &*request.name,
            "jobs" => request.name.rsplit_once('-').map_or("", |(name, _)| name),
            _ => return,
        };
        if name.is_empty() || matches!(request.verb, Verb::List | Verb::Watch) {
            return;
        }
        let api = if request.resource.group == "batch" { Api::Kubernetes } else { Api::Volcano };
        let key = (api, request.namespace.clone(), name.to_owned());
        let minute = at / MINUTE;
        let (since, count) = self.requests.entry((replica, key.clone())).or_default();
        if *since != minute {
            (*since, *count) = (minute, 0);
        }
        // A deletion that worked cannot come again; it pays for itself and for the question before it.
        let worked = request.verb == Verb::Delete && request.code == 200;
        *count = if worked { count.saturating_sub(1) } else { *count + 1 };
        let count = *count;
        self.tally.busiest = self.tally.busiest.max(count);
        if count == REQUESTS_A_MINUTE {
            self.blame(10, at, &key, format!("{count} requests within a minute"));
        }
    }

    fn on_said(&mut self, at: Ms, (replica, process): (usize, u32), key: &Key, reason: &'static str, minutes: i64) {
        let Some(uid) = self.scene.uids.get(key).cloned() else { return };
        // A process that lost the lead and won it again begins anew, and may say it again.
        let before = self.said.insert((replica, process, uid.clone(), reason, minutes), at);
        if before.is_some_and(|before| before >= self.scene.calm_from && self.scene.is_calm(at)) {
            self.blame(9, at, key, format!("{reason} was said twice of minute {minutes}"));
        }
        if let Some(cron) = self.scene.crons.get_mut(&uid) {
            cron.said.insert((reason, minutes));
        }
        self.look(&uid, at, true);
    }
}
