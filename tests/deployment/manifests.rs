//! The manifests by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use clap::CommandFactory;
use cronjob_controller::cli::Args;
use serde_json::{Value, json};

use crate::chart::takes_its_flags;
use crate::objects::{
    NAMESPACE, Right, files, installed, kustomized, map, name, names, object, parse, read, rights, root, template,
    text, texts,
};
use crate::support::binaries::find;

const OVERLAYS: [&str; 3] = ["default", "ha", "demo"];
/// The labels last, so that they reach what the others add.
const COMPONENTS: [&str; 7] = ["apf", "jobs", "networkpolicy", "pdb", "prometheus", "volcano", "labels"];

#[test]
fn what_is_made_of_other_files_is_up_to_date() {
    let Some(kubectl) = find("what_is_made_of_other_files_is_up_to_date", "kubectl") else { return };
    let output = Command::new(root().join("deploy/render")).arg("--check").env("KUBECTL", kubectl).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_shadow_may_read_and_nothing_else() {
    let Some(objects) = kustomized("the_shadow_may_read_and_nothing_else", "deploy/kustomize/overlays/shadow") else {
        return;
    };
    let kinds: Vec<&str> = objects.iter().map(|object| text(&object["kind"])).collect();
    assert_eq!(
        kinds,
        ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service", "Deployment"],
        "{:?}",
        names(&objects)
    );
    let rules = object(&objects, "ClusterRole/cronjob-controller-shadow")["rules"].as_array().unwrap();
    assert!(rules.iter().all(|rule| rule["verbs"] == json!(["get", "list", "watch"])), "{rules:?}");
    let pod = &object(&objects, "Deployment/cronjob-controller-shadow")["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "cronjob-controller-shadow");
    assert!(pod["containers"][0]["args"].as_array().unwrap().contains(&json!("--shadow")));
}

#[test]
fn every_overlay_and_every_component_builds() {
    let test = "every_overlay_and_every_component_builds";
    for overlay in OVERLAYS {
        let Some(objects) = kustomized(test, &format!("deploy/kustomize/overlays/{overlay}")) else { return };
        let replicas = &object(&objects, "Deployment/cronjob-controller")["spec"]["replicas"];
        let budget = names(&objects).contains("PodDisruptionBudget/cronjob-controller");
        assert_eq!(budget, replicas.as_i64() > Some(1), "{overlay}: a budget with {replicas} replicas");
        selectors_meet_the_pods(&objects);
        takes_its_flags(&objects);
    }
    let listed: BTreeSet<String> = files("deploy/kustomize/components", "yaml")
        .iter()
        .filter_map(|path| path.parent()?.file_name()?.to_str().map(str::to_owned))
        .collect();
    assert_eq!(listed, COMPONENTS.map(str::to_owned).into());
    let Some(objects) = all_components(test) else { return };
    selectors_meet_the_pods(&objects);
    for kind in ["FlowSchema", "NetworkPolicy", "PodDisruptionBudget", "PrometheusRule", "ServiceMonitor"] {
        assert!(objects.iter().any(|object| object["kind"] == kind), "{kind} in {:?}", names(&objects));
    }
}

/// The base with every component.
pub(crate) fn all_components(test: &str) -> Option<Vec<Value>> {
    overlaid(test, "base", &COMPONENTS, json!({}))
}

/// An overlay of somebody's own over one of ours with these components and fields, built in a folder of its own.
pub(crate) fn overlaid(test: &str, below: &str, components: &[&str], fields: Value) -> Option<Vec<Value>> {
    let folder = tempfile::Builder::new().prefix("overlay-").tempdir_in(root().join("target")).unwrap();
    let components: Vec<String> =
        components.iter().map(|component| format!("../../deploy/kustomize/components/{component}")).collect();
    let mut kustomization = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [format!("../../deploy/kustomize/{below}")], "components": components,
    });
    kustomization.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    std::fs::write(folder.path().join("kustomization.yaml"), kustomization.to_string()).unwrap();
    kustomized(test, folder.path().to_str().unwrap())
}

/// Every value of a field `namespace`, however deep.
fn namespaces(value: &Value, into: &mut BTreeSet<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        if key == "namespace" {
            into.insert(value.to_string());
        }
        namespaces(value, into);
    }
    value.as_array().into_iter().flatten().for_each(|item| namespaces(item, into));
}

