//! Label selectors: from JSON to model, and as the text of a query.

use serde::Deserialize;

use super::decode::{DecodeError, wrong};
use crate::model::{LabelOperator, LabelRequirement, LabelSelector, Labels, ObjectKey};

/// A `metav1.LabelSelector`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Selector {
    match_labels: Option<Labels>,
    match_expressions: Option<Vec<Requirement>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requirement {
    key: Box<str>,
    operator: Box<str>,
    values: Option<Vec<Box<str>>>,
}

impl Selector {
    /// The selector in `field` of an object.
    ///
    /// # Errors
    /// An operator is none that exists.
    pub(super) fn into_model(
        self,
        kind: &'static str,
        object: &ObjectKey,
        field: &str,
    ) -> Result<LabelSelector, DecodeError> {
        let requirement = |requirement: Requirement| {
            let operator = match &*requirement.operator {
                "In" => LabelOperator::In,
                "NotIn" => LabelOperator::NotIn,
                "Exists" => LabelOperator::Exists,
                "DoesNotExist" => LabelOperator::DoesNotExist,
                other => {
                    return Err(wrong(kind, object, field, &format!("{other:?} is not a label selector operator")));
                }
            };
            let values = requirement.values.unwrap_or_default();
            Ok(LabelRequirement { key: requirement.key, operator, values })
        };
        let expressions = self.match_expressions.unwrap_or_default().into_iter().map(requirement);
        Ok(LabelSelector {
            match_labels: self.match_labels.unwrap_or_default(),
            match_expressions: expressions.collect::<Result<_, _>>()?,
        })
    }
}

/// The value of a query's `labelSelector`, not yet encoded.
pub(super) fn query_text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let requirements = selector.match_expressions.iter().map(|LabelRequirement { key, operator, values }| {
        let values = values.join(",");
        match operator {
            LabelOperator::In => format!("{key} in ({values})"),
            LabelOperator::NotIn => format!("{key} notin ({values})"),
            LabelOperator::Exists => key.to_string(),
            LabelOperator::DoesNotExist => format!("!{key}"),
        }
    });
    labels.chain(requirements).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_is_read_and_written_with_every_operator() {
        let selector = json!({"matchLabels": {"a": "1"}, "matchExpressions": [
            {"key": "b", "operator": "In", "values": ["2", "3"]}, {"key": "c", "operator": "NotIn", "values": ["4"]},
            {"key": "d", "operator": "Exists"}, {"key": "e", "operator": "DoesNotExist"}]});
        let key = ObjectKey::new("s", "n");
        let selector = serde_json::from_value::<Selector>(selector).unwrap().into_model("Job", &key, "f").unwrap();
        assert_eq!(query_text(&selector), "a=1,b in (2,3),c notin (4),d,!e");
    }
}
