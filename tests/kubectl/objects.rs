//! Reading: get, watch, describe, events, discovery.

use super::harness::{Cluster, columns, table};
use super::{CRONJOB, VOLCANO_CRONJOB};

#[tokio::test(flavor = "multi_thread")]
async fn get_prints_the_columns_of_each_kind_by_short_name() {
    let Some(cluster) = Cluster::start().await else { return };
    cluster.kubectl_with(CRONJOB, &["create", "-f", "-"]).await.good();
    cluster.kubectl_with(VOLCANO_CRONJOB, &["create", "-f", "-"]).await.good();
    let cj = cluster.kubectl(&["get", "cj"]).await.good();
    assert_eq!(
        table(&cj, true),
        [
            ["NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE"],
            ["etl", "30 2 * * *", "Asia/Shanghai", "False", "0", "<none>"]
        ]
    );
    let wide = cluster.kubectl(&["get", "cronjob", "-o", "wide"]).await.good();
    let wide = table(&wide, false);
    assert_eq!(wide[0][7..], ["CONTAINERS", "IMAGES", "SELECTOR"]);
    assert_eq!(wide[1][7..], ["main,side", "busybox:1.36,busybox:1.36", "<none>"]);
    let volcano = cluster.kubectl(&["get", "cronvcjob"]).await.good();
    assert_eq!(table(&volcano, true), [["NAME"], ["train"]]);
    let none = cluster.kubectl(&["get", "vcjob"]).await;
    assert_eq!(none.err.trim(), "No resources found in default namespace.");
    let all = cluster.kubectl(&["get", "all", "-A"]).await.good();
    assert!(all.contains("cronjob.batch/etl"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn get_as_yaml_shows_the_defaults() {
    let Some(cluster) = Cluster::start().await else { return };
    cluster.kubectl_with(CRONJOB, &["create", "-f", "-"]).await.good();
    let yaml = cluster.kubectl(&["get", "cj", "etl", "-o", "yaml"]).await.good();
    for line in [
        "  concurrencyPolicy: Allow",
        "  failedJobsHistoryLimit: 1",
        "  successfulJobsHistoryLimit: 3",
        "  suspend: false",
        "            terminationMessagePath: /dev/termination-log",
        "  generation: 1",
    ] {
        assert!(yaml.contains(line), "{line} is missing in\n{yaml}");
    }
    let path = cluster.kubectl(&["get", "cj", "-o", "jsonpath={.items[*].metadata.name}"]).await.good();
    assert_eq!(path, "etl");
    let sorted = cluster.kubectl(&["get", "cj", "--sort-by=.metadata.name", "-l", "team=data"]).await.good();
    assert_eq!(table(&sorted, true)[1][0], "etl");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_prints_a_row_for_each_change() {
    let Some(cluster) = Cluster::start().await else { return };
    cluster.kubectl_with(CRONJOB, &["create", "-f", "-"]).await.good();
    let mut watch = cluster.follow(&["get", "cj", "-w"]);
    assert_eq!(watch.next()[0], "NAME");
    assert_eq!(watch.next()[..4], ["etl", "30 2 * * *", "Asia/Shanghai", "False"]);
    cluster.kubectl(&["patch", "cj", "etl", "-p", r#"{"spec":{"suspend":true}}"#]).await.good();
    assert_eq!(watch.next()[..4], ["etl", "30 2 * * *", "Asia/Shanghai", "True"]);
    cluster.kubectl(&["delete", "cj", "etl"]).await.good();
    assert_eq!(watch.next()[0], "etl");
    // A watch that the server ends is the end of the command.
    cluster.sandbox.cut_watches();
    assert_eq!(watch.next(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn describe_shows_the_events_of_the_object() {
    let Some(cluster) = Cluster::start().await else { return };
    cluster.kubectl_with(CRONJOB, &["create", "-f", "-"]).await.good();
    let uid = cluster.kubectl(&["get", "cj", "etl", "-o", "jsonpath={.metadata.uid}"]).await.good();
    let event = format!(
        r#"
apiVersion: v1
kind: Event
metadata: {{name: etl.1}}
type: Normal
reason: SuccessfulCreate
message: Created job etl-29000000
involvedObject: {{apiVersion: batch/v1, kind: CronJob, namespace: default, name: etl, uid: {uid}}}
source: {{component: cronjob-controller}}
firstTimestamp: "2026-03-08T11:00:00Z"
lastTimestamp: "2026-03-08T11:00:00Z"
count: 1
"#
    );
    cluster.kubectl_with(&event, &["create", "-f", "-"]).await.good();
    let described = cluster.kubectl(&["describe", "cj", "etl"]).await.good();
    assert!(described.contains("Schedule:                      30 2 * * *"), "{described}");
    let last = described.lines().last().unwrap();
    assert!(last.contains("SuccessfulCreate") && last.contains("Created job etl-29000000"), "{described}");

    let selector = ["get", "events", "--field-selector", "involvedObject.name=etl"];
    let rows = table(&cluster.kubectl(&selector).await.good(), false);
    assert_eq!(rows[0], ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
    assert_eq!(rows[1][1..], ["Normal", "SuccessfulCreate", "cronjob/etl", "Created job etl-29000000"]);
    let other = cluster.kubectl(&["get", "events", "--field-selector", "involvedObject.name=other"]).await;
    assert_eq!(other.err.trim(), "No resources found in default namespace.");
    let events = cluster.kubectl(&["events", "--for", "cronjob/etl"]).await.good();
    assert!(columns(events.lines().nth(1).unwrap()).contains(&"SuccessfulCreate".to_owned()), "{events}");
    let new_api = cluster.kubectl(&["get", "events.v1.events.k8s.io", "etl.1", "-o", "jsonpath={.note}"]).await.good();
    assert_eq!(new_api, "Created job etl-29000000");
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_lists_every_kind_and_the_server_tells_its_version() {
    let Some(cluster) = Cluster::start().await else { return };
    let text = cluster.kubectl(&["api-resources"]).await.good();
    for row in [
        vec!["cronjobs", "cj", "batch/v1", "true", "CronJob"],
        vec!["jobs", "batch/v1", "true", "Job"],
        vec!["cronjobs", "cronvcjob,cronvj", "batch.volcano.sh/v1alpha1", "true", "CronJob"],
        vec!["jobs", "vcjob,vj", "batch.volcano.sh/v1alpha1", "true", "Job"],
        vec!["namespaces", "ns", "v1", "false", "Namespace"],
    ] {
        assert!(
            text.lines().any(|line| line.split_whitespace().eq(row.iter().copied())),
            "{row:?} is missing in\n{text}"
        );
    }
    let explained = cluster.kubectl(&["explain", "cj"]).await.good();
    assert!(explained.contains("KIND:       CronJob") && explained.contains("VERSION:    v1"), "{explained}");
    let version = cluster.kubectl(&["version"]).await.good();
    assert!(version.contains("Server Version: v1.36"), "{version}");
    assert_eq!(cluster.kubectl(&["get", "--raw", "/readyz"]).await.good(), "ok");
    let missing = cluster.kubectl(&["get", "cj", "none"]).await.bad();
    assert_eq!(missing.trim(), r#"Error from server (NotFound): cronjobs.batch "none" not found"#);
}
