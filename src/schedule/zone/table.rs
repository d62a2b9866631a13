//! The table of one zone: its stretches of constant offset, made once from chrono-tz.
//!
//! Invariants
//! - Stretches are sorted, touch each other, cover all of time, and neighbours differ in offset.
//! - No stretch between two changes is shorter than [`PROBE_S`] (tested over all zones), so probing finds every change.

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use super::yearly::go_on;
use crate::schedule::civil::{DAY_S, HOUR_S, date_of};

/// Probing distance. The shortest stretch in the data lasts just under seven days.
const PROBE_S: i64 = 2 * DAY_S;
/// 1827-05-27, before the first change of any zone (Manila, end of 1844).
const FIRST_PROBE_S: i64 = -4_500_000_000;
/// 2100-01-01; chrono-tz knows no change after 2099.
const LAST_PROBE_S: i64 = 4_102_444_800;

/// Years after the data's end for which the zone's last rule goes on; a whole cycle of the calendar.
const RULE_YEARS: std::ops::RangeInclusive<i64> = 2100..=2499;

/// Each bucket of the index spans 2^24 s, about half a year.
const BUCKET_BITS: u32 = 24;

/// A span of time with one offset.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct Stretch {
    /// First second, UTC; `i64::MIN` for the first stretch.
    pub(in crate::schedule) start: i64,
    /// First second past it, UTC; `i64::MAX` for the last stretch.
    pub(in crate::schedule) end: i64,
    /// Seconds east of UTC.
    pub(in crate::schedule) offset: i64,
}

impl Stretch {
    const fn always(offset: i64) -> Self {
        Self { start: i64::MIN, end: i64::MAX, offset }
    }

    pub(in crate::schedule) fn contains(&self, at: i64) -> bool {
        self.start <= at && at < self.end
    }
}

/// A change that the walk can carry something away from: one at an irregular midnight, or by other than whole hours. What
/// it carries, and how far, is said in `missed`.
#[derive(Clone, Copy, Debug)]
pub(in crate::schedule) struct Barrier {
    /// The change, UTC seconds.
    pub(in crate::schedule) at: i64,
    /// Whether the first of a month lies within two days of it.
    pub(in crate::schedule) at_month_start: bool,
}

/// What a zone is made of.
#[derive(Debug)]
pub(in crate::schedule) struct Table {
    name: &'static str,
    /// The stretch before the first change, or the only one.
    first: Stretch,
    /// The stretches after each change.
    rest: Vec<Stretch>,
    /// Day numbers of irregular midnights, sorted: local dates whose 00:00 doesn't read 00:00 once resolved to an instant.
    irregular: Vec<i64>,
    /// Oldest first; a few hundred at most.
    barriers: Vec<Barrier>,
    /// For each bucket of time from the first change on: how many changes happened up to its start.
    buckets: Vec<u16>,
}

impl Table {
    pub(super) const fn utc() -> Self {
        Self::single("UTC", 0)
    }

    pub(super) const fn fixed(name: &'static str, offset_s: i32) -> Self {
        // A widening cast.
        Self::single(name, offset_s as i64)
    }

    const fn single(name: &'static str, offset: i64) -> Self {
        let first = Stretch::always(offset);
        Self { name, first, rest: Vec::new(), buckets: Vec::new(), irregular: Vec::new(), barriers: Vec::new() }
    }

    /// Probes all of a zone's changes.
    pub(super) fn of(tz: Tz) -> Self {
        let mut first = Stretch::always(probe(tz, FIRST_PROBE_S));
        let mut rest: Vec<Stretch> = Vec::new();
        let mut at = FIRST_PROBE_S;
        while at < LAST_PROBE_S {
            let last = rest.last_mut().unwrap_or(&mut first);
            let next = at + PROBE_S;
            if probe(tz, next) == last.offset {
                at = next;
            } else {
                at = first_change(tz, at, next);
                last.end = at;
                rest.push(Stretch { start: at, end: i64::MAX, offset: probe(tz, at) });
            }
        }
        for change in go_on(&rest, RULE_YEARS) {
            if let Some(last) = rest.last_mut() {
                last.end = change.at;
            }
            rest.push(Stretch { start: change.at, end: i64::MAX, offset: change.new_offset });
        }
        let buckets = index(&rest);
        let mut table = Self { name: tz.name(), first, rest, buckets, irregular: Vec::new(), barriers: Vec::new() };
        table.note_oddities();
        table
    }

