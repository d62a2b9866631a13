//! The cells of a Pod: how many containers are ready, and the one word that says how it is.

use serde_json::{Value, json};

use super::age::{parse, since};
use super::cells::{NONE, age, list, name, number, text};
use crate::model::WallTime;

pub(super) fn pod(object: &Value, now: WallTime) -> Vec<Value> {
    let summary = Summary::of(object);
    let restarts = match summary.last_restart.and_then(|at| since(Some(at), now)) {
        Some(ago) if summary.restarts != 0 => format!("{} ({ago} ago)", summary.restarts),
        _ => summary.restarts.to_string(),
    };
    vec![
        name(object).into(),
        format!("{}/{}", summary.ready, summary.total).into(),
        word(object, &summary).into(),
        restarts.into(),
        age(object, now).into(),
        text(object, "/status/podIPs/0/ip").unwrap_or(NONE).into(),
        text(object, "/spec/nodeName").unwrap_or(NONE).into(),
        text(object, "/status/nominatedNodeName").unwrap_or(NONE).into(),
        gates(object).into(),
    ]
}

/// What a row says of a Pod that has ended.
pub(super) fn conditions(object: &Value) -> Option<Value> {
    let (reason, message) = match text(object, "/status/phase")? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }]))
}

/// What the statuses of the containers add up to.
struct Summary<'a> {
    total: usize,
    ready: usize,
    restarts: i64,
    last_restart: Option<&'a str>,
    /// The word that the containers give, if they do.
    word: Option<String>,
}

impl<'a> Summary<'a> {
    fn of(object: &'a Value) -> Self {
        let total = list(object, "/spec/containers").len();
        let mut summary = Self { total, ready: 0, restarts: 0, last_restart: None, word: None };
        let initialized = summary.add_initialization(object);
        if initialized || holds(object, "Initialized") {
            let sidecars = list(object, "/spec/initContainers").iter().filter(|init| restarts_always(init)).count();
            summary.total += sidecars;
            summary.restarts = 0;
            summary.last_restart = None;
            summary.add_containers(object);
        }
        summary
    }

    /// Answers whether all of the initialization is done.
    fn add_initialization(&mut self, object: &'a Value) -> bool {
        let planned = list(object, "/spec/initContainers").len();
        for (index, status) in list(object, "/status/initContainerStatuses").iter().enumerate() {
            self.add_restarts(status);
            let ended = status.pointer("/state/terminated");
            let waits = text(status, "/state/waiting/reason").filter(|reason| *reason != "PodInitializing");
            self.word = Some(match (ended, waits) {
                (Some(ended), _) if number(ended, "/exitCode") == Some(0) => continue,
                (Some(ended), _) => format!("Init:{}", end(ended)),
                (None, Some(reason)) => format!("Init:{reason}"),
                (None, None) => format!("Init:{index}/{planned}"),
            });
            return false;
        }
        true
    }

    fn add_containers(&mut self, object: &'a Value) {
        let (mut running, mut error) = (false, None);
        let mut said: Option<String> = None;
        for status in list(object, "/status/containerStatuses").iter().rev() {
            self.add_restarts(status);
            if let Some(reason) = text(status, "/state/waiting/reason") {
                said = Some(reason.to_owned());
            } else if let Some(ended) = status.pointer("/state/terminated") {
                said = Some(end(ended));
                if number(ended, "/exitCode").unwrap_or_default() != 0 {
                    error.clone_from(&said);
                }
            } else if status.pointer("/ready") == Some(&Value::Bool(true)) && status.pointer("/state/running").is_some()
            {
                running = true;
                self.ready += 1;
            }
        }
        // Where one has completed, the others decide.
        if said.as_deref() == Some("Completed") {
            said = match (running, error) {
                (true, _) if holds(object, "Ready") => Some("Running".to_owned()),
                (_, Some(error)) => Some(error),
                (true, None) => Some("NotReady".to_owned()),
                (false, None) => said,
            };
        }
        self.word = said.or(self.word.take());
    }

    fn add_restarts(&mut self, status: &'a Value) {
        self.restarts += number(status, "/restartCount").unwrap_or_default();
        let ended = text(status, "/lastState/terminated/finishedAt");
        if parse(ended) > parse(self.last_restart) {
            self.last_restart = ended;
        }
    }
}

/// Why something has ended, in a word.
fn end(ended: &Value) -> String {
    let (reason, signal) = (text(ended, "/reason"), number(ended, "/signal").filter(|signal| *signal != 0));
    match (reason, signal) {
        (Some(reason), _) => reason.to_owned(),
        (None, Some(signal)) => format!("Signal:{signal}"),
        (None, None) => format!("ExitCode:{}", number(ended, "/exitCode").unwrap_or_default()),
    }
}

fn word(object: &Value, summary: &Summary<'_>) -> String {
    let phase = text(object, "/status/phase").unwrap_or_default();
    if text(object, "/metadata/deletionTimestamp").is_some() {
        if text(object, "/status/reason") == Some("NodeLost") {
            return "Unknown".to_owned();
        }
        if !matches!(phase, "Succeeded" | "Failed") {
            return "Terminating".to_owned();
        }
    }
    let gated = list(object, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == Some("PodScheduled") && text(condition, "/reason") == Some("SchedulingGated")
    });
    let said = summary.word.clone().or_else(|| gated.then(|| "SchedulingGated".to_owned()));
    said.unwrap_or_else(|| text(object, "/status/reason").unwrap_or(phase).to_owned())
}

fn holds(object: &Value, kind: &str) -> bool {
    list(object, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/type") == Some(kind) && text(condition, "/status") == Some("True"))
}

fn restarts_always(container: &Value) -> bool {
    text(container, "/restartPolicy") == Some("Always")
}

fn gates(object: &Value) -> String {
    let gates = list(object, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates.iter().filter(|gate| text(gate, "/conditionType").is_some_and(|kind| holds(object, kind))).count();
    format!("{open}/{}", gates.len())
}
