//! Steps cut at every request: the process dies before or after a request reaches the server, or a step is dropped there, or goes on though
//! the answer was lost; and the next process begins with views of Job and Pods that are as old as may be. The server asserts that
//! no uid is counted twice or without its finalizer gone, and takes only statuses that the real one would take. In the end the Job has ended,
//! every Pod that ended is counted, and no finalizer is left.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use cronjob_controller::jobs::names::MANAGED_BY_US;
use cronjob_controller::jobs::{Call, Mandate, Orphan, orphan};
use cronjob_controller::model::{BatchJob, Labels, ObjectKey, PodPhase, PodReplacement, Uid};
use proptest::prelude::*;

use crate::objects::{indexed, job};
use crate::world::{End, Fate, World};

const FATES: [Fate; 7] = [
    Fate::CrashBefore,
    Fate::CrashAfter,
    Fate::DropBefore,
    Fate::DropAfter,
    Fate::LostBefore,
    Fate::LostAfter,
    Fate::Refused,
];

/// A Job, and which of its Pods fail, by the order of their creation.
#[derive(Clone)]
struct Scenario {
    name: &'static str,
    job: BatchJob,
    fails: fn(usize) -> bool,
    /// Somebody deletes the Pod of this number while it runs.
    deleted: Option<usize>,
    /// The conditions with which it may end.
    ends: &'static [&'static str],
}

fn scenarios() -> Vec<Scenario> {
    let with = |mut job: BatchJob, change: fn(&mut BatchJob)| {
        change(&mut job);
        job
    };
    let plain = Scenario {
        name: "plain",
        job: job(2, Some(4)),
        fails: |number| number % 3 == 1,
        deleted: None,
        ends: &["Complete"],
    };
    let by_index = with(indexed(2, 4), |job| {
        (job.spec.backoff_limit_per_index, job.spec.backoff_limit) = (Some(1), i32::MAX);
    });
    vec![
        Scenario {
            name: "limit",
            job: with(job(3, Some(3)), |job| job.spec.backoff_limit = 0),
            ends: &["Failed", "Complete"],
            ..plain.clone()
        },
        Scenario { name: "work queue", job: job(3, None), fails: |number| number == 0, ..plain.clone() },
        Scenario { name: "deleted", deleted: Some(1), fails: |_| false, ..plain.clone() },
        Scenario {
            name: "patient",
            job: with(job(2, Some(3)), |job| job.spec.pod_replacement = PodReplacement::Failed),
            deleted: Some(0),
            ..plain.clone()
        },
        Scenario { name: "indexed", job: indexed(2, 4), ..plain.clone() },
        Scenario { name: "per index", job: by_index, fails: |number| number == 1, ..plain.clone() },
        plain,
    ]
}

/// What runs the Pods: each moves on by one phase; one that is deleted ends and goes.
fn run_pods(world: &mut World, scenario: &Scenario) {
    let order: BTreeMap<Uid, usize> = world.server.created.iter().cloned().zip(0..).collect();
    let pods: Vec<_> = world.server.pods.values().cloned().collect();
    for pod in pods {
        let number = order[&pod.uid];
        match pod.phase {
            PodPhase::Succeeded | PodPhase::Failed => {}
            _ if pod.deleting() => world.server.end(&pod.uid, PodPhase::Failed),
            PodPhase::Pending => {
                world.server.touch(&pod.uid, |pod| (pod.phase, pod.scheduled) = (PodPhase::Running, true));
            }
            _ if scenario.deleted == Some(number) => {
                let now = world.now;
                world.server.touch(&pod.uid, |pod| pod.deletion_time = Some(now));
            }
            _ if (scenario.fails)(number) => world.server.end(&pod.uid, PodPhase::Failed),
            _ => world.server.end(&pod.uid, PodPhase::Succeeded),
        }
    }
}

/// No more trouble: the Job ends, everything is counted and nothing is left to do.
fn heal(world: &mut World, scenario: &Scenario, told: &str) {
    for _ in 0..60 {
        world.sync();
        let run = world.step();
        assert!(run.error().is_none(), "{told}: {run:?}", run = run.error());
        if world.server.job.finished() && run.calls.is_empty() {
            break;
        }
        run_pods(world, scenario);
        world.now += TimeDelta::minutes(11);
    }
    let status = &world.server.job.status;
    assert!(scenario.ends.iter().any(|end| status.is_true(end)), "{told}: {status:#?}\n{:#?}", world.calls);
    assert!(status.uncounted.as_ref().unwrap().is_empty(), "{told}");
    for pod in world.server.pods.values().filter(|pod| !pod.tracked && pod.phase == PodPhase::Failed) {
        let settled = world.server.counted.contains(&pod.uid) || world.server.surplus.contains(&pod.uid);
        assert!(settled, "{told}: {} ended and nobody counted it", pod.uid);
    }
    if let Some(completions) = world.server.job.spec.completions.filter(|_| status.is_true("Complete")) {
        assert!(status.succeeded >= completions, "{told}");
    }
}

struct Jobs(BatchJob);

impl cronjob_controller::jobs::JobCache for Jobs {
    fn get(&self, _: &ObjectKey) -> Option<std::sync::Arc<BatchJob>> {
        Some(std::sync::Arc::new(self.0.clone()))
    }
    fn selecting(&self, _: &str, _: &Labels) -> Vec<ObjectKey> {
        Vec::new()
    }
}

