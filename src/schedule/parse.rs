//! Text to [`Schedule`]: prefix, descriptor, five fields, in the peers' order, so that the first error is theirs.

use super::duration::parse_duration_ns;
use super::error::ParseError;
use super::field::{DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, parse_field};
use super::{Fields, Schedule, Timing, Zone};

const NS_PER_S: i64 = 1_000_000_000;

pub(super) fn parse(text: &str) -> Result<Schedule, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    let (zone, rest) = split_zone(text)?;
    let timing = if rest.starts_with('@') { descriptor(rest)? } else { Timing::Fields(fields(rest)?) };
    Ok(Schedule { timing, zone })
}

/// Takes a `TZ=` or `CRON_TZ=` prefix off, up to the first blank; only then is what follows trimmed.
fn split_zone(text: &str) -> Result<(Option<Zone>, &str), ParseError> {
    let Some(named) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else {
        return Ok((None, text));
    };
    let (name, rest) = named.split_once(' ').ok_or(ParseError::UnendedZonePrefix)?;
    let zone = Zone::lookup(name).map_err(|cause| ParseError::BadLocation { name: name.to_owned(), cause })?;
    Ok((zone, rest.trim()))
}

fn descriptor(text: &str) -> Result<Timing, ParseError> {
    let equivalent = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return every(text),
    };
    Ok(Timing::Fields(fields(equivalent)?))
}

/// `@every DURATION`: at least a second, whole seconds.
fn every(text: &str) -> Result<Timing, ParseError> {
    let Some(duration) = text.strip_prefix("@every ") else {
        return Err(ParseError::UnknownDescriptor(text.to_owned()));
    };
    let ns = parse_duration_ns(duration).map_err(|cause| ParseError::BadDuration { text: text.to_owned(), cause })?;
    Ok(Timing::Every { delay_s: (ns / NS_PER_S).max(1) })
}

fn fields(text: &str) -> Result<Fields, ParseError> {
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap_or_default();
    let [minute, hour, day_of_month, month, day_of_week] = [next(), next(), next(), next(), next()];
    if day_of_week.is_empty() || words.next().is_some() {
        return Err(ParseError::FieldCount(text.split_whitespace().map(str::to_owned).collect()));
    }
    Ok(Fields {
        minute: parse_field(minute, &MINUTE)?,
        hour: parse_field(hour, &HOUR)?,
        day_of_month: parse_field(day_of_month, &DAY_OF_MONTH)?,
        month: parse_field(month, &MONTH)?,
        day_of_week: parse_field(day_of_week, &DAY_OF_WEEK)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_prefix_ends_at_the_first_blank_and_nowhere_else() {
        let panic = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
        assert_eq!(message("TZ=UTC"), panic);
        assert_eq!(message("CRON_TZ=UTC\t*\t*\t*\t*\t*"), panic);
        assert_eq!(message("TZ=UTC\t* * * * *"), "provided bad location UTC\t*: unknown time zone UTC\t*");
        assert_eq!(message("TZ=A=B * * * * *"), "provided bad location A=B: unknown time zone A=B");
        assert_eq!(message("TZ=UTC TZ=UTC * * * * *"), "expected exactly 5 fields, found 6: [TZ=UTC * * * * *]");
        assert_eq!(message("tz=UTC * * * * *"), "expected exactly 5 fields, found 6: [tz=UTC * * * * *]");
        assert_eq!(parse("TZ= * * * * *").unwrap().zone(), Some(Zone::UTC));
        assert_eq!(parse("TZ=Local * * * * *").unwrap().zone(), None);
    }

    #[test]
    fn blanks_are_trimmed_only_behind_a_prefix() {
        assert_eq!(message(" @daily"), "expected exactly 5 fields, found 1: [@daily]");
        assert_eq!(message("@daily "), "unrecognized descriptor: @daily ");
        assert_eq!(parse("TZ=UTC  @daily\u{2003}").unwrap().timing(), parse("0 0 * * *").unwrap().timing());
    }

    #[test]
    fn every_is_whole_seconds_and_at_least_one() {
        for (text, delay_s) in
            [("1500ms", 1), ("90.9s", 90), ("0", 1), ("-5m", 1), ("2562047h47m16.854775807s", 9_223_372_036)]
        {
            assert_eq!(parse(&format!("@every {text}")).unwrap().timing(), Timing::Every { delay_s });
        }
        assert_eq!(message("@every  1s"), "failed to parse duration @every  1s: time: invalid duration \" 1s\"");
        assert_eq!(message("@every"), "unrecognized descriptor: @every");
        assert_eq!(message("@reboot"), "unrecognized descriptor: @reboot");
    }

    #[test]
    fn hostile_texts_are_refused_without_a_panic() {
        for text in
            ["\0", "😀", "TZ=", "@every \0", "@every 9999999999999999999999999h", "* * * * \u{feff}", "-- -- -- -- --"]
        {
            assert!(!message(text).is_empty());
        }
        assert!(message(&"*".repeat(10_000)).starts_with("expected exactly 5 fields, found 1: [***"));
        assert!(message(&format!("{} * * * *", "9".repeat(10_000))).contains("value out of range"));
        assert!(parse(&format!("{}1 * * * *", ",".repeat(10_000))).is_ok());
    }
}
