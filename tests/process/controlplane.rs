//! Who reads the metrics port where the real API server decides.

use serde_json::json;

use crate::binary::{Running, binary};
use crate::support::controlplane::{ControlPlane, Options};
use crate::support::web::{get_plain, get_secure};

/// Our own rights for the port, and a right to read two of its pages for the account `prometheus`.
fn roles() -> String {
    let role = |name: &str, rules: serde_json::Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    let binding = |name: &str, account: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": account}]})
    };
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "default", "name": name}});
    let reviews = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]);
    let reader = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    let items = json!([
        account("controller"),
        account("prometheus"),
        account("stranger"),
        role("reviewer", reviews),
        binding("reviewer", "controller"),
        role("metrics-reader", reader),
        binding("metrics-reader", "prometheus"),
    ]);
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn message(body: &str) -> String {
    let status: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("no Status: {body}"));
    status["message"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_server_decides_who_reads_the_metrics() {
    let name = "the_real_server_decides_who_reads_the_metrics";
    let Some(plane) = ControlPlane::start(name, Options::default()).await else { return };
    std::fs::write(plane.path("roles.json"), roles()).unwrap();
    plane.kubectl_ok(&["apply", "-f", plane.path("roles.json").to_str().unwrap()]);
    let token = |account: &str| plane.kubectl_ok(&["create", "token", account, "--duration=1h"]).trim().to_owned();
    let (prometheus, stranger) = (token("prometheus"), token("stranger"));
    let kubeconfig = plane.service_account_kubeconfig("controller", "default", "controller");
    let mut running = Running::start(
        binary()
            .args(["run", "--logging-format=json", "--metrics-bind-address=127.0.0.1:0"])
            .args(["--health-probe-bind-address=127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig),
    );
    let (metrics, probes) = (running.port("metrics-bind-address"), running.port("health-probe-bind-address"));

    let (code, body) = get_secure(metrics, "/metrics", Some(&prometheus)).await.unwrap();
    assert_eq!(code, 200, "{body}");
    assert!(body.contains("cronjob_controller_access_reviews_total{review=\"access\",result=\"yes\"} 1\n"), "{body}");
    let forbidden = |account: &str, path: &str| {
        format!("forbidden: User \"system:serviceaccount:default:{account}\" cannot get path \"{path}\"")
    };
    let (code, body) = get_secure(metrics, "/metrics", Some(&stranger)).await.unwrap();
    assert_eq!((code, message(&body)), (403, forbidden("stranger", "/metrics")));
    let (code, body) = get_secure(metrics, "/flagz", Some(&prometheus)).await.unwrap();
    assert_eq!((code, message(&body)), (403, forbidden("prometheus", "/flagz")));
    for token in [None, Some("nonsense")] {
        let (code, body) = get_secure(metrics, "/metrics", token).await.unwrap();
        assert_eq!((code, message(&body)), (401, "Unauthorized".to_owned()), "{token:?}");
    }
    assert_eq!(get_plain(probes, "/livez").await.unwrap(), (200, "ok".to_owned()));

    // What the server said before still holds for a while; a new question without it ends closed.
    drop(plane);
    assert_eq!(get_secure(metrics, "/metrics", Some(&prometheus)).await.unwrap().0, 200);
    assert_eq!(get_secure(metrics, "/metrics", Some("new")).await.unwrap().0, 500);
}

/// First lines of a page, up to the first that is about the process itself.
fn head(page: &str, component: &str) -> Vec<String> {
    page.lines().take(3).map(|line| line.replace(component, "COMPONENT")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_pages_read_like_those_of_the_built_in_controller_manager() {
    let name = "refusals_and_pages_read_like_those_of_the_built_in_controller_manager";
    let Some(mut plane) = ControlPlane::start(name, Options::default()).await else { return };
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = held.local_addr().unwrap().port();
    drop(held);
    let port = format!("--secure-port={theirs}");
    let cert_dir = format!("--cert-dir={}", plane.path("kcm-certificates").display());
    let flags = ["--bind-address=127.0.0.1", &port, &cert_dir];
    if plane.start_controller_manager(name, "cronjob-controller", &flags).is_none() {
        return;
    }
    std::fs::write(plane.path("roles.json"), roles()).unwrap();
    plane.kubectl_ok(&["apply", "-f", plane.path("roles.json").to_str().unwrap()]);
    // Each reads the pages of both; the reviewer of the other test is enough to ask for either.
    let pages = ["create", "clusterrole", "pages", "--verb=get", "--non-resource-url=/statusz,/flagz"];
    plane.kubectl_ok(&pages);
    plane.kubectl_ok(&[
        "create",
        "clusterrolebinding",
        "pages",
        "--clusterrole=pages",
        "--serviceaccount=default:prometheus",
    ]);
    let token = |account: &str| plane.kubectl_ok(&["create", "token", account, "--duration=1h"]).trim().to_owned();
    let (prometheus, stranger) = (token("prometheus"), token("stranger"));
    let mut running = Running::start(
        binary()
            .args(["run", "--logging-format=json", "--controllers=kubernetes-cronjob", "--leader-elect=false"])
            .args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0", "--kubeconfig"])
            .arg(plane.service_account_kubeconfig("controller", "default", "controller")),
    );
    let ours = running.port("metrics-bind-address");
    let mut tries = 0;
    while get_secure(theirs, "/healthz", None).await.is_err() {
        tries += 1;
        assert!(tries < 600, "kube-controller-manager does not listen");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }

    for (path, token) in [("/metrics", "nonsense"), ("/metrics", &stranger), ("/flagz", &stranger)] {
        let (their_code, their_body) = get_secure(theirs, path, Some(token)).await.unwrap();
        let (our_code, our_body) = get_secure(ours, path, Some(token)).await.unwrap();
        let json = |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap_or_else(|_| panic!("{body}"));
        assert_eq!((our_code, json(&our_body)), (their_code, json(&their_body)), "{path}");
    }
    for path in ["/statusz", "/flagz"] {
        let (their_code, their_page) = get_secure(theirs, path, Some(&prometheus)).await.unwrap();
        let (our_code, our_page) = get_secure(ours, path, Some(&prometheus)).await.unwrap();
        assert_eq!((our_code, their_code), (200, 200), "{path}: {our_page}{their_page}");
        assert_eq!(head(&our_page, "cronjob-controller"), head(&their_page, "kube-controller-manager"));
    }
}
