//! The duration of `@every`: Go's `time.ParseDuration`, in whole nanoseconds.

use super::error::DurationError;

const LIMIT: u64 = 1 << 63;

/// Nanoseconds of `text`, e.g. `1h30m`, `-1.5s`, `0`.
pub(super) fn parse_duration_ns(text: &str) -> Result<i64, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (group_ns, after) = parse_group(rest, text)?;
        // Two groups of 2^63 wrap round to nothing, as in Go.
        total = total.wrapping_add(group_ns);
        if total > LIMIT {
            return Err(invalid());
        }
        rest = after;
    }
    match i64::try_from(total) {
        Ok(ns) if negative => Ok(-ns),
        Ok(ns) => Ok(ns),
        Err(_) if negative => Ok(i64::MIN),
        Err(_) => Err(invalid()),
    }
}

/// One number with its unit at the start of `rest`: its nanoseconds (at most 2^63) and what follows. `text` is for messages.
fn parse_group<'a>(rest: &'a str, text: &str) -> Result<(u64, &'a str), DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (digits, after) = split_digits(rest);
    let whole = whole_number(digits).ok_or_else(invalid)?;
    let (fraction_digits, after) = match after.strip_prefix('.') {
        Some(after_dot) => split_digits(after_dot),
        None => ("", after),
    };
    if digits.is_empty() && fraction_digits.is_empty() {
        return Err(invalid());
    }
    let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
    let (unit, after) = after.split_at(end);
    if unit.is_empty() {
        return Err(DurationError::MissingUnit(text.to_owned()));
    }
    let unit_ns =
        unit_ns(unit).ok_or_else(|| DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() })?;
    if whole > LIMIT / unit_ns {
        return Err(invalid());
    }
    let ns = whole * unit_ns + fraction_ns(fraction_digits, unit_ns);
    if ns > LIMIT { Err(invalid()) } else { Ok((ns, after)) }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The digits' value; `None` above 2^63.
fn whole_number(digits: &str) -> Option<u64> {
    digits.bytes().try_fold(0u64, |value, digit| {
        if value > LIMIT / 10 {
            return None;
        }
        let value = value * 10 + u64::from(digit - b'0');
        (value <= LIMIT).then_some(value)
    })
}

/// Digits behind a point, in nanoseconds; digits that no longer fit 63 bits are ignored. The order of the floating-point
/// operations is Go's, so that the last nanosecond agrees.
fn fraction_ns(digits: &str, unit_ns: u64) -> u64 {
    let (mut value, mut scale) = (0u64, 1f64);
    for digit in digits.bytes() {
        if value > (LIMIT - 1) / 10 {
            break;
        }
        let longer = value * 10 + u64::from(digit - b'0');
        if longer > LIMIT {
            break;
        }
        value = longer;
        scale *= 10.0;
    }
    (value as f64 * (unit_ns as f64 / scale)) as u64
}

fn unit_ns(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_durations_fit_and_one_more_does_not() {
        assert_eq!(parse_duration_ns("2562047h47m16.854775807s"), Ok(i64::MAX));
        assert_eq!(parse_duration_ns("-2562047h47m16.854775808s"), Ok(i64::MIN));
        assert_eq!(
            parse_duration_ns("2562047h47m16.854775808s").unwrap_err().to_string(),
            "time: invalid duration \"2562047h47m16.854775808s\""
        );
        assert!(parse_duration_ns("99999999999999999999s").is_err());
        assert_eq!(parse_duration_ns("-9223372036854775808ns9223372036854775808ns"), Ok(0), "wraps as in Go");
    }

    #[test]
    fn fractions_may_miss_one_side_but_not_both() {
        assert_eq!(parse_duration_ns("1.h"), Ok(3_600_000_000_000));
        assert_eq!(parse_duration_ns(".5h"), Ok(1_800_000_000_000));
        assert!(parse_duration_ns(".h").is_err());
        assert_eq!(parse_duration_ns("0.100000000000000000000h"), Ok(360_000_000_000));
    }

    #[test]
    fn messages_name_what_is_missing() {
        let message = |text| parse_duration_ns(text).unwrap_err().to_string();
        assert_eq!(message("5"), "time: missing unit in duration \"5\"");
        assert_eq!(message("5d"), "time: unknown unit \"d\" in duration \"5d\"");
        assert_eq!(message("1\u{e4}"), "time: unknown unit \"\\xc3\\xa4\" in duration \"1\\xc3\\xa4\"");
        assert_eq!(message(""), "time: invalid duration \"\"");
        assert_eq!(message("+"), "time: invalid duration \"+\"");
        assert_eq!(message(" 1s"), "time: invalid duration \" 1s\"");
    }
}
