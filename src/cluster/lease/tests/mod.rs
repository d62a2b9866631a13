//! The election under paused time, against a server that keeps one Lease: client-go's scenarios and those in which it fails.

mod leader;
mod standby;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chrono::TimeZone;
use futures::channel::mpsc::UnboundedSender;
use serde_json::{Value, json};
use tokio::time::advance;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::BoxError;

use super::elector::Attempt;
use super::*;
use crate::cluster::testing::{Seen, Server, broken, channel_body, fixed_body, refusal, reply, settle, silence};
use crate::cluster::{ApiClient, ApiClientOptions, EventMetrics, EventOptions, event_recorder};
use crate::telemetry::Health;

/// What the server keeps, and how it behaves.
#[derive(Default)]
struct Kept {
    lease: Option<Value>,
    version: u64,
    watches: Vec<UnboundedSender<Result<Bytes, BoxError>>>,
    /// Watches are refused.
    unwatchable: bool,
    /// Watches open and stay silent.
    deaf: bool,
    /// Nothing is answered.
    dead: bool,
    /// The next write is applied, its answer lost.
    loses_answer: bool,
}

impl Kept {
    fn store(&mut self, mut lease: Value) -> Value {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        lease["metadata"]["uid"] = json!("uid");
        self.lease = Some(lease.clone());
        if !self.deaf {
            let line = format!("{}\n", json!({"type": "MODIFIED", "object": lease}));
            self.watches.retain(|watch| watch.unbounded_send(Ok(line.clone().into())).is_ok());
        }
        lease
    }

    fn write(&mut self, seen: &Seen) -> Result<Value, (u16, &'static str)> {
        let body: Value = serde_json::from_str(&seen.body).unwrap();
        let stored = self.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        match (&*seen.method, stored) {
            ("POST", None) => Ok(self.store(body)),
            ("POST", Some(_)) => Err((409, "AlreadyExists")),
            (_, None) => Err((404, "NotFound")),
            (_, Some(version)) if version == body["metadata"]["resourceVersion"] => Ok(self.store(body)),
            (_, Some(_)) => Err((409, "Conflict")),
        }
    }
}

/// A server with one Lease.
#[derive(Clone)]
struct World {
    clock: Clock,
    server: Server,
    kept: Arc<Mutex<Kept>>,
    events: Server,
    tasks: TaskTracker,
    metrics: LeaderMetrics,
}

impl World {
    fn new() -> Self {
        let clock = Clock::starting_at(chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap());
        let (server, events, kept) = (Server::default(), Server::default(), Arc::new(Mutex::new(Kept::default())));
        events.answer_rest(|_| reply(201, fixed_body(&["{}"])));
        let state = kept.clone();
        server.answer_rest(move |seen| {
            let mut kept = state.lock().unwrap();
            if kept.dead {
                return silence();
            }
            if seen.uri.contains("watch=true") {
                if kept.unwatchable {
                    return refusal(403, "Forbidden", 0);
                }
                let (send, body) = channel_body();
                kept.watches.push(send);
                return reply(200, body);
            }
            if seen.method == "GET" {
                return match &kept.lease {
                    Some(lease) => reply(200, fixed_body(&[&lease.to_string()])),
                    None => refusal(404, "NotFound", 0),
                };
            }
            let answer = kept.write(seen);
            match answer {
                Ok(_) if std::mem::take(&mut kept.loses_answer) => broken(),
                Ok(lease) => reply(200, fixed_body(&[&lease.to_string()])),
                Err((code, reason)) => refusal(code, reason, 0),
            }
        });
        Self { clock, server, kept, events, tasks: TaskTracker::new(), metrics: LeaderMetrics::default() }
    }

    /// A candidate, and what its writes would ask.
    fn candidate(&self, identity: &str) -> (Elector, Validity) {
        let options = ApiClientOptions::default();
        let api = ApiClient::new(self.events.client(), self.clock.clone(), options, RequestMetrics::default());
        let (recorder, task) = event_recorder(api, self.clock.clone(), EventOptions::new(1), EventMetrics::default());
        self.tasks.spawn(task.run(CancellationToken::new()));
        let validity = Validity::new(self.clock.clone());
        let elector = Elector::new(ElectorSetup {
            client: self.server.client(),
            host: "host".into(),
            clock: self.clock.clone(),
            seed: identity.len() as u64,
            election: Election {
                namespace: "n".into(),
                name: "l".into(),
                identity: identity.into(),
                timing: Timing::default(),
            },
            validity: validity.clone(),
            recorder,
            requests: RequestMetrics::default(),
            metrics: self.metrics.clone(),
        });
        (elector, validity)
    }

