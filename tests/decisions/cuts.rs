//! Steps cut at every gap between two calls: the process dies before or after a call reaches the server, or goes on though the
//! answer was lost, with caches that lag. Never two Jobs for one instant, never two running under Forbid, and in the end the
//! status is right. The model server asserts the first two and that lastScheduleTime never moves back.

use chrono::TimeDelta;
use cronjob_controller::model::{Flavor, Policy, Uid};
use cronjob_controller::reconcile::{Answer, Call, Memory, Next, Settings, Step};
use cronjob_controller::schedule::Zone;
use proptest::prelude::*;

use crate::model::{Cache, Server, at, failure};

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    /// The process dies; the call was never sent.
    CrashBefore,
    /// The process dies; the call was carried out.
    CrashAfter,
    /// The call was not carried out, and the process learns only that no answer came.
    LostBefore,
    /// The call was carried out, and the process learns only that no answer came.
    LostAfter,
    /// The server refuses.
    Refused,
}

const FATES: [Fate; 6] =
    [Fate::Answered, Fate::CrashBefore, Fate::CrashAfter, Fate::LostBefore, Fate::LostAfter, Fate::Refused];

fn lost(call: &Call) -> Answer {
    refusal(call, failure(0, ""))
}

fn refusal(call: &Call, failure: cronjob_controller::model::ApiFailure) -> Answer {
    match call {
        Call::GetCronJob { .. } | Call::PatchStatus { .. } => Answer::CronJob(Err(failure)),
        Call::GetJob { .. } | Call::CreateJob { .. } => Answer::Job(Err(failure)),
        Call::DeleteJob { .. } => Answer::Deleted(Err(failure)),
    }
}

struct World {
    server: Server,
    memory: Memory,
    cache: Cache,
    fates: std::vec::IntoIter<Fate>,
}

impl World {
    fn new(flavor: Flavor, policy: Policy, history_limit: Option<i32>, fates: Vec<Fate>) -> Self {
        let server = Server::new(flavor, policy, history_limit);
        Self { cache: server.cache(), server, memory: Memory::default(), fates: fates.into_iter() }
    }

    /// One step at 100 ms past `minute`; how many calls it made. A crash restarts the process: empty memory, synced caches.
    fn step(&mut self, minute: i64) -> usize {
        let now = at(minute) + TimeDelta::milliseconds(100);
        let settings = Settings { flavor: self.server.flavor, local_zone: Zone::UTC };
        let mut step = Step::begin(settings, self.cache.cronjob.clone(), &self.cache, &mut self.memory, now);
        let (mut answer, mut calls) = (None, 0);
        while let Next::Call(call) = step.advance(answer.take()) {
            calls += 1;
            let fate = self.fates.next().unwrap_or(Fate::Answered);
            let carried_out = matches!(fate, Fate::Answered | Fate::CrashAfter | Fate::LostAfter);
            let given = if carried_out { self.server.apply(&call, now) } else { lost(&call) };
            match fate {
                Fate::Answered => answer = Some(given),
                Fate::LostBefore | Fate::LostAfter => answer = Some(lost(&call)),
                Fate::Refused => answer = Some(refusal(&call, failure(500, "InternalError"))),
                Fate::CrashBefore | Fate::CrashAfter => {
                    self.memory = Memory::default();
                    self.cache = self.server.cache();
                    return calls;
                }
            }
        }
        calls
    }

    fn sync_caches(&mut self) {
        self.cache = self.server.cache();
    }

    /// No more faults: the status comes right within a few steps, and then a step asks for nothing more.
    fn heal(&mut self, minute: i64) {
        self.fates = Vec::new().into_iter();
        for _ in 0..6 {
            self.sync_caches();
            if self.step(minute) == 0 {
                let mut active: Vec<Uid> = self.server.cronjob.status.active.iter().map(|r| r.uid.clone()).collect();
                let mut running: Vec<Uid> = self.server.unfinished().map(|job| job.uid.clone()).collect();
                active.sort();
                running.sort();
                assert_eq!(active, running, "active is not what runs");
                if self.server.cronjob.spec.policy != Policy::Forbid {
                    assert_eq!(self.server.cronjob.status.last_schedule_time, Some(at(minute)));
                }
                return;
            }
        }
        panic!("no rest after six steps");
    }
}

const FLAVORS: [Flavor; 2] = [Flavor::Kubernetes, Flavor::Volcano];
const POLICIES: [Policy; 3] = [Policy::Allow, Policy::Forbid, Policy::Replace];

#[test]
fn any_single_cut_in_three_runs_heals() {
    for (flavor, policy) in FLAVORS.into_iter().flat_map(|flavor| POLICIES.map(|policy| (flavor, policy))) {
        for fate in FATES {
            for cut in 0..16 {
                let mut fates = vec![Fate::Answered; cut];
                fates.push(fate);
                let mut world = World::new(flavor, policy, Some(0), fates);
                for minute in 1..=3 {
                    world.step(minute);
                    world.step(minute);
                    world.sync_caches();
                    if minute == 2 {
                        world.server.finish_one(at(2) + TimeDelta::seconds(30));
                    }
                }
                world.heal(3);
            }
        }
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Move {
    Step,
    /// The watch catches up; until then the caches stand still.
    Sync,
    Minute,
    Finish,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one =
        prop_oneof![5 => Just(Move::Step), 2 => Just(Move::Sync), 2 => Just(Move::Minute), 1 => Just(Move::Finish)];
    prop::collection::vec(one, 1..40)
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let one = prop_oneof![6 => Just(Fate::Answered), 4 => prop::sample::select(&FATES[1..])];
    prop::collection::vec(one, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_number_of_cuts_under_lagging_caches_heals(
        flavor in prop::sample::select(&FLAVORS[..]),
        policy in prop::sample::select(&POLICIES[..]),
        moves in moves(),
        history_limit in prop::sample::select(&[None, Some(0), Some(1)][..]),
        fates in fates(),
    ) {
        let mut world = World::new(flavor, policy, history_limit, fates);
        let mut minute = 1;
        for one in moves {
            match one {
                Move::Step => { world.step(minute); }
                Move::Sync => world.sync_caches(),
                Move::Minute => minute += 1,
                Move::Finish => world.server.finish_one(at(minute) + TimeDelta::seconds(30)),
            }
        }
        world.heal(minute);
    }
}
