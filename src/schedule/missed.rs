//! Which instants of a schedule have passed since its last run.
//!
//! The peers estimate ("the first gap, so many times"); we take the true newest one (rule `exact-newest` of `docs/parity.md`)
//! and keep their estimate only for the warning about too many.
//!
//! Invariants
//! - The chain is `next_start(start), next_start(of that), …`; it always goes forward.
//! - Time taken is bounded however long ago `start` lies: at most [`COUNTED`] steps from the start, then the chain is taken up
//!   again close to `now` (`take_up`).

use chrono::{DateTime, Utc};
use thiserror::Error;

use super::civil::{DAY_S, HOUR_S, MINUTE_S, date_of, day_number};
use super::zone::{Barrier, Table};
use super::{Schedule, Timing, Zone};

/// Missed instants are counted exactly up to this many.
pub const COUNTED: u32 = 100;

/// The peers warn above this many, by their estimate.
const MANY: i64 = 100;
/// Greatest whole second of Go's `Duration` (63 bits of nanoseconds); their differences saturate there.
const GO_DURATION_MAX_S: i64 = 9_223_372_036;
/// The longest stretch of minutes over which `next` has been seen to stand still is under an hour; no change is longer than a day.
const STUCK_MINUTES: i64 = 26 * 60;

/// What has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The newest instant at or before now.
    pub newest: Option<DateTime<Utc>>,
    /// The peers' class, by their estimate.
    pub kind: MissedKind,
    /// How many instants have passed, the newest one included.
    pub count: MissedCount,
}

/// How the peers class what was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissedKind {
    /// Nothing pending, or just one instant.
    None,
    /// Several.
    Few,
    /// More than 100 by their estimate, which takes all gaps to be as long as the first.
    Many,
}

/// How many instants have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissedCount {
    /// So many; at most [`COUNTED`].
    Exactly(u32),
    /// More than [`COUNTED`].
    More,
}

/// The schedule has no instant, or only one more and then none. The text is the peers'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("time difference between two schedules is less than 1 second")]
pub struct NeverTwice;

/// [`Schedule::next`] that always goes forward (rule `stuck-walk` of `docs/parity.md`): where the walk stands still or goes back, it is
/// asked again from a minute later, and so on. `None`: nothing within five years.
pub fn next_start(schedule: &Schedule, local: Zone, base: DateTime<Utc>) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(next_s(schedule, local, base.timestamp())?, 0)
}

/// What has passed of the chain from `start` (last run or creation) up to and including `now`.
///
/// # Errors
/// [`NeverTwice`] where the peers report it: no next instant, or the first one has passed and no second is to come.
pub fn missed_since(
    schedule: &Schedule,
    local: Zone,
    start: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<Missed, NeverTwice> {
    let chain = Chain { schedule, local };
    let now_s = now.timestamp();
    let first = chain.next(start.timestamp()).ok_or(NeverTwice)?;
    if now_s < first {
        return Ok(Missed { newest: None, kind: MissedKind::None, count: MissedCount::Exactly(0) });
    }
    let second = chain.next(first).ok_or(NeverTwice)?;
    let (newest, count) = match schedule.timing() {
        Timing::Every { delay_s } => newest_of_every(first, delay_s, now_s),
        Timing::Fields(_) => chain.newest(first, now_s),
    };
    let kind = if now_s < second { MissedKind::None } else { estimate(first, second, now) };
    Ok(Missed { newest: DateTime::from_timestamp(newest, 0), kind, count })
}

/// The peers' class of two or more missed instants.
fn estimate(first: i64, second: i64, now: DateTime<Utc>) -> MissedKind {
    let gap = second.saturating_sub(first).clamp(1, GO_DURATION_MAX_S);
    let elapsed = now.timestamp().saturating_sub(first).min(GO_DURATION_MAX_S);
    if elapsed / gap + 1 > MANY { MissedKind::Many } else { MissedKind::Few }
}

fn newest_of_every(first: i64, delay_s: i64, now: i64) -> (i64, MissedCount) {
    let further = now.saturating_sub(first) / delay_s.max(1);
    (first + further * delay_s, MissedCount::of(further.saturating_add(1)))
}

impl MissedCount {
    fn of(count: i64) -> Self {
        match u32::try_from(count) {
            Ok(count) if count <= COUNTED => Self::Exactly(count),
            _ => Self::More,
        }
    }
}

fn next_s(schedule: &Schedule, local: Zone, base: i64) -> Option<i64> {
    (0..STUCK_MINUTES)
        .map(|minutes| schedule.next_s(base.checked_add(minutes * MINUTE_S)?, local))
        .find(|next| next.is_none_or(|next| next > base))
        .flatten()
}

/// The chain of a schedule with five fields.
struct Chain<'a> {
    schedule: &'a Schedule,
    local: Zone,
}

