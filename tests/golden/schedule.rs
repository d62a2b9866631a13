//! The schedule vectors: parsing and `next`, every line.

use chrono::{DateTime, FixedOffset, Utc};
use cronjob_controller::schedule::{Schedule, Timing, Zone};
use serde::Deserialize;

use crate::loader::load;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Next {
    spec: String,
    /// The zone put before the spec; without one the spec is evaluated in the offset of `from`.
    tz: Option<String>,
    from: DateTime<FixedOffset>,
    /// Successive results, each fed back.
    #[serde(default)]
    next: Vec<DateTime<Utc>>,
    /// How many results were asked for; fewer came if the next one was "never".
    n: Option<usize>,
    /// Go did not return.
    #[serde(default)]
    hang: bool,
    #[serde(default, rename = "note")]
    _note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParseOk {
    spec: String,
    delay_s: Option<i64>,
    minute: Option<String>,
    hour: Option<String>,
    dom: Option<String>,
    month: Option<String>,
    dow: Option<String>,
    loc: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParseFailure {
    spec: String,
    error: String,
    #[serde(default)]
    panic: bool,
}

fn check_next(vector: &Next) -> Result<(), String> {
    let text = match &vector.tz {
        Some(tz) => format!("TZ={tz} {}", vector.spec),
        None => vector.spec.clone(),
    };
    let local = Zone::fixed(vector.from.offset().local_minus_utc());
    let schedule = Schedule::parse(&text).map_err(|error| format!("{text}: {error}"))?;
    let asked = vector.n.unwrap_or(6);
    let mut at = vector.from.to_utc();
    let mut got = Vec::new();
    while got.len() < asked
        && let Some(next) = schedule.next(at, local)
    {
        got.push(next);
        at = next;
    }
    // Where Go hangs, at once or after some results, our answer is "none".
    let agrees = if vector.hang { got.starts_with(&vector.next) && got.len() < asked } else { got == vector.next };
    if agrees { Ok(()) } else { Err(format!("{text} from {}: {got:?}, not {:?}", vector.from, vector.next)) }
}

fn check_all(name: &str, total: usize) {
    let vectors: Vec<Next> = load(name, total);
    let failures: Vec<String> = vectors.iter().filter_map(|vector| check_next(vector).err()).collect();
    let hangs = vectors.iter().filter(|vector| vector.hang).count();
    println!("{name}: {} of {} agree, {hangs} of them hang in Go", vectors.len() - failures.len(), vectors.len());
    assert!(failures.is_empty(), "{} differ, first {:#?}", failures.len(), &failures[..failures.len().min(10)]);
}

#[test]
fn next_agrees_on_every_vector() {
    check_all("schedule-next", 20_000);
}

#[test]
fn next_agrees_on_the_special_cases() {
    check_all("schedule-next-special", 134);
}

#[test]
fn next_answers_none_where_go_never_returns() {
    check_all("schedule-next-hang", 103);
}

fn check_parsed(vector: &ParseOk) -> Result<(), String> {
    let schedule = Schedule::parse(&vector.spec).map_err(|error| format!("{:?}: {error}", vector.spec))?;
    let agrees = match schedule.timing() {
        Timing::Every { delay_s } => vector.delay_s == Some(delay_s),
        Timing::Fields(fields) => {
            let hex = |set: u64| Some(format!("{set:016x}"));
            vector.minute == hex(fields.minute)
                && vector.hour == hex(fields.hour)
                && vector.dom == hex(fields.day_of_month)
                && vector.month == hex(fields.month)
                && vector.dow == hex(fields.day_of_week)
                && vector.loc.as_deref() == Some(schedule.zone().map_or("Local", Zone::name))
        }
    };
    if agrees { Ok(()) } else { Err(format!("{:?}: {schedule:?}", vector.spec)) }
}

#[test]
fn every_valid_text_gives_the_same_sets() {
    let vectors: Vec<ParseOk> = load("schedule-parse-ok", 1_728);
    let failures: Vec<String> = vectors.iter().filter_map(|vector| check_parsed(vector).err()).collect();
    println!("schedule-parse-ok: {} of {} agree", vectors.len() - failures.len(), vectors.len());
    assert!(failures.is_empty(), "{} differ: {:#?}", failures.len(), &failures[..failures.len().min(10)]);
}

/// What Kubernetes makes of a panic of the parser.
const PANIC_PREFIX: &str = "invalid schedule format: ";

#[test]
fn every_invalid_text_gives_the_same_message() {
    let vectors: Vec<ParseFailure> = load("schedule-parse-errors", 1_003);
    let mut failures = Vec::new();
    for vector in &vectors {
        let wanted = format!("{}{}", if vector.panic { PANIC_PREFIX } else { "" }, vector.error);
        match Schedule::parse(&vector.spec) {
            Err(error) if error.to_string() == wanted => {}
            other => failures.push(format!("{:?}: {other:?}, not {wanted:?}", vector.spec)),
        }
    }
    println!("schedule-parse-errors: {} of {} agree", vectors.len() - failures.len(), vectors.len());
    assert!(failures.is_empty(), "{} differ: {:#?}", failures.len(), &failures[..failures.len().min(10)]);
}
