//! The `cron` crate as a third opinion, on the forms where it must agree: UTC, weekdays by name, one day field a star. Elsewhere it reads
//! schedules otherwise (`docs/adr/0001-own-schedule-engine.md`).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::str::FromStr;

use chrono::{DateTime, Utc};
use cronjob_controller::schedule::{Schedule, Zone};
use proptest::prelude::*;
use proptest::sample::select;

/// A field with values of `low..=high`; no star.
fn any_values(low: u32, high: u32) -> impl Strategy<Value = String> {
    let value = low..=high;
    prop_oneof![
        value.clone().prop_map(|one| one.to_string()),
        (value.clone(), value.clone()).prop_map(|(one, two)| format!("{one},{two}")),
        (value.clone(), value.clone()).prop_map(|(one, two)| format!("{}-{}", one.min(two), one.max(two))),
        (1..=high - low).prop_map(|step| format!("*/{step}")),
        (value.clone(), value, 1..=high - low).prop_map(|(one, two, step)| format!(
            "{}-{}/{step}",
            one.min(two),
            one.max(two)
        )),
    ]
}

fn star() -> Just<String> {
    Just("*".to_owned())
}

fn any_weekdays() -> impl Strategy<Value = String> {
    let names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let name = select(names.to_vec());
    prop_oneof![
        name.clone().prop_map(str::to_owned),
        (name.clone(), name).prop_map(|(one, two)| format!("{one},{two}")),
        (0..7usize, 0..7usize).prop_map(move |(one, two)| format!("{}-{}", names[one.min(two)], names[one.max(two)])),
    ]
}

/// Day of month and day of week, at least one of them a star.
fn any_days() -> impl Strategy<Value = (String, String)> {
    prop_oneof![(star(), star()), (any_values(1, 31), star()), (star(), any_weekdays())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cron_crate_agrees_on_plain_forms(
        minute in prop_oneof![star(), any_values(0, 59)],
        hour in prop_oneof![star(), any_values(0, 23)],
        (day, weekday) in any_days(),
        month in prop_oneof![2 => star(), 1 => any_values(1, 12)],
        from in 0..3_400_000_000i64,
    ) {
        let text = format!("{minute} {hour} {day} {month} {weekday}");
        let ours = Schedule::parse(&text).unwrap();
        let theirs = cron::Schedule::from_str(&format!("0 {text}")).unwrap();
        let mut at: DateTime<Utc> = DateTime::from_timestamp(from, 0).unwrap();
        for _ in 0..5 {
            let next = ours.next(at, Zone::UTC);
            prop_assert_eq!(next, theirs.after(&at).next(), "{} from {}", text, at);
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
    }
}
