//! What the API server wrote down of each replica's requests: nobody writes while another holds the Lease.
//!
//! Each replica is a user of its own, so the audit log tells them apart. A tenure lasts from the arrival of a claim until the answer to
//! the next holder's claim or to the own release; the server's clock orders everything.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What was frozen on its way arrives when the line thaws, at the latest within this time.
const THAW: TimeDelta = TimeDelta::seconds(2);

pub(crate) struct Audit {
    folder: TempDir,
}

/// When somebody held the Lease.
struct Tenure {
    user: String,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
}

/// What the log says in the end.
pub(crate) struct Verdict {
    pub(crate) writes: usize,
    pub(crate) tenures: usize,
    /// Arrived after the tenure of their sender, from a line that had been frozen just before.
    pub(crate) thawed: usize,
    pub(crate) out_of_turn: Vec<String>,
}

impl Audit {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let writes = ["create", "update", "patch", "delete"];
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [
                {"level": "RequestResponse", "verbs": writes, "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
                {"level": "Metadata", "verbs": writes, "resources": [{"group": "batch"}, {"group": "", "resources": ["events"]}]},
                {"level": "None"},
            ],
        });
        std::fs::write(folder.path().join("policy.json"), policy.to_string()).unwrap();
        Self { folder }
    }

    /// Flags of the API server.
    pub(crate) fn flags(&self) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        vec![
            format!("--audit-policy-file={}", path("policy.json")),
            format!("--audit-log-path={}", self.log().display()),
        ]
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("audit.log")
    }

    /// Judges everything so far. `thaws`: when the line of a user was opened after it had been frozen.
    pub(crate) fn judge(&self, thaws: &BTreeMap<String, Vec<DateTime<Utc>>>) -> Verdict {
        let text = std::fs::read_to_string(self.log()).unwrap();
        let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of_replicas = |entry: &&Value| word(entry, "/user/username").starts_with("replica-");
        let (leases, others): (Vec<_>, Vec<_>) =
            entries.iter().filter(of_replicas).partition(|entry| word(entry, "/objectRef/resource") == "leases");
        let tenures = tenures(&leases);
        let mut verdict = Verdict { writes: 0, tenures: tenures.len(), thawed: 0, out_of_turn: Vec::new() };
        // Events about the Lease itself are nobody's turn.
        let counts = |entry: &&&Value| !word(entry, "/objectRef/name").starts_with("cronjob-controller.");
        for entry in others.iter().filter(counts) {
            verdict.writes += 1;
            let (user, at) = (word(entry, "/user/username"), time(entry, "/requestReceivedTimestamp"));
            if tenures.iter().any(|it| it.user == user && it.from <= at && at <= it.until) {
                continue;
            }
            let mut thaws = thaws.get(user).into_iter().flatten();
            if thaws.any(|thaw| *thaw <= at && at <= *thaw + THAW) {
                verdict.thawed += 1;
            } else {
                let (verb, uri) = (word(entry, "/verb"), word(entry, "/requestURI"));
                verdict.out_of_turn.push(format!("{at} {user} {verb} {uri}"));
            }
        }
        verdict
    }
}

/// Who held the Lease when, from the writes that the server took, in the order of versions.
fn tenures(leases: &[&Value]) -> Vec<Tenure> {
    let taken = |entry: &&&Value| entry["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300);
    let version = |entry: &&Value| word(entry, "/responseObject/metadata/resourceVersion").parse::<u64>().unwrap();
    let mut taken: Vec<&Value> = leases.iter().filter(taken).copied().collect();
    taken.sort_by_key(version);
    let mut tenures: Vec<Tenure> = Vec::new();
    let mut holder = String::new();
    for entry in taken {
        let identity = word(entry, "/responseObject/spec/holderIdentity");
        if identity == holder {
            continue;
        }
        if let Some(last) = tenures.last_mut().filter(|_| !holder.is_empty()) {
            last.until = time(entry, "/stageTimestamp");
        }
        if !identity.is_empty() {
            let (user, from) = (word(entry, "/user/username").to_owned(), time(entry, "/requestReceivedTimestamp"));
            tenures.push(Tenure { user, from, until: DateTime::<Utc>::MAX_UTC });
        }
        identity.clone_into(&mut holder);
    }
    tenures
}

fn word<'a>(entry: &'a Value, pointer: &str) -> &'a str {
    entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn time(entry: &Value, pointer: &str) -> DateTime<Utc> {
    word(entry, pointer).parse().unwrap()
}
