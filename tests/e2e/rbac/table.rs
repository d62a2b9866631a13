//! Which scenario needs which right.

use http::Method;
use serde_json::{Value, json};

use super::rights::Right;
use crate::objects::rfc3339;
use crate::stage::Stage;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/cronjob-controller-system/leases";

/// How the controllers find the Lease when they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Start {
    /// It is not there.
    Alone,
    /// Nobody holds it.
    AfterRelease,
    /// Another replica holds it, and releases it when they stand by.
    HandOver,
}

pub(super) struct Need {
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
    pub(super) scenario: &'static str,
    pub(super) start: Start,
}

const fn need(group: &'static str, resource: &'static str, verb: &'static str, scenario: &'static str) -> Need {
    Need { group, resource, verb, scenario, start: Start::Alone }
}

const fn need_at(start: Start, verb: &'static str) -> Need {
    Need { start, ..need("coordination.k8s.io", "leases", verb, "k8s-starts") }
}

const BATCH: &str = "batch";
const VOLCANO: &str = "batch.volcano.sh";

/// Played by this test itself, since the sandbox has no such port: somebody who may read the metrics reads them.
pub(super) const METRICS_READ: &str = "metrics-read";

/// Every right, with a scenario that fails without it. None of them waits for a minute to begin.
pub(super) static NEEDED_BY: &[Need] = &[
    need(BATCH, "cronjobs", "get", "k8s-job-by-hand"),
    need(BATCH, "cronjobs", "list", "k8s-starts"),
    need(BATCH, "cronjobs", "watch", "k8s-starts"),
    need(BATCH, "cronjobs/status", "patch", "k8s-starts"),
    need(BATCH, "cronjobs/finalizers", "update", "k8s-starts"),
    need(BATCH, "jobs", "get", "k8s-replace-at-once"),
    need(BATCH, "jobs", "list", "k8s-starts"),
    need(BATCH, "jobs", "watch", "k8s-active-job-deleted"),
    need(BATCH, "jobs", "create", "k8s-starts"),
    need(BATCH, "jobs", "delete", "k8s-replace-at-once"),
    need(VOLCANO, "cronjobs", "get", "volcano-job-by-hand"),
    need(VOLCANO, "cronjobs", "list", "volcano-starts"),
    need(VOLCANO, "cronjobs", "watch", "volcano-starts"),
    need(VOLCANO, "cronjobs/status", "patch", "volcano-starts"),
    need(VOLCANO, "cronjobs/finalizers", "update", "volcano-starts"),
    need(VOLCANO, "jobs", "get", "volcano-replace-at-once"),
    need(VOLCANO, "jobs", "list", "volcano-starts"),
    need(VOLCANO, "jobs", "watch", "volcano-active-job-deleted"),
    need(VOLCANO, "jobs", "create", "volcano-starts"),
    need(VOLCANO, "jobs", "delete", "volcano-replace-at-once"),
    need("", "events", "create", "k8s-starts"),
    need("", "events", "patch", "k8s-quota-full"),
    need_at(Start::Alone, "create"),
    need_at(Start::AfterRelease, "get"),
    need_at(Start::AfterRelease, "update"),
    need_at(Start::HandOver, "watch"),
    need("authentication.k8s.io", "tokenreviews", "create", METRICS_READ),
    need("authorization.k8s.io", "subjectaccessreviews", "create", METRICS_READ),
];

impl Need {
    pub(super) fn right(&self) -> Right {
        Right { group: self.group.into(), resource: self.resource.into(), verb: self.verb.into() }
    }
}

impl Start {
    /// Brings the Lease into the state in which the controllers find it.
    pub(super) async fn set_up(self, stage: &Stage) -> anyhow::Result<()> {
        let path = format!("{LEASES}/cronjob-controller");
        if stage.exists(&path).await? {
            stage.delete(&path, "Background").await?;
        }
        let spec = match self {
            Self::Alone => return Ok(()),
            Self::AfterRelease => json!({"holderIdentity": ""}),
            Self::HandOver => {
                let now = rfc3339(stage.now()).replace('Z', ".000000Z");
                json!({"holderIdentity": "another", "leaseDurationSeconds": 60, "acquireTime": now, "renewTime": now})
            }
        };
        let metadata = json!({"name": "cronjob-controller"});
        let lease =
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec});
        stage.post(LEASES, &lease).await.map(drop)
    }

    /// Long waits between two looks of a stand-by, so that only a watch tells it in time.
    pub(super) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Alone | Self::AfterRelease => &[],
            Self::HandOver => &[
                "--leader-elect-lease-duration=60s",
                "--leader-elect-renew-deadline=50s",
                "--leader-elect-retry-period=30s",
            ],
        }
    }

    /// Releases the Lease if another holds it.
    pub(super) async fn hand_over(self, stage: &Stage) -> anyhow::Result<()> {
        if self == Self::HandOver {
            // They stand by, with or without a watch.
            stage.pass(3).await;
            let release = json!({"spec": {"holderIdentity": ""}});
            let path = format!("{LEASES}/cronjob-controller");
            let answer: Result<Value, Value> = stage.send(Method::PATCH, &path, &release).await;
            anyhow::ensure!(answer.is_ok(), "{answer:?}");
        }
        Ok(())
    }
}
