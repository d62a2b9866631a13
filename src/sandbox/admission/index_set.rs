//! Sets of indexes as Jobs write them: `1,3-5,7`. What the server accepts is stricter than what a controller would read.

use super::Causes;
use crate::schedule::quote;

/// How many indexes a text names; all below `completions`, strictly increasing. The empty text names none.
///
/// # Errors
/// What is wrong first, in the server's words.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let mut last: Option<i64> = None;
    let mut total = 0;
    for part in parts(text) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(non_increasing(last, first));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that both texts name; what cannot be read is skipped, since [`count`] tells of it.
pub(super) fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text| parts(text).filter_map(|part| interval(part, completions).ok()).collect::<Vec<_>>();
    let (completed, failed) = (read(completed), read(failed));
    let (mut at, mut other) = (0, 0);
    while let (Some((first, end)), Some((failed_first, failed_end))) = (completed.get(at), failed.get(other)) {
        if first <= failed_end && failed_first <= end {
            return Some(*first.max(failed_first));
        }
        if first <= failed_first { at += 1 } else { other += 1 }
    }
    None
}

/// Notes what is wrong with the set `text` of the field called `name`.
pub(super) fn validate(text: &str, completions: i64, field: &str, name: &str, causes: &mut Causes) {
    if let Err(why) = count(text, completions) {
        causes.invalid(field, &text.into(), &format!("error parsing {name}: {why}"));
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(move |_| !text.is_empty())
}

/// First and last index of one part.
fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = part.split('-').collect();
    let index = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {}", quote(text))),
        Ok(index) if index >= completions => Err(format!("too large index: {}", quote(text))),
        Ok(index) => Ok(index),
    };
    match limits.as_slice() {
        [only] => index(only).map(|index| (index, index)),
        [first, last] => {
            let (first, last) = (index(first)?, index(last)?);
            if first < last { Ok((first, last)) } else { Err(non_increasing(first, last)) }
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            quote(part)
        )),
    }
}

fn non_increasing(previous: i64, current: i64) -> String {
    format!("non-increasing order, previous: {previous}, current: {current}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_and_what_is_wrong_first_is_said() {
        let of = |text| count(text, 10);
        for (text, indexes) in [("", 0), ("0", 1), ("0,2-4,9", 5), ("1-2,3", 3), ("+1", 1)] {
            assert_eq!(of(text), Ok(indexes), "{text}");
        }
        for (text, why) in [
            ("a", r#"cannot convert string to integer for index: "a""#),
            (",1", r#"cannot convert string to integer for index: """#),
            ("1 ", r#"cannot convert string to integer for index: "1 ""#),
            ("-1", r#"cannot convert string to integer for index: """#),
            ("1-x", r#"cannot convert string to integer for index: "x""#),
            ("10", r#"too large index: "10""#),
            ("8-10", r#"too large index: "10""#),
            ("3-3", "non-increasing order, previous: 3, current: 3"),
            ("5-2", "non-increasing order, previous: 5, current: 2"),
            ("1,1", "non-increasing order, previous: 1, current: 1"),
            ("1-4,3", "non-increasing order, previous: 4, current: 3"),
            (
                "1--3",
                "the fragment \"1--3\" violates the requirement that an index interval can have at most two parts separated by '-'",
            ),
        ] {
            assert_eq!(of(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn the_first_index_in_both_is_found_past_what_cannot_be_read() {
        for (completed, failed, index) in [
            ("", "1", None),
            ("0-2,5", "3-4", None),
            ("0-2,5", "2", Some(2)),
            ("1,7-9", "0,2-8", Some(7)),
            ("x,4", "1,y,4", Some(4)),
            ("4", "4,99", Some(4)),
        ] {
            assert_eq!(overlap(completed, failed, 10), index, "{completed} and {failed}");
        }
    }
}
