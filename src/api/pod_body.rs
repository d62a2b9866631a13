//! Bodies that make and change the Pods of a Job.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::OwnerReference;

/// What a new Pod has beyond the template of its Job. Of the template's metadata only labels, annotations and finalizers are taken
/// over. Where a name is in the template already, the addition wins, but for the variable.
#[derive(Clone, Debug)]
pub struct NewPod<'a> {
    /// The template, a JSON object.
    pub template_json: &'a str,
    /// `metadata.generateName`.
    pub generate_name: &'a str,
    /// The one owner reference.
    pub owner: &'a OwnerReference,
    /// To be in `metadata.finalizers`, once.
    pub finalizer: &'a str,
    /// Added labels.
    pub labels: Vec<(&'static str, String)>,
    /// Added annotations.
    pub annotations: Vec<(&'static str, String)>,
    /// `spec.hostname`, if set here.
    pub hostname: Option<&'a str>,
    /// Name of a variable that each container gets unless it has it, and the field that it shows.
    pub variable: Option<(&'static str, String)>,
}

/// The body of a Pod (POST to [`super::pods_path`]).
///
/// # Errors
/// The template has a part of the wrong type; the error names it.
pub fn pod_body(new: &NewPod<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let template: Template<'_> = serde_json::from_str(new.template_json)?;
    let metadata = template.metadata.unwrap_or_default();
    let mut finalizers = metadata.finalizers.unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == new.finalizer) {
        finalizers.push(new.finalizer.to_owned());
    }
    let with = |base: Option<BTreeMap<String, String>>, added: &[(&'static str, String)]| {
        let mut all = base.unwrap_or_default();
        all.extend(added.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        all
    };
    let body = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": new.generate_name,
            "labels": with(metadata.labels, &new.labels),
            "annotations": with(metadata.annotations, &new.annotations),
            "finalizers": finalizers,
            "ownerReferences": [controller_reference(new.owner)],
        },
        "spec": spec(template.spec, new)?,
    });
    serde_json::to_vec(&body)
}

#[derive(Deserialize)]
struct Template<'a> {
    metadata: Option<Metadata>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
}

fn spec(template: Option<&RawValue>, new: &NewPod<'_>) -> Result<Map<String, Value>, serde_json::Error> {
    let mut spec: Map<String, Value> = match template {
        Some(spec) => serde_json::from_str(spec.get())?,
        None => Map::new(),
    };
    if let Some(hostname) = new.hostname {
        spec.insert("hostname".to_owned(), hostname.into());
    }
    if let Some((name, field)) = &new.variable {
        for list in ["containers", "initContainers"] {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            containers.into_iter().flatten().filter_map(Value::as_object_mut).for_each(|container| {
                add_variable(container, name, field);
            });
        }
    }
    Ok(spec)
}

fn add_variable(container: &mut Map<String, Value>, name: &str, field: &str) {
    let variables = container.entry("env").or_insert(Value::Null);
    if variables.is_null() {
        *variables = Value::Array(Vec::new());
    }
    if let Some(variables) = variables.as_array_mut()
        && !variables.iter().any(|variable| variable["name"] == name)
    {
        variables.push(json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}));
    }
}

