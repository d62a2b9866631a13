//! The walk: how the peers find the next instant, stage by stage. Its answers depend on the way, so this keeps to the way and only
//! takes several of its steps at once where none of them can matter: inside one stretch of constant offset, or from midnight to
//! midnight within a month.

use super::Fields;
use super::civil::{DAY_S, Date, HOUR_S, MINUTE_S, date_of, day_number, days_in_month};
use super::field::STAR;
use super::zone::{Stretch, Table};

/// The next instant after `from` (UTC seconds, fraction dropped); `None`: not within five years, or the peers would never return.
pub(super) fn walk(fields: &Fields, zone: &Table, from: i64) -> Option<i64> {
    if fields.never_matches() {
        return None;
    }
    let mut walk = Walk { fields, zone, at: from + 1, stretch: *zone.stretch(from + 1), touched: false };
    let year_limit = walk.date().year + 5;
    while walk.date().year <= year_limit {
        if walk.seek_month() && walk.seek_day()? && walk.seek_hour() && walk.seek_minute() && walk.seek_second() {
            return Some(walk.at);
        }
    }
    None
}

struct Walk<'a> {
    fields: &'a Fields,
    zone: &'a Table,
    /// UTC seconds.
    at: i64,
    /// The stretch that holds `at`; every move keeps it so.
    stretch: Stretch,
    /// Whether a stage has cut the smaller units off yet; only the first one does.
    touched: bool,
}

/// Each stage answers whether its field matches now; if not, the walk goes back to its top.
impl Walk<'_> {
    fn seek_month(&mut self) -> bool {
        while !self.fields.has_month(self.date().month) {
            let Date { year, month, .. } = self.date();
            if self.touch() {
                self.go_to_wall(day_number(year, month, 1) * DAY_S);
            }
            let Date { year, month, day } = self.date();
            self.go_to_wall(day_number(year, month + 1, day) * DAY_S + self.second_of_day());
            if self.date().month == 1 {
                return false;
            }
        }
        true
    }

    /// `None` where the peers' walk steps on the spot for ever: a day that the zone left out.
    fn seek_day(&mut self) -> Option<bool> {
        loop {
            let date = self.date();
            let first = self.day() - i64::from(date.day) + 1;
            let length = days_in_month(date.year, date.month);
            let days = self.fields.days_of(first, length);
            if days & 1 << date.day != 0 {
                return Some(true);
            }
            if self.touch() {
                self.go_to_wall(self.wall() - self.second_of_day());
            }
            // The next matching day, or the first of the next month.
            let stop = (days | 2 << length) & (u64::MAX << date.day << 1);
            if !self.hop_to_midnight(first + i64::from(stop.trailing_zeros()) - 1) {
                self.step_a_day()?;
            }
            if self.date().day == 1 {
                return Some(false);
            }
        }
    }

    /// Goes from this midnight to that of `day` if all those on the way are regular.
    fn hop_to_midnight(&mut self, day: i64) -> bool {
        let here = self.day();
        let can = self.second_of_day() == 0 && here < day && !self.zone.has_irregular(here, day);
        if can {
            self.go_to_wall(day * DAY_S);
        }
        can
    }

    /// One day by wall fields, then back to midnight by what the wall hour says.
    fn step_a_day(&mut self) -> Option<()> {
        let before = self.at;
        self.go_to_wall(self.wall() + DAY_S);
        match self.hour() {
            0 => {}
            hour @ 13.. => self.go_to(self.at + (24 - hour) * HOUR_S),
            hour => self.go_to(self.at - hour * HOUR_S),
        }
        (self.at != before).then_some(())
    }

    fn seek_hour(&mut self) -> bool {
        while self.fields.hour & 1 << self.hour() == 0 {
            if self.touch() {
                self.go_to_wall(self.wall() - self.second_of_day() % HOUR_S);
            }
            self.stride(HOUR_S, steps_to(self.fields.hour, self.hour(), 24));
            if self.hour() == 0 {
                return false;
            }
        }
        true
    }

    fn seek_minute(&mut self) -> bool {
        while self.fields.minute & 1 << self.minute() == 0 {
            if self.touch() {
                // The peers cut to a minute of UTC, not of the wall.
                self.go_to(self.at - self.at.rem_euclid(MINUTE_S));
            }
            self.stride(MINUTE_S, steps_to(self.fields.minute, self.minute(), 60));
            if self.minute() == 0 {
                return false;
            }
        }
        true
    }

    fn seek_second(&mut self) -> bool {
        let start = self.at;
        while self.wall().rem_euclid(MINUTE_S) != 0 {
            self.touch();
            self.stride(1, MINUTE_S - self.wall().rem_euclid(MINUTE_S));
        }
        self.at == start
    }

    /// Up to `count` steps of `step_s` seconds, no further than the first one that leaves the stretch.
    fn stride(&mut self, step_s: i64, count: i64) {
        let room = self.stretch.end.saturating_sub(self.at);
        // At least one: `at` lies before the end.
        let leaving = room / step_s + i64::from(room % step_s != 0);
        self.go_to(self.at + step_s * count.min(leaving));
    }

    fn go_to(&mut self, at: i64) {
        self.at = at;
        if !self.stretch.contains(at) {
            self.stretch = *self.zone.stretch(at);
        }
    }

    fn go_to_wall(&mut self, wall: i64) {
        let (at, stretch) = self.zone.instant_and_stretch(wall);
        (self.at, self.stretch) = (at, *stretch);
    }

    /// True the first time.
    fn touch(&mut self) -> bool {
        !std::mem::replace(&mut self.touched, true)
    }

    fn wall(&self) -> i64 {
        self.at + self.stretch.offset
    }

    fn day(&self) -> i64 {
        self.wall().div_euclid(DAY_S)
    }

    fn date(&self) -> Date {
        date_of(self.day())
    }

    fn second_of_day(&self) -> i64 {
        self.wall().rem_euclid(DAY_S)
    }

    fn hour(&self) -> i64 {
        self.second_of_day() / HOUR_S
    }

    fn minute(&self) -> i64 {
        self.second_of_day() / MINUTE_S % 60
    }
}

/// Steps from `value` (below `size`) up to the next member of `set`, or round to zero.
fn steps_to(set: u64, value: i64, size: i64) -> i64 {
    let above = set & !STAR & u64::MAX << value << 1;
    i64::from(above.trailing_zeros()).min(size) - value
}
