//! Durations as kubectl prints them.

use chrono::TimeDelta;

use crate::model::WallTime;

/// A duration in at most two units, coarser the longer it is: `119s`, `2m5s`, `10m`, `3h`, `5h10m`, `2d3h`, `40d`, `3y12d`.
/// A second or so below zero counts as zero (clocks differ), more is `<invalid>`.
pub fn human_duration(duration: TimeDelta) -> String {
    let seconds = duration.num_seconds();
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if seconds < 120 {
        return format!("{seconds}s");
    }
    match (minutes, hours) {
        (..10, _) => two(minutes, "m", seconds % 60, "s"),
        (..180, _) => format!("{minutes}m"),
        (_, ..8) => two(hours, "h", minutes % 60, "m"),
        (_, ..48) => format!("{hours}h"),
        (_, ..192) => two(days, "d", hours % 24, "h"),
        (_, ..17_520) => format!("{days}d"),
        (_, ..70_080) => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

fn two(big: i64, big_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit}{small}{small_unit}") }
}

/// The age of an RFC 3339 instant at `now`; `None` if there is no such instant.
pub(super) fn since(instant: Option<&str>, now: WallTime) -> Option<String> {
    parse(instant).map(|instant| human_duration(now.signed_duration_since(instant)))
}

pub(super) fn parse(instant: Option<&str>) -> Option<WallTime> {
    chrono::DateTime::parse_from_rfc3339(instant?).ok().map(|instant| instant.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_kubectl() {
        const D: i64 = 86_400;
        let table = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (8 * 3600 + 60, "8h"),
            (2 * D - 1, "47h"),
            (2 * D, "2d"),
            (2 * D + 3 * 3600, "2d3h"),
            (8 * D + 3600, "8d"),
            (2 * 365 * D - 1, "729d"),
            (2 * 365 * D, "2y"),
            (3 * 365 * D + 12 * D, "3y12d"),
            (8 * 365 * D, "8y"),
        ];
        for (seconds, text) in table {
            assert_eq!(human_duration(TimeDelta::seconds(seconds)), text, "{seconds}");
        }
    }
}
