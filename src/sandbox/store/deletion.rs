//! What a delete makes of one object, before anything is written: whether it goes or stays marked, and for how long.
//!
//! The rules are those of the real server's generic registry and of its strategy for Pods. Pods alone have a time of grace;
//! every other kind goes at once unless a finalizer holds it.

use serde_json::Value;

use super::meta;
use super::object::{Object, child_mut, metadata_mut};
use crate::model::WallTime;
use crate::sandbox::resources::Resource;

/// Finalizer of a deletion that leaves dependents behind without their owner.
pub(super) const ORPHAN: &str = "orphan";
/// Finalizer of a deletion that waits for dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// What becomes of dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Propagation {
    /// They are collected afterwards.
    Background,
    /// They are collected before.
    Foreground,
    /// They stay and lose the reference.
    Orphan,
}

impl Propagation {
    /// What a delete that does not say means: what an earlier one decided, else `otherwise`.
    pub(super) fn standing(object: &Object, otherwise: Self) -> Self {
        let value = if object.finalizers { object.value() } else { Value::Null };
        match meta::finalizers(&value).iter().find(|finalizer| matches!(**finalizer, ORPHAN | FOREGROUND)) {
            Some(&ORPHAN) => Self::Orphan,
            Some(_) => Self::Foreground,
            None => otherwise,
        }
    }

    /// What it is if neither the delete nor the object says: batch/v1 Jobs orphan their Pods, for compatibility; everything else
    /// collects in the background.
    pub(super) fn default_of(resource: &Resource) -> Self {
        match (resource.group, resource.plural) {
            ("batch", "jobs") => Self::Orphan,
            _ => Self::Background,
        }
    }
}

/// What a delete makes of an object.
pub(super) enum Deletion {
    /// It stays, in this version.
    Marks(Value),
    /// It goes; of a kind with grace after this version.
    Removes(Option<Value>),
}

/// What deleting `object` means at `now`. `grace_s` is what the request asks for; only Pods have a default of their own.
pub(super) fn decide(
    resource: &Resource,
    object: &Object,
    propagation: Propagation,
    grace_s: Option<i64>,
    now: WallTime,
) -> Deletion {
    let graceful = (resource.group, resource.plural) == ("", "pods");
    if propagation == Propagation::Background && !object.finalizers && !graceful {
        // The common case, without decoding the object.
        return Deletion::Removes(None);
    }
    let mut value = object.value();
    let grace = if graceful { grant(&mut value, grace_s, now) } else { Grace::None };
    if grace == Grace::Running {
        return Deletion::Marks(value);
    }
    set_collector_finalizer(&mut value, propagation);
    let held = !meta::nothing_holds(resource, &value);
    match grace {
        Grace::Granted(0) if !held => Deletion::Removes(Some(value)),
        Grace::Granted(_) => Deletion::Marks(value),
        _ if !held => Deletion::Removes(None),
        _ => {
            mark(resource, &mut value, object.deleting, now);
            Deletion::Marks(value)
        }
    }
}

/// How a delete and the grace of a Pod stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grace {
    /// So many seconds from now on, which the object says now.
    Granted(i64),
    /// An earlier delete granted less than this one asks for.
    Running,
    /// None, or over.
    None,
}

fn grant(pod: &mut Value, asked_s: Option<i64>, now: WallTime) -> Grace {
    let asked_s = asked_s.map(|period| if period < 0 { 1 } else { period });
    let metadata = &pod["metadata"];
    let Some(due) = metadata["deletionTimestamp"].as_str() else {
        let period = first_grace(pod, asked_s);
        write_grace(pod, now + chrono::TimeDelta::seconds(period), period);
        meta::bump_generation(pod);
        return Grace::Granted(period);
    };
    // It may only become shorter.
    match (metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default(), asked_s) {
        (0, _) => Grace::None,
        (standing, Some(period)) if period < standing => {
            let due = chrono::DateTime::parse_from_rfc3339(due).map_or(now, |due| due.to_utc());
            let earlier = due - chrono::TimeDelta::seconds(standing - period);
            // What is over already still is a deletion with grace for whoever asked for one.
            let period = if earlier < now { period.min(1) } else { period };
            write_grace(pod, earlier.max(now), period);
            Grace::Granted(period)
        }
        _ => Grace::Running,
    }
}

/// Nothing runs, or runs any more, where there is no node or the end is known.
fn first_grace(pod: &Value, asked_s: Option<i64>) -> i64 {
    let over = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) || over {
        return 0;
    }
    let period = asked_s.or_else(|| pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or_default();
    if period < 0 { 1 } else { period }
}

