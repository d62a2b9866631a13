//! Patterns of the tables in which comparisons list what may differ.

/// Whether `text` is `pattern`, in which each `*` stands for anything.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, "")) => text.starts_with(head),
        Some((head, rest)) => text
            .strip_prefix(head)
            .is_some_and(|text| text.char_indices().any(|(at, _)| fits(rest, &text[at..])) || fits(rest, "")),
    }
}
