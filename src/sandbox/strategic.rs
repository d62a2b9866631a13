//! Strategic merge patches: `application/strategic-merge-patch+json`, what `kubectl apply`, `edit` and `patch` send for
//! built-in kinds.
//!
//! A list is merged by a key if the table below has it, by value if it is a set of texts, and replaced otherwise. Directives:
//! `$patch: replace|delete|merge`, `$retainKeys`, `$setElementOrder/LIST`, `$deleteFromPrimitiveList/LIST`.

use serde_json::{Map, Value};

/// Why a patch cannot be applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// An item of a keyed list without its key.
    #[error("map: {item} does not contain declared merge key: {key}")]
    MissingKey {
        /// The item, as Go prints it.
        item: String,
        /// The key it lacks.
        key: &'static str,
    },
    /// A `$patch` other than the three known ones.
    #[error("unknown patch type: {directive} in map: {map}")]
    Directive {
        /// The directive.
        directive: String,
        /// The map that it stands in, as Go prints it.
        map: String,
    },
    /// A directive whose value has the wrong shape.
    #[error("the value of {0} is malformed")]
    Malformed(String),
}

/// How a list is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lists {
    /// Items are objects, told apart by this field.
    Keyed(&'static str),
    /// Items are plain values, each at most once.
    Set,
    /// The patch's list takes the place of the old one.
    Atomic,
}

/// Lists that are merged: the field that holds the list's object (empty: any), the list, how.
const TABLE: &[(&str, &str, Lists)] = &[
    ("metadata", "ownerReferences", Lists::Keyed("uid")),
    ("metadata", "finalizers", Lists::Set),
    ("spec", "containers", Lists::Keyed("name")),
    ("spec", "initContainers", Lists::Keyed("name")),
    ("spec", "ephemeralContainers", Lists::Keyed("name")),
    ("spec", "volumes", Lists::Keyed("name")),
    ("spec", "imagePullSecrets", Lists::Keyed("name")),
    ("spec", "hostAliases", Lists::Keyed("ip")),
    ("spec", "topologySpreadConstraints", Lists::Keyed("topologyKey")),
    ("spec", "schedulingGates", Lists::Keyed("name")),
    ("spec", "resourceClaims", Lists::Keyed("name")),
    ("", "env", Lists::Keyed("name")),
    ("", "ports", Lists::Keyed("containerPort")),
    ("", "volumeMounts", Lists::Keyed("mountPath")),
    ("", "volumeDevices", Lists::Keyed("devicePath")),
    ("status", "conditions", Lists::Keyed("type")),
    ("status", "podIPs", Lists::Keyed("ip")),
    ("status", "hostIPs", Lists::Keyed("ip")),
    // A ServiceAccount's own lists stand at the root.
    ("root", "secrets", Lists::Keyed("name")),
    ("root", "imagePullSecrets", Lists::Keyed("name")),
];

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_VALUES: &str = "$deleteFromPrimitiveList/";

/// Applies `patch` to `original`.
///
/// # Errors
/// [`PatchError`]; `original` may then be changed in part, so the caller patches a copy.
pub fn apply(original: &mut Value, patch: &Value) -> Result<(), PatchError> {
    match patch {
        Value::Object(patch) => merge_object(original, patch, "root"),
        _ => Err(PatchError::Malformed("the patch".to_owned())),
    }
}

fn how(parent: &str, list: &str) -> Lists {
    let row = TABLE.iter().find(|(field, name, _)| *name == list && (field.is_empty() || *field == parent));
    row.map_or(Lists::Atomic, |(_, _, how)| *how)
}

/// Merges `patch` into the object at `target`, which stands in the field `parent`.
fn merge_object(target: &mut Value, patch: &Map<String, Value>, parent: &str) -> Result<(), PatchError> {
    match patch.get(PATCH) {
        None => {}
        Some(Value::String(directive)) if directive == "merge" => {}
        Some(Value::String(directive)) if directive == "replace" => {
            let mut fields = patch.clone();
            fields.remove(PATCH);
            *target = Value::Object(fields);
            return Ok(());
        }
        Some(Value::String(directive)) if directive == "delete" => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        Some(other) => {
            let map = go_text(&Value::Object(patch.clone()));
            return Err(PatchError::Directive { directive: go_text(other), map });
        }
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return Ok(()) };
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        let keys = keys.as_array().ok_or_else(|| PatchError::Malformed(RETAIN_KEYS.to_owned()))?;
        fields.retain(|name, _| keys.iter().any(|key| key == name));
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix(DELETE_VALUES) {
            delete_values(fields, list, value)?;
        }
    }
    for (name, value) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        let order = patch.get(&format!("{SET_ORDER}{name}"));
        merge_field(fields, name, value, order, parent)?;
    }
    // An order may come without items: then it only sorts.
    for (name, order) in patch.iter().filter_map(|(name, order)| Some((name.strip_prefix(SET_ORDER)?, order))) {
        if !patch.contains_key(name)
            && let Some(Value::Array(items)) = fields.get_mut(name)
        {
            sort(items, None, order, how(parent, name))?;
        }
    }
    Ok(())
}

