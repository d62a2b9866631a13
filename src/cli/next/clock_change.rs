//! Changes of a zone's offset, and how a start lies to them. What a change skips or doubles is in the description of the schedule.

use std::fmt;

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};

use crate::model::WallTime;
use crate::schedule::Zone;

/// Two changes of a zone are never closer than this (Ramadan's pair in Morocco is weeks apart), so no probe skips a pair.
const PROBE: TimeDelta = TimeDelta::hours(12);

/// Zone data has no changes after this year.
const LAST_YEAR: i32 = 2100;

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

    #[test]
    fn a_year_has_both_changes_to_the_second() {
        let at: Vec<String> = changes_of_2026("America/New_York").iter().map(|change| change.at.to_rfc3339()).collect();
        assert_eq!(at, ["2026-03-08T07:00:00+00:00", "2026-11-01T06:00:00+00:00"]);
        assert_eq!(changes_of_2026("Asia/Shanghai"), []);
        assert_eq!(changes_of_2026("Africa/Casablanca").len(), 2);
        let half_an_hour = changes_of_2026("Australia/Lord_Howe")[0];
        assert_eq!(half_an_hour.to_string(), "2026-04-05, clocks go from 02:00 to 01:30");
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
