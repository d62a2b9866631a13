//! Properties of schedules, judged by slower and simpler ways to the same answer. Instants are drawn around offset changes,
//! since nothing goes wrong elsewhere.

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::Config;

use super::missed::{COUNTED, MissedCount, missed_since, next_start};
use super::{Schedule, Timing, Zone, oracle, walk};

/// At least `least` cases; `PROPTEST_CASES` can ask for more.
fn cases(least: u32) -> Config {
    let default = Config::default();
    let cases = default.cases.max(least);
    Config { cases, max_global_rejects: cases, failure_persistence: None, ..default }
}

fn any_zone() -> impl Strategy<Value = Zone> {
    select(Zone::names().collect::<Vec<_>>()).prop_map(|name| Zone::load(name, Zone::UTC).unwrap())
}

/// A zone and an instant, three in four within days of one of its changes.
fn any_zone_and_instant() -> impl Strategy<Value = (Zone, i64)> {
    let near = (any::<Index>(), -3 * 86_400..3 * 86_400i64);
    let far = -2_000_000_000..5_000_000_000i64;
    (any_zone(), near, far, 0..4u8).prop_map(|(zone, (index, distance), far, which)| {
        let changes = zone.table().changes();
        let at = if which == 0 || changes.is_empty() { far } else { index.get(changes).start + distance };
        (zone, if which == 1 { at - at.rem_euclid(60) } else { at })
    })
}

/// A field of one of the shapes that matter, with values of `low..=high`.
fn any_field(low: u32, high: u32) -> impl Strategy<Value = String> {
    let value = low..=high;
    prop_oneof![
        4 => Just("*".to_owned()),
        4 => value.clone().prop_map(|one| one.to_string()),
        1 => (value.clone(), value.clone()).prop_map(|(one, two)| format!("{one},{two}")),
        1 => (value.clone(), value.clone()).prop_map(|(one, two)| format!("{}-{}", one.min(two), one.max(two))),
        1 => (1..=high).prop_map(|step| format!("*/{step}")),
        1 => (value, 1..=high).prop_map(|(start, step)| format!("{start}/{step}")),
    ]
}

/// Five fields; the hours near midnight and the days at a month's ends come up often.
fn any_text() -> impl Strategy<Value = String> {
    let minute = prop_oneof![2 => Just("0".to_owned()), 1 => Just("30".to_owned()), 3 => any_field(0, 59)];
    let hour = prop_oneof![3 => any_field(0, 3), 1 => any_field(21, 23), 3 => any_field(0, 23)];
    let day =
        prop_oneof![2 => Just("*".to_owned()), 1 => any_field(1, 2), 1 => any_field(28, 31), 2 => any_field(1, 31)];
    let month = prop_oneof![2 => Just("*".to_owned()), 1 => any_field(1, 12)];
    let weekday = prop_oneof![2 => Just("*".to_owned()), 1 => any_field(0, 6)];
    (minute, hour, day, month, weekday)
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

fn instant(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn parsed(text: &str) -> Schedule {
    Schedule::parse(text).unwrap()
}

proptest! {
    #![proptest_config(cases(6_000))]

    #[test]
    fn leaping_and_striding_give_what_single_steps_give((zone, from) in any_zone_and_instant(), text in any_text()) {
        let Timing::Fields(fields) = parsed(&text).timing() else { unreachable!() };
        let mut at = from;
        for _ in 0..8 {
            let wanted = oracle::next_s(&fields, zone.table(), at);
            prop_assert_eq!(fields.next_s(zone.table(), at), wanted, "leap: {} {:?} from {}", text, zone, instant(at));
            prop_assert_eq!(walk::walk(&fields, zone.table(), at), wanted, "walk: {} {:?} from {}", text, zone, instant(at));
            // Where the peers stand still, go on by a minute.
            match wanted {
                Some(next) => at = next.max(at + 60),
                None => break,
            }
        }
    }

    #[test]
    fn the_newest_missed_instant_is_the_chains_last(
        (zone, now) in any_zone_and_instant(),
        text in any_text(),
        back_s in prop_oneof![0..100_000i64, 0..40_000_000i64, 0..700_000_000i64],
    ) {
        let schedule = parsed(&text);
        let (start, now) = (instant(now - back_s), instant(now));
        let wanted = by_the_chain(&schedule, zone, start, now);
        prop_assume!(wanted.is_some());
        let got = missed_since(&schedule, zone, start, now).ok().map(|missed| (missed.newest, missed.count));
        prop_assert_eq!(got, wanted.flatten(), "{} {:?} {} .. {}", text, zone, start, now);
    }
}

/// Newest instant and count by stepping along the whole chain; inner `None` for "never twice", outer if that takes too long.
fn by_the_chain(
    schedule: &Schedule,
    zone: Zone,
    start: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Option<Option<(Option<DateTime<Utc>>, MissedCount)>> {
    let (mut newest, mut count, mut at) = (None, 0, start);
    loop {
        match next_start(schedule, zone, at) {
            Some(next) if next <= now => (newest, at) = (Some(next), next),
            None if count < 2 => return Some(None),
            // A chain broken off at a left-out day (Apia 2011): only a long way back is it taken up again behind the break.
            None if count > COUNTED => return None,
            _ => break,
        }
        count += 1;
        if count > 30_000 {
            return None;
        }
    }
    let count = if count > COUNTED { MissedCount::More } else { MissedCount::Exactly(count) };
    Some(Some((newest, count)))
}

/// Texts whose searches differ most in length, for the instants and zones at the edges.
const TEXTS: [&str; 9] = [
    "* * * * *",
    "59 23 31 12 *",
    "0 0 1 1 *",
    "0 0 29 2 *",
    "0 0 30 2 *",
    "0 12 31 * 6",
    ", * * * *",
    "@every 1s",
    "@every 2562047h",
];

#[test]
fn no_instant_makes_a_search_panic_or_hang() {
    let edges = [
        DateTime::<Utc>::MIN_UTC,
        instant(-62_135_596_800), // year 1, Go's zero time
        instant(-1),
        instant(9_223_372_036),   // the end of 64-bit nanoseconds, 2262
        instant(16_725_225_600),  // 2500, where the rules of zones end
        instant(253_402_300_799), // the last second of 9999
        DateTime::<Utc>::MAX_UTC,
    ];
    let zones = ["UTC", "America/New_York", "Asia/Beirut", "Pacific/Apia", "Africa/Monrovia"]
        .map(|name| Zone::load(name, Zone::UTC).unwrap())
        .into_iter()
        .chain([Zone::fixed(86_399), Zone::fixed(-86_399)]);
    for zone in zones {
        for text in TEXTS {
            let schedule = parsed(text);
            for (from, now) in edges.iter().flat_map(|from| edges.map(|now| (*from, now))) {
                assert!(next_start(&schedule, zone, from).is_none_or(|next| next > from), "{text} {zone:?} {from}");
                if let Ok(missed) = missed_since(&schedule, zone, from, now) {
                    assert!(missed.newest.is_none_or(|newest| newest <= now), "{text} {zone:?} {from} {now}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn no_text_makes_the_parser_panic(text in prop_oneof![".{0,80}", r"(TZ=)?[*?,/0-9a-zA-Z@ \-]{0,40}", r"@every [-+.0-9a-zµ]{0,24}"]) {
        // Either way it answers, and an error has a text.
        prop_assert!(Schedule::parse(&text).map_or_else(|error| !error.to_string().is_empty(), |_| true));
    }
}
