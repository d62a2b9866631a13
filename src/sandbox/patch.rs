//! The three patch formats.

use serde_json::Value;

use super::call::Call;
use super::status::Refusal;
use super::strategic;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// Whether the kind takes patches of this format. Server-side apply is not served at all.
///
/// # Errors
/// 415.
pub fn check_format(call: &Call) -> Result<(), Refusal> {
    let formats: &[&str] =
        if call.resource.custom { &[JSON_PATCH, MERGE_PATCH] } else { &[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH] };
    match call.content_type.as_str() {
        known if formats.contains(&known) => Ok(()),
        // Only of custom kinds does the server say what they take.
        STRATEGIC_PATCH => Err(Refusal::unsupported_media_type(formats)),
        _ => Err(Refusal::unsupported_patch()),
    }
}

/// `current` with the patch of the call applied.
///
/// # Errors
/// 415 for a format that the kind does not take, 400 for a patch that cannot be read, 422 for a JSON patch that does not fit
/// the object, 500 for a strategic one.
pub fn apply(call: &Call, current: &Value) -> Result<Value, Refusal> {
    check_format(call)?;
    let mut patched = current.clone();
    match call.content_type.as_str() {
        JSON_PATCH => {
            // Operations that nobody knows are found when they are to be applied.
            let operations: Vec<Value> = read(call)?;
            let patch: json_patch::Patch =
                serde_json::from_value(operations.into()).map_err(|_| Refusal::patch_rejected())?;
            json_patch::patch(&mut patched, &patch).map_err(|_| Refusal::patch_rejected())?;
        }
        MERGE_PATCH => json_patch::merge(&mut patched, &Value::Object(read(call)?)),
        _ => strategic::apply(&mut patched, &read(call)?).map_err(|error| Refusal::internal(error.to_string()))?,
    }
    Ok(patched)
}

/// How a refusal shows the outcome of a patch that is no object of the kind: a strategic patch shows itself.
pub fn outcome(call: &Call, patched: &Value) -> String {
    match call.content_type.as_str() {
        STRATEGIC_PATCH => strategic::go_text(&serde_json::from_slice(&call.body).unwrap_or_default()),
        _ => patched.to_string(),
    }
}

fn read<T: serde::de::DeserializeOwned>(call: &Call) -> Result<T, Refusal> {
    serde_json::from_slice(&call.body).map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))
}
