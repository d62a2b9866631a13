//! What a client asks before it asks for objects: health, version, discovery (aggregated and legacy), OpenAPI.

use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use super::openapi;
use super::resources::{RESOURCES, Resource};

/// The Kubernetes release whose behaviour the sandbox follows.
pub(super) const VERSION: &str = "v1.36.2";

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Answers a GET of `path`, or `None` if the path is none of this room's. `accept` is the request's `Accept` header; it
/// decides between aggregated discovery and the legacy one.
pub fn respond(path: &str, accept: &str) -> Option<Response<Vec<u8>>> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2;");
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Some(answer("text/plain; charset=utf-8", b"ok".to_vec())),
        ["version"] => Some(json_answer(&version())),
        ["api"] if aggregated => Some(aggregated_answer(&[""])),
        ["apis"] if aggregated => Some(aggregated_answer(&groups())),
        ["api"] => Some(json_answer(&json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        }))),
        ["apis"] => {
            let groups: Vec<Value> = groups().into_iter().map(legacy_group).collect();
            Some(json_answer(&json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })))
        }
        ["apis", group] => groups().contains(group).then(|| {
            let mut found = legacy_group(group);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            json_answer(&found)
        }),
        ["api", version] => legacy_resources("", version),
        ["apis", group, version] => legacy_resources(group, version),
        ["openapi", "v3"] => Some(json_answer(&openapi::index())),
        ["openapi", "v3", "api", version] => openapi::document("", version).map(|document| json_answer(&document)),
        ["openapi", "v3", "apis", group, version] => {
            openapi::document(group, version).map(|document| json_answer(&document))
        }
        _ => None,
    }
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": format!("{VERSION}+sandbox"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

/// The named groups, each once, in the order of the table.
fn groups() -> Vec<&'static str> {
    let mut groups = Vec::new();
    for resource in RESOURCES.iter().filter(|resource| !resource.group.is_empty()) {
        if !groups.contains(&resource.group) {
            groups.push(resource.group);
        }
    }
    groups
}

/// Resources of a group; each group here has one version.
pub(super) fn members(group: &str) -> impl Iterator<Item = &'static Resource> {
    RESOURCES.iter().filter(move |resource| resource.group == group)
}

fn version_of(group: &str) -> &'static str {
    members(group).next().map_or("v1", |resource| resource.version)
}

fn aggregated_answer(groups: &[&str]) -> Response<Vec<u8>> {
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let resources: Vec<Value> = members(group).map(aggregated_resource).collect();
            json!({
                "metadata": if group.is_empty() { json!({}) } else { json!({ "name": group }) },
                "versions": [{ "version": version_of(group), "resources": resources, "freshness": "Current" }],
            })
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    answer(AGGREGATED, list.to_string().into_bytes())
}

fn aggregated_resource(resource: &Resource) -> Value {
    // Group and version are left to the reader, who knows where it stands.
    let kind = json!({ "group": "", "version": "", "kind": resource.kind });
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|(name, verbs)| json!({ "subresource": name, "responseKind": kind, "verbs": verbs }))
        .collect();
    let mut found = json!({
        "resource": resource.plural,
        "responseKind": kind,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": verbs(resource),
    });
    put_names(&mut found, resource);
    if !subresources.is_empty() {
        found["subresources"] = subresources.into();
    }
    found
}

/// What a resource is also called; nothing is said of what it has not.
fn put_names(found: &mut Value, resource: &Resource) {
    for (field, names) in [("shortNames", resource.short_names), ("categories", resource.categories)] {
        if !names.is_empty() {
            found[field] = names.into();
        }
    }
}

/// Namespaces are not deleted together; of custom kinds the server names the verbs in another order.
fn verbs(resource: &Resource) -> Vec<&'static str> {
    if resource.custom {
        return vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    }
    VERBS.into_iter().filter(|verb| *verb != "deletecollection" || resource.plural != "namespaces").collect()
}

