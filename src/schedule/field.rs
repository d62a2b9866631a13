//! One field of a schedule: text to a set of values.
//!
//! A set is a `u64`: bit i says that value i is in it, bit 63 ([`STAR`]) that a piece of the field was a star without a step
//! above one. The flag decides how the two day fields are joined (`docs/schedules.md`, "The day rule").

use super::error::FieldError;

/// The flag of a field written with `*` or `?`.
pub(super) const STAR: u64 = 1 << 63;

/// What values and names a field has.
pub(super) struct Bounds {
    pub(super) min: u64,
    pub(super) max: u64,
    /// Three-letter names; the first one stands for `min`.
    names: &'static [[u8; 3]],
}

pub(super) const MINUTE: Bounds = Bounds { min: 0, max: 59, names: &[] };
pub(super) const HOUR: Bounds = Bounds { min: 0, max: 23, names: &[] };
pub(super) const DAY_OF_MONTH: Bounds = Bounds { min: 1, max: 31, names: &[] };
pub(super) const MONTH: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &[
        *b"jan", *b"feb", *b"mar", *b"apr", *b"may", *b"jun", *b"jul", *b"aug", *b"sep", *b"oct", *b"nov", *b"dec",
    ],
};
pub(super) const DAY_OF_WEEK: Bounds =
    Bounds { min: 0, max: 6, names: &[*b"sun", *b"mon", *b"tue", *b"wed", *b"thu", *b"fri", *b"sat"] };

/// The set of a whole field: its pieces joined; empty pieces count for nothing, so that `,` is the empty set.
pub(super) fn parse_field(field: &str, bounds: &Bounds) -> Result<u64, FieldError> {
    if field == "*" {
        return Ok(bounds.bits(bounds.min, bounds.max, 1) | STAR);
    }
    let mut set = 0;
    for piece in field.split(',') {
        if !piece.is_empty() {
            set |= parse_piece(piece, bounds)?;
        }
    }
    Ok(set)
}

/// `value`, `low-high`, `*`, each with an optional `/step`. The order of the checks is the peers', since the first error wins.
fn parse_piece(piece: &str, bounds: &Bounds) -> Result<u64, FieldError> {
    let (range, step_text) = match piece.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (piece, None),
    };
    let (low, high) = match range.split_once('-') {
        Some((low, high)) => (low, Some(high)),
        None => (range, None),
    };
    let star = matches!(low, "*" | "?");
    let (start, mut end) = if star {
        // Whatever follows a hyphen is not even looked at.
        (bounds.min, bounds.max)
    } else {
        let start = bounds.value(low)?;
        match high {
            None => (start, start),
            Some(high) if high.contains('-') => return Err(FieldError::TooManyHyphens(piece.to_owned())),
            Some(high) => (start, bounds.value(high)?),
        }
    };
    let step = match step_text {
        None => 1,
        Some(step) if step.contains('/') => return Err(FieldError::TooManySlashes(piece.to_owned())),
        Some(step) => {
            if high.is_none() {
                end = bounds.max;
            }
            number(step)?
        }
    };
    bounds.check(start, end, step, piece)?;
    let flag = if star && step == 1 { STAR } else { 0 };
    Ok(bounds.bits(start, end, step) | flag)
}

impl Bounds {
    fn value(&self, token: &str) -> Result<u64, FieldError> {
        match self.named(token) {
            Some(value) => Ok(value),
            None => number(token),
        }
    }

    fn named(&self, token: &str) -> Option<u64> {
        if self.names.is_empty() || !(3..=6).contains(&token.len()) {
            return None;
        }
        let mut lower = [0; 3];
        let mut letters = token.chars();
        for slot in &mut lower {
            *slot = lower_case(letters.next()?)?;
        }
        if letters.next().is_some() {
            return None;
        }
        self.names.iter().zip(self.min..).find(|(name, _)| **name == lower).map(|(_, value)| value)
    }

    fn check(&self, start: u64, end: u64, step: u64, piece: &str) -> Result<(), FieldError> {
        let piece = || piece.to_owned();
        if start < self.min {
            return Err(FieldError::BelowMinimum { start, min: self.min, piece: piece() });
        }
        if end > self.max {
            return Err(FieldError::AboveMaximum { end, max: self.max, piece: piece() });
        }
        if start > end {
            return Err(FieldError::Reversed { start, end, piece: piece() });
        }
        if step == 0 {
            return Err(FieldError::ZeroStep(piece()));
        }
        Ok(())
    }

