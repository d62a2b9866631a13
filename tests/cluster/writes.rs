//! The API client and the event recorder over the sandbox, with what goes wrong with writes.

use std::time::Duration;

use cronjob_controller::cluster::{EventMetrics, EventOptions, EventRecorder, event_recorder};
use cronjob_controller::model::{EventType, Happening, ObjectReference};
use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::{Action, Fault};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::common::{CRONJOBS, World, moment};

const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A recorder over a sandbox, with its task.
struct Recording {
    recorder: EventRecorder,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Recording {
    fn start(world: &World) -> Self {
        let (client, clock) = (world.client.clone(), world.clock.clone());
        let (recorder, task) = event_recorder(client, clock, EventOptions::new(7), EventMetrics::default());
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(task.run(stop.clone()));
        Self { recorder, stop, tasks }
    }

    fn say(&self, message: &str, due_minutes: Option<i64>) {
        let about = ObjectReference {
            api_version: "batch/v1".into(),
            kind: "CronJob".into(),
            namespace: "default".into(),
            name: "train".into(),
            uid: "u1".to_owned().into(),
            ..Default::default()
        };
        let happening = Happening {
            event_type: EventType::Normal,
            reason: "JobAlreadyActive",
            message: message.to_owned(),
            due_minutes,
        };
        self.recorder.record("cronjob-controller", about, happening);
    }

    async fn finish(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The events that `kubectl describe` would show of the CronJob.
async fn events(world: &World) -> Vec<Value> {
    let selector =
        "fieldSelector=involvedObject.name%3Dtrain%2CinvolvedObject.uid%3Du1%2CinvolvedObject.kind%3DCronJob";
    let list = world.send("GET", &format!("{EVENTS}?{selector}"), &Value::Null).await.unwrap();
    list["items"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn events_are_found_by_their_object_and_repetitions_are_counted() {
    let world = World::new(1);
    let recording = Recording::start(&world);
    for _ in 0..3 {
        recording.say("still running", None);
        sleep(Duration::from_secs(60)).await;
    }
    let events = events(&world).await;
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0]["count"].as_u64(), events[0]["source"]["component"].as_str()),
        (Some(3), Some("cronjob-controller"))
    );
    assert_eq!(events[0]["lastTimestamp"], "2026-03-08T12:02:00Z");
    recording.finish().await;
}

#[tokio::test(start_paused = true)]
async fn a_due_instant_is_spoken_of_once_also_by_the_next_process() {
    let world = World::new(1);
    for _ in 0..2 {
        let recording = Recording::start(&world);
        recording.say("still running", Some(29_548_080));
        recording.finish().await;
    }
    let events = events(&world).await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["metadata"]["name"], "train.jobalreadyactive.29548080");
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_answer_is_lost_is_one_event() {
    let world = World::new(1);
    world.sandbox.faults().install(Fault::lost_answer().on(Verb::Create).resource("", "events").times(1));
    let recording = Recording::start(&world);
    recording.say("still running", None);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(events(&world).await.len(), 1);
    assert_eq!(world.sandbox.requests().of(Verb::Create, "", "events"), 2);
    recording.finish().await;
}

#[tokio::test(start_paused = true)]
async fn shutdown_writes_what_was_said_last() {
    let world = World::new(1);
    let recording = Recording::start(&world);
    for i in 0..9 {
        recording.say(&format!("message {i}"), None);
    }
    recording.finish().await;
    assert_eq!(events(&world).await.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_creation_refused_for_load_is_made_after_the_wait() {
    let world = World::new(1);
    let busy = Fault::refuse(429, Some(3)).on(Verb::Create).resource("batch", "cronjobs").times(2);
    world.sandbox.faults().install(busy);
    let begun = world.clock.wall();
    world.create("a").await;
    assert_eq!((world.clock.wall() - begun).num_seconds(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_lost_is_ambiguous_and_not_repeated() {
    let world = World::new(1);
    world.create("template").await;
    let mut object = world.send("GET", &format!("{CRONJOBS}/template"), &Value::Null).await.unwrap();
    object["metadata"] = json!({"name": "a"});
    world.sandbox.faults().install(Fault::lost_answer().on(Verb::Create).times(1));
    let failure = world.send("POST", CRONJOBS, &object).await.unwrap_err();
    assert!(failure.is_ambiguous());
    assert_eq!(world.sandbox.requests().of(Verb::Create, "batch", "cronjobs"), 2);
    let failure = world.send("POST", CRONJOBS, &object).await.unwrap_err();
    assert!(failure.is_already_exists(), "it was applied: {failure:?}");
}

#[tokio::test(start_paused = true)]
async fn a_read_survives_a_lost_request() {
    let world = World::new(1);
    world.create("a").await;
    world.sandbox.faults().install(Fault::new(Action::LostRequest).on(Verb::Get).times(2));
    let object = world.send("GET", &format!("{CRONJOBS}/a"), &Value::Null).await.unwrap();
    assert_eq!(object["metadata"]["name"], "a");
    moment().await;
}
