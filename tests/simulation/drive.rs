//! Drives a run through its plan: chaos, then healing, then the deletion of everything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use cronjob_controller::sandbox::call::{Subresource, Verb};
use cronjob_controller::sandbox::faults::{Action as FaultAction, Fault, FaultId, Hold, Release};
use cronjob_controller::sandbox::resources::RESOURCES;
use http::Method;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, advance, sleep_until};

use crate::history::{Entry, Recorder, What};
use crate::line::{Fuse, State};
use crate::plan::{Action, MINUTE, Ms, Plan, SECOND, ms};
use crate::troubles::{Kind, Trouble, Who};
use crate::world::{World, collection, cronjobs};

/// From the end of the chaos until everything must have come right, beside what an election takes.
const HEALING: Ms = 20 * MINUTE;
/// How long the controllers may take to forget what is gone.
const FORGETTING: Ms = 3 * MINUTE;

/// What a run left behind.
pub(crate) struct Record {
    pub(crate) entries: Vec<Entry>,
    /// Requests that a fault hit.
    pub(crate) hits: u64,
    /// Troubles that could act, by their place in the plan: somebody was there whom they struck.
    pub(crate) acted: BTreeSet<usize>,
}

/// Runs a plan on a runtime of its own, in virtual time.
pub(crate) fn run(plan: &Plan) -> Record {
    // Paused from the start: else the timers' grid would depend on the time that passed before the pause.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(Driver::play(plan))
}

struct Driver<'p> {
    plan: &'p Plan,
    world: World,
    recorder: Recorder,
    began: Instant,
    blown: mpsc::UnboundedReceiver<(usize, u32)>,
    /// What is still to happen, in order.
    agenda: BTreeMap<(Ms, u64), Action>,
    added: u64,
    /// By trouble: the faults that it installed.
    faults: BTreeMap<usize, Vec<FaultId>>,
    /// By trouble: the replica that it struck.
    struck: BTreeMap<usize, usize>,
    /// By trouble: drift still to be taken back is none; steps still to come.
    drifting: BTreeMap<usize, (usize, i64)>,
    /// By replica.
    fuses: BTreeMap<usize, LitFuse>,
    /// Troubles that could act.
    acted: BTreeSet<usize>,
}

/// A fuse that was lit in a replica.
#[derive(Clone, Copy)]
struct LitFuse {
    trouble: usize,
    /// How long the replica stays away when it has blown.
    away: Ms,
    /// And how long that is felt.
    settle: Ms,
}

impl<'p> Driver<'p> {
    async fn play(plan: &'p Plan) -> Record {
        let (send, blown) = mpsc::unbounded_channel();
        let world = World::new(plan, send);
        let recorder = world.recorder.clone();
        let mut driver = Self {
            plan,
            began: recorder.began(),
            recorder,
            world,
            blown,
            agenda: BTreeMap::new(),
            added: 0,
            faults: BTreeMap::new(),
            struck: BTreeMap::new(),
            drifting: BTreeMap::new(),
            fuses: BTreeMap::new(),
            acted: BTreeSet::new(),
        };
        driver.unsettle(3 * SECOND + driver.start_settle());
        for (at, action) in &plan.actions {
            driver.add(*at, action.clone());
        }
        driver.run_until(plan.chaos).await;
        driver.heal().await;
        driver.run_until(plan.chaos + HEALING + 4 * driver.lease()).await;
        driver.empty().await;
        let hits = driver.world.sandbox.faults().hits();
        let Self { world, recorder, acted, .. } = driver;
        // Says what the processes found out about themselves.
        world.end().await;
        Record { entries: recorder.take(), hits, acted }
    }

    fn lease(&self) -> Ms {
        self.plan.timing.map_or(0, |timing| ms(timing.lease_duration))
    }

    /// How long a replica that starts may take until it works.
    fn start_settle(&self) -> Ms {
        5 * SECOND + 3 * self.lease()
    }

    fn add(&mut self, at: Ms, action: Action) {
        self.added += 1;
        self.agenda.insert((at, self.added), action);
    }