fn subresources(resource: &Resource) -> Vec<(&'static str, &'static [&'static str])> {
    let mut found: Vec<(&str, &[&str])> = Vec::new();
    if (resource.group, resource.plural) == ("", "pods") {
        found.push(("log", &["get"]));
    }
    if resource.status {
        found.push(("status", &["get", "patch", "update"]));
    }
    found
}

fn legacy_group(group: &str) -> Value {
    let version = version_of(group);
    let version = json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    json!({ "name": group, "versions": [version], "preferredVersion": version })
}

fn legacy_resources(group: &str, version: &str) -> Option<Response<Vec<u8>>> {
    let first = members(group).find(|resource| resource.version == version)?;
    let mut resources = Vec::new();
    for resource in members(group) {
        let mut found = json!({
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": verbs(resource),
        });
        put_names(&mut found, resource);
        resources.push(found);
        for (name, verbs) in subresources(resource) {
            resources.push(json!({
                "name": format!("{}/{name}", resource.plural),
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                "verbs": verbs,
            }));
        }
    }
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": first.api_version(),
        "resources": resources,
    });
    // The core's own list does not say.
    if !group.is_empty() {
        list["apiVersion"] = "v1".into();
    }
    Some(json_answer(&list))
}

fn json_answer(body: &Value) -> Response<Vec<u8>> {
    answer("application/json", body.to_string().into_bytes())
}

fn answer(content_type: &'static str, body: Vec<u8>) -> Response<Vec<u8>> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECTL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

    fn body(path: &str, accept: &str) -> Value {
        serde_json::from_slice(respond(path, accept).unwrap().body()).unwrap()
    }

    #[test]
    fn aggregated_discovery_lists_every_group_under_its_own_media_type() {
        let response = respond("/apis", KUBECTL).unwrap();
        assert_eq!(response.headers()[header::CONTENT_TYPE], AGGREGATED);
        let list = body("/apis", KUBECTL);
        let names: Vec<&str> =
            list["items"].as_array().unwrap().iter().map(|group| group["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["events.k8s.io", "coordination.k8s.io", "batch", "batch.volcano.sh"]);
        let cronjobs = &list["items"][2]["versions"][0]["resources"][0];
        assert_eq!(cronjobs["shortNames"], json!(["cj"]));
        assert_eq!(cronjobs["subresources"][0]["subresource"], "status");
        assert_eq!(body("/api", KUBECTL)["items"][0]["metadata"], json!({}));
    }

    #[test]
    fn a_client_that_does_not_ask_for_it_gets_the_legacy_discovery() {
        assert_eq!(respond("/apis", "application/json").unwrap().headers()[header::CONTENT_TYPE], "application/json");
        assert_eq!(body("/apis", "application/json")["groups"][2]["preferredVersion"]["groupVersion"], "batch/v1");
        assert_eq!(body("/api", "")["versions"], json!(["v1"]));
        let names: Vec<Value> = body("/apis/batch.volcano.sh/v1alpha1", "")["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|resource| resource["name"].clone())
            .collect();
        assert_eq!(names, ["cronjobs", "cronjobs/status", "jobs", "jobs/status"]);
        assert_eq!(body("/api/v1", "")["groupVersion"], "v1");
    }

    #[test]
    fn health_and_version_are_there_and_other_paths_are_not_ours() {
        assert_eq!(respond("/readyz", "").unwrap().body(), b"ok");
        assert_eq!(body("/version", "")["minor"], "36");
        for path in
            ["/apis/apps/v1", "/apis/nope", "/api/v2", "/openapi/v2", "/openapi/v3/apis/nope/v1", "/metrics", "/"]
        {
            assert!(respond(path, "").is_none(), "{path}");
        }
    }

    #[test]
    fn the_openapi_documents_tell_kubectl_that_the_server_validates_fields() {
        let index = body("/openapi/v3", "");
        let url = index["paths"]["apis/batch/v1"]["serverRelativeURL"].as_str().unwrap();
        let path = url.split('?').next().unwrap();
        let document = body(path, "");
        let patch = &document["paths"]["/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "CronJob");
        let names: Vec<&Value> = patch["parameters"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
        assert!(names.contains(&&json!("fieldValidation")));
    }
}
