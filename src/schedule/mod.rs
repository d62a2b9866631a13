//! Schedules: cron text to the next instant, exactly as the peers compute it (robfig/cron v3 as Kubernetes and Volcano use it).
//!
//! Invariants
//! - [`Schedule`] and [`Zone`] are `Copy` and own no heap memory; [`Schedule::next`] allocates nothing.
//! - [`Schedule::next`] is a *walk*, not "the least matching instant": its answer can depend on its start, and near odd offset
//!   changes it can equal its start or lie before it (`docs/schedules.md`). Callers that loop use [`next_start`] or
//!   [`missed::missed_since`], which always go forward.
//! - No text and no instant makes anything here panic or run without end.

mod civil;
mod describe;
mod duration;
mod error;
mod field;
mod fields;
mod leap;
pub mod missed;
#[cfg(test)]
mod oracle;
mod parse;
mod quote;
#[cfg(test)]
mod tests;
mod walk;
mod zone;

use chrono::{DateTime, Utc};

pub use describe::describe;
pub use error::{DurationError, FieldError, ParseError, ZoneError};
pub use fields::Fields;
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
            Timing::Fields(fields) => fields.next_s(self.zone_or(local).table(), from),
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
