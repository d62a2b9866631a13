//! Answers in their normal form, and the files that keep them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::normal::Normal;
use super::script::Reply;

/// What of an answer is compared.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    pub(crate) step: String,
    pub(crate) code: u16,
    pub(crate) content_type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<String>,
    /// One value; of a stream the list of its events.
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn new(step: &str, reply: &Reply, stream: bool, normal: &mut Normal) -> Self {
        let header = |name: &str| {
            let all = reply.headers.iter().filter(move |(given, _)| given == name);
            all.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let parsed = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let mut body =
            if stream && reply.code == 200 { reply.body.lines().map(parsed).collect() } else { parsed(&reply.body) };
        normal.apply(&mut body);
        let warnings = header("warning").iter().map(|text| normal.text(text)).collect();
        Self {
            step: step.to_owned(),
            code: reply.code,
            content_type: header("content-type").concat(),
            warnings,
            retry_after: header("retry-after").first().cloned(),
            body,
        }
    }
}

fn path(script: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/conformance/golden/{script}.json"))
}

/// The recorded answers to a script.
pub(crate) fn read(script: &str) -> Vec<Answer> {
    let path = path(script);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}: not recorded yet?"));
    serde_json::from_str(&text).unwrap()
}

/// Records answers: one line each, so that a change shows as the change of its line.
pub(crate) fn write(script: &str, answers: &[Answer]) {
    let lines: Vec<String> = answers.iter().map(|answer| serde_json::to_string(answer).unwrap()).collect();
    std::fs::write(path(script), format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
}
