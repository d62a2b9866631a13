//! The configuration file as a list of settings, each with its line, or as the list of all that is wrong with it.
//!
//! Invariant: this knows shapes (a field's name, whether it holds a text or a number) and never what a value means; that is
//! the flag's to say.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Spanned, UserMessageFormatter};

use super::fields::{Field, Form, Place, places};

/// Something wrong, at a line (from 1; 0 if it is the whole file) and a field (empty if it is none).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: u64,
    pub(super) field: String,
    pub(super) message: String,
}

/// The value of a field, as its flag would be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) line: u64,
    pub(super) field: String,
    pub(super) flag: String,
    pub(super) value: String,
}

/// Reads what a file holds. What it says is returned also when something else in it is wrong.
/// `accepts` says whether a flag takes a value, for hints.
pub(super) fn read(bytes: &[u8], accepts: &dyn Fn(&str, &str) -> bool) -> (Vec<Found>, Vec<Wrong>) {
    let mut reading = Reading { found: Vec::new(), wrong: Vec::new(), accepts };
    match str::from_utf8(bytes) {
        Ok(text) => reading.document(text),
        Err(error) => {
            let before = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count();
            reading.wrong(before as u64 + 1, "", "not a text in UTF-8".to_owned());
        }
    }
    (reading.found, reading.wrong)
}

/// Any YAML; scalars as text.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Null,
    Switch(bool),
    Number(String),
    Text(String),
    List(Vec<Spanned<Node>>),
    Map(Entries),
}

type Entries = Vec<(Spanned<Node>, Spanned<Node>)>;

impl Node {
    /// The name that this is, as a key.
    fn name(&self) -> Option<String> {
        match self {
            Self::Switch(on) => Some(on.to_string()),
            Self::Number(text) | Self::Text(text) => Some(text.clone()),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }

    fn told(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Switch(_) => "true or false",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "fields",
        }
    }
}

struct Reading<'a> {
    found: Vec<Found>,
    wrong: Vec<Wrong>,
    accepts: &'a dyn Fn(&str, &str) -> bool,
}

impl Reading<'_> {
    fn wrong(&mut self, line: u64, field: &str, message: String) {
        self.wrong.push(Wrong { line, field: field.to_owned(), message });
    }

    fn document(&mut self, text: &str) {
        // As in YAML 1.2, `no` and `on` are texts: a namespace may be called so. What stands twice and what is no finite
        // number comes through, since the field is known here only.
        let options = serde_saphyr::options! {
            strict_booleans: true,
            duplicate_keys: DuplicateKeyPolicy::PassThrough,
            non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        };
        match serde_saphyr::from_str_with_options::<Spanned<Node>>(text, options) {
            Ok(root) => self.visit("", &root, &places()),
            Err(error) => {
                let line = error.location().map_or(0, |location| location.line());
                self.wrong(line, "", told(error.without_snippet()));
            }
        }
    }

    fn visit(&mut self, path: &str, node: &Spanned<Node>, place: &Place) {
        match (place, &node.value) {
            (Place::Fixed(text), Node::Text(found)) if found == text => {}
            (Place::Fixed(text), _) => self.wrong(node.referenced.line(), path, format!("must be {text}")),
            (Place::Field(_) | Place::Group(_), Node::Null) if !path.is_empty() => {}
            (Place::Field(field), _) => self.field(path, node, field),
            (Place::Group(places), Node::Map(entries)) => self.group(path, entries, places),
            (Place::Group(places), other) => {
                let expected = names(places);
                self.wrong(
                    node.referenced.line(),
                    path,
                    format!("expected the fields {expected}, found {}", other.told()),
                );
            }
        }
    }

    fn group(&mut self, path: &str, entries: &[(Spanned<Node>, Spanned<Node>)], places: &[(String, Place)]) {
        let mut lines = BTreeMap::new();
        for (key, node) in entries {
            let line = key.referenced.line();
            let Some(name) = key.value.name() else {
                self.wrong(line, path, format!("a field's name must be a text, found {}", key.value.told()));
                continue;
            };
            let path = below(path, &name);
            let known = places.iter().find(|(known, _)| *known == name);
            match (lines.get(&name), known) {
                (Some(first), _) => self.wrong(line, &path, format!("stands twice, first in line {first}")),
                (None, Some((_, place))) => self.visit(&path, node, place),
                (None, None) => {
                    self.wrong(line, &path, format!("unknown field; the fields here are {}", names(places)));
                }
            }
            lines.entry(name).or_insert(line);
        }
        for (name, place) in places {
            if let (Place::Fixed(text), false) = (place, lines.contains_key(name)) {
                self.wrong(0, &below(path, name), format!("missing: must be {text}"));
            }
        }
    }

    fn field(&mut self, path: &str, node: &Spanned<Node>, field: &Field) {
        let line = node.referenced.line();
        match text(&node.value, field.form) {
            Ok(value) => {
                let (field, flag) = (path.to_owned(), field.flag.clone());
                self.found.push(Found { line, field, flag, value });
            }
            Err(message) => {
                let hint = self.hint(&node.value, field).unwrap_or_default();
                self.wrong(line, path, message + &hint);
            }
        }
    }

    /// How to write a number where a text is expected: in quotes, with a unit if it needs one; only what the flag then takes.
    fn hint(&self, node: &Node, field: &Field) -> Option<String> {
        let (Form::Text, Node::Number(number)) = (field.form, node) else { return None };
        let taken =
            [number.clone(), format!("{number}s")].into_iter().find(|text| (self.accepts)(&field.flag, text))?;
        Some(format!("; write \"{taken}\""))
    }
}