    fn note_oddities(&mut self) {
        let (mut irregular, mut barriers) = (Vec::new(), Vec::new());
        let mut before = self.first;
        for change in &self.rest {
            let day = change.start.div_euclid(DAY_S);
            let midnights = (day - 2..=day + 2).filter(|day| self.is_irregular(*day));
            let known = irregular.len();
            irregular.extend(midnights);
            if irregular.len() > known || (change.offset - before.offset) % HOUR_S != 0 {
                let at_month_start = (day - 2..=day + 2).any(|day| date_of(day).day == 1);
                barriers.push(Barrier { at: change.start, at_month_start });
            }
            before = *change;
        }
        irregular.dedup();
        (self.irregular, self.barriers) = (irregular, barriers);
    }

    fn is_irregular(&self, day: i64) -> bool {
        let wall = day * DAY_S;
        let at = self.instant(wall);
        at + self.stretch(at).offset != wall
    }

    /// Whether a date of `first..=last` (day numbers) has an irregular midnight.
    #[inline]
    pub(in crate::schedule) fn has_irregular(&self, first: i64, last: i64) -> bool {
        !self.irregular.is_empty() && {
            let index = self.irregular.partition_point(|day| *day < first);
            self.irregular.get(index).is_some_and(|day| *day <= last)
        }
    }

    /// The last barrier before a UTC second.
    pub(in crate::schedule) fn barrier_before(&self, at: i64) -> Option<Barrier> {
        self.barriers.iter().rfind(|barrier| barrier.at < at).copied()
    }

