//! Two views of one store: `events.k8s.io/v1` events are core/v1 events under other field names. Stored is the core form.

use serde_json::Value;

use super::resources::{Resource, stored_as};

/// Field of `events.k8s.io/v1` and its counterpart in core/v1; all others are equal.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// An object as its resource shows it, from the form it is stored in.
pub fn to_view(resource: &Resource, stored: Value) -> Value {
    if !is_view(resource) {
        return stored;
    }
    let mut shown = renamed(resource, stored, |(view, core)| (core, view));
    if let Some(fields) = shown.as_object_mut() {
        // What core events show empty this view leaves out.
        fields.retain(|name, value| !(matches!(&**name, "reportingController" | "reportingInstance") && value == ""));
    }
    shown
}

/// An object in the form it is stored in, from how its resource shows it.
pub fn to_stored(resource: &Resource, shown: Value) -> Value {
    if is_view(resource) { renamed(stored_as(resource), shown, |names| names) } else { shown }
}

/// Whether the resource shows objects in another form than they are stored in.
pub fn is_view(resource: &Resource) -> bool {
    !std::ptr::eq(resource, stored_as(resource))
}

type Names = (&'static str, &'static str);

fn renamed(target: &Resource, value: Value, direction: impl Fn(Names) -> Names) -> Value {
    let Value::Object(mut fields) = value else { return value };
    for (from, to) in NAMES.map(direction) {
        if let Some(content) = fields.remove(from) {
            fields.insert(to.to_owned(), content);
        }
    }
    fields.insert("kind".to_owned(), target.kind.into());
    fields.insert("apiVersion".to_owned(), target.api_version().into());
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::resources::find;
    use serde_json::json;

    #[test]
    fn what_one_view_writes_the_other_reads_and_back() {
        let view = find("events.k8s.io", "v1", "events").unwrap();
        let shown = json!({
            "kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "x"}, "note": "hello", "reason": "R",
            "regarding": {"kind": "CronJob"}, "reportingController": "c", "deprecatedCount": 2,
        });
        let stored = to_stored(view, shown.clone());
        assert_eq!(
            stored,
            json!({
                "kind": "Event", "apiVersion": "v1", "metadata": {"name": "x"}, "message": "hello", "reason": "R",
                "involvedObject": {"kind": "CronJob"}, "reportingComponent": "c", "count": 2,
            })
        );
        assert_eq!(to_view(view, stored), shown);
    }
}
