//! Writing: create, apply, patch, label, delete, and what the server refuses.

use super::harness::{Cluster, Said};
use super::{CRONJOB, VOLCANO_CRONJOB};

async fn apply(cluster: &Cluster, text: &str) -> String {
    cluster.kubectl_with(text, &["apply", "-f", "-"]).await.good().trim().to_owned()
}

async fn field(cluster: &Cluster, path: &str) -> String {
    cluster.kubectl(&["get", "cj", "etl", "-o", &format!("jsonpath={{{path}}}")]).await.good()
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_creates_leaves_alone_and_configures() {
    let Some(cluster) = Cluster::start().await else { return };
    assert_eq!(apply(&cluster, CRONJOB).await, "cronjob.batch/etl created");
    assert_eq!(apply(&cluster, CRONJOB).await, "cronjob.batch/etl unchanged");
    // One container changes, the other goes: both in one strategic patch.
    let changed = CRONJOB
        .replace("30 2 * * *", "45 2 * * *")
        .replace(r#"args: ["true"]"#, r#"args: ["false"]"#)
        .replace("          - {name: side, image: \"busybox:1.36\"}\n", "");
    assert_eq!(apply(&cluster, &changed).await, "cronjob.batch/etl configured");
    assert_eq!(field(&cluster, ".spec.schedule").await, "45 2 * * *");
    let containers = ".spec.jobTemplate.spec.template.spec.containers[*]";
    assert_eq!(
        field(&cluster, &format!("{containers}['name','args','imagePullPolicy']")).await,
        "main [\"false\"] IfNotPresent"
    );
    assert_eq!(field(&cluster, ".metadata.generation").await, "2");
    assert_eq!(apply(&cluster, VOLCANO_CRONJOB).await, "cronjob.batch.volcano.sh/train created");
    assert_eq!(apply(&cluster, VOLCANO_CRONJOB).await, "cronjob.batch.volcano.sh/train unchanged");
    let changed = VOLCANO_CRONJOB.replace("Forbid", "Replace");
    assert_eq!(apply(&cluster, &changed).await, "cronjob.batch.volcano.sh/train configured");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_patch_does_its_own() {
    let Some(cluster) = Cluster::start().await else { return };
    apply(&cluster, CRONJOB).await;
    let patch = |kind: &'static str, text: &'static str| {
        let cluster = &cluster;
        async move { cluster.kubectl(&["patch", "cj", "etl", "--type", kind, "-p", text]).await.good() }
    };
    let container =
        r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:2"}]}}}}}}"#;
    patch("strategic", container).await;
    let images = ".spec.jobTemplate.spec.template.spec.containers[*].image";
    assert_eq!(field(&cluster, images).await, "busybox:1.36 side:2");
    patch("merge", container).await;
    assert_eq!(field(&cluster, images).await, "side:2");
    patch("json", r#"[{"op":"replace","path":"/spec/suspend","value":true}]"#).await;
    assert_eq!(field(&cluster, ".spec.suspend").await, "true");
    let same = patch("merge", r#"{"spec":{"suspend":true}}"#).await;
    assert_eq!(same.trim(), "cronjob.batch/etl patched (no change)");
    let status = ["patch", "cj", "etl", "--subresource", "status", "--type", "merge", "-p"];
    let status = [&status[..], &[r#"{"status":{"lastScheduleTime":"2026-03-08T11:00:00Z"}}"#]].concat();
    cluster.kubectl(&status).await.good();
    assert_eq!(field(&cluster, ".status.lastScheduleTime").await, "2026-03-08T11:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_and_annotations_come_and_go_without_a_new_generation() {
    let Some(cluster) = Cluster::start().await else { return };
    apply(&cluster, CRONJOB).await;
    let label = cluster.kubectl(&["label", "cj", "etl", "tier=gold"]).await.good();
    assert_eq!(label.trim(), "cronjob.batch/etl labeled");
    cluster.kubectl(&["label", "cj", "etl", "team-"]).await.good();
    cluster.kubectl(&["annotate", "cj", "etl", "why=because"]).await.good();
    assert_eq!(field(&cluster, ".metadata.labels").await, r#"{"tier":"gold"}"#);
    assert_eq!(field(&cluster, ".metadata.annotations.why").await, "because");
    assert_eq!(field(&cluster, ".metadata.generation").await, "1");
    let wrong = cluster.kubectl(&["label", "cj", "etl", "tier=no way", "--overwrite"]).await.bad();
    assert!(wrong.contains("a valid label must be an empty string or consist of"), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn edit_and_replace_write_what_was_read() {
    let Some(cluster) = Cluster::start().await else { return };
    apply(&cluster, CRONJOB).await;
    let edit = ["edit", "cj", "etl"];
    let edited = cluster.kubectl_in("KUBE_EDITOR", "sed -i -e s/side/extra/", &edit).await.good();
    assert_eq!(edited.trim(), "cronjob.batch/etl edited");
    assert_eq!(field(&cluster, ".spec.jobTemplate.spec.template.spec.containers[*].name").await, "main extra");
    let wrong = cluster.kubectl_in("KUBE_EDITOR", "sed -i -e s/30.2.[*]/x/", &edit).await.bad();
    assert!(wrong.contains(r#"cronjobs.batch "etl" is invalid"#), "{wrong}");
    let yaml = cluster.kubectl(&["get", "cj", "etl", "-o", "yaml"]).await.good();
    let changed = yaml.replace("  suspend: false", "  suspend: true");
    let replaced = cluster.kubectl_with(&changed, &["replace", "-f", "-"]).await.good();
    assert_eq!(replaced.trim(), "cronjob.batch/etl replaced");
    let stale = cluster.kubectl_with(&yaml, &["replace", "-f", "-"]).await.bad();
    assert!(stale.contains("the object has been modified; please apply your changes to the latest version"), "{stale}");
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_waits_until_the_object_is_gone() {
    let Some(cluster) = Cluster::start().await else { return };
    apply(&cluster, CRONJOB).await;
    let gone = cluster.kubectl(&["delete", "cj", "etl"]).await.good();
    assert!(gone.starts_with(r#"cronjob.batch "etl" deleted"#), "{gone}");
    let again = cluster.kubectl(&["delete", "cj", "etl"]).await.bad();
    assert_eq!(again.trim(), r#"Error from server (NotFound): cronjobs.batch "etl" not found"#);
    let ignored = cluster.kubectl(&["delete", "cj", "etl", "--ignore-not-found"]).await.good();
    assert_eq!(ignored, "");
    apply(&cluster, CRONJOB).await;
    let all = cluster.kubectl(&["delete", "cj", "--all"]).await.good();
    assert!(all.starts_with(r#"cronjob.batch "etl" deleted"#), "{all}");
}

async fn create(cluster: &Cluster, text: &str) -> Said {
    cluster.kubectl_with(text, &["create", "-f", "-"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_objects_are_refused_with_upstreams_messages() {
    let Some(cluster) = Cluster::start().await else { return };
    let bad = create(&cluster, &CRONJOB.replace("30 2 * * *", "61 * * * *")).await.bad();
    assert_eq!(
        bad.trim(),
        r#"The CronJob "etl" is invalid: spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61"#
    );
    let bad = create(&cluster, &CRONJOB.replace("Asia/Shanghai", "Mars/Base").replace("30 2 * * *", "x")).await.bad();
    assert_eq!(
        bad.trim().lines().collect::<Vec<_>>(),
        [
            r#"The CronJob "etl" is invalid: "#,
            r#"* spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]"#,
            r#"* spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base"#
        ]
    );
    let bad = create(&cluster, &VOLCANO_CRONJOB.replace("0 * * * *", "x")).await.bad();
    assert_eq!(
        bad.trim(),
        r#"Error from server: error when creating "STDIN": admission webhook "validatecronjob.volcano.sh" denied the request: schedule is not a valid cron expression"#
    );
    let bad = create(&cluster, &VOLCANO_CRONJOB.replace("Forbid", "Sometimes")).await.bad();
    assert!(
        bad.contains(
            r#"spec.concurrencyPolicy: Unsupported value: "Sometimes": supported values: "Allow", "Forbid", "Replace""#
        ),
        "{bad}"
    );
    let bad = create(&cluster, &CRONJOB.replace("timeZone:", "timezone:")).await.bad();
    assert_eq!(
        bad.trim(),
        r#"Error from server (BadRequest): error when creating "STDIN": CronJob in version "v1" cannot be handled as a CronJob: strict decoding error: unknown field "spec.timezone""#
    );
    let warn = ["create", "--validate=warn", "-f", "-"];
    let said = cluster.kubectl_with(&CRONJOB.replace("timeZone:", "timezone:"), &warn).await;
    assert_eq!(said.err.trim(), r#"Warning: unknown field "spec.timezone""#);
    assert_eq!(said.good().trim(), "cronjob.batch/etl created");
    let twice = create(&cluster, CRONJOB).await.bad();
    assert_eq!(
        twice.trim(),
        r#"Error from server (AlreadyExists): error when creating "STDIN": cronjobs.batch "etl" already exists"#
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_on_the_server_validates_and_stores_nothing() {
    let Some(cluster) = Cluster::start().await else { return };
    let dry = ["apply", "--dry-run=server", "-f", "-"];
    let said = cluster.kubectl_with(CRONJOB, &dry).await.good();
    assert_eq!(said.trim(), "cronjob.batch/etl created (server dry run)");
    cluster.kubectl(&["get", "cj", "etl"]).await.bad();
    let bad = cluster.kubectl_with(&CRONJOB.replace("30 2 * * *", "x"), &dry).await.bad();
    assert!(bad.contains("expected exactly 5 fields, found 1: [x]"), "{bad}");
    apply(&cluster, CRONJOB).await;
    let diff = cluster.kubectl_with(&CRONJOB.replace("30 2", "31 2"), &["diff", "-f", "-"]).await;
    assert!(diff.out.contains("-  schedule: 30 2 * * *") && diff.out.contains("+  schedule: 31 2 * * *"), "{diff:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_side_apply_is_refused_and_says_so() {
    let Some(cluster) = Cluster::start().await else { return };
    let bad = cluster.kubectl_with(CRONJOB, &["apply", "--server-side", "-f", "-"]).await.bad();
    assert!(bad.contains("Server-side apply not available on the server"), "{bad}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sample_is_accepted_but_the_invalid_one() {
    let Some(cluster) = Cluster::start().await else { return };
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/config/samples");
    let said = cluster.kubectl(&["apply", "-R", "-f", samples]).await;
    assert!(said.out.lines().all(|line| line.ends_with(" created")), "{said:?}");
    assert!(said.out.contains("cronjob.batch.volcano.sh/"), "{said:?}");
    assert_eq!(
        said.bad().trim(),
        r#"The CronJob "invalid-minute" is invalid: spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61"#
    );
}
