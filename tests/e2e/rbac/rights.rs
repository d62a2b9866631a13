//! The rights that `deploy/install.yaml` grants to the controllers, one by one.

use std::fmt;

use anyhow::ensure;
use http::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, request};
use crate::plane::{Plane, documents};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// One verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Right {
    pub(super) group: String,
    /// With its subresource.
    pub(super) resource: String,
    pub(super) verb: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.verb, self.group, self.resource)
    }
}

impl Right {
    /// What the server says to whoever lacks it; as it stands in a log of JSON lines.
    pub(super) fn refusal(&self) -> String {
        if self.resource.ends_with("/finalizers") {
            // The admission plugin's words.
            return "cannot set blockOwnerDeletion".to_owned();
        }
        let Self { group, resource, verb } = self;
        format!(r#"cannot {verb} resource \"{resource}\" in API group \"{group}\""#)
    }
}

/// The roles bound to the controllers' service account.
pub(super) struct Roles {
    /// `system:serviceaccount:NAMESPACE:NAME`.
    user: String,
    namespace: String,
    roles: Vec<Value>,
}

impl Roles {
    pub(super) fn of_the_manifest() -> Self {
        let all = documents();
        let deployment = all.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let namespace = text(&deployment["metadata"]["namespace"]);
        let account = text(&deployment["spec"]["template"]["spec"]["serviceAccountName"]);
        let subject = json!({"kind": "ServiceAccount", "name": account, "namespace": namespace});
        let ours =
            |binding: &&Value| binding["subjects"].as_array().is_some_and(|subjects| subjects.contains(&subject));
        let role_of = |binding: &Value| {
            let named = |object: &&Value| {
                object["kind"] == binding["roleRef"]["kind"] && object["metadata"]["name"] == binding["roleRef"]["name"]
            };
            all.iter().find(named).expect("a binding names a role of the manifest").clone()
        };
        let roles = all.iter().filter(ours).map(role_of).collect();
        Self { user: format!("system:serviceaccount:{namespace}:{account}"), namespace, roles }
    }

    /// Every right that is granted.
    pub(super) fn rights(&self) -> Vec<Right> {
        let rules = self.roles.iter().flat_map(|role| role["rules"].as_array().into_iter().flatten());
        rules.flat_map(|rule| rights_of(rule).map(|(right, _)| right)).collect()
    }

    /// Writes the roles, less `taken`, and waits until the server goes by them.
    pub(super) async fn grant_all_but(&self, plane: &Plane, taken: Option<&Right>) -> anyhow::Result<()> {
        let client = plane.client();
        for role in &self.roles {
            let rules = role["rules"].as_array().into_iter().flatten().flat_map(rights_of);
            let kept: Vec<Value> = rules.filter(|(right, _)| Some(right) != taken).map(|(_, rule)| rule).collect();
            let metadata = &role["metadata"];
            let path = match metadata["namespace"].as_str() {
                Some(namespace) => format!("{RBAC}/namespaces/{namespace}/roles/{}", text(&metadata["name"])),
                None => format!("{RBAC}/clusterroles/{}", text(&metadata["name"])),
            };
            let answer = request(&client, Method::PATCH, &path, &json!({"rules": kept})).await;
            ensure!(answer.is_ok(), "{path}: {answer:?}");
        }
        for right in self.rights() {
            let until = plane.clock().mono() + std::time::Duration::from_secs(20);
            while self.may(&client, &right).await? == (Some(&right) == taken) {
                ensure!(plane.clock().mono() < until, "the server does not go by the roles: {right}");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    /// Whether the server grants a right.
    async fn may(&self, client: &kube::Client, right: &Right) -> anyhow::Result<bool> {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
        let leases = resource == "leases";
        let attributes = json!({
            "group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb,
            // The Lease is granted by name, in its namespace.
            "namespace": if leases { &self.namespace } else { "" },
            "name": if leases && right.verb != "create" { "cronjob-controller" } else { "" },
        });
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": self.user, "resourceAttributes": attributes},
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = request(client, Method::POST, path, &review).await;
        let answer = answer.map_err(|status| anyhow::anyhow!("{path}: {status}"))?;
        Ok(answer["status"]["allowed"] == true)
    }
}

/// A rule as rules of one right each.
fn rights_of(rule: &Value) -> impl Iterator<Item = (Right, Value)> {
    let texts = |field: &str| rule[field].as_array().map_or(Vec::new(), |all| all.iter().map(text).collect());
    let (groups, resources, verbs): (Vec<String>, Vec<String>, Vec<String>) =
        (texts("apiGroups"), texts("resources"), texts("verbs"));
    let mut single = Vec::new();
    for group in &groups {
        for resource in &resources {
            for verb in &verbs {
                let mut alone = rule.clone();
                for (field, value) in [("apiGroups", group), ("resources", resource), ("verbs", verb)] {
                    alone[field] = json!([value]);
                }
                single.push((Right { group: group.clone(), resource: resource.clone(), verb: verb.clone() }, alone));
            }
        }
    }
    single.into_iter()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