/// The text of the flag that a value stands for.
fn text(node: &Node, form: Form) -> Result<String, String> {
    match (form, node) {
        (Form::Switch, Node::Switch(on)) => Ok(on.to_string()),
        (Form::Number | Form::Whole, Node::Number(text)) if !is_finite(text) => {
            Err(format!("expected a finite number, found {text}"))
        }
        (Form::Whole, Node::Number(text)) if text.contains('.') => {
            Err(format!("expected a whole number, found {text}"))
        }
        (Form::Number | Form::Whole, Node::Number(text)) | (Form::Text, Node::Text(text)) => Ok(text.clone()),
        (Form::List, Node::List(items)) => {
            let texts: Result<Vec<_>, _> = items.iter().map(|item| text(&item.value, Form::Text)).collect();
            Ok(texts.map_err(|error| format!("in the list, {error}"))?.join(","))
        }
        (Form::Switches, Node::Map(entries)) => {
            let mut switches = BTreeMap::new();
            for (key, node) in entries {
                let told = || format!("a name must be a text, found {}", key.value.told());
                let name = key.value.name().ok_or_else(told)?;
                let on = text(&node.value, Form::Switch).map_err(|error| format!("{name}: {error}"))?;
                if switches.insert(name.clone(), on).is_some() {
                    return Err(format!("{name}: stands twice"));
                }
            }
            Ok(switches.iter().map(|(name, on)| format!("{name}={on}")).collect::<Vec<_>>().join(","))
        }
        (form, node) => {
            let expected = match form {
                Form::Switch => "true or false",
                Form::Whole => "a whole number",
                Form::Number => "a number",
                Form::Text => "a text",
                Form::List => "a list of texts",
                Form::Switches => "names with true or false",
            };
            Err(format!("expected {expected}, found {}", node.told()))
        }
    }
}