    /// Every `step`-th value of `start..=end`; both lie within the bounds.
    fn bits(&self, start: u64, end: u64, step: u64) -> u64 {
        if step == 1 {
            return (u64::MAX >> (63 - end)) & (u64::MAX << start);
        }
        let mut set = 0;
        let mut value = start;
        while value <= end {
            set |= 1 << value;
            value += step;
        }
        set
    }
}

/// Go's lower case of one letter, as far as the names need it: U+0130 is the one letter beyond ASCII that becomes one of theirs.
fn lower_case(c: char) -> Option<u8> {
    match c {
        '\u{130}' => Some(b'i'),
        _ if c.is_ascii() => u8::try_from(c.to_ascii_lowercase()).ok(),
        _ => None,
    }
}

/// Go's `Atoi`, then the peers' own check of the sign. A number too large is told before a bad digit behind it.
fn number(token: &str) -> Result<u64, FieldError> {
    let (negative, digits) = match token.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(FieldError::NotANumber(token.to_owned()));
    }
    let mut value: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return Err(FieldError::NotANumber(token.to_owned()));
        }
        value = value
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit - b'0')))
            .ok_or_else(|| FieldError::NumberTooLarge(token.to_owned()))?;
    }
    let signed = if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    match signed {
        None => Err(FieldError::NumberTooLarge(token.to_owned())),
        Some(number) => u64::try_from(number).map_err(|_| FieldError::Negative { number, token: token.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(field: &str, bounds: &Bounds) -> String {
        parse_field(field, bounds).unwrap_err().to_string()
    }

    #[test]
    fn a_star_flag_survives_only_a_step_of_one() {
        for field in ["*", "?", "*/1", "?/1", "*-x-y", "5,*", "*/2,*"] {
            assert_ne!(parse_field(field, &DAY_OF_MONTH).unwrap() & STAR, 0, "{field}");
        }
        for field in ["*/2", "?/2", "1-31", ",", "*/100"] {
            assert_eq!(parse_field(field, &DAY_OF_MONTH).unwrap() & STAR, 0, "{field}");
        }
    }

    #[test]
    fn a_step_makes_a_single_value_run_to_the_top() {
        assert_eq!(parse_field("5/15", &MINUTE).unwrap(), 1 << 5 | 1 << 20 | 1 << 35 | 1 << 50);
        assert_eq!(parse_field("mon/2", &DAY_OF_WEEK).unwrap(), 0b10_1010);
        assert_eq!(parse_field("*/9223372036854775807", &MINUTE).unwrap(), 1);
    }

    #[test]
    fn names_and_numbers_mix_in_any_case() {
        assert_eq!(parse_field("jan-3,DeC", &MONTH).unwrap(), 0b1_0000_0000_1110);
        assert_eq!(parse_field("FR\u{130}", &DAY_OF_WEEK).unwrap(), 1 << 5);
        assert_eq!(parse_field("+5,007", &MINUTE).unwrap(), 1 << 5 | 1 << 7);
        assert!(parse_field("sund", &DAY_OF_WEEK).is_err());
        assert!(parse_field("7", &DAY_OF_WEEK).is_err());
    }

    #[test]
    fn the_first_error_of_the_peers_order_is_told() {
        assert_eq!(message("0-99/0", &DAY_OF_MONTH), "beginning of range (0) below minimum (1): 0-99/0");
        assert_eq!(message("5-99/0", &DAY_OF_MONTH), "end of range (99) above maximum (31): 5-99/0");
        assert_eq!(message("5-1/0", &DAY_OF_MONTH), "beginning of range (5) beyond end of range (1): 5-1/0");
        assert_eq!(message("*/0", &MINUTE), "step of range should be a positive number: */0");
        assert_eq!(message("1-2-3/4/5", &MINUTE), "too many hyphens: 1-2-3/4/5");
        assert_eq!(message("1-2/4/5", &MINUTE), "too many slashes: 1-2/4/5");
        assert_eq!(message("*/-2", &MINUTE), "negative number (-2) not allowed: -2");
        assert_eq!(message("-5", &MINUTE), "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax");
    }

    #[test]
    fn a_number_of_too_many_bits_is_out_of_range_even_before_a_bad_digit() {
        let range = "value out of range";
        assert!(message("9223372036854775808", &MINUTE).ends_with(range));
        assert!(message("99999999999999999999999x", &MINUTE).ends_with(range));
        assert!(message("*/-9223372036854775809", &MINUTE).ends_with(range));
        assert!(message("9223372036854775808x", &MINUTE).ends_with("invalid syntax"));
        assert!(message("*/-9223372036854775808", &MINUTE).starts_with("negative number (-9223372036854775808)"));
    }
}
