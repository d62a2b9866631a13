//! Calendar arithmetic on day numbers (days since 1970-01-01, proleptic Gregorian), valid for the years ±1,000,000 and beyond
//! every instant that `chrono` can hold.

/// Seconds of a day.
pub(super) const DAY_S: i64 = 86_400;

/// Seconds of an hour.
pub(super) const HOUR_S: i64 = 3_600;
/// Seconds of a minute.
pub(super) const MINUTE_S: i64 = 60;

/// Years are shifted by this many 400-year cycles, so that all of them count up from a positive number.
const CYCLES: i64 = 3_000;
const CYCLE_DAYS: i64 = 146_097;
/// Day number of 0000-03-01, negated: the computational calendar starts in March.
const MARCH_ZERO: i64 = 719_468;

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    /// 1-12.
    pub(super) month: u32,
    /// 1-31.
    pub(super) day: u32,
}

/// The date of a day number (Neri and Schneider's method: multiplications instead of divisions).
pub(super) fn date_of(day_number: i64) -> Date {
    let shifted = (day_number + MARCH_ZERO + CYCLE_DAYS * CYCLES) as u32;
    let in_quarter_days = 4 * u64::from(shifted) + 3;
    let century = in_quarter_days / 146_097;
    let day_of_century = (in_quarter_days % 146_097) as u32 / 4;
    let scaled = 2_939_745 * u64::from(4 * day_of_century + 3);
    let year_of_century = (scaled >> 32) as i64;
    let day_of_year = (scaled as u32) / 2_939_745 / 4;
    let scaled = 2_141 * day_of_year + 197_913;
    let (month, day) = (scaled >> 16, (scaled & 0xffff) / 2_141 + 1);
    let past_december = day_of_year >= 306;
    Date {
        year: 100 * century as i64 + year_of_century - 400 * CYCLES + i64::from(past_december),
        month: if past_december { month - 12 } else { month },
        day,
    }
}

/// The day number of a date; a day or month past its end runs over into the next, as `2026-04-31` into May 1.
pub(super) fn day_number(year: i64, month: u32, day: u32) -> i64 {
    // Years start in March, so that the leap day is the last.
    let (year, month) = (year + i64::from(month / 13), if month > 12 { month - 12 } else { month });
    let (year, month) = if month <= 2 { (year - 1, month + 12) } else { (year, month) };
    let century = year.div_euclid(100);
    let days_of_years =
        1461 * year.rem_euclid(100) / 4 + CYCLE_DAYS * century.rem_euclid(4) / 4 + CYCLE_DAYS * century.div_euclid(4);
    days_of_years + i64::from((979 * month - 2919) / 32) + i64::from(day) - 1 - MARCH_ZERO
}

/// 0 is Sunday.
pub(super) fn weekday(day_number: i64) -> u32 {
    (day_number + 4).rem_euclid(7) as u32
}

/// 28-31.
pub(super) fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        // Long and short months take turns and start anew in August.
        _ => 30 + ((month + (month >> 3)) & 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate};

    #[test]
    fn every_day_of_eight_centuries_agrees_with_chrono() {
        let first = NaiveDate::from_ymd_opt(1600, 1, 1).unwrap();
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for date in first.iter_days().take(146_097 * 2) {
            let number = (date - epoch).num_days();
            let got = date_of(number);
            assert_eq!((got.year, got.month, got.day), (i64::from(date.year()), date.month(), date.day()));
            assert_eq!(day_number(got.year, got.month, got.day), number);
            assert_eq!(weekday(number), date.weekday().num_days_from_sunday());
            assert!(got.day <= days_in_month(got.year, got.month));
        }
    }

    #[test]
    fn the_ends_of_chronos_range_agree() {
        for date in [NaiveDate::MIN, NaiveDate::MAX, NaiveDate::from_ymd_opt(-1, 2, 28).unwrap()] {
            let number = (date - NaiveDate::from_ymd_opt(1970, 1, 1).unwrap()).num_days();
            let got = date_of(number);
            assert_eq!((got.year, got.month, got.day), (i64::from(date.year()), date.month(), date.day()));
            assert_eq!(day_number(got.year, got.month, got.day), number);
        }
    }

    #[test]
    fn a_day_or_month_past_its_end_runs_over() {
        assert_eq!(day_number(2026, 4, 31), day_number(2026, 5, 1));
        assert_eq!(day_number(2026, 2, 31), day_number(2026, 3, 3));
        assert_eq!(day_number(2026, 13, 1), day_number(2027, 1, 1));
        assert_eq!(days_in_month(2000, 2) + days_in_month(1900, 2) + days_in_month(2024, 2), 29 + 28 + 29);
    }
}
