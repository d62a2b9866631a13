use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::TimeZone;
use tokio::time::{advance, sleep};
use tokio_util::task::TaskTracker;

use super::*;
use crate::cluster::api_client::ApiClientOptions;
use crate::cluster::metrics::RequestMetrics;
use crate::cluster::testing::{Server, broken, fixed_body, refusal, reply, settle, silence};
use crate::model::EventType;

/// A recorder over a scripted server.
struct Rig {
    server: Server,
    recorder: EventRecorder,
    metrics: EventMetrics,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Rig {
    fn new(options: EventOptions) -> Self {
        let server = Server::default();
        let clock = Clock::starting_at(chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap());
        let client =
            ApiClient::new(server.client(), clock.clone(), ApiClientOptions::default(), RequestMetrics::default());
        let metrics = EventMetrics::default();
        let (recorder, task) = event_recorder(client, clock, options, metrics.clone());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(task.run(stop.clone()));
        Self { server, recorder, metrics, stop, tasks }
    }

    fn say(&self, object: &str, due_minutes: Option<i64>) {
        let about = ObjectReference {
            api_version: "batch/v1".into(),
            kind: "CronJob".into(),
            namespace: "ns".into(),
            name: object.into(),
            uid: "u1".to_owned().into(),
            resource_version: "7".into(),
            ..Default::default()
        };
        let happening =
            Happening { event_type: EventType::Warning, reason: "MissSchedule", message: "missed".into(), due_minutes };
        self.recorder.record("cronjob-controller", about, happening);
    }

    fn accept(&self) {
        self.server.answer(|_| reply(201, fixed_body(&["{}"])));
    }

    async fn requests(&self) -> Vec<String> {
        settle().await;
        self.server.uris()
    }

    async fn finish(self) -> EventMetrics {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.metrics
    }
}

fn usual() -> EventOptions {
    EventOptions::new(7)
}

const EVENTS: &str = "/api/v1/namespaces/ns/events";

#[tokio::test(start_paused = true)]
async fn an_event_is_written_so_that_describe_finds_it() {
    let rig = Rig::new(usual());
    rig.accept();
    rig.say("train", Some(29_548_080));
    assert_eq!(rig.requests().await, [format!("POST {EVENTS}")]);
    let body: serde_json::Value = serde_json::from_str(&rig.server.seen()[0].body).unwrap();
    let expected = serde_json::json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": "train.missschedule.29548080", "namespace": "ns"},
        "involvedObject": {"apiVersion": "batch/v1", "kind": "CronJob", "namespace": "ns", "name": "train",
            "uid": "u1", "resourceVersion": "7"},
        "type": "Warning", "reason": "MissSchedule", "message": "missed", "count": 1,
        "firstTimestamp": "2026-03-08T12:00:00Z", "lastTimestamp": "2026-03-08T12:00:00Z",
        "source": {"component": "cronjob-controller"},
        "reportingComponent": "cronjob-controller", "reportingInstance": "",
    });
    assert_eq!(body, expected);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_about_an_object_without_namespace_goes_to_default() {
    let rig = Rig::new(usual());
    let happening = Happening { event_type: EventType::Normal, reason: "R", message: String::new(), due_minutes: None };
    rig.recorder.record("c", ObjectReference { name: "node".into(), ..Default::default() }, happening);
    assert_eq!(rig.requests().await, ["POST /api/v1/namespaces/default/events"]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_repetition_patches_the_count_and_an_expired_event_is_made_anew() {
    let rig = Rig::new(usual());
    rig.accept();
    rig.say("train", None);
    settle().await;
    rig.server.answer(|_| reply(200, fixed_body(&["{}"])));
    rig.say("train", None);
    settle().await;
    rig.server.answer(|_| refusal(404, "NotFound", 0));
    rig.accept();
    rig.say("train", None);
    let requests = rig.requests().await;
    let patch = requests[1].clone();
    assert!(patch.starts_with(&format!("PATCH {EVENTS}/train.")), "{patch}");
    assert_eq!(requests, [format!("POST {EVENTS}"), patch.clone(), patch, format!("POST {EVENTS}")]);
    let counts: Vec<_> = rig.server.seen().iter().map(|s| s.body.contains("\"count\":3")).collect();
    assert_eq!(counts, [false, false, true, true]);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn already_exists_means_said_already() {
    let rig = Rig::new(usual());
    rig.server.answer(|_| refusal(409, "AlreadyExists", 0));
    rig.say("train", Some(100));
    settle().await;
    advance(Duration::from_secs(60)).await;
    assert_eq!(rig.requests().await.len(), 1);
    assert_eq!(rig.finish().await.failed.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_final_after_one_try() {
    let rig = Rig::new(usual());
    rig.server.answer(|_| refusal(403, "Forbidden", 0));
    rig.say("train", None);
    settle().await;
    advance(Duration::from_secs(600)).await;
    assert_eq!(rig.requests().await.len(), 1);
    assert_eq!(rig.finish().await.failed.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_it_is_tried_twelve_times() {
    let rig = Rig::new(usual());
    for _ in 0..20 {
        rig.server.answer(|_| broken());
    }
    rig.say("train", None);
    for _ in 0..30 {
        settle().await;
        advance(Duration::from_secs(10)).await;
    }
    assert_eq!(rig.requests().await.len(), 12);
    assert_eq!(rig.finish().await.failed.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_try_can_succeed() {
    let rig = Rig::new(usual());
    rig.server.answer(|_| broken());
    rig.accept();
    rig.say("train", None);
    settle().await;
    advance(Duration::from_secs(10)).await;
    assert_eq!(rig.requests().await.len(), 2);
    assert_eq!(rig.finish().await.failed.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_event_that_gets_no_answer_holds_no_other_up() {
    let rig = Rig::new(usual());
    rig.server.answer(|_| silence());
    rig.accept();
    rig.accept();
    rig.say("stuck", None);
    rig.say("a", None);
    rig.say("b", None);
    assert_eq!(rig.requests().await.len(), 3);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn events_that_wait_for_their_next_try_leave_their_place_to_others() {
    let rig = Rig::new(EventOptions { concurrency: 1, ..usual() });
    rig.server.answer(|_| broken());
    rig.accept();
    rig.say("broken", None);
    rig.say("whole", None);
    assert_eq!(rig.requests().await.len(), 2);
    assert!(rig.server.seen()[1].body.contains("whole"));
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn of_one_event_only_one_write_is_in_flight_and_then_the_newest_count() {
    let rig = Rig::new(usual());
    let (open, body) = crate::cluster::testing::channel_body();
    rig.server.answer(|_| reply(201, body));
    for _ in 0..4 {
        rig.say("train", None);
    }
    assert_eq!(rig.requests().await.len(), 1);
    drop(open);
    assert_eq!(rig.requests().await.len(), 2);
    assert!(rig.server.seen()[1].body.contains("\"count\":4"));
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_events_that_each_fail_four_times_are_all_written() {
    let rig = Rig::new(usual());
    let tries: Mutex<BTreeMap<String, u32>> = Mutex::default();
    rig.server.answer_rest(move |seen| {
        let mut tries = tries.lock().unwrap();
        let tries = tries.entry(seen.body.clone()).or_default();
        *tries += 1;
        if *tries < 5 { broken() } else { reply(201, fixed_body(&["{}"])) }
    });
    for i in 0..1000 {
        rig.say(&format!("train-{i}"), None);
    }
    // Time runs by itself while nothing else does.
    sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.server.seen().len(), 5000);
    let metrics = rig.finish().await;
    assert_eq!((metrics.recorded.get(), metrics.dropped_full.get(), metrics.failed.get()), (1000, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_counts_and_never_waits() {
    let rig = Rig::new(EventOptions { queue: 2, ..usual() });
    for i in 0..5 {
        rig.say(&format!("train-{i}"), None);
    }
    assert_eq!(rig.metrics.dropped_full.get(), 3);
    rig.finish().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_writes_what_is_left_with_one_try_each_and_a_deadline() {
    let rig = Rig::new(usual());
    rig.server.answer(|_| broken());
    rig.accept();
    rig.accept();
    rig.say("first", None);
    settle().await;
    // The first waits for its second try; these two are recorded as the stop comes.
    rig.say("a", None);
    rig.say("b", None);
    let (server, begun) = (rig.server.clone(), Clock::system().mono());
    let metrics = rig.finish().await;
    assert_eq!(server.seen().len(), 4, "the first is tried once more");
    assert!(Clock::system().mono() - begun <= Duration::from_secs(5));
    assert_eq!(metrics.dropped_full.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn recording_after_shutdown_is_harmless() {
    let rig = Rig::new(usual());
    let recorder = rig.recorder.clone();
    let metrics = rig.finish().await;
    let happening = Happening { event_type: EventType::Normal, reason: "R", message: String::new(), due_minutes: None };
    recorder.record("c", ObjectReference::default(), happening);
    assert_eq!(metrics.dropped_full.get(), 1);
}
