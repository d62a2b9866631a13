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

/// client-go's numbers: 0.8 s doubling to 30 s, each lengthened by up to its own length; from the start after two quiet minutes.
const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);
const QUIET: Duration = Duration::from_secs(120);

/// Pauses that grow while failures follow each other.
#[derive(Debug)]
pub(crate) struct Pauses {
    doubling: ExponentialBackoff,
    rng: StdRng,
    last_failure: Option<Instant>,
}

impl Pauses {
    pub(crate) fn new(seed: u64) -> Self {
        let doubling = ExponentialBackoffBuilder::new()
            .with_initial_interval(FIRST)
            .with_max_interval(LONGEST)
            .with_multiplier(2.0)
            .with_randomization_factor(0.0)
            .with_max_elapsed_time(None)
            .build();
        Self { doubling, rng: StdRng::seed_from_u64(seed), last_failure: None }
    }

    /// How long to pause after a failure at `now`.
    pub(crate) fn after_failure(&mut self, now: Instant) -> Duration {
        let quiet = self.last_failure.replace(now).is_some_and(|last| now.saturating_duration_since(last) > QUIET);
        if quiet {
            self.doubling.reset();
        }
        let base = self.doubling.next_backoff().unwrap_or(LONGEST);
        base.mul_f64(1.0 + self.rng.random::<f64>())
    }

    /// A time-out for a watch, drawn evenly from whole seconds between `shortest` and `longest`, so that the watches of many
    /// clients do not end together.
    pub(crate) fn draw(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let shortest = shortest.as_secs().max(1);
        Duration::from_secs(self.rng.random_range(shortest..=longest.as_secs().max(shortest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_with_jitter_up_to_twice_and_start_again_after_quiet() {
        let clock = crate::clock::Clock::system();
        let mut pauses = Pauses::new(7);
        for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            let pause = pauses.after_failure(clock.mono()).as_secs_f64();
            assert!((base..=2.0 * base).contains(&pause), "{pause} for {base}");
            tokio::time::advance(Duration::from_secs_f64(pause)).await;
        }
        tokio::time::advance(Duration::from_secs(121)).await;
        assert!(pauses.after_failure(clock.mono()).as_secs_f64() <= 1.6);
    }

    #[tokio::test(start_paused = true)]
    async fn the_seed_decides_the_jitter() {
        let now = crate::clock::Clock::system().mono();
        let (mut a, mut b, mut c) = (Pauses::new(1), Pauses::new(1), Pauses::new(2));
        let (first, second, third) = (a.after_failure(now), b.after_failure(now), c.after_failure(now));
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
