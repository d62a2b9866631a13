//! The peers' schedule arithmetic written out, with each of our rules on or off: what recorded answers are compared with
//! where a rule makes us answer otherwise. It shares only parsing and `next` with production (they have vectors of their own).

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use cronjob_controller::reconcile::Rule;
use cronjob_controller::schedule::{Schedule, Timing, Zone};

pub(crate) type Time = DateTime<Utc>;

/// The rules that are on.
pub(crate) type Rules = BTreeSet<Rule>;

/// After so many steps of a chain the search goes on near now; so dense a schedule has long forgotten where it began.
const LONG: usize = 20_000;

pub(crate) struct Arithmetic<'a> {
    pub(crate) schedule: Schedule,
    pub(crate) local: Zone,
    pub(crate) anchor: Time,
    pub(crate) deadline_s: Option<i64>,
    pub(crate) now: Time,
    /// lastScheduleTime.
    pub(crate) last: Option<Time>,
    pub(crate) rules: &'a Rules,
}

pub(crate) struct Recent {
    pub(crate) earliest: Time,
    pub(crate) newest: Option<Time>,
    pub(crate) missed: &'static str,
}

pub(crate) const NEVER_TWICE: &str = "time difference between two schedules is less than 1 second";

impl Arithmetic<'_> {
    fn on(&self, rule: Rule) -> bool {
        self.rules.contains(&rule)
    }

    pub(crate) fn next(&self, base: Time) -> Option<Time> {
        let next = self.schedule.next(base, self.local);
        if !self.on(Rule::StuckWalk) {
            return next;
        }
        (0..26 * 60)
            .map(|minutes| self.schedule.next(base + TimeDelta::minutes(minutes), self.local))
            .find(|next| next.is_none_or(|next| next > base))
            .flatten()
    }

    /// Now less the deadline. `None`: never too late.
    fn window(&self) -> Option<Time> {
        let seconds = match self.deadline_s? {
            0 if self.on(Rule::DeadlineZero) => 1,
            seconds => seconds,
        };
        if seconds.checked_mul(1_000_000_000).is_none() && self.on(Rule::DeadlineSaturates) {
            return if seconds > 0 { None } else { Some(Time::MAX_UTC) };
        }
        let back = TimeDelta::nanoseconds(seconds.wrapping_mul(1_000_000_000));
        Some(self.now.checked_sub_signed(back).unwrap_or(Time::MAX_UTC))
    }

    pub(crate) fn most_recent(&self, with_deadline: bool) -> Result<Recent, &'static str> {
        let mut earliest = self.anchor;
        if let Some(window) = self.window().filter(|window| with_deadline && *window > earliest) {
            if self.on(Rule::EveryKeepsAnchor) && matches!(self.schedule.timing(), Timing::Every { .. }) {
                while let Some(next) = self.next(earliest).filter(|next| *next <= window.min(self.now)) {
                    earliest = next;
                }
                if window > self.now {
                    return Ok(Recent { earliest, newest: None, missed: "none" });
                }
            } else {
                earliest = window;
            }
        }
        let first = self.next(earliest).ok_or(NEVER_TWICE)?;
        if self.now < first {
            return Ok(Recent { earliest, newest: None, missed: "none" });
        }
        let second = self.next(first).ok_or(NEVER_TWICE)?;
        if self.now < second {
            return Ok(Recent { earliest, newest: Some(first), missed: "none" });
        }
        let gap = (second - first).num_seconds();
        if gap < 1 {
            return Err(NEVER_TWICE);
        }
        let estimate = (self.now - first).num_seconds().min(9_223_372_036) / gap + 1;
        let missed = if estimate > 100 { "many" } else { "few" };
        let newest = if self.on(Rule::ExactNewest) {
            Some(self.last_of_chain(first))
        } else {
            let from = first + TimeDelta::seconds((estimate - 2) * gap);
            self.next(from).filter(|first| *first <= self.now).map(|first| self.last_of_chain(first))
        };
        Ok(Recent { earliest, newest, missed })
    }

    fn last_of_chain(&self, first: Time) -> Time {
        let mut newest = first;
        for step in 0.. {
            match self.next(newest) {
                Some(next) if next <= self.now && next > newest => newest = next,
                _ => break,
            }
            if step == LONG {
                newest = self.next(self.now - TimeDelta::days(2)).filter(|next| *next <= self.now).unwrap_or(newest);
            }
        }
        newest
    }

    /// The next wake-up's instant, without the 100 ms.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let base = match self.most_recent(false) {
            Err(_) => self.now,
            Ok(Recent { newest: Some(newest), .. }) => newest,
            Ok(Recent { earliest, missed: "none", .. }) => earliest,
            Ok(_) => self.now,
        };
        let next = self.next(base)?;
        let minute = |at: Time| at.timestamp().div_euclid(60);
        let taken = |at: &Time| self.on(Rule::MinuteTaken) && self.last.map(minute) == Some(minute(*at));
        std::iter::successors(Some(next), |next| self.next(*next)).take(61).find(|next| !taken(next))
    }

    pub(crate) fn delay_ms(&self) -> Option<i64> {
        self.next_due().map(|due| (due - self.now).num_milliseconds() + 100)
    }
}

/// The text that is parsed, and in which zone it runs if it names none.
pub(crate) fn effective(schedule: &str, zone: Option<&str>, local: Zone) -> String {
    match zone {
        Some(zone) if !schedule.contains("TZ") && Zone::load(zone, local).is_ok() => format!("TZ={zone} {schedule}"),
        _ => schedule.to_owned(),
    }
}

/// Whether the peers' parser panics on this text.
pub(crate) fn panics(text: &str) -> bool {
    (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) && !text.contains(' ')
}
