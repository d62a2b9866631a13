//! A zone's yearly rule, read off its last years, so that the table can go on after chrono-tz's data ends with 2099.
//!
//! Each change of a year is "this weekday on or after that day, at this wall time". The twelve years looked at begin on every day of the
//! week, so the earliest date seen is the rule's own. A rule that doesn't give back exactly those years is no rule.

use super::table::Stretch;
use crate::schedule::civil::{DAY_S, date_of, day_number, weekday};

const LOOKED_AT: std::ops::RangeInclusive<i64> = 2088..=2099;

/// One change of every year.
struct Yearly {
    /// Earliest date, in days from March 1 (so that leap days don't count).
    earliest: i64,
    /// 0 is Sunday.
    weekday: u32,
    /// Wall time of the old offset, in seconds from midnight.
    second_of_day: i64,
    /// The offsets before and after.
    old_offset: i64,
    new_offset: i64,
}

/// A change as data: its first second and the offset on either side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) at: i64,
    pub(super) old_offset: i64,
    pub(super) new_offset: i64,
}

impl Change {
    fn wall_day(&self) -> i64 {
        (self.at + self.old_offset).div_euclid(DAY_S)
    }

    fn year(&self) -> i64 {
        date_of(self.wall_day()).year
    }
}

/// The changes of `years`, by the rule of the last changes in `rest`; none if they follow no yearly rule.
pub(super) fn go_on(rest: &[Stretch], years: std::ops::RangeInclusive<i64>) -> Vec<Change> {
    let changes: Vec<Change> = rest
        .windows(2)
        .filter_map(|pair| match pair {
            [before, after] => Some(Change { at: after.start, old_offset: before.offset, new_offset: after.offset }),
            _ => None,
        })
        .filter(|change| LOOKED_AT.contains(&change.year()))
        .collect();
    let per_year = changes.iter().filter(|change| change.year() == *LOOKED_AT.start()).count();
    let rules: Vec<Yearly> =
        (0..per_year).filter_map(|nth| Yearly::of(changes.iter().skip(nth).step_by(per_year))).collect();
    let of_years = |years: std::ops::RangeInclusive<i64>| -> Vec<Change> {
        years.flat_map(|year| rules.iter().map(move |rule| rule.change(year))).collect()
    };
    if of_years(LOOKED_AT) == changes { of_years(years) } else { Vec::new() }
}

impl Yearly {
    fn of<'a>(same_change: impl Iterator<Item = &'a Change> + Clone) -> Option<Self> {
        let first = same_change.clone().next()?;
        let since_march = |change: &Change| change.wall_day() - day_number(change.year(), 3, 1);
        Some(Self {
            earliest: same_change.map(since_march).min()?,
            weekday: weekday(first.wall_day()),
            second_of_day: (first.at + first.old_offset).rem_euclid(DAY_S),
            old_offset: first.old_offset,
            new_offset: first.new_offset,
        })
    }

    fn change(&self, year: i64) -> Change {
        let earliest = day_number(year, 3, 1) + self.earliest;
        let day = earliest + i64::from((self.weekday + 7 - weekday(earliest)) % 7);
        let at = day * DAY_S + self.second_of_day - self.old_offset;
        Change { at, old_offset: self.old_offset, new_offset: self.new_offset }
    }
}
