//! Objects that nobody in their senses would write, one at a time beside a healthy CronJob: nothing crashes, nobody hammers the
//! server, what is wrong is told on the object it is wrong with, and the healthy one starts every run.

use std::time::Duration;

use cronjob_controller::api::decode_cronjob;
use cronjob_controller::model::Flavor;
use cronjob_controller::sandbox::call::{Subresource, Verb};
use cronjob_controller::sandbox::resources::Resource;
use serde_json::{Value, json};

use crate::world::{World, cronjob, cronjobs, jobs, volcano_cronjob, volcano_cronjobs, volcano_jobs};

const MINUTES: usize = 5;
/// Most requests of all kinds in those minutes: for each of the two a handful for each run, and the watches and events.
const MOST_REQUESTS: u64 = 150;

/// What must come of a hostile CronJob.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// It runs every minute.
    Runs,
    /// It starts nothing, and nothing needs to be said.
    Rests,
    /// It starts nothing, and an event with this reason and text says why.
    Speaks(&'static str, &'static str),
    /// What matters is only that nobody else is harmed, and that it is not read if it cannot be.
    Harmless,
}

/// One hostile CronJob: where something is put, and what.
struct Row {
    name: String,
    path: &'static str,
    value: Value,
    fate: Fate,
}

fn row(path: &'static str, value: Value, fate: Fate) -> Row {
    let text = value.to_string();
    Row { name: format!("{path} = {}", text.get(..60).unwrap_or(&text)), path, value, fate }
}

const UNREADABLE: &str = "UnreadableObject";

/// A value of each type of JSON, and no value.
fn types() -> [Value; 8] {
    [json!(null), json!(true), json!(7), json!(-1.5), json!(1e300), json!("x"), json!([7]), json!({"x": 7})]
}

const FIELDS: [&str; 25] = [
    "/metadata/creationTimestamp",
    "/metadata/deletionTimestamp",
    "/metadata/ownerReferences",
    "/metadata/annotations",
    "/metadata/labels",
    "/metadata/generation",
    "/metadata/managedFields",
    "/spec",
    "/spec/schedule",
    "/spec/timeZone",
    "/spec/startingDeadlineSeconds",
    "/spec/concurrencyPolicy",
    "/spec/suspend",
    "/spec/successfulJobsHistoryLimit",
    "/spec/failedJobsHistoryLimit",
    "/spec/jobTemplate",
    "/spec/jobTemplate/metadata",
    "/spec/jobTemplate/metadata/labels",
    "/spec/jobTemplate/metadata/annotations",
    "/spec/jobTemplate/spec",
    "/status",
    "/status/active",
    "/status/active/0",
    "/status/lastScheduleTime",
    "/status/lastSuccessfulTime",
];

/// Every field that is read, with every type.
fn wrong_types() -> Vec<Row> {
    FIELDS.iter().flat_map(|field| types().map(|value| row(field, value, Fate::Harmless))).collect()
}

/// Instants before 1970, at the ends of Go's nanoseconds, at the ends of the calendar, and beyond.
fn strange_times() -> Vec<Row> {
    let past = ["0000-01-01T00:00:00Z", "1677-09-21T00:12:43Z", "1969-12-31T23:59:59.999999999Z"];
    let future = ["2262-04-12T00:00:00Z", "9999-12-31T23:59:59Z"];
    let none = ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2026-02-30T00:00:00Z", "26-03-01", ""];
    let mut rows = Vec::new();
    for field in ["/metadata/creationTimestamp", "/status/lastScheduleTime", "/status/lastSuccessfulTime"] {
        let ahead = match field {
            "/status/lastSuccessfulTime" => Fate::Runs,
            "/status/lastScheduleTime" => Fate::Speaks("LastScheduleTimeAhead", "lies ahead of the clock"),
            _ => Fate::Rests,
        };
        rows.extend(past.map(|at| row(field, json!(at), Fate::Runs)));
        rows.extend(future.map(|at| row(field, json!(at), ahead)));
        rows.extend(none.map(|at| row(field, json!(at), Fate::Speaks(UNREADABLE, "an RFC 3339 time"))));
    }
    let gone = ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"];
    rows.extend(gone.map(|at| row("/metadata/deletionTimestamp", json!(at), Fate::Rests)));
    rows
}