fn write_grace(value: &mut Value, due: WallTime, period_s: i64) {
    let metadata = metadata_mut(value);
    metadata.insert("deletionTimestamp".to_owned(), meta::timestamp(due).into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), period_s.into());
}

/// Marks an object that finalizers hold.
fn mark(resource: &Resource, value: &mut Value, deleting: bool, now: WallTime) {
    if deleting {
        return;
    }
    if resource.plural == "namespaces" {
        metadata_mut(value).insert("deletionTimestamp".to_owned(), meta::timestamp(now).into());
        child_mut(value, "status").insert("phase".to_owned(), "Terminating".into());
    } else {
        write_grace(value, now, 0);
    }
    meta::bump_generation(value);
}

/// The finalizer by which the collector recognises the policy; background needs none.
fn set_collector_finalizer(value: &mut Value, propagation: Propagation) {
    let before = meta::finalizers(value);
    let mut wanted: Vec<String> = before
        .iter()
        .filter(|finalizer| !matches!(**finalizer, ORPHAN | FOREGROUND))
        .map(|f| (*f).to_owned())
        .collect();
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => wanted.push(FOREGROUND.to_owned()),
        Propagation::Orphan => wanted.push(ORPHAN.to_owned()),
    }
    if wanted != before {
        meta::set_finalizers(value, wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::resources;
    use chrono::TimeZone;
    use serde_json::json;

    fn noon() -> WallTime {
        chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap()
    }

    fn pod(metadata: Value, node: &str, phase: &str) -> Value {
        json!({"metadata": metadata, "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30}, "status": {"phase": phase}})
    }

    /// `(stays, deletionTimestamp, grace)` of a Pod that is deleted at noon.
    fn deleted(pod: &Value, asked_s: Option<i64>) -> (bool, String, Value) {
        let pods = resources::find("", "v1", "pods").unwrap();
        let object = Object::new(pods, "ns/p".into(), 1, pod);
        let (stays, value) = match decide(pods, &object, Propagation::Background, asked_s, noon()) {
            Deletion::Marks(value) => (true, value),
            Deletion::Removes(value) => (false, value.unwrap_or_default()),
        };
        let metadata = &value["metadata"];
        let due = metadata["deletionTimestamp"].as_str().unwrap_or_default().get(11..19).unwrap_or_default();
        (stays, due.to_owned(), metadata["deletionGracePeriodSeconds"].clone())
    }

    #[test]
    fn a_pod_has_the_grace_that_is_asked_for_where_something_runs() {
        for (node, phase, asked, expected) in [
            ("n", "Running", None, (true, "12:00:30", json!(30))),
            ("n", "Pending", Some(5), (true, "12:00:05", json!(5))),
            ("n", "Running", Some(-7), (true, "12:00:01", json!(1))),
            ("n", "Running", Some(0), (false, "12:00:00", json!(0))),
            ("", "Pending", Some(9), (false, "12:00:00", json!(0))),
            ("n", "Succeeded", None, (false, "12:00:00", json!(0))),
            ("n", "Failed", Some(9), (false, "12:00:00", json!(0))),
        ] {
            let told = deleted(&pod(json!({"generation": 1}), node, phase), asked);
            assert_eq!((told.0, told.1.as_str(), told.2), expected, "{node} {phase} {asked:?}");
        }
    }

    #[test]
    fn grace_only_becomes_shorter_and_finalizers_hold_past_its_end() {
        let going = |due: &str, grace: i64, finalizers: Value| {
            let at = format!("2026-03-08T{due}Z");
            pod(
                json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": grace, "finalizers": finalizers}),
                "n",
                "Running",
            )
        };
        let none = || json!([]);
        for (pod, asked, expected) in [
            (going("12:00:20", 30, none()), None, (true, "12:00:20", json!(30))),
            (going("12:00:20", 30, none()), Some(40), (true, "12:00:20", json!(30))),
            (going("12:00:20", 30, none()), Some(15), (true, "12:00:05", json!(15))),
            (going("12:00:20", 30, none()), Some(5), (true, "12:00:00", json!(1))),
            (going("12:00:20", 30, none()), Some(0), (false, "12:00:00", json!(0))),
            (going("12:00:00", 0, none()), None, (false, "", Value::Null)),
            (going("12:00:20", 30, json!(["a/b"])), Some(0), (true, "12:00:00", json!(0))),
            (going("12:00:00", 0, json!(["a/b"])), Some(0), (true, "12:00:00", json!(0))),
        ] {
            let told = deleted(&pod, asked);
            assert_eq!((told.0, told.1.as_str(), told.2), expected, "{asked:?} {pod}");
        }
    }
}