fn delete_values(fields: &mut Map<String, Value>, list: &str, values: &Value) -> Result<(), PatchError> {
    let values = values.as_array().ok_or_else(|| PatchError::Malformed(format!("{DELETE_VALUES}{list}")))?;
    if let Some(Value::Array(items)) = fields.get_mut(list) {
        items.retain(|item| !values.contains(item));
    }
    Ok(())
}

fn merge_field(
    fields: &mut Map<String, Value>,
    name: &str,
    patch: &Value,
    order: Option<&Value>,
    parent: &str,
) -> Result<(), PatchError> {
    match (fields.get_mut(name), patch) {
        (_, Value::Null) => {
            fields.remove(name);
        }
        (Some(target @ Value::Object(_)), Value::Object(patch)) => merge_object(target, patch, name)?,
        (None, Value::Object(patch)) => {
            let mut fresh = Value::Object(Map::new());
            merge_object(&mut fresh, patch, name)?;
            fields.insert(name.to_owned(), fresh);
        }
        (Some(Value::Array(items)), Value::Array(patch)) => merge_list(items, patch, order, how(parent, name))?,
        (None, Value::Array(patch)) => {
            let mut items = Vec::new();
            merge_list(&mut items, patch, order, how(parent, name))?;
            fields.insert(name.to_owned(), Value::Array(items));
        }
        (_, patch) => {
            fields.insert(name.to_owned(), patch.clone());
        }
    }
    Ok(())
}

fn merge_list(items: &mut Vec<Value>, patch: &[Value], order: Option<&Value>, how: Lists) -> Result<(), PatchError> {
    let server_order = items.clone();
    match how {
        Lists::Atomic => {
            *items = patch.to_vec();
            return Ok(());
        }
        Lists::Set => patch.iter().for_each(|value| {
            if !items.contains(value) {
                items.push(value.clone());
            }
        }),
        Lists::Keyed(key) => merge_keyed(items, patch, key)?,
    }
    // Without an order of its own the patch's items stand in the order of the patch.
    let patched = Value::from(patch);
    sort(items, Some(&server_order), order.unwrap_or(&patched), how)
}

fn merge_keyed(items: &mut Vec<Value>, patch: &[Value], key: &'static str) -> Result<(), PatchError> {
    let directive = |item: &Value| item.get(PATCH).and_then(Value::as_str).unwrap_or_default().to_owned();
    // A lone `$patch: replace` among the items replaces the list by the other items.
    if patch.iter().any(|item| directive(item) == "replace") {
        *items = patch.iter().filter(|item| directive(item) != "replace").cloned().collect();
        return Ok(());
    }
    for item in patch {
        let id = item.get(key).ok_or_else(|| PatchError::MissingKey { item: go_text(item), key })?;
        let position = items.iter().position(|old| old.get(key) == Some(id));
        if directive(item) == "delete" {
            items.retain(|old| old.get(key) != Some(id));
            continue;
        }
        let Value::Object(patch) = item else { continue };
        match position.and_then(|position| items.get_mut(position)) {
            Some(old) => merge_object(old, patch, "")?,
            None => {
                let mut fresh = Value::Object(Map::new());
                merge_object(&mut fresh, patch, "")?;
                items.push(fresh);
            }
        }
    }
    Ok(())
}

/// A value as Go prints one that it has decoded without a type: `map[a:1 b:[x y]]`.
pub(super) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut members: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}:{}", go_text(value))).collect();
            members.sort();
            format!("map[{}]", members.join(" "))
        }
        other => other.to_string(),
    }
}

