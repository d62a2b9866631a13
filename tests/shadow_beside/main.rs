//! Shadow mode beside the real kube-controller-manager, in real time: its cronjob controller is in charge, and the binary watches
//! it under the service account and role of `deploy/kustomize/overlays/shadow`. The API server's audit log proves that it only reads.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cronjob_controller::clock::Clock;
use serde_json::{Value, json};
use support::controlplane::{ControlPlane, Options};
use support::kubelet;
use tokio_util::task::TaskTracker;

const TEST: &str = "shadow_beside";
const OVERLAY: &str = "deploy/kustomize/overlays/shadow";
const ACCOUNT: &str = "cronjob-controller-shadow";

/// What kube-controller-manager runs: the controller that is compared with, and what makes Jobs end.
const PEER: &str = "cronjob-controller,job-controller,garbage-collector-controller,serviceaccount-controller";

/// Records of a CronJob that must be there before the test ends.
const INSTANTS: usize = 3;

/// CronJobs that the built-in controller decides on as we do.
const ORDINARY: [&str; 6] = ["allow", "forbid", "replace", "zoned", "suspended", "every"];

fn cronjobs() -> Vec<Value> {
    let make = |name: &str, schedule: &str, spec: Value| {
        let mut object = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"namespace": "default", "name": name},
            "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {
                "metadata": {"annotations": {kubelet::OUTCOME: "complete"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example.com/c:1"}]},
            }}}},
        });
        for (field, value) in spec.as_object().unwrap() {
            object["spec"][field] = value.clone();
        }
        object
    };
    // Nobody runs Pods of these: their Jobs stay active.
    let hanging = json!({"spec": {"suspend": true, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example.com/c:1"}],
    }}}});
    vec![
        make("allow", "* * * * *", json!({"successfulJobsHistoryLimit": 1})),
        make("forbid", "* * * * *", json!({"concurrencyPolicy": "Forbid", "jobTemplate": hanging})),
        make("replace", "* * * * *", json!({"concurrencyPolicy": "Replace", "jobTemplate": hanging})),
        make("zoned", "*/1 * * * *", json!({"timeZone": "Asia/Kathmandu", "successfulJobsHistoryLimit": 0})),
        make("suspended", "* * * * *", json!({"suspend": true})),
        make("every", "@every 50s", json!({})),
        make("never", "* * * * *", json!({"startingDeadlineSeconds": 0})),
    ]
}

fn policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [format!("system:serviceaccount:{ACCOUNT}:{ACCOUNT}")]}, {"level": "None"}],
    })
}

/// Every line of a file of JSON lines; none while it is not there.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may not be whole yet.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Records by CronJob.
fn by_name(report: &Path) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for record in lines(report).into_iter().filter(|line| line["kind"] == "Instant") {
        found.entry(record["name"].as_str().unwrap().to_owned()).or_default().push(record);
    }
    found
}

/// Waits until `done`, at most for `limit`.
async fn wait(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let clock = Clock::system();
    let until = clock.mono() + limit;
    while !done() {
        assert!(clock.mono() < until, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_controller_differs_by_named_rules_alone_and_is_only_watched() {
    let folder = tempfile::tempdir().unwrap();
    let (audit, report, rules) =
        (folder.path().join("audit.log"), folder.path().join("report.jsonl"), folder.path().join("policy.json"));
    std::fs::write(&rules, policy().to_string()).unwrap();
    let apiserver = vec![
        format!("--audit-policy-file={}", rules.display()),
        format!("--audit-log-path={}", audit.display()),
        "--audit-log-mode=blocking".to_owned(),
    ];
    let Some(mut plane) = ControlPlane::start(TEST, Options { apiserver }).await else { return };
    let Some(()) = plane.start_controller_manager(TEST, PEER, &[]) else { return };
    let overlay = Path::new(env!("CARGO_MANIFEST_DIR")).join(OVERLAY);
    plane.kubectl_ok(&["apply", "-k", overlay.to_str().unwrap()]);
    let running = TaskTracker::new().spawn(kubelet::run(plane.client().await));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": cronjobs()});
    let objects = folder.path().join("cronjobs.json");
    std::fs::write(&objects, list.to_string()).unwrap();
    wait("the default service account", Duration::from_secs(60), || {
        plane.kubectl(&["get", "serviceaccount", "default"]).status.success()
    })
    .await;
    plane.kubectl_ok(&["apply", "-f", objects.to_str().unwrap()]);

    let kubeconfig = plane.service_account_kubeconfig("shadow", ACCOUNT, ACCOUNT);
    let pid = plane.spawn(
        "shadow",
        Command::new(env!("CARGO_BIN_EXE_cronjob-controller")).args([
            "run".to_owned(),
            "--shadow".to_owned(),
            format!("--shadow-report={}", report.display()),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--metrics-bind-address=0".to_owned(),
            "--health-probe-bind-address=0".to_owned(),
        ]),
    );
    let log = plane.log("shadow");
    wait("records", Duration::from_secs(480), || {
        let found = by_name(&report);
        ORDINARY.iter().chain(&["never"]).all(|name| found.get(*name).is_some_and(|records| records.len() >= INSTANTS))
    })
    .await;
    let asked = Command::new("kill").args(["-TERM", &pid.to_string()]).status().unwrap();
    assert!(asked.success());
    wait("the summary", Duration::from_secs(30), || lines(&report).iter().any(|line| line["kind"] == "Summary")).await;
    running.abort();

    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    let found = by_name(&report);
    for name in ORDINARY {
        let differing: Vec<_> =
            found[name].iter().filter(|it| it["difference"] != "none" && it["difference"] != "late").collect();
        assert!(differing.is_empty(), "{name}: {differing:#?}\n{}", said());
    }
    for name in ["allow", "zoned", "every", "replace"] {
        assert!(found[name].iter().any(|record| record["seen"]["job"] == record["planned"]["job"] && record["seen"]["job"] != Value::Null), "{name}: {:#?}", found[name]);
    }
    assert!(found["forbid"].iter().any(|record| record["planned"]["action"] == "skip"), "{:#?}", found["forbid"]);
    assert!(found["replace"].iter().any(|record| record["seen"]["deletions"] != json!([])), "{:#?}", found["replace"]);
    assert!(found["zoned"].iter().any(|record| record["seen"]["deletions"] != json!([])), "{:#?}", found["zoned"]);
    assert!(found["allow"].iter().any(|record| record["seen"]["deletions"] != json!([])), "{:#?}", found["allow"]);
    for record in &found["never"] {
        assert_eq!(
            (&record["difference"], &record["rule"]),
            (&json!("not-started"), &json!("deadline-zero")),
            "{record:#}"
        );
    }
    only_read(&audit);
    let summary = lines(&report).pop().unwrap();
    println!("{}", serde_json::to_string(&summary).unwrap());
    assert_eq!(summary["rules"], json!({"deadline-zero": found["never"].len()}));
}

/// Nothing but reads came from the shadow, and none was refused.
fn only_read(audit: &Path) {
    let mut verbs: BTreeMap<String, usize> = BTreeMap::new();
    let requests = lines(audit);
    for request in &requests {
        *verbs.entry(request["verb"].as_str().unwrap().to_owned()).or_default() += 1;
        assert_ne!(request["responseStatus"]["code"], 403, "{request:#}");
    }
    println!("requests of the shadow by verb: {verbs:?}");
    assert!(verbs.contains_key("watch"), "{verbs:?}");
    assert!(verbs.keys().all(|verb| ["get", "list", "watch"].contains(&verb.as_str())), "{verbs:?}");
}