    /// Somebody else writes the record.
    fn write(&self, spec: Value) {
        let metadata = json!({"name": "l", "namespace": "n"});
        self.kept.lock().unwrap().store(json!({"metadata": metadata, "spec": spec}));
    }

    /// Another holds the Lease, and renews it now.
    fn held_by(&self, holder: &str, duration_s: u64) {
        let now = self.clock.wall().to_rfc3339();
        self.write(json!({"holderIdentity": holder, "leaseDurationSeconds": duration_s, "renewTime": now, "leaseTransitions": 4}));
    }

    fn set(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.kept.lock().unwrap());
    }

    fn spec(&self, field: &str) -> Value {
        self.kept.lock().unwrap().lease.as_ref().map(|lease| lease["spec"][field].clone()).unwrap_or_default()
    }

    /// The requests so far, in short.
    fn requests(&self) -> String {
        let words = self.server.seen().into_iter().map(|seen| match &*seen.method {
            "GET" if seen.uri.contains("watch=true") => "watch",
            "GET" => "get",
            "POST" => "create",
            _ => "update",
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// The messages of events so far.
    async fn told(&self) -> Vec<String> {
        settle().await;
        let message =
            |seen: Seen| serde_json::from_str::<Value>(&seen.body).unwrap()["message"].as_str().unwrap().to_owned();
        self.events.seen().into_iter().map(message).collect()
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Runs `future` for `time` and drops it; whether it ended by itself.
async fn run_for(time: Duration, future: impl Future<Output = ()>) -> bool {
    tokio::time::timeout(time, future).await.is_ok()
}

#[test]
fn durations_are_checked_by_the_peers_rules() {
    let timing = |lease: u64, renew: u64, retry_ms: u64| Timing {
        lease_duration: secs(lease),
        renew_deadline: secs(renew),
        retry_period: Duration::from_millis(retry_ms),
    };
    assert_eq!(timing(15, 10, 2000).check(), Ok(()));
    assert_eq!(timing(3, 2, 500).check(), Ok(()));
    assert_eq!(timing(10, 10, 2000).check(), Err(ElectionError::RenewDeadline));
    assert_eq!(timing(15, 10, 0).check(), Err(ElectionError::NoRetryPeriod));
    assert_eq!(timing(15, 12, 10_000).check(), Err(ElectionError::RetryPeriod));
    assert_eq!(timing(0, 0, 0).check(), Err(ElectionError::LeaseDuration));
    let of_s = |s| Timing { lease_duration: Duration::from_secs(s), ..Timing::default() };
    assert_eq!(of_s(2_147_483_648).check(), Err(ElectionError::LeaseDuration));
    assert_eq!(of_s(2_147_483_647).check(), Ok(()));
    let odd = Timing { lease_duration: Duration::from_millis(15_500), ..Timing::default() };
    assert_eq!(odd.check(), Err(ElectionError::LeaseDuration));
    let nobody =
        Election { namespace: "n".into(), name: "l".into(), identity: String::new(), timing: Timing::default() };
    assert_eq!(nobody.check(), Err(ElectionError::Identity));
}

#[test]
fn a_leader_gives_up_before_it_may_no_more_write_and_that_before_others_take_over() {
    for timing in [
        Timing::default(),
        Timing { lease_duration: secs(3), renew_deadline: secs(2), retry_period: Duration::from_millis(500) },
        Timing { lease_duration: secs(60), renew_deadline: secs(59), retry_period: secs(40) },
    ] {
        assert!(timing.patience() <= timing.validity() && timing.validity() < timing.lease_duration, "{timing:?}");
    }
    assert_eq!(Timing::default().patience(), secs(12));
    assert_eq!(Timing::default().request_deadline(), secs(5));
}