    fn unsettle(&self, lasts: Ms) {
        self.recorder.note(What::Unsettled { until: self.recorder.now() + lasts });
    }

    fn note(&self, text: impl Into<String>) {
        self.recorder.note(What::Note(text.into()));
    }

    async fn run_until(&mut self, end: Ms) {
        loop {
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at).filter(|at| *at < end);
            let until = self.began + Duration::from_millis(next.unwrap_or(end));
            tokio::select! {
                biased;
                Some((replica, process)) = self.blown.recv() => self.on_blown(replica, process).await,
                () = sleep_until(until) => match next {
                    None => return,
                    Some(_) => {
                        if let Some((_, action)) = self.agenda.pop_first() {
                            self.act(action).await;
                        }
                    }
                },
            }
        }
    }

    async fn on_blown(&mut self, replica: usize, process: u32) {
        if self.world.replicas[replica].processes != process {
            return;
        }
        let Some(LitFuse { trouble, away, settle }) = self.fuses.remove(&replica) else { return };
        self.acted.insert(trouble);
        self.unsettle(away + settle + self.start_settle());
        self.world.kill(replica).await;
        let back = self.recorder.now() + away;
        self.add(back, Action::Start(replica));
    }

    async fn act(&mut self, action: Action) {
        match action {
            Action::Create(cron) => self.world.create_cron(&cron).await,
            Action::Edit { cron, patch } => self.world.edit(&cron, &patch).await,
            Action::Delete(cron) => self.world.delete(cronjobs(cron.api), &cron.namespace, &cron.name).await,
            Action::DeleteJob { cron, pick } => self.world.delete_a_job(&cron, pick).await,
            Action::FreeNames(cron) => self.world.free_names(&cron).await,
            Action::ManualJob { cron, number } => {
                let name = format!("{}-by-hand-{number}", cron.name);
                self.world.create_job(&cron, &name, true).await;
            }
            Action::ForeignJob { cron, minutes_ahead } => {
                let minutes = self.world.server_clock.wall().timestamp() / 60 + i64::try_from(minutes_ahead).unwrap();
                let name = format!("{}-{minutes}", cron.name);
                self.world.create_job(&cron, &name, false).await;
            }
            Action::Quota { namespace, jobs } => self.world.set_quota(&namespace, jobs).await,
            Action::DeleteNamespace(name) => {
                self.world.request(Method::DELETE, &format!("/api/v1/namespaces/{name}"), json!({})).await;
            }
            Action::Start(replica) => self.world.start(replica),
            Action::Begin(number) => self.begin(number).await,
            Action::End(number) => self.end(number).await,
        }
    }

    fn who(&self, who: Who) -> usize {
        match who {
            Who::Leader => self.world.leader(),
            Who::Number(number) => number,
        }
    }

    async fn begin(&mut self, number: usize) {
        let Trouble { lasts, settle, kind, .. } = self.plan.troubles[number].clone();
        self.note(format!("begin {number} {kind:?} for {lasts} ms"));
        if !matches!(kind, Kind::CrashAt { .. }) {
            self.unsettle(lasts + settle);
            // A fuse has acted when it blows.
            let mut struck =
                (0..self.plan.replicas).filter(|replica| kind.who().is_none_or(|who| self.who(who) == *replica));
            if struck.any(|replica| self.world.is_running(replica)) {
                self.acted.insert(number);
            }
        }
        let faults = faults_of(&kind, lasts);
        let installed = faults.into_iter().map(|fault| self.world.sandbox.faults().install(fault)).collect();
        self.faults.insert(number, installed);
        let sandbox = &self.world.sandbox;
        match kind {
            Kind::CutWatches { .. }
            | Kind::StalledWatches { .. }
            | Kind::ExpiredWatches { .. }
            | Kind::Outage { .. } => {
                sandbox.cut_watches();
            }
            Kind::SlowLists { .. } => {
                let replica = self.strike(number, Who::Leader);
                self.world.kill(replica).await;
                self.world.start(replica);
            }
            Kind::Compaction => {
                sandbox.compact(u64::MAX);
                sandbox.cut_watches();
            }
            Kind::Reordering { plural } | Kind::StaleLists { plural } => {
                let lists = matches!(kind, Kind::StaleLists { .. });
                let hold = Hold { until: Release::After(Duration::from_millis(lasts)), lists };
                for resource in RESOURCES.iter().filter(|resource| resource.plural == plural) {
                    sandbox.hold_cache(resource, hold);
                }
            }
            Kind::Crash(who) => {
                let replica = self.strike(number, who);
                self.world.kill(replica).await;
            }
            Kind::CrashAt { who, writes, applied } => {
                let replica = self.strike(number, who);
                self.fuses.insert(replica, LitFuse { trouble: number, away: lasts / 8, settle });
                if let Some(running) = &self.world.replicas[replica].running {
                    *running.switch.fuse.lock().unwrap() = Some(Fuse { writes, applied });
                }
            }
            Kind::Stop(who) => {
                let replica = self.strike(number, who);
                self.world.ask_to_end(replica);
            }
            Kind::Held(who) => self.set_line(number, who, State::Held),
            Kind::Partition(who) => self.set_line(number, who, State::Cut),
            Kind::Frozen => advance(Duration::from_millis(lasts)).await,
            Kind::ClockStep { who, by_s } | Kind::ClockShift { who, by_s } => {
                let replica = self.strike(number, who);
                self.world.step_clock(replica, TimeDelta::seconds(by_s));
            }
            Kind::Drift { who, by_ms } => {
                let replica = self.strike(number, who);
                self.drifting.insert(number, (replica, by_ms));
                for minute in 0..lasts / MINUTE {
                    // The end of a trouble comes once; a drift comes in many small ends.
                    self.add(self.recorder.now() + minute * MINUTE, Action::End(number));
                }
            }
            Kind::ServerClock { by_s } => self.world.server_clock.step(TimeDelta::seconds(by_s)),
            _ => {}
        }
    }

    fn strike(&mut self, number: usize, who: Who) -> usize {
        let replica = self.who(who);
        self.struck.insert(number, replica);
        replica
    }

    fn set_line(&mut self, number: usize, who: Who, state: State) {
        let replica = self.strike(number, who);
        if let Some(running) = &self.world.replicas[replica].running {
            running.switch.state.set(state);
        }
    }

    async fn end(&mut self, number: usize) {
        let Trouble { settle, kind, .. } = self.plan.troubles[number].clone();
        if let Some((replica, by_ms)) = self.drifting.get(&number).copied() {
            self.world.step_clock(replica, TimeDelta::milliseconds(by_ms));
            return;
        }
        self.note(format!("end {number} {}", kind.name()));
        for fault in self.faults.remove(&number).unwrap_or_default() {
            self.world.sandbox.faults().remove(fault);
        }
        let struck = self.struck.get(&number).copied();
        match (kind, struck) {
            (Kind::Crash(_), Some(replica)) => self.world.start(replica),
            (Kind::Stop(_), Some(replica)) => {
                self.world.kill(replica).await;
                self.world.start(replica);
            }
            (Kind::CrashAt { .. }, Some(replica)) => self.defuse(replica),
            (Kind::Held(_) | Kind::Partition(_), Some(replica)) => self.open_line(replica),
            (Kind::ClockStep { by_s, .. }, Some(replica)) => {
                self.unsettle(settle);
                self.world.step_clock(replica, TimeDelta::seconds(-by_s));
            }
            (Kind::ServerClock { by_s }, _) => self.world.server_clock.step(TimeDelta::seconds(-by_s)),
            _ => {}
        }
    }

    fn defuse(&mut self, replica: usize) {
        if let Some(running) = &self.world.replicas[replica].running {
            *running.switch.fuse.lock().unwrap() = None;
        }
    }

    fn open_line(&self, replica: usize) {
        if let Some(running) = &self.world.replicas[replica].running {
            running.switch.state.set(State::Open);
        }
    }

    /// Ends every trouble; only restarts are still to come.
    async fn heal(&mut self) {
        self.note("heal");
        let agenda = std::mem::take(&mut self.agenda);
        for ((at, added), action) in agenda {
            match action {
                Action::End(number) => self.end(number).await,
                Action::Start(_) => drop(self.agenda.insert((at, added), action)),
                _ => {}
            }
        }
        self.world.sandbox.heal();
        for replica in 0..self.plan.replicas {
            self.defuse(replica);
            self.open_line(replica);
        }
    }

    /// Deletes everything; afterwards nothing may be held in memory.
    async fn empty(&mut self) {
        self.note("empty");
        // From here on nothing is owed to anybody.
        self.unsettle(FORGETTING * 4);
        for resource in RESOURCES.iter().filter(|resource| matches!(resource.plural, "cronjobs" | "jobs")) {
            for namespace in &self.plan.namespaces {
                self.world.request(Method::DELETE, &collection(resource, namespace), json!({})).await;
            }
        }
        let now = self.recorder.now();
        self.run_until(now + FORGETTING).await;
        let leftovers = self.world.leftovers();
        if !leftovers.is_empty() {
            self.recorder.note(What::Leftovers(leftovers));
        }
    }
}

