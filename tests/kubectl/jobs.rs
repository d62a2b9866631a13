//! Jobs: started by hand, run by the stand-in, waited for, read.

use super::harness::{Cluster, table};
use super::{CRONJOB, JOB};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_completes_and_kubectl_waits_for_it_and_reads_its_log() {
    let Some(cluster) = Cluster::start().await else { return };
    cluster.kubectl_with(JOB, &["create", "-f", "-"]).await.good();
    let waited = cluster.kubectl(&["wait", "--for=condition=complete", "job/once", "--timeout=60s"]).await.good();
    assert_eq!(waited.trim(), "job.batch/once condition met");
    let rows = table(&cluster.kubectl(&["get", "jobs"]).await.good(), true);
    assert_eq!(rows[0], ["NAME", "STATUS", "COMPLETIONS", "DURATION"]);
    assert_eq!(rows[1][..3], ["once", "Complete", "1/1"]);
    let log = cluster.kubectl(&["logs", "job/once"]).await.good();
    assert!(log.contains("sandbox: busybox:1.36 would run here"), "{log}");
    let pods = table(&cluster.kubectl(&["get", "pods", "-l", "job-name=once"]).await.good(), true);
    assert_eq!(pods[1][1..], ["0/1", "Completed", "0"]);
    let described = cluster.kubectl(&["describe", "job", "once"]).await.good();
    assert!(described.contains("Pods Statuses:    0 Active (0 Ready) / 1 Succeeded / 0 Failed"), "{described}");
    cluster.kubectl(&["delete", "job", "once"]).await.good();
    cluster.kubectl(&["wait", "--for=delete", "pod", "-l", "job-name=once", "--timeout=60s"]).await.good();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_fails_if_its_annotation_says_so() {
    let Some(cluster) = Cluster::start().await else { return };
    let annotations = "  annotations: {sandbox.cronjob-controller.dev/outcome: fail, sandbox.cronjob-controller.dev/duration: 10ms}\n";
    let job = JOB.replace("  name: once\n", &format!("  name: once\n{annotations}"));
    cluster.kubectl_with(&job, &["create", "-f", "-"]).await.good();
    cluster.kubectl(&["wait", "--for=condition=failed", "job/once", "--timeout=60s"]).await.good();
    let rows = table(&cluster.kubectl(&["get", "jobs"]).await.good(), true);
    assert_eq!(rows[1][..3], ["once", "Failed", "0/1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volcano_job_runs_through_its_phases() {
    let Some(cluster) = Cluster::start().await else { return };
    let job = r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  tasks:
  - name: worker
    replicas: 2
    template: {spec: {containers: [{name: main, image: busybox}]}}
"#;
    cluster.kubectl_with(job, &["create", "-f", "-"]).await.good();
    let phase = "--for=jsonpath={.status.state.phase}=Completed";
    cluster.kubectl(&["wait", phase, "vcjob/train", "--timeout=60s"]).await.good();
    let rows = table(&cluster.kubectl(&["get", "vcjob", "-o", "wide"]).await.good(), false);
    assert_eq!(rows[0], ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE", "QUEUE"]);
    assert_eq!(rows[1][..3], ["train", "Completed", "2"]);
    assert_eq!(rows[1].last().unwrap(), "default");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_made_from_a_cronjob_through_its_manifest() {
    let Some(cluster) = Cluster::start().await else { return };
    cluster.kubectl_with(CRONJOB, &["create", "-f", "-"]).await.good();
    // From 1.32 on kubectl sends this one request as protobuf, which the sandbox does not read; before, as JSON.
    let direct = cluster.kubectl(&["create", "job", "direct", "--from=cronjob/etl"]).await;
    if direct.ok {
        assert_eq!(direct.out.trim(), "job.batch/direct created");
    } else {
        assert_eq!(
            direct.err.trim(),
            "error: failed to create job: the body of the request was in an unknown format - accepted media types include: application/json"
        );
    }
    let dry = ["create", "job", "manual", "--from=cronjob/etl", "--dry-run=client", "-o", "yaml"];
    let manifest = cluster.kubectl(&dry).await.good();
    let said = cluster.kubectl_with(&manifest, &["create", "-f", "-"]).await.good();
    assert_eq!(said.trim(), "job.batch/manual created");
    let owner = ["get", "job", "manual", "-o", "jsonpath={.metadata.ownerReferences[0].name}"];
    assert_eq!(cluster.kubectl(&owner).await.good(), "etl");
    cluster.kubectl(&["wait", "--for=condition=complete", "job/manual", "--timeout=60s"]).await.good();
}
