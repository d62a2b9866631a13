//! The real kubectl against the sandbox over HTTP: what an operator types, and what he reads.
//!
//! Without kubectl on the `PATH` each test says that it was skipped; `CRONJOB_REQUIRE_KUBECTL=1` makes that a failure, and
//! `CRONJOB_KUBECTL` names another program (to try other versions).

#![allow(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod harness;
mod jobs;
mod objects;
mod writes;

/// A batch/v1 CronJob with two containers.
pub(crate) const CRONJOB: &str = r#"
apiVersion: batch/v1
kind: CronJob
metadata:
  name: etl
  labels: {team: data}
spec:
  schedule: "30 2 * * *"
  timeZone: Asia/Shanghai
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: main, image: "busybox:1.36", args: ["true"]}
          - {name: side, image: "busybox:1.36"}
"#;

/// A Volcano CronJob.
pub(crate) const VOLCANO_CRONJOB: &str = r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata:
  name: train
spec:
  schedule: "0 * * * *"
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      minAvailable: 1
      tasks:
      - name: worker
        replicas: 1
        template:
          spec:
            restartPolicy: OnFailure
            containers:
            - {name: main, image: "busybox:1.36"}
"#;

/// A batch/v1 Job of the stand-in's default duration.
pub(crate) const JOB: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: once
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, image: "busybox:1.36"}
"#;
