//! `meta.k8s.io/v1` Tables: the columns that `kubectl get` prints. The server formats the cells, ages included, so a watch
//! sends new ones with each change.

mod age;
mod cells;
mod pod;

use serde_json::{Value, json};

use super::resources::Resource;
use crate::model::WallTime;

pub use age::human_duration;

/// One column.
struct Column {
    name: &'static str,
    /// OpenAPI type of the cells.
    kind: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: "string", wide: false }
}

const fn number(name: &'static str) -> Column {
    Column { name, kind: "integer", wide: false }
}

const fn wide(name: &'static str) -> Column {
    Column { name, kind: "string", wide: true }
}

const NAME: Column = text("Name");
const AGE: Column = text("Age");
const CRONJOB: &[Column] = &[
    NAME,
    text("Schedule"),
    text("Timezone"),
    text("Suspend"),
    number("Active"),
    text("Last Schedule"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];
const JOB: &[Column] = &[
    NAME,
    text("Status"),
    text("Completions"),
    text("Duration"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];
const POD: &[Column] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];
const EVENT: &[Column] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name"),
];
const NAMESPACE: &[Column] = &[NAME, text("Status"), AGE];
const LEASE: &[Column] = &[NAME, text("Holder"), AGE];
// A number under the name of a text, as from the real server.
const CONFIG_MAP: &[Column] = &[NAME, text("Data"), AGE];
const SERVICE_ACCOUNT: &[Column] = &[NAME, number("Secrets"), AGE];
/// Columns of custom kinds may be dates.
const fn date(name: &'static str) -> Column {
    Column { name, kind: "date", wide: false }
}

const VOLCANO_JOB: &[Column] =
    &[NAME, text("STATUS"), number("minAvailable"), number("RUNNINGS"), date("AGE"), wide("QUEUE")];
const VOLCANO_OTHER: &[Column] = &[NAME, date("Age")];
const OTHER: &[Column] = &[NAME, AGE];

/// The columns of a kind and the function that fills a row.
type Layout = (&'static [Column], fn(&Value, WallTime) -> Vec<Value>);

fn layout(resource: &Resource) -> Layout {
    match (resource.group, resource.plural) {
        ("batch", "cronjobs") => (CRONJOB, cells::cronjob),
        ("batch", "jobs") => (JOB, cells::job),
        ("", "pods") => (POD, pod::pod),
        (_, "events") => (EVENT, cells::event),
        ("", "namespaces") => (NAMESPACE, cells::namespace),
        ("", "configmaps") => (CONFIG_MAP, cells::config_map),
        ("", "serviceaccounts") => (SERVICE_ACCOUNT, cells::service_account),
        ("coordination.k8s.io", "leases") => (LEASE, cells::lease),
        ("batch.volcano.sh", "jobs") => (VOLCANO_JOB, cells::volcano_job),
        ("batch.volcano.sh", _) => (VOLCANO_OTHER, cells::other),
        _ => (OTHER, cells::other),
    }
}

/// A Table of `objects`. `list_version` is the list's resourceVersion (of one object alone: its own). `include_object` is the
/// query parameter: `Metadata` (also when empty), `Object` (kubectl sorts by it) or `None`.
pub fn render(
    resource: &Resource,
    objects: &[Value],
    list_version: Option<&str>,
    include_object: &str,
    now: WallTime,
) -> Value {
    let (columns, fill) = layout(resource);
    let definitions: Vec<Value> = columns.iter().map(definition).collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({ "cells": fill(object, now), "object": included(object, include_object) });
            if let ("pods", Some(conditions)) = (resource.plural, pod::conditions(object)) {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    let own_version = || objects.first().and_then(|object| object.pointer("/metadata/resourceVersion")?.as_str());
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": { "resourceVersion": list_version.or_else(own_version).unwrap_or_default() },
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// The cells of an object that has nothing in it.
pub(super) fn empty_row(resource: &Resource) -> Vec<Value> {
    let (_, fill) = layout(resource);
    fill(&json!({}), WallTime::UNIX_EPOCH)
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.kind,
        "format": if column.name == "Name" { "name" } else { "" },
        "description": "",
        "priority": i32::from(column.wide),
    })
}

fn included(object: &Value, include_object: &str) -> Value {
    match include_object {
        "None" => Value::Null,
        "Object" => object.clone(),
        _ => json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_default(),
        }),
    }
}

#[cfg(test)]
mod tests;
