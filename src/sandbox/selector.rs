//! Label and field selectors, as lists and watches take them.

mod labels;

use serde_json::Value;

use super::resources::{Resource, stored_as};
use super::status::Refusal;
use super::store::Object;

/// Which objects of a collection are meant. All terms must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<LabelTerm>,
    fields: Vec<FieldTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelTerm {
    key: String,
    test: LabelTest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelTest {
    In(Vec<String>),
    /// Also holds when the label is missing.
    NotIn(Vec<String>),
    Exists,
    Missing,
    Above(i64),
    Below(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTerm {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Namespace,
    /// JSON pointer into the stored form, and the text of a missing value.
    At(&'static str, &'static str),
}

impl Selector {
    /// Reads both selectors of a request; empty texts select everything.
    ///
    /// # Errors
    /// 400 for texts that cannot be read and for field labels that the kind does not offer.
    pub fn parse(resource: &'static Resource, labels: &str, fields: &str) -> Result<Self, Refusal> {
        let mut selector = Self { labels: labels::parse(labels).map_err(Refusal::bad_request)?, fields: Vec::new() };
        for term in fields.split(',').filter(|term| !term.is_empty()) {
            selector.fields.push(FieldTerm::parse(resource, term)?);
        }
        Ok(selector)
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object is meant. Decodes it only if its key does not decide.
    pub fn matches(&self, object: &Object) -> bool {
        let by_key = |term: &FieldTerm| match term.field {
            Field::Name => term.holds(object.name()),
            Field::Namespace => term.holds(object.namespace()),
            Field::At(..) => true,
        };
        if !self.fields.iter().all(by_key) {
            return false;
        }
        if self.labels.is_empty() && self.fields.iter().all(|term| !matches!(term.field, Field::At(..))) {
            return true;
        }
        let value = object.value();
        self.fields.iter().all(|term| term.holds_in(&value))
            && self.labels.iter().all(|term| term.test.holds(value["metadata"]["labels"][&term.key].as_str()))
    }
}

impl LabelTest {
    fn holds(&self, label: Option<&str>) -> bool {
        let number = label.and_then(|label| label.parse::<i64>().ok());
        match self {
            LabelTest::In(values) => label.is_some_and(|label| values.iter().any(|value| value == label)),
            LabelTest::NotIn(values) => label.is_none_or(|label| values.iter().all(|value| value != label)),
            LabelTest::Exists => label.is_some(),
            LabelTest::Missing => label.is_none(),
            LabelTest::Above(bound) => number.is_some_and(|number| number > *bound),
            LabelTest::Below(bound) => number.is_some_and(|number| number < *bound),
        }
    }
}

impl FieldTerm {
    fn parse(resource: &'static Resource, term: &str) -> Result<Self, Refusal> {
        let unreadable = || Refusal::bad_request(format!("invalid selector: '{term}'; can't understand '{term}'"));
        let (label, value, equal) = if let Some((label, value)) = term.split_once("!=") {
            (label, value, false)
        } else {
            let (label, value) = term.split_once('=').ok_or_else(unreadable)?;
            (label, value.strip_prefix('=').unwrap_or(value), true)
        };
        let field = field(resource, label).ok_or_else(|| unknown_field(resource, label))?;
        Ok(Self { field, value: value.to_owned(), equal })
    }

    fn holds(&self, value: &str) -> bool {
        (self.value == value) == self.equal
    }

    fn holds_in(&self, object: &Value) -> bool {
        let Field::At(pointer, missing) = self.field else { return true };
        match object.pointer(pointer) {
            Some(Value::String(text)) => self.holds(text),
            None | Some(Value::Null) => self.holds(missing),
            Some(other) => self.holds(&other.to_string()),
        }
    }
}

/// The fields that a kind offers besides name and namespace.
fn field(resource: &'static Resource, label: &str) -> Option<Field> {
    match (stored_as(resource).plural, label) {
        (_, "metadata.name") => Some(Field::Name),
        (_, "metadata.namespace") => Some(Field::Namespace),
        ("events", label) => event_field(label),
        ("jobs", "status.successful") if !resource.custom => Some(Field::At("/status/succeeded", "0")),
        ("namespaces", "status.phase") => Some(Field::At("/status/phase", "")),
        ("pods", "status.phase") => Some(Field::At("/status/phase", "")),
        ("pods", "status.podIP") => Some(Field::At("/status/podIP", "")),
        ("pods", "spec.hostNetwork") => Some(Field::At("/spec/hostNetwork", "false")),
        ("pods", "status.nominatedNodeName") => Some(Field::At("/status/nominatedNodeName", "")),
        ("pods", "spec.nodeName") => Some(Field::At("/spec/nodeName", "")),
        ("pods", "spec.restartPolicy") => Some(Field::At("/spec/restartPolicy", "Always")),
        ("pods", "spec.schedulerName") => Some(Field::At("/spec/schedulerName", "")),
        ("pods", "spec.serviceAccountName") => Some(Field::At("/spec/serviceAccountName", "")),
        _ => None,
    }
}

/// Both views of events select on the one stored form.
fn event_field(label: &str) -> Option<Field> {
    let pointer = match label {
        "involvedObject.kind" | "regarding.kind" => "/involvedObject/kind",
        "involvedObject.namespace" | "regarding.namespace" => "/involvedObject/namespace",
        "involvedObject.name" | "regarding.name" => "/involvedObject/name",
        "involvedObject.uid" | "regarding.uid" => "/involvedObject/uid",
        "involvedObject.apiVersion" | "regarding.apiVersion" => "/involvedObject/apiVersion",
        "involvedObject.resourceVersion" | "regarding.resourceVersion" => "/involvedObject/resourceVersion",
        "involvedObject.fieldPath" | "regarding.fieldPath" => "/involvedObject/fieldPath",
        "reason" => "/reason",
        "type" => "/type",
        "source" => "/source/component",
        "reportingComponent" | "reportingController" => "/reportingComponent",
        _ => return None,
    };
    Some(Field::At(pointer, ""))
}

/// The text depends on how the real server registered the kind.
fn unknown_field(resource: &'static Resource, label: &str) -> Refusal {
    Refusal::bad_request(match (resource.group, resource.plural) {
        ("batch", "jobs") => format!("field label \"{label}\" not supported for Job"),
        ("batch.volcano.sh", _) | (_, "pods" | "events" | "namespaces") => {
            format!("field label not supported: {label}")
        }
        _ => format!("\"{label}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::resources;
    use serde_json::json;

    fn jobs() -> &'static Resource {
        resources::find("batch", "v1", "jobs").unwrap()
    }

    fn matches(labels: &str, fields: &str) -> bool {
        let value = json!({"metadata": {"name": "x", "labels": {"app": "a", "tier": "5"}}, "status": {"succeeded": 1}});
        let object = Object::new(jobs(), "ns/x".into(), 3, &value);
        Selector::parse(jobs(), labels, fields).unwrap().matches(&object)
    }

    #[test]
    fn label_terms_read_every_operator() {
        for yes in [
            "app=a",
            "app==a",
            "app!=b",
            "app in (a, b)",
            "app notin (b,c)",
            "app",
            "!gone",
            "gone!=x",
            "tier>4",
            "tier<6",
            "app=a,tier in (5,6),!gone",
            "",
        ] {
            assert!(matches(yes, ""), "{yes}");
        }
        for no in ["app=b", "app!=a", "app in (b)", "app notin (a)", "gone", "!app", "tier>5", "app=a,gone"] {
            assert!(!matches(no, ""), "{no}");
        }
        assert!(Selector::parse(jobs(), "app in a", "").is_err());
    }

    #[test]
    fn field_terms_look_at_the_key_and_at_what_the_kind_offers() {
        assert!(matches("", "metadata.name=x,metadata.namespace!=other,status.successful=1"));
        assert!(!matches("", "metadata.name=y") && !matches("", "status.successful=0"));
        let refused = Selector::parse(jobs(), "", "spec.foo=1").unwrap_err();
        assert_eq!((refused.code, refused.message.as_str()), (400, "field label \"spec.foo\" not supported for Job"));
    }
}
