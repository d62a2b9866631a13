//! What of a Pod the stand-in reads.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::WallTime;

/// A Pod, pruned.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodView {
    pub(super) metadata: Metadata,
    pub(super) spec: Spec,
    pub(super) status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) deletion_timestamp: Option<WallTime>,
    pub(super) deletion_grace_period_seconds: i64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) node_name: String,
    pub(super) scheduling_gates: Vec<Value>,
    pub(super) restart_policy: String,
    pub(super) active_deadline_seconds: Option<u64>,
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Vec<Container>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) phase: String,
    pub(super) start_time: Option<WallTime>,
    /// As stored.
    pub(super) conditions: Vec<Value>,
    pub(super) container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerStatus {
    pub(super) restart_count: u32,
    pub(super) state: State,
    /// As stored.
    pub(super) last_state: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    pub(super) running: Option<Running>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Running {
    pub(super) started_at: Option<WallTime>,
}

impl PodView {
    /// Whether it has ended, for good.
    pub(super) fn finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether its containers run now. All of them do the same.
    pub(super) fn running(&self) -> bool {
        self.status.container_statuses.first().is_some_and(|status| status.state.running.is_some())
    }

    /// Since when they do.
    pub(super) fn running_since(&self) -> Option<WallTime> {
        self.status.container_statuses.first()?.state.running.as_ref()?.started_at
    }

    /// What is known of an earlier run.
    pub(super) fn last_state(&self) -> Value {
        let status = self.status.container_statuses.first();
        status.map(|status| status.last_state.clone()).filter(Value::is_object).unwrap_or_else(|| json!({}))
    }

    /// How often they have been started anew.
    pub(super) fn restarts(&self) -> u32 {
        self.status.container_statuses.first().map_or(0, |status| status.restart_count)
    }
}