/// Sorts a merged list: items named in `order` as it says, the server's others among them where they stood before.
fn sort(items: &mut Vec<Value>, before: Option<&[Value]>, order: &Value, how: Lists) -> Result<(), PatchError> {
    let order = order.as_array().ok_or_else(|| PatchError::Malformed(SET_ORDER.to_owned()))?;
    let same = |a: &Value, b: &Value| match how {
        Lists::Keyed(key) => a.get(key) == b.get(key),
        Lists::Set | Lists::Atomic => a == b,
    };
    let index_in = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let before = before.map_or_else(|| items.clone(), <[Value]>::to_vec);
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        items.drain(..).partition(|item| index_in(order, item).is_some());
    named.sort_by_key(|item| index_in(order, item));
    others.sort_by_key(|item| index_in(&before, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(named)) => match (index_in(&before, other), index_in(&before, named)) {
                (Some(other), Some(named)) => other < named,
                _ => false,
            },
        };
        items.extend(if other_first { others.next() } else { named.next() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(mut original: Value, patch: Value) -> Value {
        apply(&mut original, &patch).unwrap();
        original
    }

    fn pod(containers: Value) -> Value {
        json!({"spec": {"containers": containers}})
    }

    #[test]
    fn containers_are_merged_by_name_in_the_order_of_the_patch() {
        let out = patched(
            pod(
                json!([{"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "b:1"}]),
            ),
            pod(
                json!([{"name": "c", "image": "c:1"}, {"name": "a", "image": "a:2", "env": [{"name": "Y", "value": "2"}]}]),
            ),
        );
        assert_eq!(
            out,
            pod(json!([
                {"name": "c", "image": "c:1"},
                {"name": "a", "image": "a:2", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
                {"name": "b", "image": "b:1"}
            ]))
        );
    }

    #[test]
    fn an_element_order_sorts_what_it_names_and_leaves_the_servers_own_in_place() {
        let patch = json!({"spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "c", "image": "c:1"}]
        }});
        let out = patched(pod(json!([{"name": "sidecar"}, {"name": "a"}, {"name": "b"}])), patch);
        let names: Vec<&str> =
            out["spec"]["containers"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["c", "sidecar", "a", "b"]);
    }

    #[test]
    fn an_element_order_alone_only_sorts() {
        let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}});
        assert_eq!(
            patched(pod(json!([{"name": "a"}, {"name": "b"}])), patch),
            pod(json!([{"name": "b"}, {"name": "a"}]))
        );
    }

    #[test]
    fn delete_and_replace_work_on_items_and_on_objects() {
        let old = || pod(json!([{"name": "a"}, {"name": "b"}]));
        assert_eq!(patched(old(), pod(json!([{"name": "a", "$patch": "delete"}]))), pod(json!([{"name": "b"}])));
        assert_eq!(patched(old(), pod(json!([{"name": "z"}, {"$patch": "replace"}]))), pod(json!([{"name": "z"}])));
        let labels = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
        assert_eq!(
            patched(labels.clone(), json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}})),
            json!({"metadata": {"labels": {"c": "3"}}})
        );
        assert_eq!(
            patched(labels, json!({"metadata": {"labels": {"$patch": "delete"}}})),
            json!({"metadata": {"labels": {}}})
        );
    }

    #[test]
    fn retained_keys_drop_the_other_sources_of_a_volume() {
        let patch = json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}});
        let old = json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}});
        assert_eq!(patched(old, patch), json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}));
    }

    #[test]
    fn finalizers_are_a_set_and_values_can_be_deleted_from_it() {
        let old = json!({"metadata": {"finalizers": ["a", "b"]}});
        assert_eq!(
            patched(old.clone(), json!({"metadata": {"finalizers": ["b", "c"]}})),
            json!({"metadata": {"finalizers": ["a", "b", "c"]}})
        );
        assert_eq!(
            patched(old, json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}})),
            json!({"metadata": {"finalizers": ["b"]}})
        );
    }

    #[test]
    fn null_deletes_and_other_lists_are_replaced() {
        let old = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"template": {"spec": {"containers": [{"name": "a", "args": ["x", "y"]}]}}}});
        let patch = json!({"metadata": {"labels": {"a": null}}, "spec": {"template": {"spec": {"containers": [{"name": "a", "args": ["z"]}]}}}});
        assert_eq!(
            patched(old, patch),
            json!({"metadata": {"labels": {"b": "2"}}, "spec": {"template": {"spec": {"containers": [{"name": "a", "args": ["z"]}]}}}})
        );
    }

    #[test]
    fn nulls_and_directives_do_not_reach_the_object_where_nothing_stood_before() {
        let patch = json!({"metadata": {"annotations": {"a": "1", "b": null}}, "spec": {"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a", "$retainKeys": ["name"]}]}});
        assert_eq!(
            patched(json!({}), patch),
            json!({"metadata": {"annotations": {"a": "1"}}, "spec": {"containers": [{"name": "a"}]}})
        );
    }

    #[test]
    fn malformed_patches_are_errors() {
        let mut old = pod(json!([{"name": "a"}]));
        assert_eq!(
            apply(&mut old, &pod(json!([{"image": "x"}]))).unwrap_err().to_string(),
            "map: map[image:x] does not contain declared merge key: name"
        );
        assert!(matches!(apply(&mut old, &json!({"spec": {"$patch": "drop"}})), Err(PatchError::Directive { .. })));
        assert!(matches!(apply(&mut old, &json!([])), Err(PatchError::Malformed(_))));
    }
}
