//! The differences between the sandbox and the real server that stay, each with its reason. `docs/sandbox.md` says the same
//! to users.

use super::compare::Difference;
use crate::support::pattern::fits;

/// Differences that are meant. In each part `*` stands for anything, at the end of a place for anything below as well.
struct Allowed {
    script: &'static str,
    step: &'static str,
    /// `code`, `contentType`, `warnings`, `retryAfter`, or a JSON pointer into the body.
    at: &'static str,
    why: &'static str,
}

const fn allowed(script: &'static str, step: &'static str, at: &'static str, why: &'static str) -> Allowed {
    Allowed { script, step, at, why }
}

const DECODER: &str =
    "the words of Go's JSON decoder and the names of its types; ours has its own, under the same code and reason";
const MEDIA: &str = "neither YAML nor protobuf is taken or given, and the lists say so";
const DIFF: &str = "the message goes on with a text comparison of the internal types";
const DESCRIPTION: &str = "columns of Tables carry no descriptions: kubectl prints none";
const HASH: &str = "nothing is stored in versions, so no hash tells of them";
const NO_ADDRESS: &str = "the sandbox does not know its own address";
const OLD_WATCH: &str = "the paths below /watch/, deprecated since 1.11, are not served";

const WEBHOOK: &str =
    "Volcano's own webhook refuses it, which the sandbox plays and the server by itself does not have";
const NO_APPLY: &str = "server-side apply is not served, and the list says so";

const ALLOWED: &[Allowed] = &[
    allowed("cronjobs", "another kind in the body", "/message", DECODER),
    allowed("cronjobs", "another version in the body", "/message", DECODER),
    allowed("cronjobs", "a wrong type", "/message", DECODER),
    allowed("cronjobs", "a number for a text", "/message", DECODER),
    allowed("cronjobs", "a number too large", "/message", DECODER),
    allowed("cronjobs", "a body that is not JSON", "/message", DECODER),
    allowed("cronjobs", "a body that is a list", "/message", DECODER),
    allowed("cronjobs", "no body", "/message", DECODER),
    allowed("cronjobs", "a time that is none", "*/message", DECODER),
    allowed("cronjobs", "a delete with a body that is none", "/message", DECODER),
    allowed("patches", "a merge patch that is no JSON", "/message", DECODER),
    allowed("patches", "a merge patch that is a list", "/message", DECODER),
    allowed("patches", "a merge patch with a wrong type", "*/message", DECODER),
    allowed("patches", "a JSON patch that is an object", "/message", DECODER),
    allowed("lists", "a token that is none", "/message", DECODER),
    allowed("cronjobs", "a body of a type that is not served", "/message", MEDIA),
    allowed("lists", "a table of an old version", "/message", MEDIA),
    allowed("lists", "a form that is none", "/message", MEDIA),
    allowed("pods", "what of a Pod does not change", "*/message", DIFF),
    allowed("*", "*", "*/columnDefinitions/*/description", DESCRIPTION),
    allowed("*", "*", "/resources/*/storageVersionHash", HASH),
    allowed("discovery", "the groups' names", "/serverAddressByClientCIDRs", NO_ADDRESS),
    allowed("volcano", "no spec", "*", WEBHOOK),
    allowed("volcano", "without kind and version", "/message", DECODER),
    allowed("volcano", "a strategic patch", "/message", NO_APPLY),
    allowed("watches", "the old path of watches", "*", OLD_WATCH),
];

/// The table in use: counts what each entry has excused.
pub(crate) struct Allowances {
    used: Vec<usize>,
}

impl Allowances {
    pub(crate) fn new() -> Self {
        Self { used: vec![0; ALLOWED.len()] }
    }

    /// What of the differences of one step no entry excuses, as text.
    pub(crate) fn unexplained(&mut self, script: &str, step: &str, differences: Vec<Difference>) -> Vec<String> {
        let mut left = Vec::new();
        for difference in differences {
            let entry = ALLOWED.iter().position(|entry| {
                fits(entry.script, script) && fits(entry.step, step) && fits(entry.at, &difference.at)
            });
            match entry {
                Some(index) => self.used[index] += 1,
                None => left.push(format!("{script} / {step}: {difference}")),
            }
        }
        left
    }

    /// Entries that excuse nothing any more. None if only some of the scripts ran.
    pub(crate) fn unused(&self) -> Vec<String> {
        if std::env::var_os("CRONJOB_CONFORMANCE_SCRIPT").is_some() {
            return Vec::new();
        }
        let unused = ALLOWED.iter().zip(&self.used).filter(|(_, used)| **used == 0);
        unused
            .map(|(entry, _)| format!("allowed, but not seen: {} / {} {}", entry.script, entry.step, entry.at))
            .collect()
    }

    /// Each entry with how often it was needed.
    pub(crate) fn summary(&self) -> String {
        let lines = ALLOWED
            .iter()
            .zip(&self.used)
            .map(|(entry, used)| format!("\n  {used} x {} / {} {}: {}", entry.script, entry.step, entry.at, entry.why));
        lines.collect()
    }
}
