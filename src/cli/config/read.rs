//! The configuration file as a list of settings, each with its line, or as the list of all that is wrong with it.
//!
//! Invariant: this knows shapes (a field's name, whether it holds a text or a number) and never what a value means; that is
//! the flag's to say.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

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

/// Reads the text of a file. What it says is returned also when something else in it is wrong.
/// `accepts` says whether a flag takes a value, for hints.
pub(super) fn read(text: &str, accepts: &dyn Fn(&str, &str) -> bool) -> (Vec<Found>, Vec<Wrong>) {
    let mut reading = Reading { found: Vec::new(), wrong: Vec::new(), accepts };
    // As in YAML 1.2, `no` and `on` are texts: a namespace may be called so.
    let options = serde_saphyr::options! { strict_booleans: true };
    match serde_saphyr::from_str_with_options::<Spanned<Node>>(text, options) {
        Ok(root) => reading.visit("", &root, &places()),
        Err(error) => {
            let error = error.without_snippet();
            let line = error.location().map_or(0, |location| location.line());
            reading.wrong(line, "", format!("not YAML: {error}"));
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
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

impl Node {
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

    fn group(&mut self, path: &str, entries: &[(Spanned<String>, Spanned<Node>)], places: &[(String, Place)]) {
        for (name, node) in entries {
            let path = below(path, &name.value);
            match places.iter().find(|(known, _)| *known == name.value) {
                Some((_, place)) => self.visit(&path, node, place),
                None => {
                    let known = names(places);
                    self.wrong(name.referenced.line(), &path, format!("unknown field; the fields here are {known}"));
                }
            }
        }
        for (name, place) in places {
            if let (Place::Fixed(text), false) = (place, entries.iter().any(|(found, _)| found.value == *name)) {
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
        (Form::Number, Node::Number(text)) | (Form::Text, Node::Text(text)) => Ok(text.clone()),
        (Form::List, Node::List(items)) => {
            let texts: Result<Vec<_>, _> = items.iter().map(|item| text(&item.value, Form::Text)).collect();
            Ok(texts.map_err(|error| format!("in the list, {error}"))?.join(","))
        }
        (Form::Switches, Node::Map(entries)) => {
            let one = |(name, node): &(Spanned<String>, Spanned<Node>)| match text(&node.value, Form::Switch) {
                Ok(on) => Ok(format!("{}={on}", name.value)),
                Err(error) => Err(format!("{}: {error}", name.value)),
            };
            Ok(entries.iter().map(one).collect::<Result<Vec<_>, _>>()?.join(","))
        }
        (form, node) => {
            let expected = match form {
                Form::Switch => "true or false",
                Form::Number => "a number",
                Form::Text => "a text",
                Form::List => "a list of texts",
                Form::Switches => "names with true or false",
            };
            Err(format!("expected {expected}, found {}", node.told()))
        }
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
        let (found, wrong) = read(&format!("{HEAD}{body}"), &accepts);
        assert_eq!(wrong, []);
        found.into_iter().map(|found| (found.line, format!("{}={}", found.flag, found.value), found.field)).collect()
    }

    fn wrong(text: &str) -> Vec<String> {
        let (_, wrong) = read(text, &accepts);
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
        assert!(twice.len() == 1 && twice[0].starts_with('5') && twice[0].contains("secure"), "{twice:?}");
        let two = wrong(&format!("{HEAD}---\n{HEAD}"));
        assert_eq!(two.len(), 1, "{two:?}");
    }
}
