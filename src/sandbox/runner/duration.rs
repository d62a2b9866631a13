//! Durations as users write them in the annotation.

use std::time::Duration;

/// Reads whole numbers with units, in the manner of Go: `90s`, `10m`, `1h30m`, `250ms`, `0`. `None` for anything else.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, after) = after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
        let number: u64 = number.parse().ok()?;
        let part = match unit {
            "h" => Duration::from_secs(number.checked_mul(3600)?),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            "s" => Duration::from_secs(number),
            "ms" => Duration::from_millis(number),
            _ => return None,
        };
        total = total.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        let seconds = |text| parse_duration(text).map(|duration| duration.as_secs());
        assert_eq!(
            [seconds("90s"), seconds("10m"), seconds("1h30m"), seconds("0")],
            [Some(90), Some(600), Some(5400), Some(0)]
        );
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        for bad in ["", "s", "10", "1.5s", "-1s", "1d", "1h 2m", "99999999999999999999s", "9999999999999999999h"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