fn strange_numbers() -> Vec<Row> {
    let deadline = "/spec/startingDeadlineSeconds";
    let mut rows = vec![
        row(deadline, json!(i64::MAX), Fate::Runs),
        row(deadline, json!(9_223_372_037_i64), Fate::Runs),
        row(deadline, json!(0), Fate::Runs),
        row(deadline, json!(-1), Fate::Rests),
        row(deadline, json!(i64::MIN), Fate::Rests),
        row(deadline, json!(u64::MAX), Fate::Speaks(UNREADABLE, "startingDeadlineSeconds")),
    ];
    for limit in ["/spec/successfulJobsHistoryLimit", "/spec/failedJobsHistoryLimit"] {
        rows.extend([i32::MIN, -1, 0, i32::MAX].map(|value| row(limit, json!(value), Fate::Runs)));
        rows.push(row(limit, json!(i64::from(i32::MAX) + 1), Fate::Speaks(UNREADABLE, "HistoryLimit")));
    }
    rows
}

fn strange_texts() -> Vec<Row> {
    let long = "x".repeat(1 << 20);
    let zone = "/spec/timeZone";
    vec![
        row("/spec/schedule", json!(long), Fate::Speaks("UnparseableSchedule", "expected exactly 5 fields")),
        row("/spec/schedule", json!("0,".repeat(1 << 19) + "0 * * * *"), Fate::Rests),
        row(
            "/spec/schedule",
            json!("\u{0}\u{1b}[2J\n"),
            Fate::Speaks("UnparseableSchedule", "expected exactly 5 fields"),
        ),
        row("/spec/schedule", json!("0 0 31 2 *"), Fate::Speaks("InvalidSchedule", "")),
        row(zone, json!(long), Fate::Speaks("TimeZone", "xxx")),
        row(zone, json!("../../etc/passwd"), Fate::Speaks("TimeZone", "passwd")),
        row("/spec/concurrencyPolicy", json!(long), Fate::Runs),
        row(
            "/spec/jobTemplate/spec/template/spec/containers/0/env",
            json!([{"name": "BIG", "value": long}]),
            Fate::Harmless,
        ),
        row("/status/active", json!([{"name": "../../../x?y#z", "namespace": "..", "uid": "\u{0}"}]), Fate::Runs),
        row("/status/active", json!([{"name": long, "uid": long}]), Fate::Harmless),
        row("/metadata/resourceVersion", json!("x"), Fate::Runs),
    ]
}

/// One API's CronJobs and Jobs.
pub(crate) struct Kind {
    pub(crate) flavor: Flavor,
    pub(crate) cronjobs: &'static Resource,
    pub(crate) jobs: &'static Resource,
    pub(crate) make: fn(&str, &str, Value) -> Value,
}

pub(crate) fn kinds() -> [Kind; 2] {
    [
        Kind { flavor: Flavor::Kubernetes, cronjobs: cronjobs(), jobs: jobs(), make: cronjob },
        Kind { flavor: Flavor::Volcano, cronjobs: volcano_cronjobs(), jobs: volcano_jobs(), make: volcano_cronjob },
    ]
}

/// Puts `value` at `path`, past every rule of the server; containers on the way are made.
fn put(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.split('/').skip(1) {
        if part == "0" {
            if !place.is_array() {
                *place = json!([null]);
            }
            place = &mut place[0];
        } else {
            if !place.is_object() {
                *place = json!({});
            }
            place = &mut place[part];
        }
    }
    *place = value;
}

/// A world in which the row's CronJob is `hostile`, and another one is `healthy`.
async fn world_of(kind: &Kind, row: &Row) -> World {
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&(kind.make)("healthy", "* * * * *", json!({}))).await;
    world.create(&(kind.make)("hostile", "* * * * *", json!({}))).await;
    let mut object = world.sandbox.get(kind.cronjobs, "default", "hostile").unwrap();
    put(&mut object, row.path, row.value.clone());
    assert!(world.sandbox.store_unvalidated(kind.cronjobs, &object));
    world.sandbox.requests().reset();
    world.start();
    world.pass(Duration::from_secs(60 * MINUTES as u64 + 15)).await;
    world
}

