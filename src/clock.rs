//! The two clocks: wall time, on which schedules are decided, and monotonic time, on which timers run.
//!
//! Invariants
//! - Nobody else in the crate reads a clock (`clippy.toml` bans it), so a test that owns the [`Clock`] and tokio's paused
//!   time owns all of time.
//! - Monotonic time is tokio's: a test can pause it. It never runs back and may stand still while the machine sleeps.
//! - Wall time can be stepped at any moment. [`Clock::drift`] shows such a step; whoever arms timers from due instants
//!   watches it and arms them anew.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::{Instant, sleep};

use crate::latest::Latest;
use crate::model::WallTime;

/// How often the machine's clocks are compared: a step, or a sleep of the machine, is noticed within this time.
const COMPARE_EVERY: Duration = Duration::from_millis(500);

/// Both clocks. Cheap to clone; clones read the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Arc<Source>,
}

#[derive(Debug)]
struct Source {
    kind: Kind,
    /// Wall time when this clock was made; the zero of `drift`.
    start_wall: WallTime,
    /// Monotonic time at the same moment.
    start_mono: Instant,
}

#[derive(Debug)]
enum Kind {
    /// The machine's own wall clock.
    System,
    /// Wall time derived from monotonic time: `start_wall + speed * elapsed + step`.
    Derived {
        speed: u32,
        /// Sum of all steps so far; written by [`Clock::step`].
        step: Latest<TimeDelta>,
    },
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self::new(Kind::System, system_wall())
    }

    /// From the present on, wall time that runs `speed` times as fast as monotonic time (0 counts as 1).
    pub fn scaled(speed: u32) -> Self {
        Self::derived(system_wall(), speed)
    }

    /// Wall time that starts at `start` and follows tokio's monotonic time: the clock of tests and simulations.
    pub fn starting_at(start: WallTime) -> Self {
        Self::derived(start, 1)
    }

    fn derived(start: WallTime, speed: u32) -> Self {
        Self::new(Kind::Derived { speed: speed.max(1), step: Latest::new(TimeDelta::zero()) }, start)
    }

    fn new(kind: Kind, start_wall: WallTime) -> Self {
        Self { source: Arc::new(Source { kind, start_wall, start_mono: mono_now() }) }
    }

    /// Wall time now.
    pub fn wall(&self) -> WallTime {
        match &self.source.kind {
            Kind::System => system_wall(),
            Kind::Derived { step, .. } => saturating_add(self.undisturbed_wall(), step.get()),
        }
    }

    /// Monotonic time now.
    pub fn mono(&self) -> Instant {
        mono_now()
    }

    /// How long to wait on the monotonic clock until wall time reaches `at`, if nobody steps the wall clock; zero when it has.
    pub fn until(&self, at: WallTime) -> Duration {
        let wall = at.signed_duration_since(self.wall()).to_std().unwrap_or(Duration::ZERO);
        match self.source.kind {
            Kind::System => wall,
            // Rounded up to the nanosecond, so that a timer never fires before its instant.
            Kind::Derived { speed, .. } => {
                let shorter = wall / speed;
                if shorter * speed < wall { shorter + Duration::from_nanos(1) } else { shorter }
            }
        }
    }

    /// How far the wall clock has been stepped (forward is positive) against the monotonic one since this clock was made. A
    /// machine that was suspended shows as a step forward.
    pub fn drift(&self) -> TimeDelta {
        self.wall().signed_duration_since(self.undisturbed_wall())
    }

    /// Steps a derived wall clock by `by`, as an operator or NTP would; the system's clock is left alone.
    pub fn step(&self, by: TimeDelta) {
        if let Kind::Derived { step, .. } = &self.source.kind {
            step.update(|step| *step = step.checked_add(&by).unwrap_or(*step));
        }
    }

    /// Calls `compare` whenever the wall clock may have been stepped, for ever, and at first, as it may have been before. A derived
    /// clock says when it was; the machine's has to be asked again and again.
    pub async fn watch_steps(&self, mut compare: impl FnMut()) {
        match &self.source.kind {
            Kind::System => loop {
                compare();
                sleep(COMPARE_EVERY).await;
            },
            Kind::Derived { step, .. } => {
                let mut steps = step.follow();
                compare();
                loop {
                    steps.changed().await;
                    compare();
                }
            }
        }
    }

    /// How many times faster than monotonic time wall time runs.
    pub fn speed(&self) -> u32 {
        match self.source.kind {
            Kind::System => 1,
            Kind::Derived { speed, .. } => speed,
        }
    }

    /// Wall time as it would be had nobody stepped it.
    fn undisturbed_wall(&self) -> WallTime {
        let elapsed = mono_now().saturating_duration_since(self.source.start_mono);
        let scaled = elapsed.checked_mul(self.speed()).unwrap_or(Duration::MAX);
        saturating_add(self.source.start_wall, TimeDelta::from_std(scaled).unwrap_or(TimeDelta::MAX))
    }
}

fn saturating_add(at: WallTime, by: TimeDelta) -> WallTime {
    let edge = if by < TimeDelta::zero() { WallTime::MIN_UTC } else { WallTime::MAX_UTC };
    at.checked_add_signed(by).unwrap_or(edge)
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the machine's wall clock")]
fn system_wall() -> WallTime {
    chrono::Utc::now()
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
fn mono_now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeZone;

    fn noon() -> WallTime {
        chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn wall_time_follows_paused_monotonic_time() {
        let clock = Clock::starting_at(noon());
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.wall(), noon() + TimeDelta::seconds(90));
        assert_eq!(clock.until(noon() + TimeDelta::seconds(100)), Duration::from_secs(10));
        assert_eq!(clock.until(noon()), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_scaled_clock_shortens_waits_and_never_wakes_early() {
        let clock = Clock {
            source: Arc::new(Source {
                kind: Kind::Derived { speed: 7, step: Latest::new(TimeDelta::zero()) },
                start_wall: noon(),
                start_mono: mono_now(),
            }),
        };
        let due = noon() + TimeDelta::seconds(60);
        tokio::time::advance(clock.until(due)).await;
        assert!(clock.wall() >= due && clock.wall() < due + TimeDelta::milliseconds(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_shows_as_drift_and_elapsed_time_does_not() {
        let clock = Clock::starting_at(noon());
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.drift(), TimeDelta::zero());
        clock.step(TimeDelta::hours(-2));
        assert_eq!(clock.drift(), TimeDelta::hours(-2));
        assert_eq!(clock.wall(), noon() - TimeDelta::hours(1));
    }
}
