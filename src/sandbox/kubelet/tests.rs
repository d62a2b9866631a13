use super::*;
use crate::sandbox::resources::find;
use chrono::{TimeDelta, TimeZone};
use serde_json::json;

const KEY: &str = "default/p";

fn noon() -> WallTime {
    chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap()
}

fn pod(restart_policy: &str) -> Value {
    json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"restartPolicy": restart_policy, "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "c", "image": "i"}], "initContainers": [{"name": "i", "image": "i"}]},
        "status": {"phase": "Pending"}
    })
}

fn options(seconds: u64, outcome: Outcome) -> RunnerOptions {
    RunnerOptions { duration: Duration::from_secs(seconds), outcome, ..RunnerOptions::default() }
}

/// The nodes and one Pod, as its server would keep it; a second at a time.
struct Play {
    nodes: Nodes,
    pod: Value,
    said: Said,
    mono: Instant,
    second: i64,
    revision: u64,
    /// `second: what`.
    seen: Vec<String>,
}

impl Play {
    fn new(options: RunnerOptions, pod: Value) -> Self {
        let mono = crate::clock::Clock::starting_at(noon()).mono();
        let mut play = Self {
            nodes: Nodes::new(options, 7, 1),
            pod,
            said: Said::default(),
            mono,
            second: 0,
            revision: 0,
            seen: Vec::new(),
        };
        play.tell();
        play
    }

    fn now(&self) -> (Instant, WallTime) {
        (self.mono + Duration::from_secs(self.second.try_into().unwrap()), noon() + TimeDelta::seconds(self.second))
    }

    fn tell(&mut self) {
        self.revision += 1;
        let object = Arc::new(Object::new(find("", "v1", "pods").unwrap(), KEY.into(), self.revision, &self.pod));
        let ((mono, wall), said) = (self.now(), self.said);
        self.nodes.on_pod(&object, || said, mono, wall);
    }

    fn change(&mut self, patch: Value) {
        json_patch::merge(&mut self.pod, &patch);
        self.tell();
    }

