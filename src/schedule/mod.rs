//! Schedules: cron text to the next instant, exactly as the peers compute it (robfig/cron v3 as Kubernetes and Volcano use it).
//!
//! Invariants
//! - [`Schedule`] and [`Zone`] are `Copy` and own no heap memory; [`Schedule::next`] allocates nothing.
//! - [`Schedule::next`] is a *walk*, not "the least matching instant": its answer can depend on its start, and near odd offset
//!   changes it can equal its start or lie before it (`docs/schedules.md`). Callers that loop use [`next_start`] or
//!   [`missed::missed_since`], which always go forward.
//! - No text and no instant makes anything here panic or run without end.

mod civil;
mod duration;
mod error;
mod field;
pub mod missed;
mod parse;
mod quote;
mod walk;
mod zone;

use chrono::{DateTime, Utc};

pub use error::{DurationError, FieldError, ParseError, ZoneError};
pub use missed::{Missed, MissedCount, MissedKind, NeverTwice, missed_since, next_start};
pub use quote::quote;
pub use zone::{TZDB_VERSION, Zone};

/// A compiled schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    timing: Timing,
    /// `None`: the caller's local zone.
    zone: Option<Zone>,
}

/// When a schedule fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// `@every`: this many whole seconds after whatever instant is asked from; at least 1.
    Every {
        /// The distance in seconds.
        delay_s: i64,
    },
    /// Five fields.
    Fields(Fields),
}

/// The five sets. Bit i of a set: value i is in it. Bit 63: the field was written with a star (no step, or a step of one).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Minutes 0-59.
    pub minute: u64,
    /// Hours 0-23.
    pub hour: u64,
    /// Days of the month 1-31.
    pub day_of_month: u64,
    /// Months 1-12.
    pub month: u64,
    /// Days of the week, 0 is Sunday.
    pub day_of_week: u64,
}

impl Schedule {
    /// Compiles five fields, a descriptor or `@every`, with an optional `TZ=` or `CRON_TZ=` prefix.
    ///
    /// # Errors
    /// Displays as the peers' message; a panic of their parser is an error here.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::parse(text)
    }

    /// The next instant after `from` in the text's own zone, else in `local`; a whole second. `None`: nothing within five calendar
    /// years, or the peers' search would never end. Not always after `from`: see the head of this module.
    pub fn next(&self, from: DateTime<Utc>, local: Zone) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp(self.next_s(from.timestamp(), local)?, 0)
    }

    /// As [`Schedule::next`], in UTC seconds.
    fn next_s(&self, from: i64, local: Zone) -> Option<i64> {
        match &self.timing {
            Timing::Every { delay_s } => from.checked_add(*delay_s),
            Timing::Fields(fields) => walk::next_s(fields, self.zone_or(local).table(), from),
        }
    }

    /// The zone of the text's prefix; `None` without one, and for the name `Local`.
    pub fn zone(&self) -> Option<Zone> {
        self.zone
    }

    /// When it fires.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    fn zone_or(&self, local: Zone) -> Zone {
        self.zone.unwrap_or(local)
    }
}

impl Fields {
    /// The day rule: both day fields must agree if one of them was written with a star, else one suffices.
    fn day_matches(&self, day: u32, weekday: u32) -> bool {
        let in_month = self.day_of_month & 1 << day != 0;
        let in_week = self.day_of_week & 1 << weekday != 0;
        if self.days_are_anded() { in_month && in_week } else { in_month || in_week }
    }

    /// A set without a member, as of the field `,`.
    fn never_match(&self) -> bool {
        // The shift drops the flag.
        let empty = |set: u64| set << 1 == 0;
        let no_day = if self.days_are_anded() {
            empty(self.day_of_month) || empty(self.day_of_week)
        } else {
            empty(self.day_of_month) && empty(self.day_of_week)
        };
        no_day || empty(self.minute) || empty(self.hour) || empty(self.month)
    }

    fn days_are_anded(&self) -> bool {
        (self.day_of_month | self.day_of_week) & field::STAR != 0
    }
}