    /// The last barrier at a month's start before a UTC second.
    pub(in crate::schedule) fn month_barrier_before(&self, at: i64) -> Option<Barrier> {
        self.barriers.iter().rfind(|barrier| barrier.at < at && barrier.at_month_start).copied()
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// All changes, oldest first, each as the stretch that it begins.
    #[cfg(test)]
    pub(in crate::schedule) fn changes(&self) -> &[Stretch] {
        &self.rest
    }

    /// The stretch that holds a UTC second.
    #[inline]
    pub(in crate::schedule) fn stretch(&self, at: i64) -> &Stretch {
        let mut count = self.changes_at_bucket(at);
        while let Some(stretch) = self.rest.get(count) {
            if at < stretch.start {
                break;
            }
            count += 1;
        }
        match count.checked_sub(1) {
            Some(index) => self.rest.get(index).unwrap_or(&self.first),
            None => &self.first,
        }
    }

    fn changes_at_bucket(&self, at: i64) -> usize {
        let Some(change) = self.rest.first() else { return 0 };
        if at < change.start {
            return 0;
        }
        let bucket = usize::try_from(at.abs_diff(change.start) >> BUCKET_BITS).unwrap_or(usize::MAX);
        self.buckets.get(bucket).map_or(self.rest.len(), |count| usize::from(*count))
    }

    /// The instant of a wall reading (its seconds counted as if it were UTC), resolved as Go's `Date` does: in a gap it lands
    /// before it (zone behind UTC) or after it (ahead of UTC), a repeated reading is the first (behind) or the second (ahead). With it
    /// comes the stretch that holds it.
    #[inline]
    pub(in crate::schedule) fn instant_and_stretch(&self, wall: i64) -> (i64, &Stretch) {
        let guess = self.stretch(wall);
        let at = wall - guess.offset;
        if guess.contains(at) {
            return (at, guess);
        }
        let at = wall - self.stretch(at).offset;
        (at, self.stretch(at))
    }

    pub(in crate::schedule) fn instant(&self, wall: i64) -> i64 {
        self.instant_and_stretch(wall).0
    }
}

/// For each bucket from the first change to the last: how many changes lie at or before its start.
fn index(rest: &[Stretch]) -> Vec<u16> {
    let (Some(first), Some(last)) = (rest.first(), rest.last()) else { return Vec::new() };
    let count = (last.start - first.start) >> BUCKET_BITS;
    (0..=count)
        .map(|bucket| {
            let start = first.start + (bucket << BUCKET_BITS);
            u16::try_from(rest.partition_point(|stretch| stretch.start <= start)).unwrap_or(u16::MAX)
        })
        .collect()
}

fn probe(tz: Tz, at: i64) -> i64 {
    let at = DateTime::from_timestamp(at, 0).unwrap_or_default().naive_utc();
    i64::from(tz.offset_from_utc_datetime(&at).fix().local_minus_utc())
}

/// The first second after `before` with another offset; there is one at `after`, and only one change between.
fn first_change(tz: Tz, mut before: i64, mut after: i64) -> i64 {
    let old = probe(tz, before);
    while after - before > 1 {
        let middle = before + (after - before) / 2;
        if probe(tz, middle) == old {
            before = middle;
        } else {
            after = middle;
        }
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::civil::day_number;
    use chrono_tz::TZ_VARIANTS;

    #[test]
    fn no_stretch_is_so_short_that_probing_could_miss_it() {
        for tz in TZ_VARIANTS {
            let table = Table::of(tz);
            for stretch in &table.rest {
                assert!(stretch.end.saturating_sub(stretch.start) > 3 * PROBE_S, "{tz} {stretch:?}");
            }
        }
    }

    #[test]
    fn finer_probing_finds_nothing_more() {
        for tz in TZ_VARIANTS.iter().step_by(30).copied() {
            let table = Table::of(tz);
            let mut at = FIRST_PROBE_S;
            while at < LAST_PROBE_S {
                assert_eq!(table.stretch(at).offset, probe(tz, at), "{tz} {at}");
                at += 6 * 3_600;
            }
        }
    }

    #[test]
    fn zones_that_still_change_in_2099_go_on_by_their_rule() {
        let mut going_on = 0;
        for tz in TZ_VARIANTS {
            let table = Table::of(tz);
            let in_year = |year| {
                let start = |year| day_number(year, 1, 1) * DAY_S;
                table.rest.iter().filter(|change| (start(year)..start(year + 1)).contains(&change.start)).count()
            };
            going_on += usize::from(in_year(2099) > 0);
            assert_eq!(in_year(2099), in_year(2100), "{tz}");
            assert_eq!(in_year(2099), in_year(2499), "{tz}");
            assert!(table.rest.is_sorted_by_key(|stretch| stretch.start), "{tz}");
        }
        assert_eq!(going_on, 199);
    }

    #[test]
    fn the_stretch_of_each_change_begins_at_it() {
        let table = Table::of(Tz::America__New_York);
        assert!(table.rest.len() > 300);
        for stretch in &table.rest {
            assert_eq!(table.stretch(stretch.start).start, stretch.start);
            assert_eq!(table.stretch(stretch.start - 1).end, stretch.start);
        }
        assert_eq!(table.stretch(i64::MIN).start, i64::MIN);
        assert_eq!(table.stretch(i64::MAX - 1).end, i64::MAX);
    }

    #[test]
    fn readings_in_gaps_and_repeats_resolve_as_in_go() {
        let wall = |text: &str| text.parse::<DateTime<chrono::Utc>>().unwrap().timestamp();
        let new_york = Table::of(Tz::America__New_York);
        assert_eq!(new_york.instant(wall("2026-03-08T02:30:00Z")), wall("2026-03-08T06:30:00Z"), "gap: an hour before");
        assert_eq!(new_york.instant(wall("2026-11-01T01:30:00Z")), wall("2026-11-01T05:30:00Z"), "repeat: the first");
        let berlin = Table::of(Tz::Europe__Berlin);
        assert_eq!(berlin.instant(wall("2026-03-29T02:30:00Z")), wall("2026-03-29T01:30:00Z"), "gap: an hour after");
        assert_eq!(berlin.instant(wall("2026-10-25T02:30:00Z")), wall("2026-10-25T01:30:00Z"), "repeat: the second");
        let apia = Table::of(Tz::Pacific__Apia);
        assert_eq!(
            apia.instant(wall("2011-12-30T05:00:00Z")),
            wall("2011-12-29T15:00:00Z"),
            "a missing day: the day before"
        );
    }
}
