//! The five sets of a schedule and the questions asked of them, each answered with masks instead of loops.

use super::civil::{DAY_S, Date, HOUR_S, MINUTE_S, date_of, day_number, days_in_month, weekday};
use super::field::STAR;
use super::leap::{Leap, leap};
use super::walk::walk;
use super::zone::Table;

/// The five sets. Bit i of a set: value i is in it. Bit 63: the field was written with a star (no step, or a step of one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Minutes 0-59.
    pub minute: u64,
    /// Hours 0-23.
    pub hour: u64,
    /// Days of the month 1-31.
    pub day_of_month: u64,
    /// Months 1-12.
    pub month: u64,
    /// Days of the week, 0 is Sunday.
    pub day_of_week: u64,
}

/// Multiplied by a week, gives six weeks in a row.
const SIX_WEEKS: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28 | 1 << 35;

impl Fields {
    /// The next instant after `from` in UTC seconds; `None` as in [`super::Schedule::next`].
    pub(super) fn next_s(&self, zone: &Table, from: i64) -> Option<i64> {
        match leap(self, zone, from) {
            Leap::To(at) => Some(at),
            Leap::Never => None,
            Leap::Unsure => walk(self, zone, from),
        }
    }

    /// Whether both day fields must agree (one of them was written with a star); else one suffices.
    pub(super) fn days_are_anded(&self) -> bool {
        (self.day_of_month | self.day_of_week) & STAR != 0
    }

    /// A set without a member, as of the field `,`: nothing ever matches.
    pub(super) fn never_matches(&self) -> bool {
        // The shift drops the flag.
        let empty = |set: u64| set << 1 == 0;
        let no_day = if self.days_are_anded() {
            empty(self.day_of_month) || empty(self.day_of_week)
        } else {
            empty(self.day_of_month) && empty(self.day_of_week)
        };
        no_day || empty(self.minute) || empty(self.hour) || empty(self.month)
    }

    /// Whether a wall reading (seconds as if it were UTC) is in all five sets; its second has to be 0.
    pub(super) fn matches_reading(&self, wall: i64) -> bool {
        let (day, second_of_day) = (wall.div_euclid(DAY_S), wall.rem_euclid(DAY_S));
        let date = date_of(day);
        let days = self.days_of(day - i64::from(date.day) + 1, days_in_month(date.year, date.month));
        second_of_day % MINUTE_S == 0
            && self.minute & 1 << (second_of_day / MINUTE_S % 60) != 0
            && self.hour & 1 << (second_of_day / HOUR_S) != 0
            && self.has_month(date.month)
            && days & 1 << date.day != 0
    }

    pub(super) fn has_month(&self, month: u32) -> bool {
        self.month & 1 << month != 0
    }

    /// The days of a month that match, as bits 1-31, whether or not the month itself does. `first` is the day number of its 1st.
    #[inline]
    pub(super) fn days_of(&self, first: i64, days: u32) -> u64 {
        let six_weeks = (self.day_of_week & 0x7f) * SIX_WEEKS;
        let in_week = (six_weeks >> weekday(first)) << 1;
        let matching = if self.days_are_anded() { self.day_of_month & in_week } else { self.day_of_month | in_week };
        matching & ((2 << days) - 2)
    }

    /// Day number of the first matching date from the 1st of the month after `date` on, up to the end of `last_year`.
    #[inline]
    pub(super) fn date_in_later_month(&self, date: Date, last_year: i64) -> Option<i64> {
        let months = self.month & !STAR;
        let (mut year, mut month) = (date.year, date.month);
        loop {
            let later = months & (u64::MAX << month << 1);
            if later == 0 {
                year += 1;
                month = months.trailing_zeros();
            } else {
                month = later.trailing_zeros();
            }
            if year > last_year || month > 12 {
                return None;
            }
            let first = day_number(year, month, 1);
            let days = self.days_of(first, days_in_month(year, month));
            if days != 0 {
                return Some(first + i64::from(days.trailing_zeros()) - 1);
            }
        }
    }

    /// The first matching minute of the day at or after `minute` (0-1439).
    #[inline]
    pub(super) fn time_from(&self, minute: u32) -> Option<u32> {
        let (hour, minute) = (minute / 60, minute % 60);
        let minutes = self.minute & !STAR & u64::MAX << minute;
        if self.hour & 1 << hour != 0 && minutes != 0 {
            return Some(hour * 60 + minutes.trailing_zeros());
        }
        let hours = self.hour & !STAR & u64::MAX << hour << 1;
        (hours != 0).then(|| hours.trailing_zeros() * 60 + self.first_minute())
    }

    /// The first matching minute of a whole day.
    #[inline]
    pub(super) fn first_time(&self) -> u32 {
        self.hour.trailing_zeros() * 60 + self.first_minute()
    }

    fn first_minute(&self) -> u32 {
        self.minute.trailing_zeros()
    }
}