impl Chain<'_> {
    fn next(&self, base: i64) -> Option<i64> {
        next_s(self.schedule, self.local, base)
    }

    /// The chain's last member up to `now`, from its member `first`.
    fn newest(&self, first: i64, now: i64) -> (i64, MissedCount) {
        let mut newest = first;
        for count in 1..=COUNTED {
            match self.next(newest) {
                Some(next) if next <= now => newest = next,
                _ => return (newest, MissedCount::Exactly(count)),
            }
        }
        (self.take_up(newest, now), MissedCount::More)
    }

    /// The chain's last member up to `now`, known that `floor` is a member: begins at a [safe](Self::safe_before) instant
    /// ever further back until a member lies between. Where the chain breaks off (a day that the zone left out, Apia 2011), it finds what
    /// comes behind the break.
    fn take_up(&self, floor: i64, now: i64) -> i64 {
        for back in [2 * HOUR_S, 2 * DAY_S, 40 * DAY_S, 400 * DAY_S, 3_300 * DAY_S] {
            let from = self.safe_before(now.saturating_sub(back), floor);
            if let Some(next) = self.next(from).filter(|next| *next <= now) {
                return self.last_up_to(next, now);
            }
            if from == floor {
                return floor;
            }
        }
        self.last_up_to(floor, now)
    }

    fn last_up_to(&self, member: i64, now: i64) -> i64 {
        let mut newest = member;
        while let Some(next) = self.next(newest).filter(|next| *next <= now) {
            newest = next;
        }
        newest
    }

    /// An instant at or before `at` from which the walk finds the same members as the chain from `floor` does, or `floor`.
    ///
    /// The walk forgets where it began, but for three things. Within a day of an offset change its answer depends on the start; so the
    /// instant lies two days clear of any. At a *barrier* (irregular midnight, change by part of an hour) it can pick up an odd time of
    /// day, which it carries up to a day that matches. And at a barrier around the first of a month it can pick up an odd day of the
    /// month as well: stepping by months it then enters the next matching month late, or overruns a short one (January 30 and
    /// a month is March 2), and is in order again in the month after that. So between barrier and instant there must be enough
    /// matching days or months, else the instant has to lie before the barrier.
    fn safe_before(&self, at: i64, floor: i64) -> i64 {
        let zone = self.schedule.zone_or(self.local).table();
        let mut at = calm_before(zone, at);
        while at > floor {
            let unsettled_day = zone.barrier_before(at).filter(|barrier| !self.days_settle(*barrier, zone, at));
            let unsettled = unsettled_day
                .or_else(|| zone.month_barrier_before(at).filter(|barrier| !self.months_settle(*barrier, zone, at)));
            match unsettled {
                Some(barrier) => at = calm_before(zone, barrier.at),
                None => return at,
            }
        }
        floor
    }

    /// Whether two days between a barrier and `at` match.
    fn days_settle(&self, barrier: Barrier, zone: &Table, at: i64) -> bool {
        let one = self.next(clear_of(barrier, zone)).filter(|one| *one < at);
        let other_day = one.and_then(|one| self.next(one + DAY_S + 2 * HOUR_S));
        other_day.is_some_and(|other| other < at)
    }

    /// Whether days match in three months between a barrier and `at`.
    fn months_settle(&self, barrier: Barrier, zone: &Table, at: i64) -> bool {
        let later_month = |member: i64| self.next(month_after(member, zone)).filter(|next| *next < at);
        let one = self.next(clear_of(barrier, zone)).filter(|one| *one < at);
        one.and_then(later_month).and_then(later_month).is_some()
    }
}

/// The last instant at or before `at` that is two days clear of any offset change.
fn calm_before(zone: &Table, at: i64) -> i64 {
    let mut at = at;
    loop {
        let stretch = zone.stretch(at);
        if at.saturating_sub(stretch.start) < 2 * DAY_S {
            at = stretch.start.saturating_sub(2 * DAY_S);
        } else if stretch.end.saturating_sub(at) < 2 * DAY_S {
            at = stretch.end - 2 * DAY_S;
        } else {
            return at;
        }
    }
}

/// Past what a barrier does by itself: two days; around the first of a month two days into the next one, because a month left
/// unchecked at its first day is checked there.
fn clear_of(barrier: Barrier, zone: &Table) -> i64 {
    let two_days_on = barrier.at + 2 * DAY_S;
    if barrier.at_month_start { month_after(two_days_on, zone) } else { two_days_on }
}