    fn delete(&mut self, grace_s: i64) {
        let due = (self.now().1 + TimeDelta::seconds(grace_s)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.change(json!({"metadata": {"deletionTimestamp": due, "deletionGracePeriodSeconds": grace_s}}));
    }

    /// Lets time run to `second`, that second included.
    fn until(mut self, second: i64) -> Self {
        loop {
            let (mono, wall) = self.now();
            let writes = self.nodes.take_due(mono, wall, 100);
            if writes.is_empty() {
                if self.second == second {
                    return self;
                }
                self.second += 1;
            }
            for (_, write) in writes {
                self.write(write);
            }
        }
    }

    fn write(&mut self, write: Write) {
        let what = match write {
            Write::Bind => {
                self.change(json!({"spec": {"nodeName": "sandbox"}}));
                "bound".to_owned()
            }
            Write::Log => "prints".to_owned(),
            Write::Delete => "deleted".to_owned(),
            Write::Status(body) => {
                self.change(body);
                let status = &self.pod["status"];
                let container = &status["containerStatuses"][0];
                let state = container["state"].as_object().and_then(|state| state.keys().next().cloned());
                let code = container["state"]["terminated"]["exitCode"].as_i64();
                let of = |text: Option<String>| text.map(|text| format!(" {text}")).unwrap_or_default();
                format!(
                    "{} {}{}{}",
                    status["phase"].as_str().unwrap(),
                    state.unwrap_or_default(),
                    of(code.map(|code| code.to_string())),
                    of(container["restartCount"].as_i64().filter(|count| *count > 0).map(|count| format!("x{count}")))
                )
            }
        };
        self.seen.push(format!("{}: {what}", self.second));
    }

    fn condition(&self, kind: &str) -> (&str, &str) {
        let conditions = self.pod["status"]["conditions"].as_array().unwrap();
        let condition = conditions.iter().find(|condition| condition["type"] == kind).unwrap();
        (condition["status"].as_str().unwrap(), condition["reason"].as_str().unwrap_or_default())
    }
}

#[test]
fn a_pod_comes_to_the_node_runs_and_succeeds() {
    let play = Play::new(options(10, Outcome::Complete), pod("Never")).until(5);
    assert_eq!(play.seen, ["0: bound", "0: Pending waiting", "1: Running running", "1: prints"]);
    assert_eq!(play.condition("Ready"), ("True", ""));
    let play = play.until(100);
    assert_eq!(play.seen[4..], ["11: Succeeded terminated 0"]);
    assert_eq!(play.condition("Ready"), ("False", "PodCompleted"));
    assert_eq!(play.pod["status"]["startTime"], "2026-03-08T12:00:00Z");
    assert!(play.nodes.pods.is_empty() && play.nodes.next_due().is_none());
}

#[test]
fn a_pod_fails_with_the_code_that_its_annotations_say() {
    let mut play = Play::new(options(10, Outcome::Complete), pod("Never"));
    let said = [("duration", "3s"), ("outcome", "fail"), ("exit-code", "42")];
    let annotation = |name: &str| {
        let (_, name) = name.split_once('/')?;
        said.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
    };
    play.nodes.forget(&Arc::from(KEY));
    play.said = Said::read(KEY, annotation);
    play.tell();
    let play = play.until(100);
    assert_eq!(play.seen.last().unwrap(), "4: Failed terminated 42");
    assert_eq!(play.condition("Ready"), ("False", "PodFailed"));
}

#[test]
fn a_failed_container_restarts_at_once_and_then_after_longer_and_longer_waits() {
    let play = Play::new(options(5, Outcome::Fail), pod("OnFailure")).until(60);
    assert_eq!(
        play.seen[2..],
        [
            "1: Running running",
            "1: prints",
            "6: Running running x1",
            "11: Running waiting x1",
            "21: Running running x2",
            "26: Running waiting x2",
            "46: Running running x3",
            "51: Running waiting x3",
        ]
    );
    let status = &play.pod["status"]["containerStatuses"][0];
    assert_eq!(status["state"]["waiting"]["reason"], "CrashLoopBackOff");
    assert_eq!(status["lastState"]["terminated"]["startedAt"], "2026-03-08T12:00:46Z");
    assert_eq!(play.condition("Ready"), ("False", "ContainersNotReady"));
    assert_eq!((back_off_s(2), back_off_s(6), back_off_s(7), back_off_s(4_000_000_000)), (10, 160, 300, 300));
}

#[test]
fn a_pod_that_always_restarts_does_so_after_success_too_and_one_on_failure_does_not() {
    let always = Play::new(options(5, Outcome::Complete), pod("Always")).until(8);
    assert_eq!(always.seen.last().unwrap(), "6: Running running x1");
    let on_failure = Play::new(options(5, Outcome::Complete), pod("OnFailure")).until(8);
    assert_eq!(on_failure.seen.last().unwrap(), "6: Succeeded terminated 0");
}

#[test]
fn a_pod_is_active_no_longer_than_its_deadline_counted_from_the_node() {
    let mut hanging = pod("Never");
    hanging["spec"]["activeDeadlineSeconds"] = 7.into();
    let play = Play::new(options(5, Outcome::Hang), hanging.clone()).until(100);
    assert_eq!(play.seen.last().unwrap(), "7: Failed terminated 137");
    assert_eq!(play.pod["status"]["reason"], "DeadlineExceeded");
    let quick = Play::new(options(5, Outcome::Complete), hanging.clone()).until(100);
    assert_eq!(quick.seen.last().unwrap(), "6: Succeeded terminated 0");
    // Between two runs as well, and when it is set later.
    let mut crashing = Play::new(options(5, Outcome::Fail), pod("OnFailure")).until(12);
    crashing.change(json!({"spec": {"activeDeadlineSeconds": 15}}));
    assert_eq!(crashing.until(100).seen.last().unwrap(), "15: Failed terminated 137 x1");
}

#[test]
fn a_pod_that_is_to_go_ends_soon_and_one_that_hangs_takes_all_its_grace() {
    for (outcome, expected) in [
        (Outcome::Complete, ["6: Failed terminated 143", "6: deleted"]),
        (Outcome::Hang, ["35: Failed terminated 137", "35: deleted"]),
    ] {
        let mut play = Play::new(options(100, outcome), pod("OnFailure")).until(5);
        play.delete(30);
        let play = play.until(200);
        assert_eq!(play.seen[4..], expected, "{outcome:?}");
    }
    let mut shortened = Play::new(options(100, Outcome::Hang), pod("Never")).until(5);
    shortened.delete(30);
    let mut shortened = shortened.until(8);
    shortened.delete(2);
    assert_eq!(shortened.until(200).seen[4..], ["10: Failed terminated 137", "10: deleted"]);
}

#[test]
fn a_pod_that_goes_before_it_runs_never_ran_and_one_without_a_node_is_collected() {
    let mut starting = Play::new(options(10, Outcome::Complete), pod("Never"));
    starting = starting.until(0);
    starting.delete(30);
    let starting = starting.until(100);
    assert_eq!(starting.seen[2..], ["0: Failed terminated 137", "0: deleted"]);
    let status = &starting.pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(status["reason"], "ContainerStatusUnknown");

    let mut gated = pod("Never");
    gated["spec"]["schedulingGates"] = json!([{"name": "a/b"}]);
    let mut gated = Play::new(options(10, Outcome::Complete), gated).until(50);
    assert!(gated.seen.is_empty(), "{:?}", gated.seen);
    gated.change(json!({"metadata": {"finalizers": ["a/b"]}}));
    gated.delete(0);
    assert_eq!(gated.until(100).seen, ["70: Failed "]);
}

#[test]
fn what_has_ended_and_is_held_by_finalizers_is_left_alone() {
    let mut play = Play::new(options(100, Outcome::Complete), pod("Never")).until(5);
    play.change(json!({"metadata": {"finalizers": ["a/b"]}}));
    play.delete(30);
    let mut play = play.until(7);
    assert_eq!(play.seen.last().unwrap(), "6: deleted");
    // The server keeps it, without grace.
    play.change(json!({"metadata": {"deletionGracePeriodSeconds": 0}}));
    let count = play.seen.len();
    assert_eq!(play.until(300).seen.len(), count);
}

#[test]
fn a_change_that_has_nothing_to_do_with_it_does_not_put_off_the_end() {
    let mut play = Play::new(options(10, Outcome::Complete), pod("Never")).until(8);
    play.change(json!({"metadata": {"labels": {"a": "b"}}}));
    assert_eq!(play.until(100).seen.last().unwrap(), "11: Succeeded terminated 0");
}

#[test]
fn chance_follows_from_the_seed_the_pod_and_the_attempt() {
    let mut options = options(10, Outcome::Complete);
    options.failure_percent = 50;
    options.spread = Duration::from_secs(100);
    let run = |seed| {
        let mut play = Play::new(options, pod("OnFailure"));
        play.nodes.seed = seed;
        play.until(1000).seen
    };
    assert_eq!(run(3), run(3));
    let lengths: std::collections::BTreeSet<usize> = (0..20).map(|seed| run(seed).len()).collect();
    assert!(lengths.len() > 2, "{lengths:?}");
}