/// What the handler of orphans frees once the Job has ended.
fn sweep(world: &mut World) -> usize {
    let jobs = Jobs(world.server.job.clone());
    let mandate = Mandate::all(MANAGED_BY_US);
    let lost: Vec<Uid> = world
        .server
        .pods
        .values()
        .filter(|pod| orphan(&mandate, pod, &jobs) != Orphan::No)
        .map(|pod| pod.uid.clone())
        .collect();
    for uid in &lost {
        world.server.touch(uid, |pod| pod.tracked = false);
    }
    assert!(world.server.pods.values().all(|pod| !pod.tracked), "a finalizer is left");
    lost.len()
}

/// How old the views of a process are that begins.
const AGES: [(usize, usize); 6] = [(0, 0), (0, 3), (3, 0), (2, 6), (0, 999), (999, 999)];

/// Tells which case it was when the server asserts something.
struct Context(String);

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("in the case {}", self.0);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Cut {
    at: usize,
    fate: Fate,
    age: (usize, usize),
    backwards: bool,
    knows_version: bool,
}

/// Runs a scenario with one cut; how many requests it took.
fn play(scenario: &Scenario, cut: Option<Cut>) -> usize {
    let told = format!("{} {cut:?}", scenario.name);
    let _context = Context(told.clone());
    let mut world = World::restarted(scenario.job.clone(), Vec::new());
    world.caches.knows_version = cut.is_none_or(|cut| cut.knows_version);
    let (mut sent, mut died) = (0, false);
    for round in 0..8 {
        let mut fate = |_: &Call| {
            sent += 1;
            cut.filter(|cut| cut.at + 1 == sent).map_or(Fate::Answered, |cut| cut.fate)
        };
        let end = world.step_with(&mut fate, cut.is_some_and(|cut| cut.backwards));
        if let (End::Crashed, Some(cut)) = (&end, cut) {
            world.restart(cut.age.0, cut.age.1);
            died = true;
            continue;
        }
        run_pods(&mut world, scenario);
        world.now += TimeDelta::minutes(11);
        // Other views lag by a round as well.
        if round % 2 == 1 || !died {
            world.sync();
        }
    }
    heal(&mut world, scenario, &told);
    let swept = sweep(&mut world);
    assert!(cut.is_some() || swept == 0 && world.server.surplus.is_empty() || world.server.job.indexed(), "{told}");
    world.calls.len()
}

#[test]
fn without_a_cut_every_pod_is_counted_and_freed() {
    for scenario in scenarios() {
        assert!(play(&scenario, None) > 8, "{}", scenario.name);
    }
}

#[test]
fn any_single_cut_heals_whatever_the_next_process_sees() {
    for scenario in scenarios() {
        let length = play(&scenario, None);
        for (at, fate) in (0..length).flat_map(|at| FATES.map(|fate| (at, fate))) {
            let dies = matches!(fate, Fate::CrashBefore | Fate::CrashAfter);
            for age in &AGES[..if dies { AGES.len() } else { 1 }] {
                for (backwards, knows_version) in [(false, true), (true, true), (false, false)] {
                    play(&scenario, Some(Cut { at, fate, age: *age, backwards, knows_version }));
                }
            }
        }
    }
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum Move {
    Step,
    SyncJob,
    SyncPods,
    Pods,
    Restart(usize, usize),
    Later,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        8 => Just(Move::Step),
        3 => Just(Move::SyncJob),
        3 => Just(Move::SyncPods),
        4 => Just(Move::Pods),
        1 => (0..20_usize, 0..20_usize).prop_map(|(job, pods)| Move::Restart(job, pods)),
        2 => Just(Move::Later),
    ];
    prop::collection::vec(one, 1..60)
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let one = prop_oneof![6 => Just(Fate::Answered), 4 => prop::sample::select(&FATES[..])];
    prop::collection::vec(one, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn any_number_of_cuts_under_lagging_caches_heals(
        scenario in prop::sample::select(scenarios().into_iter().map(|one| one.name).collect::<Vec<_>>()),
        moves in moves(),
        fates in fates(),
        backwards in any::<bool>(),
        knows_version in any::<bool>(),
    ) {
        let scenario = scenarios().into_iter().find(|one| one.name == scenario).unwrap();
        let mut world = World::restarted(scenario.job.clone(), Vec::new());
        world.caches.knows_version = knows_version;
        let mut fates = fates.into_iter();
        for one in moves {
            let newest = world.server.history.last().unwrap().clone();
            match one {
                Move::Step => {
                    let end = world.step_with(&mut |_| fates.next().unwrap_or(Fate::Answered), backwards);
                    if let End::Crashed = end {
                        world.restart(2, 4);
                    }
                }
                Move::SyncJob => world.caches.job = newest,
                Move::SyncPods => world.caches.pods = newest,
                Move::Pods => run_pods(&mut world, &scenario),
                Move::Restart(job, pods) => world.restart(job, pods),
                Move::Later => world.now += TimeDelta::minutes(11),
            }
        }
        heal(&mut world, &scenario, "many cuts");
        sweep(&mut world);
    }
}