/// Two days into the month after that of `at`.
fn month_after(at: i64, zone: &Table) -> i64 {
    let date = date_of((at + zone.stretch(at).offset).div_euclid(DAY_S));
    day_number(date.year, date.month + 1, 3) * DAY_S
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn missed_in(zone: &str, text: &str, start: &str, now: &str) -> Result<Missed, NeverTwice> {
        let zone = Zone::load(zone, Zone::UTC).unwrap();
        missed_since(&Schedule::parse(text).unwrap(), zone, at(start), at(now))
    }

    fn missed(text: &str, start: &str, now: &str) -> Missed {
        missed_in("UTC", text, start, now).unwrap()
    }

    #[test]
    fn the_first_pending_instant_is_no_miss_yet() {
        let none = missed("0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:59:59.999Z");
        assert_eq!(none, Missed { newest: None, kind: MissedKind::None, count: MissedCount::Exactly(0) });
        let one = missed("0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
        let newest = Some(at("2026-01-01T01:00:00Z"));
        assert_eq!(one, Missed { newest, kind: MissedKind::None, count: MissedCount::Exactly(1) });
    }

    #[test]
    fn a_hundred_are_few_and_counted_one_more_are_many() {
        let hundred = missed("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:40:59Z");
        assert_eq!((hundred.kind, hundred.count), (MissedKind::Few, MissedCount::Exactly(100)));
        let more = missed("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T01:41:00Z");
        assert_eq!((more.kind, more.count), (MissedKind::Many, MissedCount::More));
        assert_eq!(more.newest, Some(at("2026-01-01T01:41:00Z")));
    }

    #[test]
    fn the_newest_is_found_where_the_peers_estimate_jumps_past_it() {
        let pair = missed("0,1 0 * * *", "2026-01-01T00:01:00Z", "2026-01-02T00:03:00Z");
        assert_eq!((pair.newest, pair.count), (Some(at("2026-01-02T00:01:00Z")), MissedCount::Exactly(2)));
    }

    #[test]
    fn many_is_the_peers_estimate_even_if_few_were_missed() {
        // Two a day a minute apart: the estimate takes every gap to be a minute.
        let two_days = missed("0,1 0 * * *", "2026-01-01T00:01:00Z", "2026-01-03T12:00:00Z");
        assert_eq!((two_days.kind, two_days.count), (MissedKind::Many, MissedCount::Exactly(4)));
    }

    #[test]
    fn never_and_once_more_then_never_are_errors() {
        for (text, start, now) in [
            ("0 0 30 2 *", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            (", * * * *", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
            ("0 0 29 2 *", "2095-06-01T00:00:00Z", "2097-01-01T00:00:00Z"),
        ] {
            assert_eq!(missed_in("UTC", text, start, now), Err(NeverTwice), "{text}");
        }
        assert_eq!(NeverTwice.to_string(), "time difference between two schedules is less than 1 second");
        let before_the_last = missed("0 0 29 2 *", "2095-06-01T00:00:00Z", "2096-01-01T00:00:00Z");
        assert_eq!(before_the_last.newest, None, "not due yet: no error");
    }

    #[test]
    fn two_thousand_years_of_minutes_take_no_longer_than_a_hundred() {
        for zone in ["UTC", "America/New_York", "Asia/Beirut", "Australia/Lord_Howe"] {
            let ages = missed_in(zone, "* * * * *", "0001-01-01T00:00:00Z", "2026-05-01T12:34:56Z").unwrap();
            let newest = Some(at("2026-05-01T12:34:00Z"));
            assert_eq!(ages, Missed { newest, kind: MissedKind::Many, count: MissedCount::More }, "{zone}");
        }
    }

    #[test]
    fn what_the_walk_picked_up_at_a_month_s_start_is_remembered() {
        // Midnight of 1965-12-01 is missing: the walk from March on enters December on November 30, 23:00, and by "February 30"
        // overruns all of February 1966, a hundred hours of which seem to be there.
        let (start, now) = ("1965-02-24T21:59:59Z", "1966-03-01T03:00:00Z");
        let missed = missed_in("America/Boa_Vista", "0 * * 2 *", start, now).unwrap();
        assert_eq!((missed.newest, missed.count), (Some(at("1965-03-01T02:00:00Z")), MissedCount::More));
    }

    #[test]
    fn every_keeps_its_phase_over_any_distance() {
        let every = missed("@every 7s", "1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
        let newest = every.newest.unwrap();
        assert_eq!(newest.timestamp() % 7, 0);
        assert!(at("2026-01-01T00:00:00Z") - newest < chrono::TimeDelta::seconds(7));
        assert_eq!((every.kind, every.count), (MissedKind::Many, MissedCount::More));
    }

    #[test]
    fn where_the_walk_stands_still_the_chain_goes_on() {
        let chatham = Zone::load("Pacific/Chatham", Zone::UTC).unwrap();
        let schedule = Schedule::parse("50 3 * * *").unwrap();
        let stuck = at("2026-04-04T14:05:00Z");
        assert_eq!(schedule.next(stuck, chatham), Some(stuck), "the peers' walk");
        let onwards = next_start(&schedule, chatham, stuck).unwrap();
        assert!(onwards > stuck && onwards < at("2026-04-06T00:00:00Z"), "{onwards}");
        let missed =
            missed_in("Pacific/Chatham", "5,55 3 * * *", "2026-04-03T00:00:00Z", "2026-04-30T00:00:00Z").unwrap();
        assert_eq!(missed.newest, Some(at("2026-04-29T15:10:00Z")));
    }
}