/// The sandbox's faults of a trouble. Users and the stand-in for what runs Jobs feel none of them.
fn faults_of(kind: &Kind, lasts: Ms) -> Vec<Fault> {
    let chance = |percent: u32| f64::from(percent) / 100.0;
    let spread = |longest: Ms, percent: u32, make: fn(Duration) -> FaultAction| {
        // Three lengths, so that requests overtake each other.
        let lengths = [longest, longest / 2, longest / 10];
        let fault = |length| Fault::new(make(Duration::from_millis(length))).probability(chance(percent) / 3.0);
        lengths.into_iter().map(fault).collect()
    };
    match *kind {
        Kind::Errors { code, retry_after_s, percent } => {
            vec![Fault::refuse(code, retry_after_s).probability(chance(percent))]
        }
        Kind::LostRequests { percent } => vec![Fault::new(FaultAction::LostRequest).probability(chance(percent))],
        Kind::LostAnswers { percent } => vec![Fault::lost_answer().probability(chance(percent))],
        Kind::LostCreations { times } => {
            let lost = |group: &str| Fault::lost_answer().on(Verb::Create).resource(group, "jobs").times(times);
            vec![lost("batch"), lost("batch.volcano.sh")]
        }
        Kind::Delays { longest, percent } => spread(longest, percent, FaultAction::Delay),
        Kind::DelayedAnswers { longest, percent } => spread(longest, percent, FaultAction::DelayAnswer),
        Kind::Duplicates { percent } => vec![Fault::new(FaultAction::Duplicate).probability(chance(percent))],
        Kind::NoStatus { code } => {
            let refuse = |group: &str| {
                Fault::refuse(code, None).on(Verb::Patch).subresource(Subresource::Status).resource(group, "cronjobs")
            };
            vec![refuse("batch"), refuse("batch.volcano.sh")]
        }
        Kind::CutWatches { after } => vec![Fault::new(FaultAction::CutWatch(Duration::from_millis(after)))],
        Kind::StalledWatches { plural } => {
            let stall = |group: &str| Fault::new(FaultAction::StallWatch).resource(group, plural);
            vec![stall("batch"), stall("batch.volcano.sh")]
        }
        Kind::ExpiredWatches { percent } => vec![Fault::new(FaultAction::ExpireWatch).probability(chance(percent))],
        Kind::SlowLists { plural, takes } => {
            let slow = |group: &str| {
                let delay = FaultAction::Delay(Duration::from_millis(takes));
                Fault::new(delay).on(Verb::List).on(Verb::Watch).resource(group, plural)
            };
            vec![slow("batch"), slow("batch.volcano.sh")]
        }
        Kind::Outage { refuses: true } => vec![Fault::refuse(503, None)],
        Kind::Outage { refuses: false } => vec![Fault::new(FaultAction::Delay(Duration::from_millis(lasts)))],
        _ => Vec::new(),
    }
}
