//! Values of the chart that more than one object must follow, or that are refused because some object would not.

use serde_json::{Value, json};

use crate::chart::takes_its_flags;
use crate::objects::{CHART, NAMESPACE, charted, object, rights, run, template, text, texts};
use crate::support::binaries::find;

fn made(test: &str, values: &[&str]) -> Option<Vec<Value>> {
    charted(test, "cronjob-controller", values)
}

#[test]
fn role_and_binding_follow_the_lease() {
    let test = "role_and_binding_follow_the_lease";
    let moved = r#"config={"leaderElection":{"resourceName":"mine","resourceNamespace":"leases"}}"#;
    for (value, name, namespace) in [
        (moved, "mine", "leases"),
        (r#"config={"leaderElection":{"resourceName":"mine"}}"#, "mine", NAMESPACE),
        (r#"config={"leaderElection":{"resourceNamespace":"leases"}}"#, "cronjob-controller", "leases"),
        (r#"config={"leaderElection":{"resourceName":null}}"#, "cronjob-controller", NAMESPACE),
        (r#"config={"leaderElection":null}"#, "cronjob-controller", NAMESPACE),
    ] {
        let Some(objects) = made(test, &[value]) else { return };
        let role = object(&objects, "Role/cronjob-controller-leader-election");
        assert_eq!(role["metadata"]["namespace"], namespace, "{value}");
        assert_eq!(role["rules"][1]["resourceNames"], json!([name]), "{value}");
        let binding = object(&objects, "RoleBinding/cronjob-controller-leader-election");
        assert_eq!(binding["metadata"]["namespace"], namespace, "{value}");
        let account = json!([{"kind": "ServiceAccount", "name": "cronjob-controller", "namespace": NAMESPACE}]);
        assert_eq!(binding["subjects"], account, "{value}");
        let flow = object(&objects, "FlowSchema/cronjob-controller-leader-election");
        assert_eq!(flow["spec"]["rules"][0]["resourceRules"][0]["namespaces"], json!(["*"]), "{value}");
    }
}

#[test]
fn what_other_objects_would_not_follow_is_refused_with_the_way_that_works() {
    let Some(helm) = find("what_other_objects_would_not_follow_is_refused_with_the_way_that_works", "helm") else {
        return;
    };
    let flags = [
        ("metrics-bind-address", ":9443", "metrics.port"),
        ("metrics-secure", "false", "config.metrics.secure"),
        ("health-probe-bind-address", ":9081", "port 8081"),
        ("leader-elect", "false", "config.leaderElection.leaderElect"),
        ("leader-elect-resource-name", "mine", "config.leaderElection.resourceName"),
        ("leader-elect-resource-namespace", "leases", "config.leaderElection.resourceNamespace"),
        ("logging-format", "text", "logging.format"),
    ];
    let mut cases: Vec<(String, String, String)> = Vec::new();
    for (flag, value, instead) in flags {
        let variable = format!("CRONJOB_CONTROLLER_{}", flag.replace('-', "_").to_uppercase());
        let refused = |place: &str| format!("{place}: --{flag} cannot be set here");
        cases.push((format!(r#"extraArgs=["--{flag}={value}"]"#), refused("extraArgs"), instead.to_owned()));
        cases.push((
            format!(r#"extraEnv=[{{"name":"{variable}","value":"{value}"}}]"#),
            refused("extraEnv"),
            instead.to_owned(),
        ));
    }
    for (value, field, instead) in [
        (r#"config={"metrics":{"bindAddress":":9443"}}"#, "config.metrics.bindAddress", "metrics.port"),
        (r#"config={"health":{"bindAddress":"0"}}"#, "config.health.bindAddress", "port 8081"),
        ("metrics.port=8081", "metrics.port=8081", "take another"),
        (r#"config={"logging":{"format":"text"}}"#, "config.logging.format", "logging.format"),
        (r#"config={"leaderElection":{"leaderElect":false}}"#, "config.leaderElection.leaderElect", "replicaCount=1"),
    ] {
        cases.push((value.to_owned(), field.to_owned(), instead.to_owned()));
    }
    for (value, complaint, instead) in cases {
        let output = run(&helm, &["template", "x", CHART, "--kube-version=1.36.0", &format!("--set-json={value}")]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(&complaint) && said.contains(&instead), "{value}: {said}");
    }
}

#[test]
fn flags_that_only_begin_like_those_are_taken() {
    let test = "flags_that_only_begin_like_those_are_taken";
    let value = r#"extraArgs=["--leader-elect-lease-duration=30s","--controllers=*"]"#;
    let Some(objects) = made(test, &[value]) else { return };
    takes_its_flags(&objects);
    let alone =
        [r#"config={"leaderElection":{"leaderElect":false}}"#, "replicaCount=1", r#"updateStrategy.type="Recreate""#];
    assert!(made(test, &alone).is_some());
}

#[test]
fn recreation_has_no_rolling_update() {
    let test = "recreation_has_no_rolling_update";
    let Some(objects) = made(test, &[r#"updateStrategy.type="Recreate""#]) else { return };
    let strategy = |objects: &[Value]| object(objects, "Deployment/cronjob-controller")["spec"]["strategy"].clone();
    assert_eq!(strategy(&objects), json!({"type": "Recreate"}));
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    assert_eq!(strategy(&made(test, &["updateStrategy.rollingUpdate.maxUnavailable=1"]).unwrap()), rolling);
}

#[test]
fn plain_metrics_are_scraped_in_plain_http() {
    let test = "plain_metrics_are_scraped_in_plain_http";
    for (secure, scheme) in [("true", "https"), ("false", "http")] {
        let config = format!(r#"config={{"metrics":{{"secure":{secure}}}}}"#);
        let Some(objects) = made(test, &["metrics.serviceMonitor.create=true", &config]) else { return };
        let endpoint = &object(&objects, "ServiceMonitor/cronjob-controller")["spec"]["endpoints"][0];
        assert_eq!(endpoint["scheme"], scheme);
        for field in ["tlsConfig", "bearerTokenFile"] {
            assert_eq!(endpoint[field].is_null(), scheme == "http", "{field} with {scheme}");
        }
    }
}

#[test]
fn without_volcanos_rights_its_controller_is_off() {
    let test = "without_volcanos_rights_its_controller_is_off";
    const OFF: &str = "--controllers=*,-volcano-cronjob";
    let mine = r#"extraArgs=["--controllers=volcano-cronjob"]"#;
    let file = r#"config={"controllers":{"enabled":["volcano-cronjob"]}}"#;
    let variable = r#"extraEnv=[{"name":"CRONJOB_CONTROLLERS","value":"x"},{"name":"CRONJOB_CONTROLLER_CONTROLLERS","value":"*"}]"#;
    for (values, off) in [
        (&["rbac.volcano=false"][..], true),
        (&["rbac.volcano=true"], false),
        (&["rbac.volcano=false", mine], false),
        (&["rbac.volcano=false", file], false),
        (&["rbac.volcano=false", variable], false),
    ] {
        let Some(objects) = made(test, values) else { return };
        takes_its_flags(&objects);
        let args = texts(&template(&objects)["spec"]["containers"][0]["args"]);
        assert_eq!(args.iter().any(|arg| arg == OFF), off, "{values:?}: {args:?}");
    }
}

#[test]
fn with_the_rights_on_pods_the_job_controller_is_on() {
    let test = "with_the_rights_on_pods_the_job_controller_is_on";
    let on = "--controllers=*,kubernetes-job,kubernetes-ttl-after-finished";
    let without_volcano = "--controllers=*,-volcano-cronjob,kubernetes-job,kubernetes-ttl-after-finished";
    let mine = r#"extraArgs=["--controllers=kubernetes-job"]"#;
    for (values, expected) in [
        (&["rbac.jobs=true"][..], Some(on)),
        (&["rbac.jobs=true", "rbac.volcano=false"], Some(without_volcano)),
        (&["rbac.jobs=true", mine], Some("--controllers=kubernetes-job")),
        (&[], None),
    ] {
        let Some(objects) = made(test, values) else { return };
        takes_its_flags(&objects);
        let args = texts(&template(&objects)["spec"]["containers"][0]["args"]);
        let given = args.iter().find(|arg| arg.starts_with("--controllers"));
        assert_eq!(given.map(String::as_str), expected, "{values:?}: {args:?}");
        assert_eq!(rights(&objects).iter().any(|right| right.2 == "pods"), values.contains(&"rbac.jobs=true"));
    }
}

/// Kubernetes reads YAML 1.1, where `y` and `on` are booleans.
#[test]
fn names_that_look_like_something_else_stay_names() {
    let Some(helm) = find("names_that_look_like_something_else_stay_names", "helm") else { return };
    for called in ["y", "on", "123", "null"] {
        let everywhere: Vec<String> =
            ["fullnameOverride", "nameOverride", "serviceAccount.name", "priorityClassName", "metrics.tls.secretName"]
                .map(|value| format!(r#"--set-json={value}="{called}""#))
                .into();
        let optional = ["serviceMonitor", "prometheusRule", "dashboard"]
            .map(|what| format!("--set-json=metrics.{what}.create=true"));
        let lease = format!(
            r#"--set-json=config={{"leaderElection":{{"resourceName":"{called}","resourceNamespace":"{called}"}}}}"#
        );
        let mut arguments = vec![
            "template",
            called,
            CHART,
            "--namespace",
            called,
            "--kube-version=1.36.0",
            "--set-json=networkPolicy.create=true",
        ];
        arguments.extend(everywhere.iter().chain(&optional).map(String::as_str));
        arguments.push(&lease);
        let output = run(&helm, &arguments);
        let (said, made) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success(), "{called}: {said}");
        let bare: Vec<&str> = made
            .lines()
            .filter(|line| line.ends_with(&format!(": {called}")) || line.ends_with(&format!("- {called}")))
            .collect();
        assert!(bare.is_empty() && made.contains(&format!("namespace: \"{called}\"")), "{called}: {bare:?}");
        let objects = crate::objects::parse(&made);
        assert!(objects.iter().all(|object| !text(&object["metadata"]["name"]).is_empty()));
    }
}
