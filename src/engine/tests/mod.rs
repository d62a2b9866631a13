//! The engine under paused time, on a kind of object whose steps follow a script.

mod lifecycle;
mod news;
mod takeover;
mod wakeups;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{TimeDelta, TimeZone};
use futures::FutureExt;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::place::{Place, Places};
use super::*;
use crate::clock::Clock;
use crate::model::WallTime;

const BUDGET: Duration = Duration::from_secs(30);

/// A key in two parts, as the engine's users have it; the engine itself knows none of theirs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ObjectKey {
    namespace: Arc<str>,
    name: Arc<str>,
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

impl ObjectKey {
    fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// What the next step of any key does; without one it is done, or gone if there is no object.
#[derive(Clone)]
enum Script {
    Return(Next),
    Panic,
    /// Yields this often, then returns.
    Yield(u32, Next),
    /// Waits to be told, then returns.
    Wait(Arc<Notify>, Next),
    /// The same, with nothing urgent left.
    GiveWay(Arc<Notify>, Next),
}

/// News: the object's generation, its deletion, or something else.
#[derive(Clone, Copy)]
enum News {
    Generation(u32),
    Deleted,
    Wants(Wake),
    Poison,
}

/// A step as it was seen.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    key: ObjectKey,
    generation: Option<u32>,
    /// How many steps this state has seen, this one included.
    steps: u32,
    failures: u32,
    at: WallTime,
}

#[derive(Default)]
struct Probe {
    script: Mutex<VecDeque<Script>>,
    seen: Mutex<Vec<Seen>>,
}

impl Kind for Probe {
    type Key = ObjectKey;
    type Message = News;
    type Mailbox = Option<u32>;
    type Mail = Option<u32>;
    type State = u32;

    fn tenant(key: &ObjectKey) -> u64 {
        stable_hash(&key.namespace)
    }

    fn fold(&self, _key: &ObjectKey, mailbox: &mut Option<u32>, news: News, _now: WallTime) -> Wake {
        match news {
            News::Generation(generation) => *mailbox = Some(generation),
            News::Deleted => *mailbox = None,
            News::Wants(wake) => return wake,
            News::Poison => panic!("on purpose"),
        }
        Wake::Now
    }

    fn collect(&self, _key: &ObjectKey, mailbox: &Option<u32>) -> Option<u32> {
        *mailbox
    }

    /// An object is due its generation after noon, in seconds; generation 0 never.
    fn due(&self, _key: &ObjectKey, generation: &Option<u32>, _now: WallTime) -> Option<WallTime> {
        generation.filter(|generation| *generation > 0).and_then(|generation| World::at_s(generation.into()))
    }

    fn open(&self, _key: &ObjectKey) -> u32 {
        0
    }

    async fn step(&self, key: &ObjectKey, steps: &mut u32, generation: Option<u32>, context: &StepContext) -> Next {
        *steps += 1;
        let (steps, failures, at) = (*steps, context.failures, context.now);
        self.seen.lock().unwrap().push(Seen { key: key.clone(), generation, steps, failures, at });
        let script = self.script.lock().unwrap().pop_front();
        match script {
            Some(Script::Return(next)) => next,
            Some(Script::Panic) => panic!("on purpose"),
            Some(Script::Yield(times, next)) => {
                for _ in 0..times {
                    tokio::task::yield_now().await;
                }
                next
            }
            Some(Script::Wait(told, next)) => {
                told.notified().await;
                next
            }
            Some(Script::GiveWay(told, next)) => {
                context.give_way();
                told.notified().await;
                next
            }
            None if generation.is_some() => Next::done(None),
            None => Next::gone(),
        }
    }
}

/// A supervisor of scripted actors.
struct World {
    clock: Clock,
    supervisor: Supervisor<Probe>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl World {
    fn new() -> Self {
        let clock = Clock::starting_at(noon());
        let options = Options { shards: 2, concurrent_steps: 8, ..Options::new(clock.clone()) };
        let supervisor = Supervisor::new(Probe::default(), options);
        Self { clock, supervisor, stop: CancellationToken::new(), tasks: TaskTracker::new() }
    }

    /// Running and opened.
    fn opened() -> Self {
        let world = Self::new();
        world.supervisor.open();
        world.run();
        world
    }

    fn run(&self) -> JoinHandle<usize> {
        let (supervisor, stop) = (self.supervisor.clone(), self.stop.clone());
        self.tasks.spawn(async move { supervisor.run(stop, BUDGET).await })
    }

    fn script(&self, steps: impl IntoIterator<Item = Script>) {
        self.supervisor.kind().script.lock().unwrap().extend(steps);
    }

    fn send(&self, name: &str, news: News) {
        self.supervisor.send(key(name), news);
    }

    fn seen(&self) -> Vec<Seen> {
        self.supervisor.kind().seen.lock().unwrap().clone()
    }

    /// Seconds after noon of each step so far, rounded down.
    fn step_times_s(&self) -> Vec<i64> {
        self.seen().iter().map(|seen| (seen.at - noon()).num_seconds()).collect()
    }

    /// A place of its own, for a step without a supervisor.
    fn place(&self) -> Place {
        Places::new(1, 0).begin().now_or_never().flatten().unwrap()
    }

    /// Due this many seconds after noon.
    fn at_s(seconds: i64) -> Option<WallTime> {
        Some(noon() + TimeDelta::seconds(seconds))
    }
}

fn noon() -> WallTime {
    chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

/// Lets virtual time pass; whatever is due meanwhile happens.
async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
