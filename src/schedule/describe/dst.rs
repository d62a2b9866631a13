//! What the coming offset changes do to a schedule: found by comparing what the clock shows with what the schedule really does.

use chrono::{DateTime, Utc};

use super::words::{clock, join};
use crate::schedule::civil::{DAY_S, MINUTE_S, date_of};
use crate::schedule::missed::next_start;
use crate::schedule::zone::{Stretch, Table};
use crate::schedule::{Fields, Schedule, Zone};

/// Changes are looked at this far ahead.
const AHEAD_S: i64 = 366 * DAY_S;
/// A change has done what it does to the walk within two days of it.
const AROUND_S: i64 = 2 * DAY_S;
/// More times than this are counted instead of listed.
const LISTED: usize = 4;

/// One to a few sentences.
pub(super) fn effects(schedule: &Schedule, fields: &Fields, zone: Zone, from: DateTime<Utc>) -> String {
    let table = zone.table();
    let changes = changes_from(table, from.timestamp());
    if changes.is_empty() {
        return format!("No offset change in {} within a year: nothing is skipped or repeated.", zone.name());
    }
    let effects: Vec<String> = changes.iter().flat_map(|change| effects_of(change, schedule, fields, zone)).collect();
    if effects.is_empty() {
        let dates: Vec<String> = changes.iter().map(|change| date_text(change.before.offset + change.at)).collect();
        return format!("Daylight saving time (changes on {}) touches no run.", join(&dates));
    }
    effects.join(" ")
}

/// A change with the stretches on its two sides.
struct Change {
    at: i64,
    before: Stretch,
    after: Stretch,
}

fn changes_from(table: &Table, from: i64) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut before = *table.stretch(from);
    while before.end < from.saturating_add(AHEAD_S) {
        let after = *table.stretch(before.end);
        changes.push(Change { at: before.end, before, after });
        before = after;
    }
    changes
}

fn effects_of(change: &Change, schedule: &Schedule, fields: &Fields, zone: Zone) -> Vec<String> {
    let (old_wall, new_wall) = (change.at + change.before.offset, change.at + change.after.offset);
    let first = change.at - AROUND_S;
    let runs = runs_between(schedule, zone, first, change.at + AROUND_S);
    let wanted = matching_between(fields, zone.table(), first, change.at + AROUND_S);
    let how = format!(
        "On {} the clock goes {} from {} to {}",
        date_text(old_wall),
        if old_wall < new_wall { "forward" } else { "back" },
        time_text(old_wall),
        time_text(new_wall),
    );
    let wall_of = |at: &i64| at + zone.table().stretch(*at).offset;

    // Readings that exist on neither side, or on both.
    let gone: Vec<i64> = matching_readings(fields, old_wall, new_wall);
    let twice: Vec<i64> = runs
        .iter()
        .filter(|at| **at >= change.at)
        .map(wall_of)
        .filter(|wall| (new_wall..old_wall).contains(wall) && fields.matches_reading(*wall))
        .collect();
    let missed: Vec<i64> = only_in(&wanted, &runs).map(wall_of).collect();
    let extra: Vec<i64> = only_in(&runs, &wanted).map(wall_of).collect();

    let said = [
        (&gone, "", " doesn't exist and is skipped", " don't exist and are skipped"),
        (&twice, "", " runs twice", " run twice"),
        (&missed, "the run at ", " is lost, as with the peers", " is lost, as with the peers"),
        (&extra, "a run is added at ", ", as with the peers", ", as with the peers"),
    ];
    said.into_iter()
        .filter(|(walls, ..)| !walls.is_empty())
        .map(|(walls, lead, one, many)| {
            format!("{how}: {lead}{}{}.", list(walls), if walls.len() == 1 { one } else { many })
        })
        .collect()
}

/// Those of `these` that are not among `others`; both are sorted.
fn only_in<'a>(these: &'a [i64], others: &'a [i64]) -> impl Iterator<Item = &'a i64> {
    these.iter().filter(|at| others.binary_search(at).is_err())
}

/// What the schedule really does.
fn runs_between(schedule: &Schedule, zone: Zone, first: i64, last: i64) -> Vec<i64> {
    let at = |seconds| DateTime::from_timestamp(seconds, 0);
    std::iter::successors(at(first - 1), |run| next_start(schedule, zone, *run))
        .skip(1)
        .map(|run| run.timestamp())
        .take_while(|run| *run < last)
        .collect()
}

/// Every instant whose wall reading matches: what one would expect.
fn matching_between(fields: &Fields, table: &Table, first: i64, last: i64) -> Vec<i64> {
    let whole = first + (-first).rem_euclid(MINUTE_S);
    (0..(last - whole) / MINUTE_S)
        .map(|minute| whole + minute * MINUTE_S)
        .filter(|at| fields.matches_reading(at + table.stretch(*at).offset))
        .collect()
}

/// The matching wall readings of `first..last`.
fn matching_readings(fields: &Fields, first: i64, last: i64) -> Vec<i64> {
    let minutes = (last - first).max(0) / MINUTE_S;
    (0..minutes).map(|minute| first + minute * MINUTE_S).filter(|wall| fields.matches_reading(*wall)).collect()
}

fn list(walls: &[i64]) -> String {
    let same_day =
        walls.iter().all(|wall| wall.div_euclid(DAY_S) == walls.first().map_or(0, |wall| wall.div_euclid(DAY_S)));
    let text =
        |wall: &i64| if same_day { time_text(*wall) } else { format!("{} {}", date_text(*wall), time_text(*wall)) };
    match walls {
        [first, .., last] if walls.len() > LISTED => {
            format!("{} times from {} to {}", walls.len(), text(first), text(last))
        }
        _ => join(&walls.iter().map(text).collect::<Vec<_>>()),
    }
}

fn date_text(wall: i64) -> String {
    let date = date_of(wall.div_euclid(DAY_S));
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn time_text(wall: i64) -> String {
    clock(u32::try_from(wall.rem_euclid(DAY_S) / MINUTE_S).unwrap_or(0))
}
