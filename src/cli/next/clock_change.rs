//! Changes of a zone's offset, and what they do to a schedule: local times that do not exist, and such that come twice.

use std::fmt;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use crate::model::WallTime;
use crate::schedule::{Schedule, Zone, next_start};

/// Two changes of a zone are never closer than this (Ramadan's pair in Morocco is weeks apart), so no probe skips a pair.
const PROBE: TimeDelta = TimeDelta::hours(12);

/// Zone data has no changes after this year.
const LAST_YEAR: i32 = 2100;

/// Starts inside one change that are named one by one; of more only the number is told.
const NAMED: usize = 4;

/// One change of offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockChange {
    /// First instant with the new offset.
    at: WallTime,
    before_s: i32,
    after_s: i32,
}

/// How an instant lies to a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its local time comes again.
    First,
    /// Its local time was there before.
    Second,
    /// On the same local day.
    SameDay,
}

/// The changes of `zone` after `from` and up to `until`.
pub(super) fn between(zone: Zone, from: WallTime, until: WallTime) -> Vec<ClockChange> {
    use chrono::Datelike;
    let mut changes = Vec::new();
    let mut low = from;
    while low < until && low.year() <= LAST_YEAR {
        let high = (low + PROBE).min(until);
        let (before_s, after_s) = (zone.offset_s(low), zone.offset_s(high));
        if before_s != after_s {
            changes.push(ClockChange { at: first_with(zone, after_s, low, high), before_s, after_s });
        }
        low = high;
    }
    changes
}

/// The first second in (low, high] that has the offset `after_s`.
fn first_with(zone: Zone, after_s: i32, low: WallTime, high: WallTime) -> WallTime {
    let (mut low, mut high) = (low, high);
    while (high - low).num_seconds() > 1 {
        let middle = low + (high - low) / 2;
        if zone.offset_s(middle) == after_s { high = middle } else { low = middle }
    }
    // Instants may carry fractions of a second, changes do not.
    DateTime::from_timestamp(high.timestamp(), 0).unwrap_or(high)
}

/// The offset of `zone` at an instant, as chrono has it.
pub(super) fn offset(zone: Zone, at: WallTime) -> FixedOffset {
    fixed(zone.offset_s(at))
}

fn fixed(offset_s: i32) -> FixedOffset {
    FixedOffset::east_opt(offset_s).unwrap_or(FixedOffset::east_opt(0).unwrap_or_else(|| chrono::Offset::fix(&Utc)))
}

impl ClockChange {
    /// How long the gap or the repetition is.
    fn length(&self) -> TimeDelta {
        TimeDelta::seconds(i64::from((self.after_s - self.before_s).abs()))
    }

    fn goes_forward(&self) -> bool {
        self.after_s > self.before_s
    }

    fn before(&self, at: WallTime) -> DateTime<FixedOffset> {
        at.with_timezone(&fixed(self.before_s))
    }

    fn after(&self, at: WallTime) -> DateTime<FixedOffset> {
        at.with_timezone(&fixed(self.after_s))
    }

    /// How `at` lies to this change; `None`: not near.
    pub(super) fn place_of(&self, at: WallTime) -> Option<Place> {
        if !self.goes_forward() && at >= self.at - self.length() && at < self.at {
            return Some(Place::First);
        }
        if !self.goes_forward() && at >= self.at && at < self.at + self.length() {
            return Some(Place::Second);
        }
        let local_day = if at < self.at { self.before(at) } else { self.after(at) }.date_naive();
        (local_day == self.after(self.at).date_naive()).then_some(Place::SameDay)
    }

    /// What this change does to the starts of a schedule without zone, in `zone`; `None`: nothing.
    pub(super) fn effect_on(&self, schedule: &Schedule, zone: Zone) -> Option<String> {
        if self.goes_forward() { self.skipped(schedule) } else { self.doubled(schedule, zone) }
    }

    /// Starts that the old offset would have given inside the gap.
    fn skipped(&self, schedule: &Schedule) -> Option<String> {
        let times = self.times(schedule, Zone::fixed(self.before_s), self.at, self.before_s);
        let which = name(&times)?;
        Some(format!("{self}: no start for {which}, which this day does not have"))
    }

