//! Schedule text: parsed, asked, described.
//!
//! Input: the first 8 bytes are the instant to ask from (big-endian seconds, taken modulo 40,000 years), the rest is text. A line
//! break in it parts the local zone from the schedule.

use chrono::{DateTime, Utc};
use cronjob_controller::schedule::{Schedule, Zone, describe, missed_since, next_start};

/// Seconds on either side of 1970 that are asked about.
const RANGE_S: i64 = 20_000 * 366 * 86_400;
/// How far the chain of instants is followed.
const LINKS: usize = 8;

/// Runs one input.
pub fn run(input: &[u8]) {
    let Some((head, text)) = input.split_at_checked(8) else { return };
    let from_s = i64::from_be_bytes(head.try_into().unwrap_or_default()) % RANGE_S;
    let Some(from) = DateTime::from_timestamp(from_s, 0) else { return };
    let Ok(text) = str::from_utf8(text) else { return };
    let (zone, text) = text.split_once('\n').unwrap_or(("UTC", text));
    let local = Zone::load(zone, Zone::UTC).unwrap_or(Zone::UTC);
    let schedule = match Schedule::parse(text) {
        Ok(schedule) => schedule,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(Schedule::parse(text).ok(), Some(schedule), "the same text means the same");
    assert!(!describe(&schedule, local, from).is_empty());
    follow(&schedule, local, from);
}

/// The chain goes forward, and what was missed is what the chain holds.
fn follow(schedule: &Schedule, local: Zone, from: DateTime<Utc>) {
    let _walk = schedule.next(from, local);
    let mut chain = Vec::new();
    let mut last = from;
    while let Some(next) = next_start(schedule, local, last).filter(|_| chain.len() < LINKS) {
        assert!(next > last, "{next} does not lie after {last}");
        chain.push(next);
        last = next;
    }
    if let Ok(missed) = missed_since(schedule, local, from, last) {
        assert_eq!(missed.newest, chain.last().copied(), "from {from} until {last}");
    }
    // However long ago the start lies, the answer comes at once.
    if let Ok(missed) = missed_since(schedule, local, from, DateTime::<Utc>::MAX_UTC) {
        assert!(missed.newest >= chain.first().copied());
    }
    let _from_the_edge = next_start(schedule, local, DateTime::<Utc>::MAX_UTC);
}