async fn judge(kind: &Kind, row: &Row) {
    let world = world_of(kind, row).await;
    let told = format!("{:?}: {}", kind.flavor, row.name);
    assert_eq!(world.job_names(kind.jobs, "healthy").await.len(), MINUTES, "{told}");
    let requests = world.sandbox.requests().sum(|_| true);
    assert!(requests <= MOST_REQUESTS, "{told}: {requests} requests: {:#?}", world.sandbox.requests().snapshot());
    let stored = world.sandbox.get(kind.cronjobs, "default", "hostile").unwrap_or_default();
    let started = world.job_names(kind.jobs, "hostile").await.len();
    let said = world.said("hostile");
    let unreadable = decode_cronjob(kind.flavor, &stored.to_string()).err();
    if let Some(error) = &unreadable {
        let names_field = |message: &str| message.contains("default/hostile") && message.contains(&error.field);
        assert!(said.iter().any(|said| said.reason == UNREADABLE && names_field(&said.message)), "{told}: {said:?}");
        assert_eq!(started, 0, "{told}");
    } else {
        assert!(said.iter().all(|said| said.reason != UNREADABLE), "{told}: {said:?}");
    }
    match row.fate {
        // One that looks old is due at once.
        Fate::Runs => assert!((MINUTES..=MINUTES + 1).contains(&started), "{told}: {started} {said:?}"),
        Fate::Rests => assert_eq!(started, 0, "{told}: {said:?}"),
        Fate::Speaks(reason, text) => {
            let fits = |said: &crate::world::Said| said.reason.contains(reason) && said.message.contains(text);
            assert!(said.iter().any(fits) && started == 0, "{told}: {started} {said:?}");
        }
        Fate::Harmless => {}
    }
    // A creation that the server refuses is tried again after back-offs, as the peers do.
    assert!(said.len() <= 6 * MINUTES + 4, "{told}: said {} times", said.len());
    world.end().await;
}

