//! A schedule in plain English: when it fires, how its day fields are joined, and what daylight saving time does to it.

mod dst;
mod words;

use chrono::{DateTime, Utc};

use super::civil::days_in_month;
use super::{Fields, Schedule, Timing, Zone};
use words::{Values, clock, join, month_name, ordinal, seconds, sentence, weekday_name};

/// As many times of day are listed one by one.
const LISTED_TIMES: u32 = 6;

/// Describes a schedule in one to three sentences. `local` is its zone if its text names none; offset changes are looked at for a year
/// from `from` on.
pub fn describe(schedule: &Schedule, local: Zone, from: DateTime<Utc>) -> String {
    let zone = schedule.zone_or(local);
    let fields = match schedule.timing() {
        Timing::Every { delay_s } => {
            return format!(
                "Every {} of elapsed time, counted from the last run or the creation. Neither zone nor daylight saving \
                 time matters.",
                seconds(delay_s)
            );
        }
        Timing::Fields(fields) => fields,
    };
    if let Some(reason) = never(&fields) {
        return format!("Never: {reason}.");
    }
    let mut text = format!("{} {} ({}).", sentence(&times(&fields)), days(&fields), zone.name());
    for more in [day_rule(&fields), Some(dst::effects(schedule, &fields, zone, from))].into_iter().flatten() {
        text.push(' ');
        text.push_str(&more);
    }
    text
}

/// Why nothing ever matches.
fn never(fields: &Fields) -> Option<String> {
    if fields.never_matches() {
        return Some("a field is an empty list".to_owned());
    }
    let every_weekday = Values::of(fields.day_of_week).len() == 7;
    let only_days_of_month = fields.days_are_anded() && every_weekday;
    let exists = Values::of(fields.month).iter().any(|month| {
        // A leap year.
        let length = days_in_month(2000, month);
        Values::of(fields.day_of_month).iter().any(|day| day <= length)
    });
    (only_days_of_month && !exists).then(|| format!("there is no such day in {}", months(fields)))
}

fn times(fields: &Fields) -> String {
    let (minutes, hours) = (Values::of(fields.minute), Values::of(fields.hour));
    if hours.len() < 24 && minutes.len() * hours.len() <= LISTED_TIMES {
        let times: Vec<String> =
            hours.iter().flat_map(|hour| minutes.iter().map(move |minute| clock(hour * 60 + minute))).collect();
        return format!("at {}", join(&times));
    }
    match (minutes_of_hour(minutes), hours_of_day(hours)) {
        (minutes, None) => minutes,
        (minutes, Some(hours)) => format!("{minutes} {hours}"),
    }
}

fn minutes_of_hour(minutes: Values) -> String {
    if minutes.len() == 60 {
        return "every minute".to_owned();
    }
    if let Some(minute) = minutes.only() {
        return format!("at minute {minute} of each hour");
    }
    match minutes.progression() {
        Some(even) if even.step > 1 && even.goes_round(60) && even.first == 0 => format!("every {} minutes", even.step),
        Some(even) if even.step > 1 && even.goes_round(60) => {
            format!("every {} minutes from minute {} of each hour", even.step, even.first)
        }
        Some(even) if even.step > 1 => {
            format!("every {} minutes from minute {} to {} of each hour", even.step, even.first, even.last)
        }
        _ => format!("at minutes {} of each hour", minutes.list(|minute| minute.to_string())),
    }
}

/// `None`: all of them.
fn hours_of_day(hours: Values) -> Option<String> {
    if hours.len() == 24 {
        return None;
    }
    Some(match hours.progression() {
        Some(even) if even.step > 1 => {
            format!("in every {} hour from {} to {}", ordinal(even.step), even.first, even.last)
        }
        _ if hours.len() == 1 => format!("in hour {}", hours.list(|hour| hour.to_string())),
        _ => format!("in hours {}", hours.list(|hour| hour.to_string())),
    })
}

/// Which days, months included.
fn days(fields: &Fields) -> String {
    let in_month = (Values::of(fields.day_of_month).len() < 31).then(|| days_of_month(fields));
    let in_week = (Values::of(fields.day_of_week).len() < 7).then(|| days_of_week(fields));
    let days = match (in_month, in_week) {
        (Some(in_month), Some(in_week)) => format!("on {in_month} or on {in_week}"),
        // Joined by OR, a field that takes all days leaves nothing to the other.
        (None, Some(in_week)) if fields.days_are_anded() => format!("on {in_week}"),
        (Some(in_month), None) if fields.days_are_anded() => format!("on {in_month}"),
        _ => "every day".to_owned(),
    };
    if Values::of(fields.month).len() == 12 { days } else { format!("{days} in {}", months(fields)) }
}

fn days_of_month(fields: &Fields) -> String {
    let days = Values::of(fields.day_of_month);
    match days.progression() {
        _ if days.len() == 0 => "no day of the month".to_owned(),
        Some(even) if even.step > 1 => {
            format!(
                "every {} day of the month from the {} to the {}",
                ordinal(even.step),
                ordinal(even.first),
                ordinal(even.last)
            )
        }
        _ => format!("the {} of the month", days.list(ordinal)),
    }
}

fn days_of_week(fields: &Fields) -> String {
    let days = Values::of(fields.day_of_week);
    if days.len() == 0 { "no day of the week".to_owned() } else { days.list(weekday_name) }
}

fn months(fields: &Fields) -> String {
    Values::of(fields.month).list(month_name)
}

/// How the day fields are joined; nothing to say if both take every day.
fn day_rule(fields: &Fields) -> Option<String> {
    let all_days = Values::of(fields.day_of_month).len() == 31;
    let all_weekdays = Values::of(fields.day_of_week).len() == 7;
    if fields.days_are_anded() {
        let open = if all_days { "day of the month" } else { "day of the week" };
        return (!(all_days && all_weekdays))
            .then(|| format!("The day fields are joined by AND: the star leaves the {open} open."));
    }
    let full = match (all_days, all_weekdays) {
        (true, false) => " Since the day of the month takes every day, the day of the week changes nothing.",
        (false, true) => " Since the day of the week takes every day, the day of the month changes nothing.",
        _ => "",
    };
    Some(format!("The day fields are joined by OR: neither is a plain star, so one that matches is enough.{full}"))
}

#[cfg(test)]
mod tests;
