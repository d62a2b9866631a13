//! Scripts: lists of requests, written as YAML, with names for values that later requests need.
//!
//! In a call, a header or a body `<name>` stands for a saved value; `<ns>` is the script's own namespace, `<batch>`, `<core>`,
//! `<events>`, `<leases>` and `<volcano>` are the paths of each group in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::answer::Answer;
use super::normal::{self, Normal};

/// How often a step is repeated that waits for something the real server does a little later.
const TRIES: usize = 200;

/// One file of `scripts/`.
pub(crate) struct Script {
    /// Name of the file without its ending; also of the golden file and part of the namespace.
    pub(crate) name: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// What it shows; unique in its file.
    name: String,
    /// Method and path with query.
    call: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Sent as JSON.
    body: Option<Value>,
    /// Sent as it is.
    text: Option<String>,
    /// Names for values of the answer: name to JSON pointer.
    #[serde(default)]
    save: BTreeMap<String, String>,
    /// Read the answer as a stream, until so many events have come or it ends.
    watch: Option<usize>,
    /// Repeat until the answer has this code: what the real server learns from its own watch.
    until: Option<u16>,
    /// Of a discovery document only these entries, by name, in any order: the real server serves far more.
    #[serde(default)]
    keep: Vec<String>,
    /// Only the real one needs it; not compared.
    #[serde(default)]
    real_only: bool,
}

/// One request, ready to be sent.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Events to read at most, if the answer is a stream.
    pub(crate) watch: Option<usize>,
}

/// An answer as it came.
pub(crate) struct Reply {
    pub(crate) code: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Something that answers requests.
pub(crate) trait Server {
    /// Whether it is the real one.
    const REAL: bool;

    async fn send(&mut self, request: Request) -> Reply;
}

impl Script {
    /// All scripts, by name.
    pub(crate) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/scripts");
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        // For whoever works on one of them.
        let only = std::env::var("CRONJOB_CONFORMANCE_SCRIPT").ok();
        let all = paths.iter().map(|path| Self::read(path));
        all.filter(|script| only.as_ref().is_none_or(|only| *only == script.name)).collect()
    }

    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        // A script names a template once and refers to it in every step.
        let options = serde_saphyr::options! { budget: serde_saphyr::budget! { enforce_alias_anchor_ratio: false } };
        let steps: Vec<Step> =
            serde_saphyr::from_str_with_options(&text, options).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), steps.len(), "{path:?}: two steps have the same name");
        Self { name: path.file_stem().unwrap().to_str().unwrap().to_owned(), steps }
    }

    /// Sends every request and gives the answers in their normal form.
    pub(crate) async fn run<S: Server>(&self, server: &mut S) -> Vec<Answer> {
        let namespace = format!("c-{}", self.name);
        let mut names = paths_of(&namespace);
        let created = format!(r#"{{"metadata":{{"name":"{namespace}"}}}}"#);
        let reply = server.send(plain("POST", "/api/v1/namespaces", created)).await;
        assert_eq!(reply.code, 201, "{}", reply.body);
        if S::REAL {
            // In a cluster kube-controller-manager makes it, and no Pod starts without.
            let account = r#"{"metadata":{"name":"default"}}"#.to_owned();
            let reply = server.send(plain("POST", &format!("{}/serviceaccounts", names["core"]), account)).await;
            assert_eq!(reply.code, 201, "{}", reply.body);
        }
        let mut normal = Normal::default();
        let mut answers = Vec::new();
        for step in &self.steps {
            if step.real_only && !S::REAL {
                continue;
            }
            let reply = self.answered(server, step, &names).await;
            step.remember(&reply, &mut names, &self.name);
            if !step.real_only {
                let mut answer = Answer::new(&step.name, &reply, step.watch.is_some(), &mut normal);
                if !step.keep.is_empty() {
                    normal::keep(&mut answer.body, &step.keep);
                }
                answers.push(answer);
            }
        }
        answers
    }

    async fn answered<S: Server>(&self, server: &mut S, step: &Step, names: &BTreeMap<String, String>) -> Reply {
        for _ in 0..TRIES {
            let reply = server.send(step.request(names, &self.name)).await;
            if step.until.is_none_or(|code| code == reply.code) {
                return reply;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{} / {}: never answered {:?}", self.name, step.name, step.until);
    }
}

impl Step {
    fn request(&self, names: &BTreeMap<String, String>, script: &str) -> Request {
        let fill =
            |text: &str| filled(text, names).unwrap_or_else(|name| panic!("{script} / {}: no <{name}>", self.name));
        let call = fill(&self.call);
        let (method, path) = call.split_once(' ').unwrap();
        let body = match (&self.body, &self.text) {
            (Some(body), None) => fill(&body.to_string()),
            (None, text) => text.clone().unwrap_or_default(),
            (Some(_), Some(_)) => panic!("{script} / {}: body and text", self.name),
        };
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        if !body.is_empty() && !self.headers.contains_key("content-type") {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        // Scripts are for reading; what they write into a query comes here into its form for the wire.
        let path = [(' ', "%20"), ('<', "%3C"), ('>', "%3E")]
            .iter()
            .fold(path.to_owned(), |path, (c, code)| path.replace(*c, code));
        Request { method: method.to_owned(), path, headers, body, watch: self.watch }
    }

    fn remember(&self, reply: &Reply, names: &mut BTreeMap<String, String>, script: &str) {
        for (name, pointer) in &self.save {
            let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
            let value = body.pointer(pointer).and_then(Value::as_str);
            let value = value.unwrap_or_else(|| panic!("{script} / {}: no {pointer} in {}", self.name, reply.body));
            names.insert(name.clone(), value.to_owned());
        }
    }
}

fn paths_of(namespace: &str) -> BTreeMap<String, String> {
    let paths = [
        ("ns", namespace.to_owned()),
        ("core", format!("/api/v1/namespaces/{namespace}")),
        ("batch", format!("/apis/batch/v1/namespaces/{namespace}")),
        ("events", format!("/apis/events.k8s.io/v1/namespaces/{namespace}")),
        ("leases", format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}")),
        ("volcano", format!("/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}")),
    ];
    paths.into_iter().map(|(name, path)| (name.to_owned(), path)).collect()
}

/// `text` with each `<name>` replaced; the name of one that is not known as error.
fn filled(text: &str, names: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        match after.split_once('>') {
            Some((name, after)) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') => {
                out.push_str(names.get(name).ok_or_else(|| name.to_owned())?);
                rest = after;
            }
            _ => {
                out.push('<');
                rest = after;
            }
        }
    }
    Ok(out + rest)
}

fn plain(method: &str, path: &str, body: String) -> Request {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Request { method: method.to_owned(), path: path.to_owned(), headers, body, watch: None }
}
