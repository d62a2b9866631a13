//! Go's two ways of quoting a text in a message.

use std::fmt::Write;

/// `%q`: quotes and backslashes escaped, printable characters kept, all others written as `\t`, `\x00`, `\u200b`, `\U000e0001`.
///
/// Shared with whoever prints a Go `%q` (the peers' event texts quote the schedule with it).
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            _ if is_print(c) => out.push(c),
            _ => push_hex(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// Letters, marks, numbers, punctuation, symbols and the blank: what Go calls printable. The standard library's debug form
/// escapes just the others, and (after a first character) no marks.
fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    let mut buffer = ['a'; 2];
    buffer[1] = c;
    buffer.iter().collect::<String>().escape_debug().nth(1) == Some(c)
}

fn push_hex(out: &mut String, c: char) {
    let code = u32::from(c);
    // Writing to a String can't fail.
    let _ = match code {
        0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
        0..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// The quoting of Go's duration parser: every byte of a control or non-ASCII character as `\xNN`.
pub(super) fn quote_in_duration(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_text_is_kept_and_the_rest_escaped() {
        assert_eq!(quote("a\"b\\c é日😀'"), "\"a\\\"b\\\\c é日😀'\"");
        assert_eq!(quote("\u{7}\u{8}\u{c}\n\r\t\u{b}\0\u{1f}\u{7f}"), "\"\\a\\b\\f\\n\\r\\t\\v\\x00\\x1f\\x7f\"");
        assert_eq!(
            quote("\u{85}\u{a0}\u{ad}\u{200b}\u{feff}\u{e0001}"),
            "\"\\u0085\\u00a0\\u00ad\\u200b\\ufeff\\U000e0001\""
        );
        assert_eq!(quote("e\u{301}\u{301}"), "\"e\u{301}\u{301}\"", "marks are printable");
    }

    #[test]
    fn durations_escape_every_byte_that_is_not_plain() {
        assert_eq!(quote_in_duration("1µ\t\"\u{7f}"), "\"1\\xc2\\xb5\\x09\\\"\u{7f}\"");
    }
}
