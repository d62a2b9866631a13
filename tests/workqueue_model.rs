//! Random operations on the work queue, compared step by step with a reference model that is plain enough to be checked
//! by reading. Time is virtual.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::time::Duration;

use cronjob_controller::clock::Clock;
use cronjob_controller::workqueue::{Class, Counts, Guard, ItemExponential, Options, Queue};
use futures::FutureExt;
use proptest::prelude::*;

type Key = u8;

const BASE_MS: u64 = 2;
const MAX_MS: u64 = 50;

fn tenant_of(key: &Key) -> u64 {
    u64::from(key % 3)
}

/// What the queue should do, in lists searched from end to end. Times are milliseconds.
#[derive(Default)]
struct Model {
    now: u64,
    closed: bool,
    /// Keys that wait, in the order in which they entered.
    waiting: Vec<(Class, Key)>,
    /// Tenants in the order of their turns, for each class.
    turns: BTreeMap<Class, Vec<u64>>,
    running: Vec<Key>,
    /// Keys in flight that are to come again.
    again: BTreeMap<Key, Class>,
    /// Delayed keys, in the order in which their present deadline was asked for.
    delayed: Vec<(u64, Key)>,
    failures: BTreeMap<Key, u32>,
}

impl Model {
    fn enter(&mut self, key: Key, class: Class) {
        if self.running.contains(&key) {
            let again = self.again.entry(key).or_insert(class);
            *again = class.min(*again);
            return;
        }
        match self.waiting.iter().position(|(_, waiting)| *waiting == key) {
            Some(place) if self.waiting[place].0 <= class => return,
            Some(place) => drop(self.waiting.remove(place)),
            None => {}
        }
        self.waiting.push((class, key));
        let turns = self.turns.entry(class).or_default();
        if !turns.contains(&tenant_of(&key)) {
            turns.push(tenant_of(&key));
        }
    }

    fn get(&mut self) -> Option<Key> {
        for class in [Class::Due, Class::Listed] {
            let turns = self.turns.entry(class).or_default();
            while !turns.is_empty() {
                let tenant = turns.remove(0);
                let of_tenant = |(c, key): &(Class, Key)| *c == class && tenant_of(key) == tenant;
                let Some(place) = self.waiting.iter().position(of_tenant) else { continue };
                let (_, key) = self.waiting.remove(place);
                if self.waiting.iter().any(of_tenant) {
                    turns.push(tenant);
                }
                self.running.push(key);
                return Some(key);
            }
        }
        None
    }

    fn add_after(&mut self, key: Key, delay: u64) {
        let at = self.now + delay;
        if delay == 0 {
            self.enter(key, Class::Due);
        } else if !self.delayed.iter().any(|(old, delayed)| *delayed == key && *old <= at) {
            self.delayed.retain(|(_, delayed)| *delayed != key);
            self.delayed.push((at, key));
        }
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.delayed.sort_by_key(|(at, _)| *at);
        while self.delayed.first().is_some_and(|(at, _)| *at <= self.now) {
            let (_, key) = self.delayed.remove(0);
            self.enter(key, Class::Due);
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Add(Key, Class),
    AddAfter(Key, u64),
    AddRateLimited(Key),
    Forget(Key),
    Cancel(Key),
    Get,
    Done(usize),
    Pass(u64),
    ShutDown,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..9_u8;
    let class = prop_oneof![Just(Class::Due), Just(Class::Listed)];
    prop_oneof![
        6 => (key.clone(), class).prop_map(|(key, class)| Operation::Add(key, class)),
        4 => (key.clone(), 0..40_u64).prop_map(|(key, delay)| Operation::AddAfter(key, delay)),
        2 => key.clone().prop_map(Operation::AddRateLimited),
        1 => key.clone().prop_map(Operation::Forget),
        1 => key.prop_map(Operation::Cancel),
        8 => Just(Operation::Get),
        5 => (0..9_usize).prop_map(Operation::Done),
        3 => (1..30_u64).prop_map(Operation::Pass),
    ]
}

/// Operations, with a shutdown somewhere in half of the cases.
fn operations() -> impl Strategy<Value = Vec<Operation>> {
    (prop::collection::vec(operation(), 1..200), any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut operations, place, shut_down)| {
            if shut_down {
                operations.insert(place.index(operations.len()), Operation::ShutDown);
            }
            operations
        },
    )
}

fn waits(failures: u32) -> u64 {
    (BASE_MS << failures.min(20)).min(MAX_MS)
}

async fn run(operations: Vec<Operation>) -> Result<(), TestCaseError> {
    let limiter = Box::new(ItemExponential::new(Duration::from_millis(BASE_MS), Duration::from_millis(MAX_MS)));
    let queue = Queue::new(Options { limiter, tenant_of, ..Options::new(Clock::system()) });
    let mut model = Model::default();
    let mut guards: Vec<Guard<Key>> = Vec::new();
    for operation in operations {
        match operation {
            Operation::Add(key, class) => {
                queue.add_in(key, class);
                (!model.closed).then(|| model.enter(key, class));
            }
            Operation::AddAfter(key, delay) => {
                queue.add_after(key, Duration::from_millis(delay));
                (!model.closed).then(|| model.add_after(key, delay));
            }
            Operation::AddRateLimited(key) => {
                queue.add_rate_limited(key);
                if !model.closed {
                    let failures = model.failures.entry(key).or_insert(0);
                    *failures += 1;
                    let wait = waits(*failures - 1);
                    model.add_after(key, wait);
                }
            }
            Operation::Forget(key) => {
                queue.forget(&key);
                model.failures.remove(&key);
            }
            Operation::Cancel(key) => {
                queue.cancel(&key);
                model.failures.remove(&key);
                model.delayed.retain(|(_, delayed)| *delayed != key);
            }
            Operation::Get => {
                let answer = queue.get().now_or_never();
                let expected = model.get();
                prop_assert_eq!(answer.is_some(), expected.is_some() || model.closed);
                let guard = answer.flatten();
                prop_assert_eq!(guard.as_deref().copied(), expected);
                guards.extend(guard);
            }
            Operation::Done(at) if at < guards.len() => {
                let key = *guards.remove(at);
                model.running.retain(|running| *running != key);
                if let Some(class) = model.again.remove(&key) {
                    model.enter(key, class);
                }
            }
            Operation::Done(_) => {}
            Operation::Pass(ms) => {
                tokio::time::advance(Duration::from_millis(ms)).await;
                model.pass(ms);
            }
            Operation::ShutDown => {
                queue.shut_down();
                model.closed = true;
                model.delayed.clear();
            }
        }
        let expected = Counts {
            queued: model.waiting.len(),
            in_flight: model.running.len(),
            delayed: model.delayed.len(),
            limiter_records: model.failures.len(),
        };
        prop_assert_eq!(queue.counts(), expected);
        for key in 0..9 {
            prop_assert_eq!(queue.num_requeues(&key), model.failures.get(&key).copied().unwrap_or(0));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_does_what_the_model_does(operations in operations()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(operations))?;
    }
}
