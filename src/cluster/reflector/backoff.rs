//! The pauses between attempts to list and watch: the only file that knows `backoff`.
//!
//! The crate gives the doubling. What it does not give, and what therefore stands here: jitter from our seed (its own comes
//! from the thread's generator, so it is set to zero), the reset after a quiet time (it resets only when told), our clock
//! (its clock is the machine's; with no time limit set it decides nothing).

use std::time::Duration;

use backoff::backoff::Backoff;
use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::Instant;

/// The first pause. Each pause is lengthened by up to its own length, so that many clients do not come together.
const FIRST: Duration = Duration::from_millis(800);
/// Longest pause before the lengthening when what was refused goes on from where it was. While nothing is heard, a leader may
/// act on what it has cached; so a server that is back must be noticed within seconds. A watch from a known version costs the
/// server little: 20 replicas with four collections each ask about ten times a second.
const LONGEST_TO_RESUME: Duration = Duration::from_secs(5);
/// Longest pause before the lengthening when a list has to be made anew: lists are what overloads a server. client-go's number.
const LONGEST_TO_RELIST: Duration = Duration::from_secs(30);
/// After this long without a failure pauses are short again; client-go's number.
const QUIET: Duration = Duration::from_secs(120);

/// Pauses that grow while failures follow each other. Both kinds grow by themselves: however long a server was away, the first
/// list that this made necessary waits the first pause only, at most 1.6 s; lists that are needed again and again wait longer.
///
/// In all, a server that refused connections and is back is asked again after at most 10 s, and if the version to resume from
/// is gone, a new list begins at most 1.6 s after that.
#[derive(Debug)]
pub(crate) struct Pauses {
    resume: Growing,
    relist: Growing,
    rng: StdRng,
}

/// One growing pause.
#[derive(Debug)]
struct Growing {
    doubling: ExponentialBackoff,
    longest: Duration,
    last_failure: Option<Instant>,
}

impl Pauses {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            resume: Growing::up_to(LONGEST_TO_RESUME),
            relist: Growing::up_to(LONGEST_TO_RELIST),
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// How long to pause, after a failure at `now`, before the same is tried again.
    pub(crate) fn before_resuming(&mut self, now: Instant) -> Duration {
        let base = self.resume.after_failure(now);
        self.lengthened(base)
    }

    /// How long to pause, after a failure at `now`, before a list that it made necessary.
    pub(crate) fn before_relisting(&mut self, now: Instant) -> Duration {
        let base = self.relist.after_failure(now);
        self.lengthened(base)
    }

    fn lengthened(&mut self, base: Duration) -> Duration {
        base.mul_f64(1.0 + self.rng.random::<f64>())
    }

    /// A time-out for a watch, drawn evenly from whole seconds between `shortest` and `longest`, so that the watches of many
    /// clients do not end together.
    pub(crate) fn draw(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let shortest = shortest.as_secs().max(1);
        Duration::from_secs(self.rng.random_range(shortest..=longest.as_secs().max(shortest)))
    }
}

impl Growing {
    fn up_to(longest: Duration) -> Self {
        let doubling = ExponentialBackoffBuilder::new()
            .with_initial_interval(FIRST)
            .with_max_interval(longest)
            .with_multiplier(2.0)
            .with_randomization_factor(0.0)
            .with_max_elapsed_time(None)
            .build();
        Self { doubling, longest, last_failure: None }
    }

    fn after_failure(&mut self, now: Instant) -> Duration {
        let quiet = self.last_failure.replace(now).is_some_and(|last| now.saturating_duration_since(last) > QUIET);
        if quiet {
            self.doubling.reset();
        }
        self.doubling.next_backoff().unwrap_or(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_with_jitter_up_to_twice_and_start_again_after_quiet() {
        type Pause = fn(&mut Pauses, Instant) -> Duration;
        let kinds: [(Pause, [f64; 8]); 2] = [
            (Pauses::before_resuming, [0.8, 1.6, 3.2, 5.0, 5.0, 5.0, 5.0, 5.0]),
            (Pauses::before_relisting, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]),
        ];
        let clock = crate::clock::Clock::system();
        for (pause_of, bases) in kinds {
            let mut pauses = Pauses::new(7);
            for base in bases {
                let pause = pause_of(&mut pauses, clock.mono()).as_secs_f64();
                assert!((base..=2.0 * base).contains(&pause), "{pause} for {base}");
                tokio::time::advance(Duration::from_secs_f64(pause)).await;
            }
            tokio::time::advance(Duration::from_secs(121)).await;
            assert!(pause_of(&mut pauses, clock.mono()).as_secs_f64() <= 1.6);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_list_after_a_long_outage_waits_the_first_pause_only() {
        let now = crate::clock::Clock::system().mono();
        let mut pauses = Pauses::new(7);
        for _ in 0..10 {
            pauses.before_resuming(now);
        }
        assert!(pauses.before_relisting(now).as_secs_f64() <= 1.6);
    }

    #[tokio::test(start_paused = true)]
    async fn the_seed_decides_the_jitter() {
        let now = crate::clock::Clock::system().mono();
        let [first, second, third] = [1, 1, 2].map(|seed| Pauses::new(seed).before_resuming(now));
        assert_eq!(first, second);
        assert_ne!(first, third);
    }

    #[test]
    fn watch_timeouts_stay_in_their_range() {
        let mut pauses = Pauses::new(3);
        let (low, high) = (Duration::from_secs(300), Duration::from_secs(600));
        assert!((0..200).map(|_| pauses.draw(low, high)).all(|t| (low..=high).contains(&t)));
        assert_eq!(pauses.draw(low, low), low);
    }
}
