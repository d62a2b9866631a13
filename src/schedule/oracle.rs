//! The walk to the letter: one step at a time, no shortcut. Only tests use it, to judge `walk` and `leap` by.

use super::Fields;
use super::civil::{DAY_S, Date, HOUR_S, MINUTE_S, date_of, day_number, weekday};
use super::zone::Table;

/// The next instant after `from` (UTC seconds, fraction dropped); `None`: not within five years, or the peers would never return.
pub(super) fn next_s(fields: &Fields, zone: &Table, from: i64) -> Option<i64> {
    if fields.never_matches() {
        return None;
    }
    let mut walk = Walk { fields, zone, at: from + 1, touched: false };
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
    /// Whether a stage has cut the smaller units off yet; only the first one does.
    touched: bool,
}

/// Each stage answers whether its field matches now; if not, the walk goes back to its top.
impl Walk<'_> {
    fn seek_month(&mut self) -> bool {
        while self.fields.month & 1 << self.date().month == 0 {
            let Date { year, month, .. } = self.date();
            if self.touch() {
                self.at = self.zone.instant(day_number(year, month, 1) * DAY_S);
            }
            let Date { year, month, day } = self.date();
            self.at = self.zone.instant(day_number(year, month + 1, day) * DAY_S + self.second_of_day());
            if self.date().month == 1 {
                return false;
            }
        }
        true
    }

    /// `None` where the peers' walk steps on the spot for ever: a day that the zone left out.
    fn seek_day(&mut self) -> Option<bool> {
        while !self.day_matches() {
            if self.touch() {
                self.at = self.zone.instant(self.wall() - self.second_of_day());
            }
            let before = self.at;
            self.at = self.zone.instant(self.wall() + DAY_S);
            match self.hour() {
                0 => {}
                hour @ 13.. => self.at += (24 - hour) * HOUR_S,
                hour => self.at -= hour * HOUR_S,
            }
            if self.at == before {
                return None;
            }
            if self.date().day == 1 {
                return Some(false);
            }
        }
        Some(true)
    }

    fn seek_hour(&mut self) -> bool {
        while self.fields.hour & 1 << self.hour() == 0 {
            if self.touch() {
                self.at = self.zone.instant(self.wall() - self.second_of_day() % HOUR_S);
            }
            self.at += HOUR_S;
            if self.hour() == 0 {
                return false;
            }
        }
        true
    }

    fn seek_minute(&mut self) -> bool {
        while self.fields.minute & 1 << self.minute() == 0 {
            if self.touch() {
                self.at -= self.at.rem_euclid(MINUTE_S);
            }
            self.at += MINUTE_S;
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
            self.at += 1;
        }
        self.at == start
    }

    /// True the first time.
    fn touch(&mut self) -> bool {
        !std::mem::replace(&mut self.touched, true)
    }

    fn day_matches(&self) -> bool {
        let wall_day = self.wall().div_euclid(DAY_S);
        let in_month = self.fields.day_of_month & 1 << date_of(wall_day).day != 0;
        let in_week = self.fields.day_of_week & 1 << weekday(wall_day) != 0;
        if (self.fields.day_of_month | self.fields.day_of_week) >> 63 == 1 {
            in_month && in_week
        } else {
            in_month || in_week
        }
    }

    fn wall(&self) -> i64 {
        self.at + self.zone.stretch(self.at).offset
    }

    fn date(&self) -> Date {
        date_of(self.wall().div_euclid(DAY_S))
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
