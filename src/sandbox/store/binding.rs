//! Pods come to nodes: what `POST pods/NAME/binding` of a scheduler does, for the one that is played here.

use serde_json::{Value, json};

use super::object::child_mut;
use super::{Store, meta};
use crate::model::WallTime;
use crate::sandbox::resources::find;

impl Store {
    /// Puts a Pod, by key and uid, on a node. Nothing happens to one that is gone, is going, has a node or gates.
    pub fn bind(&mut self, key: &str, uid: &str, node: &str, now: WallTime) {
        let Some(pods) = find("", "v1", "pods") else { return };
        let Some(pod) = self.collection(pods).and_then(|pods| pods.get(key)).cloned() else { return };
        let mut value = pod.value();
        let spec = &value["spec"];
        let placed = spec["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        let gated = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
        if *pod.uid != *uid || pod.deleting || placed || gated {
            return;
        }
        child_mut(&mut value, "spec").insert("nodeName".to_owned(), node.into());
        let conditions = child_mut(&mut value, "status").entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": Value::Null, "lastTransitionTime": meta::timestamp(now),
            }));
        }
        self.put(pods, pod.key.clone(), &value);
    }
}
