//! Precedence as `/flagz` of a running process tells it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::binary::{Running, binary};
use crate::support::web::get_plain;

/// The API server of the sandbox, without controllers; the path of its kubeconfig.
fn api_server(folder: &std::path::Path) -> (std::process::Child, String) {
    let kubeconfig = folder.join("kubeconfig.yaml").to_str().unwrap().to_owned();
    let mut server = binary()
        .args(["sandbox", "--controllers=-cronjob-controller", "--speed", "1", "--kubeconfig", &kubeconfig])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.as_mut().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.starts_with("created ")));
    (server, kubeconfig)
}

#[tokio::test]
async fn flagz_tells_which_layer_set_each_flag() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, kubeconfig) = api_server(folder.path());
    let file = folder.path().join("config.yaml");
    let body = "apiVersion: cronjob-controller.config/v1alpha1\nkind: ControllerConfiguration\n\
                clientConnection: {burst: 1, qps: 1}\n\
                controllers: {concurrentCronJobSyncs: 1}\n\
                metrics: {secure: false, bindAddress: '127.0.0.1:0'}\n\
                health: {bindAddress: '127.0.0.1:0'}\n\
                logging: {format: json}\n";
    fs::write(&file, body).unwrap();
    let file = file.to_str().unwrap();
    let mut running = Running::start(
        binary()
            .args(["run", "--kubeconfig", &kubeconfig, "--kube-api-qps=3"])
            .env("CRONJOB_CONTROLLER_CONFIG", file)
            .env("CRONJOB_CONTROLLER_KUBE_API_QPS", "2")
            .env("CRONJOB_CONTROLLER_KUBE_API_BURST", "2")
            .env("CRONJOB_CONTROLLER_TYPO", "2")
            .env("CRONJOB_CONTROLLER_METRICS_SERVICE_HOST", "10.0.0.7")
            .env("CRONJOB_CONTROLLER_METRICS_PORT", "tcp://10.0.0.7:8443"),
    );
    let port = running.port("metrics-bind-address");
    let (code, page) = get_plain(port, "/flagz").await.unwrap();
    assert_eq!(code, 200);
    for line in [
        "kube-api-qps=3 (flag)".to_owned(),
        "kube-api-burst=2 (environment variable CRONJOB_CONTROLLER_KUBE_API_BURST)".to_owned(),
        format!("concurrent-cron-job-syncs=1 ({file}:4: controllers.concurrentCronJobSyncs)"),
        format!("config={file} (environment variable CRONJOB_CONTROLLER_CONFIG)"),
        "shutdown-budget=25s (default)".to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    running.logged("CRONJOB_CONTROLLER_TYPO is the variable of no flag", |line| line["level"] == "WARN");
    assert!(!running.seen.iter().any(|line| line.to_string().contains("METRICS_SERVICE_HOST")), "{:#?}", running.seen);

    let controller = |line: &serde_json::Value| line["controller"] == "kubernetes-cronjob";
    running.logged("caches have synced; work begins", controller);
    let (code, page) = get_plain(port, "/statusz").await.unwrap();
    assert_eq!(code, 200);
    for start in [
        "Started: ",
        "Up: 0 hr 00 min ",
        "Binary version: ",
        "Time zone data: 20",
        "Leader: ",
        "Paths: /flagz /metrics /statusz",
    ] {
        assert!(page.lines().any(|line| line.starts_with(start)), "{start} is not in\n{page}");
    }
    let held = page.lines().find(|line| line.starts_with("kubernetes-cronjob: ")).unwrap();
    assert!(held.contains(" CronJobs and ") && !held.contains(": 0 CronJobs"), "{held}");
    drop(running);
    server.kill().unwrap();
    server.wait().unwrap();
}