    /// Starts in the second pass of the repeated stretch that have a twin in the first.
    fn doubled(&self, schedule: &Schedule, zone: Zone) -> Option<String> {
        let first = self.times(schedule, zone, self.at - self.length(), self.before_s);
        let second = self.times(schedule, zone, self.at, self.after_s);
        let both: Vec<String> = second.into_iter().filter(|time| first.contains(time)).collect();
        let which = name(&both)?;
        Some(format!("{self}: starts twice for {which}, which this day has twice"))
    }

    /// Local times, on a clock with `offset_s`, of the starts within this change's length from `from`.
    fn times(&self, schedule: &Schedule, zone: Zone, from: WallTime, offset_s: i32) -> Vec<String> {
        let until = from + self.length();
        let first = next_start(schedule, zone, from - TimeDelta::seconds(1));
        std::iter::successors(first, |at| next_start(schedule, zone, *at))
            .take_while(|at| *at < until)
            .map(|at| at.with_timezone(&fixed(offset_s)).format("%H:%M").to_string())
            .collect()
    }
}

/// Some local times in words; `None` for none.
fn name(times: &[String]) -> Option<String> {
    match times {
        [] => None,
        few if few.len() <= NAMED => Some(few.join(", ")),
        [first, .., last] => Some(format!("{} times from {first} to {last}", times.len())),
        [one] => Some(one.clone()),
    }
}

impl fmt::Display for ClockChange {
    /// `2026-03-08, clocks go from 02:00 to 03:00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (old, new) = (self.before(self.at), self.after(self.at));
        let day = if self.goes_forward() { old } else { new };
        write!(f, "{}, clocks go from {} to {}", day.format("%Y-%m-%d"), old.format("%H:%M"), new.format("%H:%M"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> WallTime {
        text.parse().unwrap()
    }

    fn zone(name: &str) -> Zone {
        Zone::load(name, Zone::utc()).unwrap()
    }

    fn changes_of_2026(name: &str) -> Vec<ClockChange> {
        between(zone(name), instant("2026-01-01T00:00:00Z"), instant("2027-01-01T00:00:00Z"))
    }

    fn effects(name: &str, schedule: &str) -> Vec<String> {
        let schedule = Schedule::parse(schedule).unwrap();
        changes_of_2026(name).iter().filter_map(|change| change.effect_on(&schedule, zone(name))).collect()
    }

    #[test]
    fn a_year_has_both_changes_to_the_second() {
        let at: Vec<String> = changes_of_2026("America/New_York").iter().map(|change| change.at.to_rfc3339()).collect();
        assert_eq!(at, ["2026-03-08T07:00:00+00:00", "2026-11-01T06:00:00+00:00"]);
        assert_eq!(changes_of_2026("Asia/Shanghai"), []);
        assert_eq!(changes_of_2026("Africa/Casablanca").len(), 2);
    }

    #[test]
    fn a_skipped_and_a_doubled_time_are_told() {
        assert_eq!(
            effects("America/New_York", "30 1,2 * * *"),
            [
                "2026-03-08, clocks go from 02:00 to 03:00: no start for 02:30, which this day does not have",
                "2026-11-01, clocks go from 02:00 to 01:00: starts twice for 01:30, which this day has twice",
            ]
        );
        assert_eq!(effects("America/New_York", "0 12 * * *"), [""; 0]);
    }

    #[test]
    fn many_times_are_counted() {
        let effects = effects("Europe/Berlin", "*/5 * * * *");
        assert_eq!(
            effects[0],
            "2026-03-29, clocks go from 02:00 to 03:00: no start for 12 times from 02:00 to 02:55, which this day does not have"
        );
    }

    #[test]
    fn half_an_hour_is_a_change_too() {
        assert_eq!(
            effects("Australia/Lord_Howe", "45 1 * * *"),
            ["2026-04-05, clocks go from 02:00 to 01:30: starts twice for 01:45, which this day has twice"]
        );
    }

    #[test]
    fn an_instant_knows_whether_its_local_time_comes_twice() {
        let autumn = changes_of_2026("America/New_York")[1];
        assert_eq!(autumn.place_of(instant("2026-11-01T05:30:00Z")), Some(Place::First));
        assert_eq!(autumn.place_of(instant("2026-11-01T06:30:00Z")), Some(Place::Second));
        assert_eq!(autumn.place_of(instant("2026-11-01T07:00:00Z")), Some(Place::SameDay));
        assert_eq!(autumn.place_of(instant("2026-11-02T07:00:00Z")), None);
    }
}
