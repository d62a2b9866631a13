//! The three patch formats.

use serde_json::Value;

use super::call::Call;
use super::status::Refusal;
use super::strategic;

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// `current` with the patch of the call applied.
///
/// # Errors
/// 415 for a format that the kind does not take (server-side apply is not served at all), 400 for a patch that cannot be
/// read, 422 for a JSON patch that does not fit the object.
pub fn apply(call: &Call, current: &Value) -> Result<Value, Refusal> {
    let mut patched = current.clone();
    match call.content_type.as_str() {
        JSON_PATCH => {
            let patch: json_patch::Patch = read(call)?;
            json_patch::patch(&mut patched, &patch).map_err(|error| {
                Refusal::new(
                    422,
                    "Invalid",
                    format!("the server rejected our request due to an error in our request: {error}"),
                )
            })?;
        }
        MERGE_PATCH => json_patch::merge(&mut patched, &read::<Value>(call)?),
        STRATEGIC_PATCH if !call.resource.custom => {
            strategic::apply(&mut patched, &read(call)?).map_err(|error| Refusal::bad_request(error.to_string()))?;
        }
        _ if call.resource.custom => return Err(Refusal::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH])),
        _ => return Err(Refusal::unsupported_media_type(&[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])),
    }
    Ok(patched)
}

fn read<T: serde::de::DeserializeOwned>(call: &Call) -> Result<T, Refusal> {
    serde_json::from_slice(&call.body).map_err(|error| Refusal::bad_request(format!("error decoding patch: {error}")))
}
