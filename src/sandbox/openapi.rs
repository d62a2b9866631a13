//! OpenAPI v3, as little as kubectl needs: that the server validates fields itself, and which kinds there are.
//!
//! `kubectl create` and `apply` look for one PATCH of the kind with a query parameter `fieldValidation` and then leave the
//! validation to the server. Schemas are opaque, so `kubectl explain` prints kind and version and no fields.

use serde_json::{Map, Value, json};

use super::discovery::{VERSION, members};
use super::resources::{RESOURCES, Resource};

/// `/openapi/v3`: where the document of each group and version is. Documents never change, so neither do their hashes.
pub(super) fn index() -> Value {
    let mut paths = Map::new();
    for resource in RESOURCES {
        let root = root(resource);
        let url = format!("/openapi/v3{root}?hash={VERSION}");
        paths.insert(root.trim_start_matches('/').to_owned(), json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// The document of one group and version; `None` if it is not served.
pub(super) fn document(group: &str, version: &str) -> Option<Value> {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for resource in members(group).filter(|resource| resource.version == version) {
        let kind = kind(resource);
        paths.insert(item_path(resource), item(resource, &kind));
        schemas.insert(schema_name(resource), schema(resource, &kind));
    }
    (!paths.is_empty()).then(|| {
        json!({
            "openapi": "3.0.0",
            "info": { "title": "Kubernetes", "version": VERSION },
            "paths": paths,
            "components": { "schemas": schemas },
        })
    })
}

fn root(resource: &Resource) -> String {
    if resource.group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{}", resource.api_version()) }
}

fn item_path(resource: &Resource) -> String {
    let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    format!("{}{namespace}/{}/{{name}}", root(resource), resource.plural)
}

fn kind(resource: &Resource) -> Value {
    json!({ "group": resource.group, "version": resource.version, "kind": resource.kind })
}

fn item(resource: &Resource, kind: &Value) -> Value {
    let query =
        |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "string", "uniqueItems": true } });
    let schema = json!({ "$ref": format!("#/components/schemas/{}", schema_name(resource)) });
    let ok = json!({ "200": { "description": "OK", "content": { "application/json": { "schema": schema } } } });
    json!({
        "get": {
            "operationId": format!("read{}", resource.kind),
            "responses": ok,
            "x-kubernetes-action": "get",
            "x-kubernetes-group-version-kind": kind,
        },
        "patch": {
            "operationId": format!("patch{}", resource.kind),
            "parameters": [query("dryRun"), query("fieldManager"), query("fieldValidation")],
            "responses": ok,
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": kind,
        },
    })
}

fn schema_name(resource: &Resource) -> String {
    let group = if resource.group.is_empty() { "core" } else { resource.group };
    format!("sandbox.{group}.{}.{}", resource.version, resource.kind)
}

fn schema(resource: &Resource, kind: &Value) -> Value {
    let opaque = |description: &str| json!({ "description": description, "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "description": format!("{}, as the cronjob-controller sandbox serves it. Its fields are those of the real API.", resource.kind),
        "type": "object",
        "properties": {
            "apiVersion": { "type": "string", "description": "Version of the form in which this object is written." },
            "kind": { "type": "string", "description": "What kind of object this is." },
            "metadata": opaque("Standard object metadata."),
            "spec": opaque("What is wanted."),
            "status": opaque("What is."),
        },
        "x-kubernetes-group-version-kind": [kind],
    })
}