fn is_finite(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// An error of the reader without what it says to programmers.
fn told(error: &serde_saphyr::Error) -> String {
    match error {
        serde_saphyr::Error::MultipleDocuments { .. } => "expected one document, found another behind it".to_owned(),
        serde_saphyr::Error::InvalidScalar { .. } => "not YAML: a value is not what its tag says".to_owned(),
        other => format!("not YAML: {}", other.render_with_formatter(&UserMessageFormatter)),
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn names(places: &[(String, Place)]) -> String {
    places.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, on: bool) -> Result<Node, E> {
        Ok(Node::Switch(on))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Node::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: cronjob-controller.config/v1alpha1\nkind: ControllerConfiguration\n";

    /// As the flags: a level is a word, a duration has a unit, a name may be a number.
    fn accepts(flag: &str, value: &str) -> bool {
        match flag {
            "leader-elect-lease-duration" => value.ends_with('s'),
            "leader-elect-resource-name" => true,
            _ => false,
        }
    }

    fn found(body: &str) -> Vec<(u64, String, String)> {
        let (found, wrong) = read(format!("{HEAD}{body}").as_bytes(), &accepts);
        assert_eq!(wrong, []);
        found.into_iter().map(|found| (found.line, format!("{}={}", found.flag, found.value), found.field)).collect()
    }

    fn wrong(text: &str) -> Vec<String> {
        let (_, wrong) = read(text.as_bytes(), &accepts);
        wrong.iter().map(|Wrong { line, field, message }| format!("{line} {field}: {message}")).collect()
    }

    #[test]
    fn values_are_found_with_their_lines() {
        let body = "controllers:\n  enabled: [\"*\", -volcano-cronjob]\n  concurrentCronJobSyncs: 7\nclientConnection: {qps: 2.5}\n\
                    featureGates:\n  VolcanoJobSupport: false\nmetrics:\n  secure: false\n  bindAddress: :8080\n";
        let expected = [
            (4, "controllers=*,-volcano-cronjob", "controllers.enabled"),
            (5, "concurrent-cron-job-syncs=7", "controllers.concurrentCronJobSyncs"),
            (6, "kube-api-qps=2.5", "clientConnection.qps"),
            (8, "feature-gates=VolcanoJobSupport=false", "featureGates"),
            (10, "metrics-secure=false", "metrics.secure"),
            (11, "metrics-bind-address=:8080", "metrics.bindAddress"),
        ];
        assert_eq!(found(body), expected.map(|(line, set, field)| (line, set.to_owned(), field.to_owned())));
    }

    #[test]
    fn a_word_is_a_text_also_where_older_yaml_took_it_for_a_switch() {
        let set = found("leaderElection: {resourceNamespace: on}\n");
        assert_eq!(set[0].1, "leader-elect-resource-namespace=on");
        let told = wrong(&format!("{HEAD}metrics: {{secure: yes}}\n"));
        assert_eq!(told, ["3 metrics.secure: expected true or false, found a text"]);
    }

    #[test]
    fn what_is_null_is_not_set() {
        assert_eq!(found("metrics:\nlogging:\n  level:\n  format: ~\n"), []);
    }

    #[test]
    fn every_fault_of_the_shape_is_told_with_its_line_and_field() {
        let text = format!(
            "{HEAD}metrics:\n  bindAdress: x\n  secure: maybe\nhealth: 5\nlogging:\n  level: 3\ncontrollers:\n  enabled: \"*\"\n\
             featureGates:\n  A: 1\nleader: {{}}\n"
        );
        assert_eq!(
            wrong(&text),
            [
                "4 metrics.bindAdress: unknown field; the fields here are bindAddress, secure, tlsCertFile, tlsPrivateKeyFile",
                "5 metrics.secure: expected true or false, found a text",
                "6 health: expected the fields bindAddress, found a number",
                "8 logging.level: expected a text, found a number",
                "10 controllers.enabled: expected a list of texts, found a text",
                "12 featureGates: A: expected true or false, found a number",
            ]
            .into_iter()
            .map(str::to_owned)
            .chain([format!("13 leader: unknown field; the fields here are {}", {
                let Place::Group(places) = places() else { panic!() };
                names(&places)
            })])
            .collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_number_where_a_text_is_expected_is_told_how_to_be_written_so_that_it_is_taken() {
        let told = wrong(&format!("{HEAD}leaderElection: {{leaseDuration: 15, resourceName: 7}}\n"));
        assert_eq!(
            told,
            [
                "3 leaderElection.leaseDuration: expected a text, found a number; write \"15s\"",
                "3 leaderElection.resourceName: expected a text, found a number; write \"7\"",
            ]
        );
    }

    #[test]
    fn the_version_and_the_kind_must_be_ours() {
        assert_eq!(
            wrong("apiVersion: cronjob-controller.config/v9\n"),
            [
                "1 apiVersion: must be cronjob-controller.config/v1alpha1",
                "0 kind: missing: must be ControllerConfiguration"
            ]
        );
        assert_eq!(wrong("").len(), 1);
        assert_eq!(wrong("- a\n").len(), 1);
    }

    #[test]
    fn what_is_no_yaml_or_says_a_thing_twice_is_told_with_its_line() {
        let broken = wrong(&format!("{HEAD}metrics: [\n"));
        assert!(broken.len() == 1 && broken[0].contains(": not YAML: "), "{broken:?}");
        let twice = wrong(&format!("{HEAD}metrics:\n  secure: true\n  secure: false\n"));
        assert_eq!(twice, ["5 metrics.secure: stands twice, first in line 4"]);
        let twice = wrong(&format!("{HEAD}featureGates: {{A: true, A: true}}\n"));
        assert_eq!(twice, ["3 featureGates: A: stands twice"]);
        let two = wrong(&format!("{HEAD}---\n{HEAD}"));
        assert_eq!(two, ["4 : expected one document, found another behind it"]);
    }

    #[test]
    fn what_is_no_number_of_the_kind_is_told_with_its_field() {
        for (text, told) in [("1e400", "inf"), (".inf", "inf"), ("-.inf", "-inf"), (".nan", "NaN")] {
            let found = wrong(&format!("{HEAD}clientConnection: {{qps: {text}}}\n"));
            assert_eq!(found, [format!("3 clientConnection.qps: expected a finite number, found {told}")]);
        }
        let found = wrong(&format!("{HEAD}clientConnection: {{burst: 1.5}}\n"));
        assert_eq!(found, ["3 clientConnection.burst: expected a whole number, found 1.5"]);
    }

    #[test]
    fn nothing_is_told_in_the_words_of_the_reader() {
        for body in
            ["~: b\n", "? [a]\n: b\n", "featureGates: {~: true}\n", "health: {bindAddress: !!int xx}\n", "a: *b\n"]
        {
            let found = wrong(&format!("{HEAD}{body}"));
            assert!(found.len() == 1 && found[0].starts_with('3'), "{found:?}");
            for word in ["Option", "Policy", "from_str", "u64", "deserialize"] {
                assert!(!found[0].contains(word), "{found:?}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told_with_their_line() {
        let (_, wrong) = read(&[HEAD.as_bytes(), b"metrics: \xff\n"].concat(), &accepts);
        assert_eq!(wrong, [Wrong { line: 3, field: String::new(), message: "not a text in UTF-8".to_owned() }]);
    }
}