#[test]
fn an_overlay_in_another_namespace_takes_everything_with_it() {
    let test = "an_overlay_in_another_namespace_takes_everything_with_it";
    for (below, components) in [
        ("base", &COMPONENTS[..]),
        ("overlays/default", &[]),
        ("overlays/ha", &["prometheus", "networkpolicy"]),
        ("overlays/demo/controller", &["apf"]),
        ("overlays/shadow", &[]),
    ] {
        let Some(objects) = overlaid(test, below, components, json!({"namespace": "platform", "namePrefix": "my-"}))
        else {
            return;
        };
        let mut seen = BTreeSet::new();
        objects.iter().for_each(|object| namespaces(object, &mut seen));
        assert_eq!(seen, ["\"platform\"".to_owned()].into(), "{below}");
        assert!(!json!(objects).to_string().contains(NAMESPACE), "{below} names {NAMESPACE}");
        let pods = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let account = json!({"name": pods["spec"]["template"]["spec"]["serviceAccountName"], "namespace": "platform"});
        assert!(names(&objects).contains(&format!("ServiceAccount/{}", text(&account["name"]))), "{below}");
        for object in &objects {
            let subject = match text(&object["kind"]) {
                "ClusterRoleBinding" | "RoleBinding" => &object["subjects"][0],
                "FlowSchema" => &object["spec"]["rules"][0]["subjects"][0]["serviceAccount"],
                _ => continue,
            };
            let named = json!({"name": subject["name"], "namespace": subject["namespace"]});
            assert_eq!(named, account, "{below}: {}", name(object));
        }
    }
}

/// Everything that selects pods, or the Service, by labels finds those of the Deployment.
fn selectors_meet_the_pods(objects: &[Value]) {
    let template = template(objects);
    let pods = map(&template["metadata"]["labels"]);
    let meets = |what: &str, selector: &Value, labels: &BTreeMap<String, String>| {
        let selector = map(selector);
        assert!(!selector.is_empty(), "{what} selects everything");
        assert!(
            selector.iter().all(|(key, value)| labels.get(key) == Some(value)),
            "{what}: {selector:?} in {labels:?}"
        );
    };
    for constraint in template["spec"]["topologySpreadConstraints"].as_array().unwrap() {
        meets("spread", &constraint["labelSelector"]["matchLabels"], &pods);
    }
    for object in objects {
        let spec = &object["spec"];
        match text(&object["kind"]) {
            "Deployment" | "PodDisruptionBudget" => meets(&name(object), &spec["selector"]["matchLabels"], &pods),
            "Service" => meets("Service", &spec["selector"], &pods),
            "NetworkPolicy" => meets("NetworkPolicy", &spec["podSelector"]["matchLabels"], &pods),
            "ServiceMonitor" => {
                let service = objects.iter().find(|object| object["kind"] == "Service").unwrap();
                meets("ServiceMonitor", &spec["selector"]["matchLabels"], &map(&service["metadata"]["labels"]));
            }
            _ => {}
        }
    }
}

#[test]
fn the_roles_grant_what_is_used_and_nothing_else() {
    let mut expected = BTreeSet::new();
    let mut grant = |role: &str, group: &str, resource: &str, verbs: &[&str]| {
        let right = |verb: &&str| (role.to_owned(), group.to_owned(), resource.to_owned(), (*verb).to_owned());
        expected.extend(verbs.iter().map(right));
    };
    for (role, group) in
        [("ClusterRole/cronjob-controller", "batch"), ("ClusterRole/cronjob-controller-volcano", "batch.volcano.sh")]
    {
        grant(role, group, "cronjobs", &["get", "list", "watch"]);
        grant(role, group, "cronjobs/status", &["patch"]);
        grant(role, group, "cronjobs/finalizers", &["update"]);
        grant(role, group, "jobs", &["get", "list", "watch", "create", "delete"]);
    }
    grant("ClusterRole/cronjob-controller", "", "events", &["create", "patch"]);
    let election = "Role/cronjob-controller-leader-election";
    grant(election, "coordination.k8s.io", "leases", &["create"]);
    grant(election, "coordination.k8s.io", "leases/cronjob-controller", &["get", "watch", "update"]);
    let auth = "ClusterRole/cronjob-controller-metrics-auth";
    grant(auth, "authentication.k8s.io", "tokenreviews", &["create"]);
    grant(auth, "authorization.k8s.io", "subjectaccessreviews", &["create"]);
    grant("ClusterRole/cronjob-controller-metrics-reader", "", "/metrics", &["get"]);
    for page in ["/statusz", "/flagz"] {
        grant("ClusterRole/cronjob-controller-status-reader", "", page, &["get"]);
    }
    assert_eq!(rights(&installed()), expected);
}

#[test]
fn each_right_stands_in_docs_with_its_reason() {
    let table = read("docs/operations.md");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('|').map(str::trim).collect()).collect();
    let explains = |(_, group, resource, verb): &Right| {
        let group = if group.is_empty() && !resource.starts_with('/') { "core" } else { group };
        rows.iter().any(|row| match row[..] {
            ["", groups, resources, verbs, why, ""] => {
                let lists = |cell: &str, item: &str| cell.split(',').any(|one| one.trim().trim_matches('`') == item);
                lists(groups, group) && lists(resources, resource) && lists(verbs, verb) && !why.is_empty()
            }
            _ => false,
        })
    };
    let silent: Vec<Right> = rights(&installed()).into_iter().filter(|right| !explains(right)).collect();
    assert!(silent.is_empty(), "docs/operations.md does not say what these are for: {silent:#?}");
}

