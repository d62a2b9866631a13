//! The oracle: knows from the history of a run what had to happen, and says where something else did.
//!
//! It shares no code with `reconcile/`. Of `schedule/` it uses next and newest instants, which the golden vectors hold. Its
//! judgement is exact where all is calm: a while after the last trouble. Within a trouble whatever somebody may still have seen
//! since it began excuses what they do, and nothing is owed; what never may be, may not be there either.
//!
//! What the controllers write about themselves (`status`) is not believed: each time in it must be that of a Job that stood in the
//! store.

mod content;
mod crons;
mod facts;
mod jobs;
mod owed;
mod removals;
mod scene;
mod speech;

use std::collections::{BTreeMap, BTreeSet};

use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::resources::Resource;
use cronjob_controller::sandbox::store::Change;

use self::facts::{Wall, text};
use self::owed::{FAILURES, MEANING, SUCCESSES, needs_a_step, next_due, patience, wrongs};
use self::scene::{Key, Scene};
use self::speech::Speech;
use crate::history::{Asked, Changed, Entry, What};
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
    speech: Speech,
}

fn api_of(resource: &Resource) -> Api {
    if resource.group == "batch" { Api::Kubernetes } else { Api::Volcano }
}

/// Judges a run.
pub(crate) fn judge(plan: &Plan, entries: &[Entry]) -> (Vec<Violation>, Tally) {
    let mut oracle = Oracle {
        scene: Scene::new(plan),
        violations: Vec::new(),
        tally: Tally::default(),
        wakes: BTreeSet::new(),
        requests: BTreeMap::new(),
        speech: Speech::default(),
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
        self.miss_events(at);
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
            What::Said(said) => self.on_said(at, said),
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
        if wrongs[SUCCESSES].is_none() && wrongs[FAILURES].is_none() {
            cron.refused_at = None;
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
            let seen = !needs_a_step(condition, cron) || (cron.hint >= since && cron.hint + patience <= at);
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
            self.blame(invariant, at, &key, format!("{what}: {}, since {since} ms", text(about)));
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
        let key = (api_of(changed.resource), object.namespace().to_owned(), object.name().to_owned());
        let gone = changed.change == Change::Deleted;
        match changed.resource.plural {
            "cronjobs" => self.on_cron(at, key, changed, gone),
            "jobs" => self.on_job(at, key, changed, gone),
            "events" => self.on_event(at, changed),
            "namespaces" if gone || object.deleting => drop(self.scene.closed.insert(object.name().to_owned())),
            "resourcequotas" => self.on_quota(at, changed, gone),
            "leases" => {
                let lease: serde_json::Value = object.value();
                self.scene.set_holder(at, lease["spec"]["holderIdentity"].as_str().unwrap_or_default());
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
        let key = (api_of(request.resource), request.namespace.clone(), name.to_owned());
        self.on_answer(at, &key, request);
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
}
