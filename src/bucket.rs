//! A token bucket: the only file that knows `governor`.
//!
//! A refused caller reserves nothing, so whoever waits must ask again; callers that need turns hold a queue around it.
//! Governor's own waiting functions sleep on a timer that tests cannot pause and are not used. Time is the crate's
//! monotonic clock.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as GovernorClock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

use crate::clock::Clock;

/// A bucket that starts full.
pub(crate) struct Bucket {
    limiter: RateLimiter<NotKeyed, InMemoryState, Mono, NoOpMiddleware<Since>>,
    clock: Mono,
}

impl Bucket {
    /// A bucket of `burst` tokens that regains one per `period`. Zero burst counts as one, a zero period as a nanosecond.
    pub(crate) fn new(clock: &Clock, burst: u32, period: Duration) -> Self {
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(period.max(Duration::from_nanos(1)))
            .unwrap_or_else(|| Quota::per_second(NonZeroU32::MIN))
            .allow_burst(burst);
        let clock = Mono { start: clock.mono(), clock: clock.clone() };
        Self { limiter: RateLimiter::direct_with_clock(quota, clock.clone()), clock }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The bucket is empty; the value is the time until a token is there, if nobody else takes it first.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.limiter.check().map_err(|refused| refused.wait_time_from(self.clock.now()))
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").finish_non_exhaustive()
    }
}

/// Governor's view of our monotonic clock: time since the bucket was made.
#[derive(Clone, Debug)]
struct Mono {
    clock: Clock,
    start: Instant,
}

impl GovernorClock for Mono {
    type Instant = Since;

    fn now(&self) -> Since {
        Since(self.clock.mono().saturating_duration_since(self.start))
    }
}

/// A moment, as time since the bucket was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Since(Duration);

impl std::ops::Add<governor::nanos::Nanos> for Since {
    type Output = Self;

    fn add(self, by: governor::nanos::Nanos) -> Self {
        Self(self.0 + Duration::from(by))
    }
}

impl Reference for Since {
    fn duration_since(&self, earlier: Self) -> governor::nanos::Nanos {
        self.0.saturating_sub(earlier.0).into()
    }

    fn saturating_sub(&self, by: governor::nanos::Nanos) -> Self {
        Self(self.0.checked_sub(by.into()).unwrap_or(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_bucket_gives_its_burst_and_then_one_per_period() {
        let bucket = Bucket::new(&Clock::system(), 25, Duration::from_secs(300));
        for _ in 0..25 {
            assert_eq!(bucket.take(), Ok(()));
        }
        assert_eq!(bucket.take(), Err(Duration::from_secs(300)));
        tokio::time::advance(Duration::from_secs(299)).await;
        assert_eq!(bucket.take(), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(bucket.take(), Ok(()));
        assert!(bucket.take().is_err());
    }
}