#[test]
fn the_roles_are_bound_to_the_service_account_of_the_pods() {
    let objects = installed();
    let account = &template(&objects)["spec"]["serviceAccountName"];
    let mut bound = BTreeSet::new();
    for binding in objects.iter().filter(|object| text(&object["kind"]).ends_with("Binding")) {
        let subject = json!([{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]);
        assert_eq!(binding["subjects"], subject, "{}", name(binding));
        bound.insert(format!("{}/{}", text(&binding["roleRef"]["kind"]), text(&binding["roleRef"]["name"])));
    }
    // Bound by whoever scrapes, or looks inside.
    bound.extend(["metrics", "status"].map(|what| format!("ClusterRole/cronjob-controller-{what}-reader")));
    let roles = objects.iter().filter(|object| text(&object["kind"]).ends_with("Role")).map(name).collect();
    assert_eq!(bound, roles);
}

#[test]
fn the_lease_has_priority_in_the_namespace_of_the_pods() {
    let objects = installed();
    let rule = &object(&objects, "FlowSchema/cronjob-controller-leader-election")["spec"]["rules"][0];
    let account = &rule["subjects"][0]["serviceAccount"];
    assert_eq!(account, &json!({"name": template(&objects)["spec"]["serviceAccountName"], "namespace": NAMESPACE}));
    assert_eq!(rule["resourceRules"][0]["namespaces"], json!(["*"]));
    let of_lease: BTreeSet<String> =
        rights(&objects).into_iter().filter(|right| right.2.starts_with("leases")).map(|right| right.3).collect();
    assert_eq!(texts(&rule["resourceRules"][0]["verbs"]).into_iter().collect::<BTreeSet<_>>(), of_lease);
}

#[test]
fn the_pod_meets_the_restricted_profile() {
    let objects = installed();
    let labels = &object(&objects, "Namespace/cronjob-controller-system")["metadata"]["labels"];
    for mode in ["enforce", "audit", "warn"] {
        assert_eq!(labels[format!("pod-security.kubernetes.io/{mode}")], "restricted");
    }
    let pod = &template(&objects)["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"], json!({"type": "RuntimeDefault"}));
    assert!(pod["securityContext"]["runAsUser"].as_i64() > Some(0));
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
    }
    let image = read("deploy/Dockerfile");
    let user = format!("USER {}:{}", pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]);
    assert!(image.lines().any(|line| line == user), "the image says another user than {user}");
}

#[test]
fn ports_probes_and_grace_of_the_pod_fit_the_flags() {
    let objects = installed();
    let pod = &template(&objects)["spec"];
    let container = &pod["containers"][0];
    let command = Args::command();
    let run = command.find_subcommand("run").unwrap();
    let given = texts(&container["args"]);
    let flag = |name: &str| -> String {
        let given = given.iter().find_map(|arg| arg.strip_prefix(&format!("--{name}=")).map(str::to_owned));
        let argument = run.get_arguments().find(|argument| argument.get_long() == Some(name)).unwrap();
        given.unwrap_or_else(|| argument.get_default_values()[0].to_str().unwrap().to_owned())
    };
    let ports: BTreeMap<&str, String> = container["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| (text(&port["name"]), format!(":{}", port["containerPort"])))
        .collect();
    let flags = [("metrics", flag("metrics-bind-address")), ("probes", flag("health-probe-bind-address"))].into();
    assert_eq!(ports, flags);
    assert_eq!(container["livenessProbe"]["httpGet"], json!({"path": "/livez", "port": "probes"}));
    assert_eq!(container["readinessProbe"]["httpGet"], json!({"path": "/readyz", "port": "probes"}));
    let budget_s: i64 = flag("shutdown-budget").trim_end_matches('s').parse().unwrap();
    let grace_s = pod["terminationGracePeriodSeconds"].as_i64().unwrap();
    assert!(grace_s >= budget_s + 5, "{grace_s} s of grace for a budget of {budget_s} s");
}

#[test]
fn the_pods_container_of_kubectl_and_its_token_are_named() {
    let objects = installed();
    let template = template(&objects);
    let default = &template["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"];
    assert_eq!(default, &template["spec"]["containers"][0]["name"]);
    assert_eq!(template["spec"]["automountServiceAccountToken"], true);
    assert_eq!(object(&objects, "ServiceAccount/cronjob-controller")["automountServiceAccountToken"], false);
}

#[test]
fn one_version_is_named_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let objects = installed();
    for object in &objects {
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/version"], version, "{}", name(object));
    }
    assert_eq!(template(&objects)["spec"]["containers"][0]["image"], format!("cronjob-controller:{version}"));
    let chart = &parse(&read("deploy/helm/cronjob-controller/Chart.yaml"))[0];
    assert_eq!((text(&chart["version"]), text(&chart["appVersion"])), (version, version));
}