async fn judge_all(rows: Vec<Row>) {
    for kind in kinds() {
        for row in &rows {
            judge(&kind, row).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_of_the_wrong_type_harms_its_object_alone() {
    judge_all(wrong_types()).await;
}

#[tokio::test(start_paused = true)]
async fn times_outside_every_calendar_harm_nobody() {
    judge_all(strange_times()).await;
}

#[tokio::test(start_paused = true)]
async fn numbers_at_the_ends_of_their_types_mean_what_they_say() {
    judge_all(strange_numbers()).await;
}

#[tokio::test(start_paused = true)]
async fn texts_of_any_length_and_content_harm_nobody() {
    judge_all(strange_texts()).await;
}

/// Fields of a Job that are read, in both APIs.
const JOB_FIELDS: [&str; 16] = [
    "/metadata/creationTimestamp",
    "/metadata/deletionTimestamp",
    "/metadata/annotations",
    "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp",
    "/metadata/annotations/volcano.sh~1cronjob-scheduled-timestamp",
    "/metadata/ownerReferences",
    "/metadata/ownerReferences/0/controller",
    "/status",
    "/status/startTime",
    "/status/completionTime",
    "/status/conditions",
    "/status/conditions/0",
    "/status/conditions/0/type",
    "/status/state",
    "/status/state/phase",
    "/status/state/lastTransitionTime",
];

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_read_stops_no_run_of_others_and_no_later_run() {
    let times = ["0000-01-01T00:00:00Z", "2262-04-12T00:00:00Z", "9999-12-31T23:59:59-00:01"].map(Value::from);
    let values: Vec<Value> = types().into_iter().chain(times).collect();
    for kind in kinds() {
        for (field, value) in JOB_FIELDS.iter().flat_map(|field| values.iter().map(move |value| (field, value))) {
            judge_job(&kind, field, value).await;
        }
    }
}

async fn judge_job(kind: &Kind, field: &str, value: &Value) {
    let told = format!("{:?}: {field} = {value}", kind.flavor);
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&(kind.make)("healthy", "* * * * *", json!({}))).await;
    world.create(&(kind.make)("hostile", "* * * * *", json!({}))).await;
    world.start();
    world.pass(Duration::from_secs(45)).await;
    let name = world.job_names(kind.jobs, "hostile").await.remove(0);
    let mut job = world.sandbox.get(kind.jobs, "default", &name).unwrap();
    put(&mut job, &field.replace("~1", "\u{1}"), value.clone());
    let job: Value = serde_json::from_str(&job.to_string().replace("\\u0001", "/")).unwrap();
    assert!(world.sandbox.store_unvalidated(kind.jobs, &job));
    world.sandbox.requests().reset();
    world.pass(Duration::from_secs(60 * MINUTES as u64)).await;
    let started = |owner: &'static str| world.times_said(owner, "SuccessfulCreate");
    assert_eq!((started("healthy"), started("hostile")), (MINUTES + 1, MINUTES + 1), "{told}");
    let requests = world.sandbox.requests().sum(|_| true);
    assert!(requests <= MOST_REQUESTS, "{told}: {requests} requests");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn names_and_labels_at_their_limits_reach_the_job_or_are_refused_and_told() {
    let dots = "a.".repeat(25) + "b1";
    let labels = json!({
        format!("{}/{}", ["a".repeat(63).as_str(); 3].join(".") + "." + &"b".repeat(61), "n".repeat(63)): "v".repeat(63),
        "A-_.z": "Z-_.a", "empty": "",
    });
    let annotations = json!({"large": "\u{10ffff}\"\\\n".repeat(20_000), "x/y": ""});
    for kind in kinds() {
        for (length, name) in [
            (51, dots[..51].to_owned()),
            (52, "n".repeat(52)),
            (53, "n".repeat(53)),
            (63, "n".repeat(63)),
            (253, "n".repeat(253)),
        ] {
            let mut world = World::new("2026-03-01T10:00:30Z");
            world.create(&(kind.make)("healthy", "* * * * *", json!({}))).await;
            let mut object = (kind.make)(&name, "* * * * *", json!({}));
            object["metadata"]["labels"] = labels.clone();
            object["spec"]["jobTemplate"]["metadata"] = json!({"labels": labels, "annotations": annotations});
            let taken = world.try_create(&object).await;
            assert!(taken.is_ok() || length > 52, "{length}: {taken:?}");
            world.start();
            world.pass(Duration::from_secs(60 * MINUTES as u64 + 15)).await;
            let started = world.job_names(kind.jobs, &name).await;
            let told = world.times_said(&name, "FailedCreate");
            assert_eq!(world.job_names(kind.jobs, "healthy").await.len(), MINUTES);
            assert!(taken.is_err() || started.len() == MINUTES || told >= MINUTES, "{length}: {started:?} {told}");
            if let Some(first) = started.first() {
                let job = world.sandbox.get(kind.jobs, "default", first).unwrap();
                assert_eq!(job["metadata"]["annotations"]["large"], annotations["large"]);
                assert_eq!(job["metadata"]["labels"]["A-_.z"], "Z-_.a");
            }
            assert!(world.sandbox.requests().sum(|_| true) <= MOST_REQUESTS, "{length}");
            world.end().await;
        }
    }
}

/// Stores `count` Jobs of the CronJob `owner`, one for each minute before ten o'clock, oldest first.
async fn store_runs(world: &World, owner: &str, count: i64, status: &Value) {
    let uid = world.sandbox.get(cronjobs(), "default", owner).unwrap()["metadata"]["uid"].clone();
    let last = crate::world::at("2026-03-01T10:00:00Z").timestamp() / 60;
    for minute in last - count..last {
        let template = cronjob("t", "", json!({}))["spec"]["jobTemplate"].clone();
        let owner =
            json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": owner, "uid": uid, "controller": true}]);
        let name = format!("{}-{minute}", owner[0]["name"].as_str().unwrap());
        let object = json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"namespace": "default", "name": name, "ownerReferences": owner}, "spec": template["spec"]});
        world.create(&object).await;
        let mut stored = world.sandbox.get(jobs(), "default", &name).unwrap();
        stored["status"] = status.clone();
        assert!(world.sandbox.store_unvalidated(jobs(), &stored));
    }
}

fn status_writes(world: &World) -> u64 {
    world.sandbox.requests().sum(|key| key.resource == "cronjobs" && key.subresource == Subresource::Status)
}

fn how_many_jobs(world: &World) -> usize {
    world.sandbox.with_store(|store| store.collection(jobs()).unwrap().len())
}

