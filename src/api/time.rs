//! RFC 3339 as Go's API machinery writes and reads it.

use chrono::{DateTime, Datelike, TimeDelta, Timelike, Utc};

use crate::model::WallTime;

/// `at` in RFC 3339 with whole seconds, as a clock with the offset `offset_s` (seconds east of Greenwich) shows it. An offset of
/// zero is written `Z` in every zone, seconds of an offset are dropped, both as Go does.
pub fn rfc3339(at: WallTime, offset_s: i32) -> String {
    let local = at.naive_utc().checked_add_signed(TimeDelta::seconds(offset_s.into())).unwrap_or(at.naive_utc());
    let mut text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        local.year(),
        local.month(),
        local.day(),
        local.hour(),
        local.minute(),
        local.second()
    );
    if offset_s == 0 {
        text.push('Z');
    } else {
        let minutes = offset_s / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        text += &format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60);
    }
    text
}

/// The instant that an RFC 3339 text names; `None` when it is not one, or when its year in UTC is not of four digits, so that what
/// was read can be written again.
pub(super) fn parse_rfc3339(text: &str) -> Option<WallTime> {
    let at = DateTime::parse_from_rfc3339(text).ok()?.with_timezone(&Utc);
    (0..=9999).contains(&at.year()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_of_zero_is_z_and_others_are_signed() {
        let at = parse_rfc3339("2024-03-01T10:00:00Z").unwrap();
        assert_eq!(rfc3339(at, 0), "2024-03-01T10:00:00Z");
        assert_eq!(rfc3339(at, 20_700), "2024-03-01T15:45:00+05:45");
        assert_eq!(rfc3339(at, -12_600), "2024-03-01T06:30:00-03:30");
        assert_eq!(rfc3339(at, -2_670), "2024-03-01T09:15:30-00:44");
    }

    #[test]
    fn what_is_read_can_be_written_and_read_again() {
        for text in
            ["0000-01-01T00:00:00Z", "1969-12-31T23:59:60Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59+00:01"]
        {
            let at = parse_rfc3339(text).unwrap();
            assert_eq!(parse_rfc3339(&rfc3339(at, 0)).map(|at| at.timestamp()), Some(at.timestamp()), "{text}");
        }
        for text in ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn dates_at_the_edge_of_the_calendar_do_not_panic() {
        assert!(rfc3339(WallTime::MAX_UTC, 50_400).ends_with("+14:00"));
        assert!(rfc3339(WallTime::MIN_UTC, -43_200).ends_with("-12:00"));
    }
}
