//! The statuses that a kubelet writes, as merge patches. All containers of a Pod do the same at the same time.

use serde_json::{Value, json};

use super::view::{Container, PodView};
use crate::model::WallTime;
use crate::sandbox::runner::status::timestamp;

/// Conditions that a kubelet writes, in its order.
const OWN: [&str; 4] = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"];

/// How the containers of a Pod are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Containers {
    /// Their images are being fetched.
    Creating,
    /// They run; right after a crash, or with what is known of an earlier one.
    Running { since: WallTime, restarts: u32, crash: Option<Exit> },
    /// They have failed and wait to be started anew.
    Crashed { exit: Exit, restarts: u32, wait_s: u64 },
    /// They have ended.
    Ended { exit: Exit, restarts: u32 },
    /// They did not run when they were told to go.
    Idle { restarts: u32 },
}

/// How containers have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    pub(super) code: i32,
    pub(super) started: WallTime,
    pub(super) ended: WallTime,
}

impl Exit {
    fn state(self) -> Value {
        json!({ "terminated": {
            "exitCode": self.code,
            "reason": if self.code == 0 { "Completed" } else { "Error" },
            "startedAt": timestamp(self.started),
            "finishedAt": timestamp(self.ended),
        } })
    }
}

/// The status of a Pod in `phase`. `why` is the reason and the message of the Pod itself.
pub(super) fn status(
    pod: &PodView,
    phase: &str,
    containers: Containers,
    why: Option<(&str, &str)>,
    now: WallTime,
) -> Value {
    let mut status = json!({
        "phase": phase,
        "startTime": timestamp(pod.status.start_time.unwrap_or(now)),
        "conditions": conditions(pod, phase, containers, now),
        "containerStatuses": pod.spec.containers.iter().map(|c| container_status(pod, c, containers)).collect::<Vec<_>>(),
    });
    if !pod.spec.init_containers.is_empty() {
        let initialized = pod.spec.init_containers.iter().map(|c| init_status(c, containers, now));
        status["initContainerStatuses"] = initialized.collect();
    }
    if let Some((reason, message)) = why {
        status["reason"] = reason.into();
        status["message"] = message.into();
    }
    json!({ "status": status })
}

/// The end of a Pod that never came to a node.
pub(super) fn unplaced() -> Value {
    json!({ "status": { "phase": "Failed" } })
}

fn container_status(pod: &PodView, container: &Container, containers: Containers) -> Value {
    let (ready, restarts, state, before) = match containers {
        Containers::Creating => (false, 0, json!({ "waiting": { "reason": "ContainerCreating" } }), None),
        Containers::Running { since, restarts, crash } => {
            (true, restarts, json!({ "running": { "startedAt": timestamp(since) } }), crash)
        }
        Containers::Crashed { exit, restarts, wait_s } => {
            let message = format!("back-off {wait_s}s restarting failed container={}", container.name);
            (false, restarts, json!({ "waiting": { "reason": "CrashLoopBackOff", "message": message } }), Some(exit))
        }
        Containers::Ended { exit, restarts } => (false, restarts, exit.state(), None),
        Containers::Idle { restarts } => {
            let message = "The container could not be located when the pod was terminated";
            let state =
                json!({ "terminated": { "exitCode": 137, "reason": "ContainerStatusUnknown", "message": message } });
            (false, restarts, state, None)
        }
    };
    json!({
        "name": container.name, "image": container.image, "imageID": "", "ready": ready, "started": ready,
        "restartCount": restarts, "state": state, "lastState": before.map_or_else(|| pod.last_state(), Exit::state),
    })
}

/// Initialization takes no time and succeeds.
fn init_status(container: &Container, containers: Containers, now: WallTime) -> Value {
    let begun = match containers {
        Containers::Creating | Containers::Idle { .. } => None,
        Containers::Running { since, .. } => Some(since),
        Containers::Crashed { exit, .. } | Containers::Ended { exit, .. } => Some(exit.started),
    };
    let state = match begun {
        None => json!({ "waiting": { "reason": "PodInitializing" } }),
        Some(at) => Exit { code: 0, started: at.min(now), ended: at.min(now) }.state(),
    };
    json!({
        "name": container.name, "image": container.image, "imageID": "", "ready": begun.is_some(), "started": false,
        "restartCount": 0, "state": state, "lastState": {},
    })
}

/// Other writers' conditions as they are, then a kubelet's own; one that stays as it is keeps its time.
fn conditions(pod: &PodView, phase: &str, containers: Containers, now: WallTime) -> Vec<Value> {
    let old = &pod.status.conditions;
    let mut conditions: Vec<Value> =
        old.iter().filter(|condition| !OWN.iter().any(|own| condition["type"] == **own)).cloned().collect();
    let unready = match phase {
        "Succeeded" => Some("PodCompleted"),
        "Failed" => Some("PodFailed"),
        _ if matches!(containers, Containers::Running { .. }) => None,
        _ => Some("ContainersNotReady"),
    };
    for kind in OWN {
        let (holds, reason) = match kind {
            "PodReadyToStartContainers" => {
                (matches!(containers, Containers::Running { .. } | Containers::Crashed { .. }), None)
            }
            "Initialized" => (true, (phase == "Succeeded").then_some("PodCompleted")),
            _ => (unready.is_none(), unready),
        };
        let value = if holds { "True" } else { "False" };
        let since = old.iter().find(|condition| condition["type"] == kind && condition["status"] == value);
        let since = since.map_or_else(|| timestamp(now).into(), |condition| condition["lastTransitionTime"].clone());
        let mut condition =
            json!({ "type": kind, "status": value, "lastProbeTime": null, "lastTransitionTime": since });
        if let Some(reason) = reason {
            condition["reason"] = reason.into();
        }
        conditions.push(condition);
    }
    conditions
}
