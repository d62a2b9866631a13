//! Answers that are dear to get, each asked for once at a time and kept for a while.
//!
//! Invariants
//! - The map is bounded: a flood of different questions drops what would be forgotten soonest, and asks no more when even
//!   that does not make room.
//! - Questions are asked no faster than the bucket allows. What was answered with yes before is asked again regardless, so
//!   that a flood of made-up questions keeps nobody out who is known.
//! - A question under way lives on its own task: whoever waits may go away, and the answer is kept all the same.
//! - Failures are not kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use ring::digest::{SHA256, digest};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::model::ApiFailure;

/// Answers and questions kept at most.
const MOST: usize = 1024;
/// Questions asked at a time.
const AT_A_TIME: usize = 8;
/// New questions asked at once after a quiet time.
const BURST: u32 = 50;
/// Time in which one more may be asked.
const ONE_EVERY: Duration = Duration::from_millis(100);
/// How long a yes holds, as in controller-runtime. Who loses a right keeps it for as long.
const YES_HOLDS: Duration = Duration::from_secs(60);
/// How long a no holds: short, since the next thing an operator does is to grant the right.
const NO_HOLDS: Duration = Duration::from_secs(10);
/// Time for an answer, the wait for one's turn included. Prometheus gives up a scrape after 10 s.
const DEADLINE: Duration = Duration::from_secs(8);

/// What a question is found by: a hash, so that secrets in the question are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; 32]);

impl Key {
    /// The key of a question.
    pub(super) fn of(question: &[u8]) -> Self {
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, question).as_ref());
        Self(key)
    }
}

type Outcome<V> = Result<V, ApiFailure>;

/// An answer is a yes or a no.
pub(super) trait Answer: Clone + Send + Sync + 'static {
    /// Whether it is a yes.
    fn is_yes(&self) -> bool;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// It was not asked, since too much is asked; this is the time until it may be.
    TooMany(Duration),
    /// It was asked in vain.
    Failed(ApiFailure),
}

impl From<ApiFailure> for Unanswered {
    fn from(failure: ApiFailure) -> Self {
        Self::Failed(failure)
    }
}

