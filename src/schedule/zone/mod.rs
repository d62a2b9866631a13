//! Zones by name, as Go's `LoadLocation` finds them in the table built into the peers' binaries.
//!
//! Invariants
//! - A [`Zone`] is a handle to a table that lives as long as the process; copying it is free and two handles of one name are equal.
//! - A table is made when its name is first loaded (a few milliseconds) and never changes.
//! - Names are exact: case matters, nothing is trimmed, no file of the machine is read.

mod table;
mod yearly;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use chrono::{DateTime, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};

use super::error::ZoneError;
pub(super) use table::{Barrier, Stretch, Table};

/// Version of the IANA data that zones are made from, e.g. `2025b`.
pub const TZDB_VERSION: &str = chrono_tz::IANA_TZDB_VERSION;

/// A zone: which offset from UTC holds when.
#[derive(Clone, Copy)]
pub struct Zone(&'static Table);

static UTC_TABLE: Table = Table::utc();

/// One entry per name of the IANA data; a table is filled in when first asked for.
static NAMED: LazyLock<BTreeMap<&'static str, Named>> =
    LazyLock::new(|| TZ_VARIANTS.iter().map(|tz| (tz.name(), Named { tz: *tz, table: OnceLock::new() })).collect());

/// Tables of fixed offsets by seconds; at most one for each second within a day either side.
static FIXED: Mutex<BTreeMap<i32, &'static Table>> = Mutex::new(BTreeMap::new());

/// A name Go knows and chrono-tz doesn't: offset 0 for ever.
const FACTORY: &str = "Factory";
static FACTORY_TABLE: LazyLock<Table> = LazyLock::new(|| Table::fixed(FACTORY, 0));

struct Named {
    tz: Tz,
    table: OnceLock<Table>,
}

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(&UTC_TABLE);

    /// Coordinated universal time.
    pub const fn utc() -> Self {
        Self::UTC
    }

    /// A zone with one offset, in seconds east of UTC, cut to less than a day either side. Its name is the offset, e.g. `+05:30`.
    pub fn fixed(offset_s: i32) -> Self {
        let offset_s = offset_s.clamp(-86_399, 86_399);
        let mut known = FIXED.lock().unwrap_or_else(PoisonError::into_inner);
        let table = known.entry(offset_s).or_insert_with(|| {
            let name: &'static str = Box::leak(fixed_name(offset_s).into_boxed_str());
            Box::leak(Box::new(Table::fixed(name, offset_s)))
        });
        Self(table)
    }

    /// The zone of an exact IANA name; the empty name is UTC, `Local` is `local` (rules: `docs/schedules.md`, "Zones").
    ///
    /// # Errors
    /// The peers' text for a name that isn't known or can't be one.
    pub fn load(name: &str, local: Self) -> Result<Self, ZoneError> {
        Ok(Self::lookup(name)?.unwrap_or(local))
    }

    /// As [`Zone::load`]; `None` is `Local`.
    pub(super) fn lookup(name: &str) -> Result<Option<Self>, ZoneError> {
        match name {
            "" | "UTC" => return Ok(Some(Self::UTC)),
            "Local" => return Ok(None),
            FACTORY => return Ok(Some(Self(&FACTORY_TABLE))),
            _ => {}
        }
        if name.contains("..") || name.starts_with(['/', '\\']) {
            return Err(ZoneError::InvalidName);
        }
        let named = NAMED.get(name).ok_or_else(|| ZoneError::Unknown(name.to_owned()))?;
        Ok(Some(Self(named.table.get_or_init(|| Table::of(named.tz)))))
    }

    /// Every name that [`Zone::load`] takes beside the empty one and `Local`, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let (before, after): (Vec<_>, Vec<_>) = NAMED.keys().copied().partition(|name| *name < FACTORY);
        before.into_iter().chain([FACTORY]).chain(after)
    }

    /// Its IANA name, or its offset.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Seconds east of UTC at an instant.
    pub fn offset_s(self, at: DateTime<Utc>) -> i32 {
        // Offsets come from i32 values.
        i32::try_from(self.0.stretch(at.timestamp()).offset).unwrap_or(0)
    }

    pub(super) fn table(self) -> &'static Table {
        self.0
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

fn fixed_name(offset_s: i32) -> String {
    let sign = if offset_s < 0 { '-' } else { '+' };
    let (minutes, seconds) = (offset_s.abs() / 60, offset_s.abs() % 60);
    let name = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    if seconds == 0 { name } else { format!("{name}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str) -> String {
        Zone::load(name, Zone::UTC).unwrap_err().to_string()
    }

    #[test]
    fn names_are_exact() {
        for name in [
            "UTC",
            "Etc/UTC",
            "Zulu",
            "EST5EDT",
            "Etc/GMT+5",
            "GB-Eire",
            "W-SU",
            "Factory",
            "Europe/Kyiv",
            "Asia/Calcutta",
        ] {
            assert_eq!(Zone::load(name, Zone::UTC).unwrap().name(), name);
        }
        for name in [
            "utc",
            "america/new_york",
            "Z",
            "PST",
            "UTC+1",
            "+01:00",
            "America",
            "America/",
            "posix/UTC",
            "local",
            "UTC\0",
            " UTC",
        ] {
            assert_eq!(error(name), format!("unknown time zone {name}"));
        }
        for name in ["../UTC", "a..b", "/UTC", "\\UTC", "..."] {
            assert_eq!(error(name), "time: invalid location name");
        }
    }

    #[test]
    fn local_and_the_empty_name_are_not_looked_up() {
        let kolkata = Zone::load("Asia/Kolkata", Zone::UTC).unwrap();
        assert_eq!(Zone::load("Local", kolkata).unwrap(), kolkata);
        assert_eq!(Zone::load("", kolkata).unwrap(), Zone::UTC);
    }

    #[test]
    fn go_s_598_names_are_all_there() {
        let names: Vec<_> = Zone::names().collect();
        assert_eq!(names.len(), 598);
        assert!(names.is_sorted());
        assert_eq!(TZDB_VERSION, "2025b");
    }

    #[test]
    fn fixed_offsets_are_named_by_their_offset_and_bounded() {
        let at = DateTime::UNIX_EPOCH;
        assert_eq!((Zone::fixed(19_800).name(), Zone::fixed(19_800).offset_s(at)), ("+05:30", 19_800));
        assert_eq!(Zone::fixed(-2_670).name(), "-00:44:30");
        assert_eq!(Zone::fixed(i32::MIN).offset_s(at), -86_399);
        assert_eq!(Zone::fixed(60), Zone::fixed(60));
    }
}
