//! The shortcut past the walk: calendar arithmetic, wherever it is certain to give what the walk gives.
//!
//! Why it is: the walk can only go astray at a change of offset. Inside one stretch of constant offset all its stages are plain
//! calendar arithmetic. Its day and month stages go from midnight to midnight and see nothing of a change in between, as long as every local midnight
//! on the way reads 00:00. So what has to be known is: the hours left of the first day (if that day matches) and the hours of
//! the last day up to the answer see no change, and no irregular midnight lies on the way. If any of this fails, the answer
//! is [`Leap::Unsure`] and the caller walks.

use super::Fields;
use super::civil::{DAY_S, HOUR_S, MINUTE_S, date_of, day_number, days_in_month};
use super::zone::{Stretch, Table};

/// More than any change moves the clock, and an hour for the walk's cut to the whole hour.
const CLEAR_S: i64 = DAY_S + 2 * HOUR_S;
/// The walk's cuts go back to the first of the month at most.
const CUT_DAYS: i64 = 31;
const MINUTES_OF_DAY: i64 = 1_440;

/// What the shortcut found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leap {
    /// The walk's answer, in UTC seconds.
    To(i64),
    /// The walk finds nothing.
    Never,
    /// Only the walk can say.
    Unsure,
}

/// The next instant after `from` (UTC seconds).
pub(super) fn leap(fields: &Fields, zone: &Table, from: i64) -> Leap {
    if fields.never_matches() {
        return Leap::Never;
    }
    let start = from + 1;
    let here = zone.stretch(start);
    if here.offset % MINUTE_S != 0 {
        return Leap::Unsure;
    }
    let wall = start + here.offset;
    let minute = (wall + MINUTE_S - 1).div_euclid(MINUTE_S);
    let (day, minute_of_day) = (minute.div_euclid(MINUTES_OF_DAY), minute.rem_euclid(MINUTES_OF_DAY));
    if minute_of_day == 0 && wall % MINUTE_S != 0 {
        // Rounded up over midnight: the day that the walk begins on is another.
        return Leap::Unsure;
    }
    let date = date_of(day);
    let first_of_month = day - i64::from(date.day) + 1;
    let days = if fields.has_month(date.month) {
        fields.days_of(first_of_month, days_in_month(date.year, date.month))
    } else {
        0
    };

    if days & 1 << date.day != 0 {
        // A remainder below 1,440.
        let time = fields.time_from(minute_of_day as u32);
        let seen_until = day * DAY_S - here.offset + time.map_or(DAY_S, |time| i64::from(time) * MINUTE_S);
        if !is_clear(here, start, seen_until) {
            return Leap::Unsure;
        }
        if time.is_some() {
            return Leap::To(seen_until);
        }
    }
    let last_year = date.year + 5;
    let later = days & (u64::MAX << date.day << 1);
    let found = if later == 0 {
        fields.date_in_later_month(date, last_year)
    } else {
        Some(first_of_month + i64::from(later.trailing_zeros()) - 1)
    };
    let seen_until = found.unwrap_or_else(|| day_number(last_year + 1, 1, 1));
    if zone.has_irregular(day - CUT_DAYS, seen_until) {
        return Leap::Unsure;
    }
    match found {
        Some(day) => first_time_of(day, fields, zone),
        None => Leap::Never,
    }
}

/// The walk stands at the midnight of a matching day and goes on by elapsed time.
fn first_time_of(day: i64, fields: &Fields, zone: &Table) -> Leap {
    let (midnight, stretch) = zone.instant_and_stretch(day * DAY_S);
    let at = midnight + i64::from(fields.first_time()) * MINUTE_S;
    if at < stretch.end { Leap::To(at) } else { Leap::Unsure }
}

/// Whether all that the walk looks at between `first` and `last` lies well inside a stretch.
fn is_clear(stretch: &Stretch, first: i64, last: i64) -> bool {
    first.saturating_sub(CLEAR_S) >= stretch.start && last.saturating_add(CLEAR_S) < stretch.end
}