enum Entry<V: Clone> {
    Asked(Shared<BoxFuture<'static, Outcome<V>>>),
    Known { answer: V, until: Instant },
}

/// The answers. Cheap to clone; clones share them.
pub(super) struct Answers<V: Clone> {
    inner: Arc<Inner<V>>,
}

struct Inner<V: Clone> {
    clock: Clock,
    entries: Mutex<HashMap<Key, Entry<V>>>,
    /// What may be asked anew.
    bucket: Bucket,
    turns: Semaphore,
    tasks: TaskTracker,
}

impl<V: Clone> Clone for Answers<V> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<V: Answer> Answers<V> {
    pub(super) fn new(clock: &Clock) -> Self {
        let inner = Inner {
            clock: clock.clone(),
            entries: Mutex::default(),
            bucket: Bucket::new(clock, BURST, ONE_EVERY),
            turns: Semaphore::new(AT_A_TIME),
            tasks: TaskTracker::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The answer to the question `key`, kept from before or got by `ask`.
    ///
    /// # Errors
    /// Too much is asked, or what `ask` failed with; code 0 when there was no answer in time or no room for the question.
    pub(super) async fn get<F>(&self, key: Key, ask: impl FnOnce() -> F) -> Result<V, Unanswered>
    where
        F: Future<Output = Outcome<V>> + Send + 'static,
    {
        let asked = {
            let now = self.inner.clock.mono();
            let mut entries = self.inner.lock();
            match entries.get(&key) {
                Some(Entry::Known { answer, until }) if now < *until => return Ok(answer.clone()),
                Some(Entry::Asked(asked)) => asked.clone(),
                before => {
                    let yes = match before {
                        Some(Entry::Known { answer, .. }) if answer.is_yes() => Some(answer.clone()),
                        _ => None,
                    };
                    if yes.is_none() {
                        self.inner.bucket.take().map_err(Unanswered::TooMany)?;
                        make_room(&mut entries, now)?;
                    }
                    let asked = settled(self.inner.clone(), key, ask(), yes).boxed().shared();
                    entries.insert(key, Entry::Asked(asked.clone()));
                    self.inner.tasks.spawn(asked.clone());
                    asked
                }
            }
        };
        Ok(asked.await?)
    }
}

/// Waits for its turn and the answer, and keeps it. A `yes` from before is known as such again if there is no answer.
async fn settled<V: Answer>(
    inner: Arc<Inner<V>>,
    key: Key,
    answer: impl Future<Output = Outcome<V>>,
    yes: Option<V>,
) -> Outcome<V> {
    let until = inner.clock.mono() + DEADLINE;
    let asking = async {
        // Nobody closes the semaphore.
        let _turn = inner.turns.acquire().await.ok();
        // A turn that comes at the last moment would only bother the server.
        if inner.clock.mono() < until { answer.await } else { Err(failed("no turn in time")) }
    };
    let outcome = timeout_at(until, asking).await.unwrap_or_else(|_late| Err(failed("no answer in time")));
    let mut entries = inner.lock();
    let now = inner.clock.mono();
    let known = match (&outcome, yes) {
        (Ok(answer), _) => Some((answer.clone(), now + holds(answer.is_yes()))),
        // It holds no longer, so nobody is let in by it.
        (Err(_), Some(yes)) => Some((yes, now)),
        (Err(_), None) => None,
    };
    match known {
        Some((answer, until)) => entries.insert(key, Entry::Known { answer, until }),
        None => entries.remove(&key),
    };
    outcome
}

fn holds(yes: bool) -> Duration {
    if yes { YES_HOLDS } else { NO_HOLDS }
}

fn make_room<V: Clone>(entries: &mut HashMap<Key, Entry<V>>, now: Instant) -> Result<(), ApiFailure> {
    if entries.len() < MOST {
        return Ok(());
    }
    entries.retain(|_, entry| !matches!(entry, Entry::Known { until, .. } if *until <= now));
    if entries.len() < MOST {
        return Ok(());
    }
    let known = entries.iter().filter_map(|(key, entry)| match entry {
        Entry::Known { until, .. } => Some((*until, *key)),
        Entry::Asked(_) => None,
    });
    let (_, soonest) = known.min_by_key(|(until, _)| *until).ok_or_else(|| failed("too many questions at a time"))?;
    entries.remove(&soonest);
    Ok(())
}

fn failed(message: &str) -> ApiFailure {
    ApiFailure { message: message.into(), ..ApiFailure::default() }
}

impl<V: Clone> Inner<V> {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry<V>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::time::{advance, sleep, timeout};

    /// Zero is a no.
    impl Answer for u32 {
        fn is_yes(&self) -> bool {
            *self > 0
        }
    }

    struct Asked {
        answers: Answers<u32>,
        times: Arc<AtomicUsize>,
    }

    impl Asked {
        fn new() -> Self {
            Self { answers: Answers::new(&Clock::system()), times: Arc::default() }
        }

        /// Asks something that takes a second and is answered with `outcome`.
        async fn get(&self, question: &str, outcome: Outcome<u32>) -> Result<u32, Unanswered> {
            let times = self.times.clone();
            let ask = || async move {
                times.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_secs(1)).await;
                outcome
            };
            self.answers.get(Key::of(question.as_bytes()), ask).await
        }

        fn times(&self) -> usize {
            self.times.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_as_long_as_it_holds() {
        let asked = Asked::new();
        assert_eq!(asked.get("a", Ok(1)).await, Ok(1));
        advance(Duration::from_secs(59)).await;
        assert_eq!(asked.get("a", Ok(2)).await, Ok(1));
        advance(Duration::from_secs(1)).await;
        assert_eq!(asked.get("a", Ok(2)).await, Ok(2));
        assert_eq!(asked.times(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_question_is_asked_once_however_many_wait() {
        let asked = Asked::new();
        let all = futures::future::join_all((0..100).map(|_| asked.get("a", Ok(1)))).await;
        assert!(all.iter().all(|answer| *answer == Ok(1)));
        assert_eq!(asked.times(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_also_when_who_asked_went_away() {
        let asked = Asked::new();
        assert!(timeout(Duration::from_millis(10), asked.get("a", Ok(1))).await.is_err());
        sleep(Duration::from_secs(30)).await;
        assert_eq!(asked.get("a", Ok(2)).await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_told_and_asked_again() {
        let asked = Asked::new();
        let failure = ApiFailure { code: 503, ..ApiFailure::default() };
        assert_eq!(asked.get("a", Err(failure.clone())).await, Err(Unanswered::Failed(failure)));
        assert_eq!(asked.get("a", Ok(2)).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn no_answer_ends_in_time() {
        let asked = Asked::new();
        let never = || std::future::pending::<Outcome<u32>>();
        let failure = asked.answers.get(Key::of(b"a"), never).await.unwrap_err();
        assert!(matches!(failure, Unanswered::Failed(failure) if failure.is_ambiguous()));
        assert_eq!(asked.get("a", Ok(1)).await, Ok(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_questions_is_bounded_in_number_and_at_a_time() {
        let asked = Asked::new();
        let questions: Vec<String> = (0..2 * MOST).map(|n| n.to_string()).collect();
        let all = futures::future::join_all(questions.iter().map(|question| asked.get(question, Ok(1)))).await;
        // One second each, 8 at a time, so that all are asked before the deadline.
        assert_eq!((asked.times(), all.iter().filter(|answer| answer.is_ok()).count()), (50, 50));
        let told = all.iter().filter(|answer| **answer == Err(Unanswered::TooMany(ONE_EVERY)));
        assert_eq!(told.count(), questions.len() - 50);
        assert!(asked.answers.inner.lock().len() <= MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_known_is_asked_about_again_in_any_flood_also_after_failures() {
        let asked = Asked::new();
        assert_eq!(asked.get("known", Ok(1)).await, Ok(1));
        assert_eq!(asked.get("unknown", Ok(0)).await, Ok(0));
        advance(YES_HOLDS).await;
        while asked.answers.inner.bucket.take().is_ok() {}
        assert!(matches!(asked.get("unknown", Ok(0)).await, Err(Unanswered::TooMany(_))));
        let failure = ApiFailure { code: 503, ..ApiFailure::default() };
        for _ in 0..2 {
            assert_eq!(asked.get("known", Err(failure.clone())).await, Err(Unanswered::Failed(failure.clone())));
            while asked.answers.inner.bucket.take().is_ok() {}
        }
        assert_eq!(asked.get("known", Ok(2)).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_made_by_forgetting_what_ends_soonest() {
        let asked = Asked::new();
        for n in 0..MOST {
            let until = asked.answers.inner.clock.mono() + YES_HOLDS;
            let entry = Entry::Known { answer: 1, until };
            asked.answers.inner.lock().insert(Key::of(&n.to_be_bytes()), entry);
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(asked.get("one more", Ok(7)).await, Ok(7));
        let entries = asked.answers.inner.lock();
        assert_eq!(entries.len(), MOST);
        assert!(!entries.contains_key(&Key::of(&0_usize.to_be_bytes())));
        assert!(entries.contains_key(&Key::of(&1_usize.to_be_bytes())));
    }
}
