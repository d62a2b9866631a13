//! Where two answers differ.

use std::fmt;

use serde_json::Value;

use super::answer::Answer;

/// One place where the real server and another answer differ.
pub(crate) struct Difference {
    /// `code`, `contentType`, `warnings`, `retryAfter`, or a JSON pointer into the body.
    pub(crate) at: String,
    /// What the real server says; `None`: nothing.
    pub(crate) real: Option<Value>,
    /// What is said instead.
    pub(crate) other: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "(nothing)".to_owned(), Value::to_string);
        write!(f, "{}\n    real: {}\n    here: {}", self.at, text(&self.real), text(&self.other))
    }
}

/// All differences of two answers to the same step.
pub(crate) fn differences(real: &Answer, other: &Answer) -> Vec<Difference> {
    assert_eq!(real.step, other.step, "the golden answers are of another script; record them anew");
    let mut found = Vec::new();
    let heads = |answer: &Answer| {
        [
            ("code", Value::from(answer.code)),
            ("contentType", Value::from(answer.content_type.as_str())),
            ("warnings", Value::from(answer.warnings.clone())),
            ("retryAfter", Value::from(answer.retry_after.clone())),
        ]
    };
    for ((name, real), (_, other)) in heads(real).into_iter().zip(heads(other)) {
        if real != other {
            found.push(Difference { at: name.to_owned(), real: Some(real), other: Some(other) });
        }
    }
    walk(&real.body, &other.body, String::new(), &mut found);
    found
}

fn walk(real: &Value, other: &Value, at: String, found: &mut Vec<Difference>) {
    match (real, other) {
        (Value::Object(real), Value::Object(other)) => {
            let mut names: Vec<&String> =
                real.keys().chain(other.keys().filter(|name| !real.contains_key(*name))).collect();
            names.sort();
            for name in names {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (real.get(name), other.get(name)) {
                    (Some(real), Some(other)) => walk(real, other, at, found),
                    (real, other) => found.push(Difference { at, real: real.cloned(), other: other.cloned() }),
                }
            }
        }
        (Value::Array(real), Value::Array(other)) if real.len() == other.len() => {
            for (index, (real, other)) in real.iter().zip(other).enumerate() {
                walk(real, other, format!("{at}/{index}"), found);
            }
        }
        _ if real == other => {}
        _ => found.push(Difference { at, real: Some(real.clone()), other: Some(other.clone()) }),
    }
}