fn controller_reference(owner: &OwnerReference) -> Value {
    json!({
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid.as_str(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// Strategic merge patch that takes one finalizer off a Pod; others stay.
pub fn untrack_patch(finalizer: &str) -> Vec<u8> {
    json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [finalizer]}}).to_string().into_bytes()
}

/// Strategic merge patch that makes `owner` the controller of the Pod with this uid and adds the finalizer. The server refuses it for
/// a Pod of another uid.
pub fn adopt_patch(owner: &OwnerReference, uid: &str, finalizer: &str) -> Vec<u8> {
    let metadata = json!({"uid": uid, "ownerReferences": [controller_reference(owner)], "finalizers": [finalizer]});
    json!({ "metadata": metadata }).to_string().into_bytes()
}

/// Strategic merge patch that takes the reference to the owner with this uid and the finalizer off the Pod with the uid `uid`.
pub fn release_patch(owner_uid: &str, uid: &str, finalizer: &str) -> Vec<u8> {
    json!({"metadata": {
        "uid": uid,
        "ownerReferences": [{"$patch": "delete", "uid": owner_uid}],
        "$deleteFromPrimitiveList/finalizers": [finalizer],
    }})
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> OwnerReference {
        OwnerReference { api_version: "batch/v1".into(), kind: "Job".into(), name: "j".into(), uid: "ju".into() }
    }

    fn body(template: Value, indexed: bool) -> Value {
        let (text, owner) = (template.to_string(), owner());
        let index = |yes: bool| if yes { vec![("index", "3".to_owned())] } else { Vec::new() };
        let new = NewPod {
            template_json: &text,
            generate_name: "j-",
            owner: &owner,
            finalizer: "f/t",
            labels: index(indexed),
            annotations: index(indexed),
            hostname: indexed.then_some("j-3"),
            variable: indexed.then(|| ("INDEX", "metadata.labels['index']".to_owned())),
        };
        serde_json::from_slice(&pod_body(&new).unwrap()).unwrap()
    }

    #[test]
    fn a_pod_has_what_its_template_says_and_its_job_and_no_other_metadata() {
        let template = json!({"metadata": {"name": "x", "ownerReferences": [{}], "labels": {"a": "b"}, "finalizers": ["o/o"]},
            "spec": {"unknown": [1, {"deep": null}]}});
        let reference = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "ju", "controller": true,
            "blockOwnerDeletion": true});
        assert_eq!(
            body(template, false),
            json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"generateName": "j-", "labels": {"a": "b"}, "annotations": {}, "finalizers": ["o/o", "f/t"],
                    "ownerReferences": [reference]},
                "spec": {"unknown": [1, {"deep": null}]}})
        );
        let twice = body(json!({"metadata": {"finalizers": ["f/t"]}}), false);
        assert_eq!(twice["metadata"]["finalizers"], json!(["f/t"]));
    }

    #[test]
    fn an_index_overrides_all_but_a_variable_that_is_there() {
        let template = json!({"metadata": {"annotations": {"index": "old", "k": "v"}}, "spec": {"hostname": "old",
            "initContainers": [{"name": "i"}],
            "containers": [{"name": "a", "env": null}, {"name": "b", "env": [{"name": "INDEX", "value": "mine"}]}]}});
        let body = body(template, true);
        assert_eq!(body["metadata"]["annotations"], json!({"index": "3", "k": "v"}));
        assert_eq!((&body["metadata"]["labels"]["index"], &body["spec"]["hostname"]), (&json!("3"), &json!("j-3")));
        let added = json!([{"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['index']"}}}]);
        assert_eq!(
            (&body["spec"]["initContainers"][0]["env"], &body["spec"]["containers"][0]["env"]),
            (&added, &added)
        );
        assert_eq!(body["spec"]["containers"][1]["env"], json!([{"name": "INDEX", "value": "mine"}]));
    }

    #[test]
    fn patches_name_the_pod_and_touch_one_reference_and_one_finalizer() {
        let read = |patch: Vec<u8>| serde_json::from_slice::<Value>(&patch).unwrap()["metadata"].clone();
        assert_eq!(read(untrack_patch("f/t")), json!({"$deleteFromPrimitiveList/finalizers": ["f/t"]}));
        let adopted = read(adopt_patch(&owner(), "pu", "f/t"));
        assert_eq!((&adopted["uid"], &adopted["finalizers"]), (&json!("pu"), &json!(["f/t"])));
        assert_eq!(adopted["ownerReferences"][0]["controller"], true);
        assert_eq!(
            read(release_patch("ju", "pu", "f/t")),
            json!({"uid": "pu", "ownerReferences": [{"$patch": "delete", "uid": "ju"}],
                "$deleteFromPrimitiveList/finalizers": ["f/t"]})
        );
    }
}