#[tokio::test(start_paused = true)]
async fn a_history_of_thousands_is_cleaned_in_portions_while_everybody_runs() {
    const HISTORY: i64 = 6_000;
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("healthy", "* * * * *", json!({}))).await;
    world.create(&cronjob("hostile", "* * * * *", json!({"successfulJobsHistoryLimit": 3}))).await;
    let done = json!({"startTime": "2026-03-01T09:00:00Z", "completionTime": "2026-03-01T09:30:00Z",
        "conditions": [{"type": "Complete", "status": "True"}]});
    store_runs(&world, "hostile", HISTORY, &done).await;
    world.sandbox.requests().reset();
    world.start();
    world.pass(Duration::from_secs(60 * MINUTES as u64 + 15)).await;
    assert_eq!(how_many_jobs(&world), 3 + 2 * MINUTES, "three kept, and what runs");
    assert_eq!(world.times_said("healthy", "SuccessfulCreate"), MINUTES);
    assert_eq!(world.times_said("hostile", "SuccessfulCreate"), MINUTES);
    let deletions = world.sandbox.requests().of(Verb::Delete, "batch", "jobs");
    assert_eq!(deletions, HISTORY as u64 - 3, "each once");
    let writes = status_writes(&world);
    assert!(writes <= HISTORY as u64 / 50 + 4 * MINUTES as u64, "{writes} status writes");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn thousands_of_active_jobs_are_held_and_let_go_in_one_write() {
    const ACTIVE: i64 = 3_000;
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("healthy", "* * * * *", json!({}))).await;
    world.create(&cronjob("hostile", "* * * * *", json!({}))).await;
    store_runs(&world, "hostile", ACTIVE, &json!({})).await;
    let list = world.list(jobs()).await;
    let entry = |job: &Value| {
        json!({"kind": "Job", "apiVersion": "batch/v1", "namespace": "default",
        "name": job["metadata"]["name"], "uid": job["metadata"]["uid"], "resourceVersion": "1"})
    };
    let mut stored = world.sandbox.get(cronjobs(), "default", "hostile").unwrap();
    stored["status"] =
        json!({"active": list.iter().map(entry).collect::<Vec<_>>(), "lastScheduleTime": "2026-03-01T09:59:00Z"});
    assert!(world.sandbox.store_unvalidated(cronjobs(), &stored));
    world.sandbox.requests().reset();
    world.start();
    world.pass(Duration::from_secs(60 * MINUTES as u64 + 15)).await;
    let active =
        |world: &World| world.status(cronjobs(), "default", "hostile")["active"].as_array().map_or(0, Vec::len);
    // Whoever starts late starts the run of the present minute too.
    assert_eq!(active(&world), ACTIVE as usize + MINUTES + 1);
    assert_eq!(world.times_said("healthy", "SuccessfulCreate"), MINUTES);
    let requests = world.sandbox.requests().sum(|_| true);
    assert!(requests <= MOST_REQUESTS, "{requests} requests");
    world.stop().await;

    let done = json!({"startTime": "2026-03-01T09:00:00Z", "completionTime": "2026-03-01T09:30:00Z",
        "conditions": [{"type": "Complete", "status": "True"}]});
    for mut job in world.list(jobs()).await {
        job["status"] = done.clone();
        job["kind"] = json!("Job");
        job["apiVersion"] = json!("batch/v1");
        assert!(world.sandbox.store_unvalidated(jobs(), &job));
    }
    world
        .patch(
            cronjobs(),
            "default",
            "hostile",
            &json!({"spec": {"suspend": true, "successfulJobsHistoryLimit": i32::MAX}}),
        )
        .await;
    world.sandbox.requests().reset();
    world.start();
    world.pass(Duration::from_secs(30)).await;
    assert_eq!(active(&world), 0);
    assert!(status_writes(&world) <= 6, "{} status writes", status_writes(&world));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_too_large_for_the_server_holds_up_no_run() {
    use cronjob_controller::sandbox::faults::Fault;
    let mut world = World::new("2026-03-01T10:00:30Z");
    world.create(&cronjob("healthy", "* * * * *", json!({}))).await;
    world.create(&cronjob("hostile", "* * * * *", json!({}))).await;
    let too_large = Fault::refuse(500, None).on(Verb::Patch);
    let too_large = too_large.resource("batch", "cronjobs").subresource(Subresource::Status).name("hostile");
    world.sandbox.faults().install(too_large);
    world.start();
    world.pass(Duration::from_secs(3600 + 15)).await;
    assert_eq!(world.times_said("healthy", "SuccessfulCreate"), 60);
    assert_eq!(world.times_said("hostile", "SuccessfulCreate"), 60, "each run has its Job, once");
    // The back-off is the key's: a run that is due breaks into it.
    let writes = world.sandbox.requests().sum(|key| key.verb == Verb::Patch && key.code == 500);
    assert!(writes <= 60 * 8, "{writes} refused writes in an hour");
    world.end().await;
}
