use super::super::fate::{DURATION, OUTCOME};
use super::*;
use crate::sandbox::resources::find;
use chrono::{TimeDelta, TimeZone};
use serde_json::json;

/// Both clocks of a test, `elapsed` after its start.
struct Time {
    mono: Instant,
    wall: WallTime,
}

impl Time {
    fn new() -> Self {
        let wall = chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap();
        Self { mono: crate::clock::Clock::starting_at(wall).mono(), wall }
    }

    fn at_s(&self, seconds: u32) -> (Instant, WallTime) {
        (self.mono + Duration::from_secs(seconds.into()), self.wall + TimeDelta::seconds(seconds.into()))
    }
}

fn object(flavor: Flavor, revision: u64, value: &Value) -> Arc<Object> {
    let resource = find(flavor.group(), flavor.version(), "jobs").unwrap();
    let key = format!("default/{}", value["metadata"]["name"].as_str().unwrap());
    Arc::new(Object::new(resource, key.into(), revision, value))
}

fn job(name: &str, annotations: Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-of-{name}"), "annotations": annotations},
        "spec": {"completions": 1, "parallelism": 1,
            "template": {"metadata": {"labels": {"job-name": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}
    })
}

fn timeline(options: RunnerOptions) -> Timeline {
    Timeline::new(options, 7, 1)
}

/// Lets the timeline run until `until_s`, applying status patches to `job` as the server would; answers the second of each
/// write and the write.
fn play(timeline: &mut Timeline, flavor: Flavor, job: &mut Value, until_s: u32) -> Vec<(u32, Write)> {
    let time = Time { ..Time::new() };
    let mut revision = 1;
    let mut out = Vec::new();
    timeline.on_job(flavor, &object(flavor, revision, job), time.mono);
    for second in 0..=until_s {
        let (mono, wall) = time.at_s(second);
        for write in timeline.take_due(mono, wall, 100) {
            if let Write::Status { body, .. } = &write {
                json_patch::merge(job, body);
                revision += 1;
                timeline.on_job(flavor, &object(flavor, revision, job), mono);
            }
            out.push((second, write));
        }
    }
    out
}

fn seconds(writes: &[(u32, Write)]) -> Vec<u32> {
    writes.iter().map(|(second, _)| *second).collect()
}

fn conditions(job: &Value) -> Vec<&str> {
    job["status"]["conditions"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect()
}

#[test]
fn a_job_starts_runs_as_long_as_its_annotation_says_and_completes_in_two_writes() {
    let mut timeline = timeline(RunnerOptions::default());
    let mut job = job("a", json!({DURATION: "1m30s"}));
    let writes = play(&mut timeline, Flavor::Kubernetes, &mut job, 200);
    assert_eq!(seconds(&writes), [1, 91, 91]);
    assert_eq!(conditions(&job), ["SuccessCriteriaMet", "Complete"]);
    let status = &job["status"];
    assert_eq!(
        (&status["startTime"], &status["completionTime"]),
        (&json!("2026-03-08T12:00:01Z"), &json!("2026-03-08T12:01:31Z"))
    );
    assert_eq!((&status["succeeded"], status.get("active")), (&json!(1), None));
    assert!(timeline.jobs.is_empty() && timeline.next_due().is_none());
}

#[test]
fn a_job_may_fail_or_hang() {
    let mut failing = job("a", json!({OUTCOME: "fail"}));
    play(&mut timeline(RunnerOptions::default()), Flavor::Kubernetes, &mut failing, 60);
    assert_eq!(conditions(&failing), ["FailureTarget", "Failed"]);
    assert_eq!(failing["status"]["failed"], 1);
    assert_eq!(failing["status"].get("completionTime"), None);
    let mut hanging = job("b", json!({OUTCOME: "hang"}));
    let writes = play(&mut timeline(RunnerOptions::default()), Flavor::Kubernetes, &mut hanging, 1000);
    assert_eq!(seconds(&writes), [1]);
    assert_eq!(hanging["status"]["active"], 1);
}

#[test]
fn a_deadline_ends_even_what_hangs() {
    let mut hanging = job("a", json!({OUTCOME: "hang"}));
    hanging["spec"]["activeDeadlineSeconds"] = 20.into();
    let writes = play(&mut timeline(RunnerOptions::default()), Flavor::Kubernetes, &mut hanging, 100);
    assert_eq!(seconds(&writes), [1, 21, 21]);
    assert_eq!(hanging["status"]["conditions"][1]["reason"], "DeadlineExceeded");
}

#[test]
fn a_volcano_job_is_pending_then_running_then_completed() {
    let mut job =
        json!({"metadata": {"name": "v", "uid": "u"}, "spec": {"minAvailable": 2, "tasks": [{"replicas": 2}]}});
    let mut timeline = timeline(RunnerOptions::default());
    let writes = play(&mut timeline, Flavor::Volcano, &mut job, 100);
    assert_eq!(seconds(&writes), [0, 1, 31]);
    let phases: Vec<&Value> = writes
        .iter()
        .map(|(_, write)| match write {
            Write::Status { body, .. } => &body["status"]["state"]["phase"],
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(phases, ["Pending", "Running", "Completed"]);
    let status = &job["status"];
    assert_eq!((&status["succeeded"], status.get("running"), &status["minAvailable"]), (&json!(2), None, &json!(2)));
    assert_eq!(status["conditions"].as_array().unwrap().len(), 3);
    assert!(timeline.jobs.is_empty());
}

#[test]
fn a_suspended_job_waits_and_starts_anew_when_resumed() {
    let mut timeline = timeline(RunnerOptions::default());
    let mut job = job("a", json!({}));
    job["spec"]["suspend"] = true.into();
    let writes = play(&mut timeline, Flavor::Kubernetes, &mut job, 100);
    assert_eq!(seconds(&writes), [0]);
    assert_eq!(conditions(&job), ["Suspended"]);
    job["spec"]["suspend"] = false.into();
    let writes = play(&mut timeline, Flavor::Kubernetes, &mut job, 100);
    assert_eq!(seconds(&writes), [1, 31, 31]);
    assert_eq!(conditions(&job), ["Suspended", "SuccessCriteriaMet", "Complete"]);
    assert_eq!(job["status"]["conditions"][0]["status"], "False");
}

#[test]
fn a_job_with_a_time_to_live_is_deleted_after_its_end() {
    let mut timeline = timeline(RunnerOptions::default());
    let mut job = job("a", json!({}));
    job["spec"]["ttlSecondsAfterFinished"] = 10.into();
    let writes = play(&mut timeline, Flavor::Kubernetes, &mut job, 100);
    assert_eq!(seconds(&writes), [1, 31, 31, 41]);
    assert!(matches!(&writes[3].1, Write::Delete { name, .. } if name == "a"));
    timeline.on_gone(Flavor::Kubernetes, &"default/a".into(), "uid-of-a");
    assert!(timeline.jobs.is_empty());
}

#[test]
fn a_deleted_job_leaves_no_timer_and_a_new_one_of_its_name_starts_anew() {
    let mut timeline = timeline(RunnerOptions::default());
    let time = Time::new();
    let first = job("a", json!({}));
    timeline.on_job(Flavor::Kubernetes, &object(Flavor::Kubernetes, 1, &first), time.mono);
    let mut second = job("a", json!({}));
    second["metadata"]["uid"] = "other".into();
    timeline.on_job(Flavor::Kubernetes, &object(Flavor::Kubernetes, 2, &second), time.mono);
    timeline.on_gone(Flavor::Kubernetes, &"default/a".into(), "uid-of-a");
    assert_eq!((timeline.jobs.len(), timeline.next_due().is_some()), (1, true));
    timeline.on_gone(Flavor::Kubernetes, &"default/a".into(), "other");
    assert_eq!((timeline.jobs.len(), timeline.next_due().is_some()), (0, false));
    assert_eq!(timeline.next_due(), None);
}

#[test]
fn a_pod_follows_its_job_and_has_a_log() {
    let mut timeline = timeline(RunnerOptions { pods: true, ..RunnerOptions::default() });
    let mut job = job("a", json!({OUTCOME: "fail"}));
    let writes = play(&mut timeline, Flavor::Kubernetes, &mut job, 100);
    let Write::CreatePod { body, log, .. } = &writes[0].1 else { panic!("{:?}", writes[0]) };
    assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "uid-of-a");
    assert_eq!(body["metadata"]["labels"], json!({"job-name": "a"}));
    assert_eq!((log[0].container.as_str(), log.len()), ("c", 1));
    let phases: Vec<&Value> = writes
        .iter()
        .filter_map(|(_, write)| match write {
            Write::PodStatus { body, .. } => Some(&body["status"]["phase"]),
            _ => None,
        })
        .collect();
    assert_eq!(phases, ["Running", "Failed"]);
}

#[test]
fn what_is_drawn_depends_on_the_seed_and_the_job_alone() {
    let options = RunnerOptions { spread: Duration::from_secs(600), failure_percent: 50, ..RunnerOptions::default() };
    let ends = |seed: u64, names: &[&str]| {
        let mut timeline = Timeline::new(options, seed, 1);
        let time = Time::new();
        for name in names {
            timeline.on_job(Flavor::Kubernetes, &object(Flavor::Kubernetes, 1, &job(name, json!({}))), time.mono);
        }
        let fate = |name: &str| {
            let tracked = &timeline.jobs[&(Flavor::Kubernetes, format!("default/{name}").into())];
            (tracked.fate, tracked.pod_suffix)
        };
        [fate("a"), fate("b"), fate("c")]
    };
    assert_eq!(ends(7, &["a", "b", "c"]), ends(7, &["c", "a", "b"]));
    assert_ne!(ends(7, &["a", "b", "c"]), ends(8, &["a", "b", "c"]));
}

#[test]
fn annotations_that_cannot_be_read_and_jobs_of_other_controllers_are_ignored() {
    let mut odd = job("a", json!({DURATION: "soon", OUTCOME: "maybe"}));
    let writes = play(&mut timeline(RunnerOptions::default()), Flavor::Kubernetes, &mut odd, 100);
    assert_eq!(seconds(&writes), [1, 31, 31]);
    let mut foreign = job("b", json!({}));
    foreign["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue".into();
    assert!(play(&mut timeline(RunnerOptions::default()), Flavor::Kubernetes, &mut foreign, 100).is_empty());
}

#[test]
fn a_faster_clock_shortens_everything() {
    let mut timeline = Timeline::new(RunnerOptions::default(), 7, 10);
    let time = Time::new();
    timeline.on_job(Flavor::Kubernetes, &object(Flavor::Kubernetes, 1, &job("a", json!({}))), time.mono);
    assert_eq!(timeline.next_due(), Some(time.mono + Duration::from_millis(100)));
}
