//! The normal form of answers: what differs from run to run gets a name instead of a value.
//!
//! Uids and the versions of objects are numbered in the order in which they are first seen, so that it still shows whether
//! two are equal. Versions of lists and bookmarks say how far the server has come, which is nobody's business.

use serde_json::{Map, Value};

/// Times before this year are a script's own.
const FIRST_YEAR: u32 = 2025;

#[derive(Default)]
pub(crate) struct Normal {
    uids: Vec<String>,
    versions: Vec<String>,
}

impl Normal {
    /// Brings `value` into its normal form.
    pub(crate) fn apply(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply(item)),
            Value::String(text) => *text = self.text(text),
            _ => {}
        }
    }

    fn object(&mut self, fields: &mut Map<String, Value>) {
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default();
        let collective = kind.ends_with("List") || kind == "Table";
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.remove("managedFields");
            if collective && metadata.contains_key("resourceVersion") {
                metadata.insert("resourceVersion".to_owned(), "<revision>".into());
            }
        }
        if fields.get("type") == Some(&"BOOKMARK".into()) {
            for pointer in ["/metadata/resourceVersion", "/rows/0/object/metadata/resourceVersion"] {
                if let Some(version) = fields.get_mut("object").and_then(|object| object.pointer_mut(pointer)) {
                    *version = "<revision>".into();
                }
            }
        }
        // In one order on both sides, whatever the map's own.
        let mut names: Vec<String> = fields.keys().cloned().collect();
        names.sort();
        for name in names {
            let Some(value) = fields.get_mut(&name) else { continue };
            match (name.as_str(), &mut *value) {
                ("resourceVersion", Value::String(version)) => *version = self.version(version),
                ("continue", Value::String(token)) if !token.is_empty() => *token = "<continue>".to_owned(),
                ("serverAddress", Value::String(address)) => *address = "<address>".to_owned(),
                ("cells", Value::Array(cells)) => cells.iter_mut().for_each(|cell| self.cell(cell)),
                _ => self.apply(value),
            }
        }
    }

    /// Ages in a Table, alone or as in `3 (5m ago)`.
    fn cell(&mut self, cell: &mut Value) {
        let text = cell.as_str().unwrap_or_default();
        let ago = text.strip_suffix(" ago)").and_then(|text| text.split_once(" ("));
        match ago {
            _ if is_age(text) => *cell = "<age>".into(),
            Some((count, age)) if is_age(age) => *cell = format!("{count} (<age> ago)").into(),
            _ => self.apply(cell),
        }
    }

    fn version(&mut self, version: &str) -> String {
        if version.parse::<u64>().is_err() {
            return version.to_owned();
        }
        format!("<version {}>", number(&mut self.versions, version))
    }

    /// A text with the uids, times, revisions and generated names in it named.
    pub(crate) fn text(&mut self, text: &str) -> String {
        let text = without_templates(&without_object(text));
        let text = text.as_str();
        let mut out = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = if is_uid(rest) {
                out += &format!("<uid {}>", number(&mut self.uids, &rest[..36]));
                36
            } else if let Some(length) = time(rest) {
                out += "<time>";
                length
            } else if let Some(length) = generated(rest) {
                out += "made-<suffix>";
                length
            } else {
                out.push(first);
                first.len_utf8()
            };
            rest = &rest[length..];
        }
        if out.contains("resource version") || out.contains("esourceVersion") { without_numbers(&out) } else { out }
    }
}

fn is_age(text: &str) -> bool {
    let unit = |c: char| "smhdy".contains(c);
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(unit)
        && text.chars().all(|c| unit(c) || c.is_ascii_digit())
}

/// Keeps of the lists in a discovery document the entries with these names, sorted.
pub(crate) fn keep(document: &mut Value, names: &[String]) {
    for list in ["resources", "groups", "items"] {
        let Some(Value::Array(entries)) = document.get_mut(list) else { continue };
        let name = |entry: &Value| {
            let name = ["/name", "/resource", "/metadata/name"].into_iter().find_map(|at| entry.pointer(at)?.as_str());
            name.unwrap_or_default().to_owned()
        };
        entries.retain(|entry| names.contains(&name(entry)));
        entries.sort_by_key(name);
        for version in entries.iter_mut().filter_map(|entry| entry.pointer_mut("/versions/0")) {
            keep(version, names);
        }
    }
}

/// Messages that show a whole object, without it: it has been seen elsewhere, and its text has no order.
fn without_object(text: &str) -> String {
    let start = r#"Invalid value: "{\"#;
    match (text.find(start), text.rfind(r#"}": "#)) {
        (Some(from), Some(to)) if from < to => {
            format!("{}Invalid value: <object>{}", &text[..from], &text[to + 2..])
        }
        _ => text.to_owned(),
    }
}

/// Messages that show a Pod template or a Pod spec, without it: the real server prints its internal types.
fn without_templates(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("Invalid value: ") {
        out += before;
        out += "Invalid value: ";
        rest = after;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(Value::Object(fields))) = values.next()
            && ["Spec", "spec", "Containers", "containers"].iter().any(|name| fields.contains_key(*name))
        {
            out += "<template>";
            rest = &rest[values.byte_offset()..];
        }
    }
    out + rest
}

fn number(seen: &mut Vec<String>, value: &str) -> usize {
    let at = seen.iter().position(|known| known == value).unwrap_or_else(|| {
        seen.push(value.to_owned());
        seen.len() - 1
    });
    at + 1
}

fn is_uid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Length of the RFC 3339 time that `text` begins with, if it is of our days.
fn time(text: &str) -> Option<usize> {
    let head = text.get(..20)?;
    let year: u32 = head.get(..4)?.parse().ok()?;
    let shape = head.bytes().enumerate().skip(4).all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        19 => matches!(byte, b'Z' | b'.'),
        _ => byte.is_ascii_digit(),
    });
    (shape && year >= FIRST_YEAR).then(|| text.find('Z').map_or(20, |end| end + 1))
}

/// Length of a generated name: the prefix that scripts use for it, and five characters.
fn generated(text: &str) -> Option<usize> {
    let suffix = text.strip_prefix("made-")?.get(..5)?;
    suffix.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()).then_some(10)
}

/// Messages about revisions, without them.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}
