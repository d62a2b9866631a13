//! What can be wrong with a schedule or the name of a zone. The texts are the peers' own, to the letter: they appear in
//! events and in the API's answers, and operators search for them.

use thiserror::Error;

use super::quote::{quote, quote_in_duration};

/// Why a text is not a schedule. `Display` is exactly what the peers print.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The text has no character at all.
    #[error("empty spec string")]
    Empty,
    /// A `TZ=` or `CRON_TZ=` prefix that no blank ends. The peers' parser panics here; Kubernetes reports the panic as this text.
    #[error("invalid schedule format: runtime error: slice bounds out of range [:-1]")]
    UnendedZonePrefix,
    /// The zone named by the prefix can't be loaded.
    #[error("provided bad location {name}: {cause}")]
    BadLocation {
        /// The name as written.
        name: String,
        /// Why it can't be loaded (part of the peers' text, hence not a `source`).
        cause: ZoneError,
    },
    /// A text with `@` that is no descriptor.
    #[error("unrecognized descriptor: {0}")]
    UnknownDescriptor(String),
    /// `@every` with a bad duration.
    #[error("failed to parse duration {text}: {cause}")]
    BadDuration {
        /// The whole descriptor.
        text: String,
        /// What is wrong with its duration (part of the peers' text, hence not a `source`).
        cause: DurationError,
    },
    /// More or fewer than five fields.
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    FieldCount(Vec<String>),
    /// One of the five fields is wrong.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// What is wrong with one comma-separated piece of a field; `piece` is always the piece as written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// Neither a number nor a name of this field.
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {quoted}: invalid syntax", quoted = quote(.0))]
    NotANumber(String),
    /// A number of more than 64 bits.
    #[error("failed to parse int from {0}: strconv.Atoi: parsing {quoted}: value out of range", quoted = quote(.0))]
    NumberTooLarge(String),
    /// A step below zero.
    #[error("negative number ({number}) not allowed: {token}")]
    Negative {
        /// Its value.
        number: i64,
        /// The number as written.
        token: String,
    },
    /// More than one `-`.
    #[error("too many hyphens: {0}")]
    TooManyHyphens(String),
    /// More than one `/`.
    #[error("too many slashes: {0}")]
    TooManySlashes(String),
    /// The range begins below the field's least value.
    #[error("beginning of range ({start}) below minimum ({min}): {piece}")]
    BelowMinimum {
        /// First value of the range.
        start: u64,
        /// Least value of the field.
        min: u64,
        /// The piece.
        piece: String,
    },
    /// The range ends above the field's greatest value.
    #[error("end of range ({end}) above maximum ({max}): {piece}")]
    AboveMaximum {
        /// Last value of the range.
        end: u64,
        /// Greatest value of the field.
        max: u64,
        /// The piece.
        piece: String,
    },
    /// The range ends before it begins.
    #[error("beginning of range ({start}) beyond end of range ({end}): {piece}")]
    Reversed {
        /// First value of the range.
        start: u64,
        /// Last value of the range.
        end: u64,
        /// The piece.
        piece: String,
    },
    /// A step of zero.
    #[error("step of range should be a positive number: {0}")]
    ZeroStep(String),
}

/// Why a text is not a duration (the form `1h30m` of `@every`).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// Not of the form, or more than 63 bits of nanoseconds.
    #[error("time: invalid duration {}", quote_in_duration(.0))]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {}", quote_in_duration(.0))]
    MissingUnit(String),
    /// A unit other than `ns us µs μs ms s m h`.
    #[error("time: unknown unit {} in duration {}", quote_in_duration(.unit), quote_in_duration(.text))]
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// The whole duration.
        text: String,
    },
}

/// Why a zone can't be loaded by its name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ZoneError {
    /// Not a name of the IANA database (case matters).
    #[error("unknown time zone {0}")]
    Unknown(String),
    /// A name that contains `..` or starts with `/` or `\`.
    #[error("time: invalid location name")]
    InvalidName,
}
