//! The policies of a `batch/v1` Job.

use serde::Deserialize;

use crate::model::{
    ConditionStatus, ExitCodeOperator, ExitCodes, PodConditionPattern, PodFailureAction, PodFailureRule, SuccessRule,
};

/// `spec.podFailurePolicy`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FailurePolicy {
    rules: Option<Vec<FailureRule>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FailureRule {
    action: Box<str>,
    on_exit_codes: Option<OnExitCodes>,
    on_pod_conditions: Option<Vec<OnPodCondition>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OnExitCodes {
    container_name: Option<Box<str>>,
    operator: Box<str>,
    values: Option<Vec<i32>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OnPodCondition {
    #[serde(rename = "type")]
    condition_type: Box<str>,
    status: Option<Box<str>>,
}

impl FailurePolicy {
    pub(super) fn into_model(self) -> Vec<PodFailureRule> {
        self.rules.unwrap_or_default().into_iter().map(FailureRule::into_model).collect()
    }
}

impl FailureRule {
    fn into_model(self) -> PodFailureRule {
        let pattern = |on: OnPodCondition| PodConditionPattern {
            condition_type: on.condition_type,
            // The server's default.
            status: on.status.as_deref().map_or(ConditionStatus::True, condition_status),
        };
        PodFailureRule {
            action: match &*self.action {
                "FailJob" => PodFailureAction::FailJob,
                "FailIndex" => PodFailureAction::FailIndex,
                "Ignore" => PodFailureAction::Ignore,
                "Count" => PodFailureAction::Count,
                _ => PodFailureAction::Unknown,
            },
            on_exit_codes: self.on_exit_codes.map(OnExitCodes::into_model),
            on_pod_conditions: self.on_pod_conditions.unwrap_or_default().into_iter().map(pattern).collect(),
        }
    }
}

impl OnExitCodes {
    fn into_model(self) -> ExitCodes {
        ExitCodes {
            container: self.container_name,
            operator: match &*self.operator {
                "In" => ExitCodeOperator::In,
                "NotIn" => ExitCodeOperator::NotIn,
                _ => ExitCodeOperator::Unknown,
            },
            values: self.values.unwrap_or_default(),
        }
    }
}

/// `spec.successPolicy`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SuccessPolicy {
    rules: Option<Vec<SuccessPolicyRule>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SuccessPolicyRule {
    succeeded_indexes: Option<Box<str>>,
    succeeded_count: Option<i32>,
}

impl SuccessPolicy {
    pub(super) fn into_model(self) -> Vec<SuccessRule> {
        let rule = |rule: SuccessPolicyRule| SuccessRule {
            succeeded_indexes: rule.succeeded_indexes,
            succeeded_count: rule.succeeded_count,
        };
        self.rules.unwrap_or_default().into_iter().map(rule).collect()
    }
}

/// `status` of a condition; whatever is neither True nor False is unknown.
pub(super) fn condition_status(text: &str) -> ConditionStatus {
    match text {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_keep_their_order_and_unknown_words_stay_unknown() {
        let policy = json!({"rules": [
            {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "NotIn", "values": [0, 3]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}, {"type": "X", "status": "False"}]},
            {"action": "Later", "onExitCodes": {"operator": "Near"}},
        ]});
        let rules = serde_json::from_value::<FailurePolicy>(policy).unwrap().into_model();
        let actions: Vec<_> = rules.iter().map(|rule| rule.action).collect();
        assert_eq!(actions, [PodFailureAction::FailJob, PodFailureAction::Ignore, PodFailureAction::Unknown]);
        let codes = rules[0].on_exit_codes.as_ref().unwrap();
        assert_eq!(
            (codes.container.as_deref(), codes.operator, &*codes.values),
            (Some("c"), ExitCodeOperator::NotIn, &[0, 3][..])
        );
        let statuses: Vec<_> = rules[1].on_pod_conditions.iter().map(|pattern| pattern.status).collect();
        assert_eq!(statuses, [ConditionStatus::True, ConditionStatus::False]);
        assert_eq!(rules[2].on_exit_codes.as_ref().unwrap().operator, ExitCodeOperator::Unknown);
        let success = json!({"rules": [{"succeededIndexes": "0,2-3"}, {"succeededCount": 2}]});
        let rules = serde_json::from_value::<SuccessPolicy>(success).unwrap().into_model();
        assert_eq!((rules[0].succeeded_indexes.as_deref(), rules[1].succeeded_count), (Some("0,2-3"), Some(2)));
    }
}
