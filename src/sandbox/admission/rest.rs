//! The few rules of kinds that stand by: ConfigMaps, quotas, Leases.

use serde_json::Value;

use super::{Causes, at};

/// What a quota may count without a prefix.
const COUNTABLE: [&str; 7] =
    ["pods", "services", "secrets", "configmaps", "replicationcontrollers", "resourcequotas", "persistentvolumeclaims"];

/// An immutable ConfigMap stays as it is.
pub(super) fn validate_config_map(object: &Value, old: Option<&Value>, causes: &mut Causes) {
    let Some(old) = old.filter(|old| at(old, &["immutable"]) == &Value::Bool(true)) else { return };
    let why = "field is immutable when `immutable` is set";
    for field in ["immutable", "data", "binaryData"] {
        if at(object, &[field]) != at(old, &[field]) {
            causes.forbidden(field, why);
        }
    }
}

/// Hard limits are of things that can be counted, and not below zero.
pub(super) fn validate_quota(object: &Value, causes: &mut Causes) {
    for (name, limit) in at(object, &["spec", "hard"]).as_object().into_iter().flatten() {
        let field = format!("spec.hard[{name}]");
        let value = Value::from(name.as_str());
        let plain = !name.contains('/') && !name.contains('.');
        let resources = ["cpu", "memory", "storage", "ephemeral-storage"].contains(&name.as_str());
        if plain && !resources && !COUNTABLE.contains(&name.as_str()) {
            causes.invalid(&field, &value, "must be a standard resource type or fully qualified");
            causes.invalid(&field, &value, "must be a standard resource for quota");
        }
        let text = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
        if text.starts_with('-') {
            causes.invalid(&field, &text.into(), "must be greater than or equal to 0");
        }
    }
}

/// A Lease that says how long it lasts lasts at least a second, and its transitions count up from zero.
pub(super) fn validate_lease(object: &Value, causes: &mut Causes) {
    let duration = at(object, &["spec", "leaseDurationSeconds"]);
    if duration.as_i64().is_some_and(|duration_s| duration_s <= 0) {
        causes.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0");
    }
    causes.non_negative("spec.leaseTransitions", at(object, &["spec", "leaseTransitions"]));
}
