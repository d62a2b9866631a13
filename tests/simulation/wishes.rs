//! Which seeds a run takes and for how long, as the environment wishes.
//!
//! Invariant: a wish that cannot be met as it stands is an error that names the variable and what it accepts; none is ignored, and
//! none leads to a run that looks at nothing.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::ops::{Range, RangeInclusive};

/// Seeds that are run where none are wished for, for so many hours where none are wished for either.
const FIXED: Range<u64> = 0..6;
const FIXED_HOURS: u64 = 2;
/// And as many that nobody has chosen.
const RANDOM: usize = 2;
/// Hours of seeds that are wished for.
const HOURS: u64 = 24;
/// A month at most: an hour of a large seed leaves some thousand entries in memory, and a seed must come to an end.
const POSSIBLE_HOURS: RangeInclusive<u64> = 1..=744;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) seeds: Seeds,
    /// Hours of virtual time with troubles.
    pub(crate) hours: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seeds {
    /// `SIM_SEEDS`; never empty.
    Wished(Range<u64>),
    /// The fixed ones and these.
    Usual(Vec<u64>),
}

impl Wish {
    /// Reads the texts of `SIM_SEEDS` and `SIM_HOURS`.
    ///
    /// # Errors
    /// A text that is not understood, or that asks for nothing or for more than is possible, as a sentence.
    pub(crate) fn parse(seeds: Option<&OsStr>, hours: Option<&OsStr>) -> Result<Self, String> {
        let seeds = seeds.map(parse_seeds).transpose()?;
        let hours = hours.map(parse_hours).transpose()?;
        let usual_hours = if seeds.is_some() { HOURS } else { FIXED_HOURS };
        let seeds = seeds.map_or_else(|| Seeds::Usual((0..RANDOM).map(|_| random()).collect()), Seeds::Wished);
        Ok(Self { seeds, hours: hours.unwrap_or(usual_hours) })
    }
}

impl Seeds {
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::Wished(range) => Box::new(range.clone()),
            Self::Usual(random) => Box::new(FIXED.chain(random.iter().copied())),
        }
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wished(range) => write!(f, "{range:?}"),
            Self::Usual(_) => f.write_str(&self.iter().map(|seed| seed.to_string()).collect::<Vec<_>>().join(",")),
        }
    }
}

fn parse_seeds(text: &OsStr) -> Result<Range<u64>, String> {
    let range = || {
        let (from, to) = text.to_str()?.split_once("..")?;
        let range = from.parse().ok()?..to.parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    range().ok_or_else(|| {
        format!("SIM_SEEDS={} is not A..B, two whole numbers with A below B: {{A, …, B-1}}", text.display())
    })
}

fn parse_hours(text: &OsStr) -> Result<u64, String> {
    let hours = text.to_str().and_then(|text| text.parse().ok()).filter(|hours| POSSIBLE_HOURS.contains(hours));
    let (least, most) = POSSIBLE_HOURS.into_inner();
    hours.ok_or_else(|| format!("SIM_HOURS={} is not a whole number of hours from {least} to {most}", text.display()))
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish() % 1_000_000_000
}

#[test]
fn seeds_and_hours_are_taken_as_wished() {
    let parse = |seeds: Option<&str>, hours: Option<&str>| {
        let wish = Wish::parse(seeds.map(OsStr::new), hours.map(OsStr::new)).unwrap();
        (wish.seeds.iter().collect::<Vec<_>>(), wish.hours)
    };
    assert_eq!(parse(Some("3..5"), Some("6")), (vec![3, 4], 6));
    assert_eq!(parse(Some("3..5"), None), (vec![3, 4], 24));
    assert_eq!(parse(Some("3..4"), Some("744")), (vec![3], 744));
    let (usual, hours) = parse(None, None);
    assert_eq!((&usual[..6], usual.len(), hours), (&[0, 1, 2, 3, 4, 5][..], 8, 2));
    let (usual, hours) = parse(None, Some("7"));
    assert_eq!((&usual[..6], usual.len(), hours), (&[0, 1, 2, 3, 4, 5][..], 8, 7));
}

#[test]
fn a_wish_that_cannot_be_met_says_what_would_do() {
    for text in ["", "5", "..", "5..", "..5", "5..5", "10..5", "-1..5", "a..b", "1..=5", "0..99999999999999999999"] {
        let said = Wish::parse(Some(OsStr::new(text)), None).unwrap_err();
        assert!(said.starts_with(&format!("SIM_SEEDS={text} is not A..B")), "{said}");
    }
    for text in ["", "0", "-1", "1.5", "24h", "745", "18446744073709551615", "99999999999999999999"] {
        for seeds in [None, Some(OsStr::new("0..1"))] {
            let said = Wish::parse(seeds, Some(OsStr::new(text))).unwrap_err();
            assert_eq!(said, format!("SIM_HOURS={text} is not a whole number of hours from 1 to 744"));
        }
    }
}
