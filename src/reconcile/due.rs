//! When a CronJob is due: its schedule and zone, what is pending, and the next instant.

use std::borrow::Cow;

use chrono::TimeDelta;

use crate::model::{CronJob, CronJobSpec, WallTime, unix_minutes};
use crate::schedule::{Missed, NeverTwice, ParseError, Schedule, Timing, Zone, ZoneError, missed_since, next_start};

/// Added to every wake-up for a due instant, so that a timer that fires a little early still finds it due.
pub const WAKE_DELAY: TimeDelta = TimeDelta::milliseconds(100);

/// How far the clocks of replicas and of the API server may differ, and a run that is ours lie ahead (ADR 0087).
pub const CLOCKS_DIFFER_BY: TimeDelta = TimeDelta::hours(3);

/// Seconds from which on the peers' `seconds x 1e9` overflows their 64 bits.
const GO_DURATION_MAX_S: i64 = 9_223_372_036;

/// The zone of `spec.timeZone`, if one is set. `local` is the process's zone, for the name `Local`.
///
/// # Errors
/// There is no such zone.
pub(super) fn zone_of(spec: &CronJobSpec, local: Zone) -> Result<Option<Zone>, ZoneError> {
    spec.time_zone.as_deref().map(|name| Zone::load(name, local)).transpose()
}

/// The schedule text as it is parsed: with the zone of `spec.timeZone` in front, unless the text brings its own (then
/// `spec.timeZone` is ignored) or the zone does not exist.
pub fn effective_schedule(spec: &CronJobSpec, local: Zone) -> Cow<'_, str> {
    match &spec.time_zone {
        Some(zone) if !spec.schedule.contains("TZ") && Zone::load(zone, local).is_ok() => {
            Cow::Owned(format!("TZ={zone} {}", spec.schedule))
        }
        _ => Cow::Borrowed(&spec.schedule),
    }
}

/// A CronJob's schedule, ready to be asked.
#[derive(Clone, Copy, Debug)]
pub struct Timetable {
    schedule: Schedule,
    /// For a schedule whose text names no zone.
    local: Zone,
    /// The minute that names the Job of the last run (rule `minute-taken`).
    taken: Option<i64>,
    /// Last run, else creation: what is pending came after it. `None` in an object that never saw a server; then nothing is pending.
    anchor: Option<WallTime>,
    deadline_s: Option<i64>,
    /// Nothing due at or before it starts (rule `edit-floor`).
    floor: Option<WallTime>,
    now: WallTime,
}

impl Timetable {
    /// The timetable of `cronjob`, whose status may differ from the object's own: `last_schedule_time` is given apart.
    ///
    /// # Errors
    /// The schedule does not parse.
    pub fn new(
        cronjob: &CronJob,
        last_schedule_time: Option<WallTime>,
        local: Zone,
        floor: Option<WallTime>,
        now: WallTime,
    ) -> Result<Self, ParseError> {
        Ok(Self {
            schedule: Schedule::parse(&effective_schedule(&cronjob.spec, local))?,
            local,
            taken: last_schedule_time.map(unix_minutes),
            anchor: last_schedule_time.or(cronjob.creation_time),
            deadline_s: cronjob.spec.starting_deadline_s,
            floor,
            now,
        })
    }

    /// What is pending within the deadline; its newest is the run to start.
    ///
    /// # Errors
    /// The schedule never fires, or fires once more and then never.
    pub fn due(&self) -> Result<Missed, NeverTwice> {
        self.missed_after(self.window())
    }

    /// What is pending whatever the deadline says.
    ///
    /// # Errors
    /// As [`due`](Self::due).
    pub fn pending(&self) -> Result<Missed, NeverTwice> {
        self.missed_after(None)
    }

    /// The start of the window in which a run may still start; it is open there (due > start). `None`: never too late.
    pub fn window(&self) -> Option<WallTime> {
        let back_s = match self.deadline_s? {
            // Rule `deadline-zero`.
            0 => 1,
            // Rule `deadline-saturates`; a negative one lies ever further in the future, and nothing is due.
            s if s > GO_DURATION_MAX_S => return None,
            s => s.max(-GO_DURATION_MAX_S),
        };
        let start = TimeDelta::try_seconds(back_s).and_then(|back| self.now.checked_sub_signed(back));
        Some(start.unwrap_or(if back_s > 0 { WallTime::MIN_UTC } else { WallTime::MAX_UTC }))
    }

    /// The next due instant after what is pending now. `None`: it never fires again.
    pub fn next_due(&self) -> Option<WallTime> {
        let start = self.since(None);
        let base = match missed_since(&self.schedule, self.local, start, self.now) {
            Ok(missed) => missed.newest.unwrap_or(start),
            Err(NeverTwice) => self.now,
        };
        next_start(&self.schedule, self.local, base).and_then(|next| self.in_a_free_minute(next))
    }

    /// Whether the Job of an instant would have the name of the last run's (rule `minute-taken`).
    pub fn is_taken(&self, at: WallTime) -> bool {
        self.taken == Some(unix_minutes(at))
    }

    /// How far apart the instants of an `@every` are that come more than once in a minute, seconds.
    pub fn within_a_minute_s(&self) -> Option<i64> {
        match self.schedule.timing() {
            Timing::Every { delay_s } if delay_s < 60 => Some(delay_s),
            _ => None,
        }
    }

    /// `at`, or the first instant after it in a minute that is not taken.
    fn in_a_free_minute(&self, at: WallTime) -> Option<WallTime> {
        if !self.is_taken(at) {
            return Some(at);
        }
        let last_second = WallTime::from_timestamp(unix_minutes(at) * 60 + 59, 0)?;
        let base = match self.schedule.timing() {
            Timing::Every { delay_s } => on_grid(at, delay_s, last_second),
            Timing::Fields(_) => last_second,
        };
        next_start(&self.schedule, self.local, base)
    }

    /// The first instant that is not settled: pending since then, or due then. `None`: it never fires again.
    pub fn first_due(&self) -> Option<WallTime> {
        next_start(&self.schedule, self.local, self.since(self.window()))
    }

    fn missed_after(&self, window: Option<WallTime>) -> Result<Missed, NeverTwice> {
        missed_since(&self.schedule, self.local, self.since(window), self.now)
    }

    /// What is pending, within `window` if one is given, lies after this: anchor, window or floor, whichever is latest.
    pub fn since(&self, window: Option<WallTime>) -> WallTime {
        let anchor = self.anchor.unwrap_or(self.now);
        let filter = window.max(self.floor);
        match (filter, self.schedule.timing()) {
            (Some(filter), Timing::Every { delay_s }) if filter > anchor => on_grid(anchor, delay_s, filter),
            (Some(filter), _) => anchor.max(filter),
            (None, _) => anchor,
        }
    }
}

/// The last instant at or before `at` on the grid of `@every` that `anchor` begins (rule `every-keeps-anchor`).
fn on_grid(anchor: WallTime, delay_s: i64, at: WallTime) -> WallTime {
    let delay_s = delay_s.max(1);
    let steps = at.timestamp().saturating_sub(anchor.timestamp()) / delay_s;
    let on_grid = anchor.timestamp().saturating_add(steps.saturating_mul(delay_s));
    WallTime::from_timestamp(on_grid, 0).unwrap_or(anchor)
}
