//! `LabelSelector`s in objects: which are valid, and what they match.

use serde_json::Value;

use super::{Causes, at, metadata, text};

/// Notes what is wrong with the selector at `field`.
pub(super) fn validate(selector: &Value, field: &str, causes: &mut Causes) {
    for (key, value) in at(selector, &["matchLabels"]).as_object().into_iter().flatten() {
        let field = format!("{field}.matchLabels");
        validate_key(&Value::from(key.as_str()), &field, causes);
        metadata::label_value(value.as_str().unwrap_or_default())
            .iter()
            .for_each(|why| causes.invalid(&*field, value, why));
    }
    for (index, expression) in expressions(selector).iter().enumerate() {
        validate_expression(expression, &format!("{field}.matchExpressions[{index}]"), causes);
    }
}

fn validate_expression(expression: &Value, field: &str, causes: &mut Causes) {
    let values = values(expression);
    let operator = at(expression, &["operator"]);
    match operator.as_str().unwrap_or_default() {
        "In" | "NotIn" if values.is_empty() => {
            causes.required(format!("{field}.values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.forbidden(format!("{field}.values"), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => causes.invalid(format!("{field}.operator"), operator, "not a valid selector operator"),
    }
    validate_key(at(expression, &["key"]), &format!("{field}.key"), causes);
    for (index, value) in values.iter().enumerate() {
        let field = format!("{field}.values[{index}]");
        metadata::label_value(value.as_str().unwrap_or_default())
            .iter()
            .for_each(|why| causes.invalid(&*field, value, why));
    }
}

fn validate_key(key: &Value, field: &str, causes: &mut Causes) {
    metadata::qualified_name(key.as_str().unwrap_or_default()).iter().for_each(|why| causes.invalid(field, key, why));
}

/// Whether the selector selects what has these labels; `None` if it cannot be read. No selector selects nothing, an empty
/// one everything.
pub(super) fn matches(selector: &Value, labels: &Value) -> Option<bool> {
    if selector.is_null() {
        return Some(false);
    }
    let mut causes = Causes::default();
    validate(selector, "", &mut causes);
    if !causes.is_empty() {
        return None;
    }
    let mut wanted = at(selector, &["matchLabels"]).as_object().into_iter().flatten();
    Some(
        wanted.all(|(key, value)| labels.get(key) == Some(value))
            && expressions(selector).iter().all(|expression| holds(expression, labels)),
    )
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let label = labels.get(text(expression, &["key"]));
    let listed = label.is_some_and(|label| values(expression).contains(label));
    match text(expression, &["operator"]) {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => label.is_some(),
        _ => label.is_none(),
    }
}

fn expressions(selector: &Value) -> &[Value] {
    at(selector, &["matchExpressions"]).as_array().map(Vec::as_slice).unwrap_or_default()
}

fn values(expression: &Value) -> &[Value] {
    at(expression, &["values"]).as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_operator_matches_as_it_says_and_an_unreadable_selector_decides_nothing() {
        let labels = json!({"app": "a", "tier": "5"});
        let term = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, matched) in [
            (Value::Null, Some(false)),
            (json!({}), Some(true)),
            (json!({"matchLabels": {"app": "a"}}), Some(true)),
            (json!({"matchLabels": {"app": "b"}}), Some(false)),
            (term("app", "In", json!(["a", "b"])), Some(true)),
            (term("app", "NotIn", json!(["a"])), Some(false)),
            (term("gone", "NotIn", json!(["a"])), Some(true)),
            (term("tier", "Exists", Value::Null), Some(true)),
            (term("tier", "DoesNotExist", Value::Null), Some(false)),
            (term("tier", "Above", json!(["4"])), None),
            (term("tier", "In", Value::Null), None),
        ] {
            assert_eq!(matches(&selector, &labels), matched, "{selector}");
        }
    }
}
