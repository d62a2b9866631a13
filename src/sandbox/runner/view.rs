//! What of a Job the stand-in reads.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Which of the two kinds of Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Flavor {
    /// batch/v1.
    Kubernetes,
    /// batch.volcano.sh/v1alpha1.
    Volcano,
}

impl Flavor {
    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Kubernetes => "batch",
            Self::Volcano => "batch.volcano.sh",
        }
    }

    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Kubernetes => "v1",
            Self::Volcano => "v1alpha1",
        }
    }
}

/// A Job, pruned.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct JobView {
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    pub(super) status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) suspend: bool,
    pub(super) managed_by: Option<String>,
    pub(super) parallelism: Option<i64>,
    pub(super) completions: Option<i64>,
    pub(super) active_deadline_seconds: Option<u64>,
    pub(super) ttl_seconds_after_finished: Option<u64>,
    /// batch/v1: the Pod template.
    pub(super) template: Value,
    /// Volcano.
    pub(super) tasks: Vec<Task>,
    pub(super) min_available: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Task {
    pub(super) replicas: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) start_time: Option<String>,
    pub(super) completion_time: Option<String>,
    /// As stored; both kinds have such a list.
    pub(super) conditions: Vec<Value>,
    pub(super) state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct State {
    pub(super) phase: String,
}

impl JobView {
    /// Whether it has ended, for good.
    pub(super) fn finished(&self, flavor: Flavor) -> bool {
        match flavor {
            Flavor::Kubernetes => self.holds("Complete") || self.holds("Failed"),
            Flavor::Volcano => {
                matches!(self.status.state.phase.as_str(), "Completed" | "Failed" | "Terminated" | "Aborted")
            }
        }
    }

    /// Whether another controller than the built-in one looks after it.
    pub(super) fn managed_elsewhere(&self) -> bool {
        self.spec.managed_by.as_deref().is_some_and(|by| by != "kubernetes.io/job-controller")
    }

    /// Whether a batch/v1 condition is `True`.
    pub(super) fn holds(&self, kind: &str) -> bool {
        self.status
            .conditions
            .iter()
            .any(|c| c.get("type") == Some(&kind.into()) && c.get("status") == Some(&"True".into()))
    }

    /// Pods that run at the same time.
    pub(super) fn active(&self, flavor: Flavor) -> i64 {
        match flavor {
            Flavor::Kubernetes => {
                let parallelism = self.spec.parallelism.unwrap_or(1);
                self.spec.completions.map_or(parallelism, |completions| parallelism.min(completions))
            }
            Flavor::Volcano => self.spec.tasks.iter().map(|task| task.replicas).sum(),
        }
    }
}
