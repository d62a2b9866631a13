//! Replicas that take turns: who works when, what a new leader finds, and that nobody writes out of turn.

use std::time::Duration;

use cronjob_controller::controllers::Options;
use cronjob_controller::sandbox::call::Verb;
use cronjob_controller::sandbox::faults::{Action, Fault, Hold, Release};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::replicas::{Replica, Replicas, leases};
use crate::world::{at, cronjob, cronjobs, jobs};

/// Name of the Job of the CronJob `name` for the due instant `due`.
fn job(name: &str, due: &str) -> String {
    format!("{name}-{}", at(due).timestamp() / 60)
}

/// Two replicas, the first of which leads.
async fn two(replicas: &mut Replicas) -> (Replica, Replica) {
    let first = replicas.start();
    replicas.settle().await;
    let second = replicas.start();
    replicas.settle().await;
    assert!(first.leadership.is_ours() && !second.leadership.is_ours());
    (first, second)
}

#[tokio::test(start_paused = true)]
async fn one_works_the_other_is_ready_and_silent() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas.world.create(&cronjob("k", "* * * * *", json!({}))).await;
    let (first, second) = two(&mut replicas).await;
    assert!(first.is_ready().await && second.is_ready().await);
    replicas.pass_until("2026-03-01T11:00:30Z").await;
    assert_eq!(replicas.creations().len(), 60);
    assert!(replicas.writes().iter().all(|write| write.by == first.identity));
    replicas.check_writes();
    assert!(first.is_ready().await && second.is_ready().await);
    assert_eq!(second.leadership.holder(), first.identity);
    second.stop().await;
    first.stop().await;
    assert_eq!(replicas.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_ends_in_order_is_followed_at_once() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas.world.create(&cronjob("k", "* * * * *", json!({}))).await;
    let (first, second) = two(&mut replicas).await;
    // In the middle of a creation that takes half a second.
    let slow = Fault::new(Action::DelayAnswer(Duration::from_millis(500)));
    replicas.world.sandbox.faults().install(slow.on(Verb::Create).resource("batch", "jobs").times(1));
    replicas.pass_until("2026-03-01T10:01:00.300Z").await;
    let begun = replicas.world.clock.mono();
    first.stop().await;
    let took = replicas.world.clock.mono() - begun;
    assert!(took < Duration::from_millis(400), "{took:?}");
    replicas.pass_until("2026-03-01T10:01:01.300Z").await;
    assert!(second.leadership.is_ours());
    replicas.pass_until("2026-03-01T10:03:30Z").await;
    let due = ["2026-03-01T10:01:00Z", "2026-03-01T10:02:00Z", "2026-03-01T10:03:00Z"].map(|due| job("k", due));
    assert_eq!(replicas.creations(), due);
    assert!(due.iter().all(|job| replicas.started(job) == 1));
    // What the first one did was said before it gave the Lease away.
    let said = |write: &&crate::replicas::Write| write.path.ends_with("/events") && write.by == "replica-1";
    assert_eq!(replicas.writes().iter().filter(said).count(), 1);
    replicas.check_writes();
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_takes_long_to_end_keeps_the_lease_until_it_has() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas.world.create(&cronjob("k", "* * * * *", json!({}))).await;
    let (first, second) = two(&mut replicas).await;
    // A creation and the status after it: together longer than a lease, and within the budget.
    for (verb, plural) in [(Verb::Create, "jobs"), (Verb::Patch, "cronjobs")] {
        let slow = Fault::new(Action::DelayAnswer(Duration::from_secs(12)));
        replicas.world.sandbox.faults().install(slow.on(verb).resource("batch", plural).times(1));
    }
    replicas.pass_until("2026-03-01T10:01:00.300Z").await;
    let name = first.identity.clone();
    tokio::join!(first.stop(), async {
        replicas.pass_until("2026-03-01T10:01:23.900Z").await;
        assert_eq!(replicas.holder(), name);
    });
    replicas.settle().await;
    assert!(second.leadership.is_ours());
    replicas.pass_until("2026-03-01T10:02:30Z").await;
    assert_eq!(replicas.creations(), ["2026-03-01T10:01:00Z", "2026-03-01T10:02:00Z"].map(|due| job("k", due)));
    let status = replicas.world.status(cronjobs(), "default", "k");
    assert_eq!(status["active"].as_array().unwrap().len(), 2);
    replicas.check_writes();
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_cannot_be_listed_keeps_nobody_else_from_working() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas.world.create(&cronjob("k", "* * * * *", json!({}))).await;
    replicas.world.sandbox.faults().install(Fault::refuse(403, None).resource("batch.volcano.sh", "cronjobs"));
    let only = replicas.start();
    replicas.settle().await;
    // A replica whose caches are complete would come first, if there was one.
    assert!(!only.leadership.is_ours() && !only.is_ready().await);
    replicas.pass_until("2026-03-01T10:01:30Z").await;
    assert!(only.leadership.is_ours() && !only.is_ready().await);
    assert_eq!(replicas.creations(), [job("k", "2026-03-01T10:01:00Z")]);
    only.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_starts_what_is_overdue_longest_first() {
    let mut replicas = Replicas::new("2026-03-01T10:00:00Z").await;
    // One worker, so that the order in which steps begin is seen.
    replicas.options = Options { shards: 1, concurrent_syncs: 1, ..Options::default() };
    // Names run against the order of their instants: j is due first, a last, each a second after the other.
    let names: Vec<char> = ('a'..='j').rev().collect();
    for name in &names {
        let mut object = cronjob(&name.to_string(), "@every 1m", json!({}));
        object["metadata"]["namespace"] = json!("default");
        replicas.world.create(&object).await;
        replicas.world.pass(Duration::from_secs(1)).await;
    }
    replicas.world.create(&cronjob("never", "0 0 31 2 *", json!({}))).await;
    replicas.world.create(&cronjob("later", "11 10 * * *", json!({}))).await;
    let (first, second) = two(&mut replicas).await;
    replicas.pass_until("2026-03-01T10:00:55Z").await;
    assert_eq!(replicas.creations(), [""; 0]);
    first.kill().await;
    replicas.pass_until("2026-03-01T10:01:11Z").await;
    assert!(second.leadership.is_ours());
    let started: Vec<String> = replicas.creations().iter().map(|job| job[..1].to_owned()).collect();
    assert_eq!(started.concat(), names.iter().collect::<String>());
    replicas.check_writes();
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_in_time_and_leads_again_in_the_same_process() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas.world.create(&cronjob("k", "* * * * *", json!({}))).await;
    let only = replicas.start();
    replicas.pass_until("2026-03-01T10:05:50Z").await;
    only.partition(true);
    replicas.pass_until("2026-03-01T10:06:05Z").await;
    assert!(!only.leadership.is_ours());
    replicas.pass_until("2026-03-01T10:08:30Z").await;
    let during = replicas.creations().len();
    only.partition(false);
    replicas.pass_until("2026-03-01T10:12:30Z").await;
    assert!(only.leadership.is_ours() && only.is_ready().await);
    // 10:06 may have been sent before the gate shut, and 10:07 was passed over by 10:08: late, of those that are pending the newest runs.
    for minute in 1..=12 {
        let name = job("k", &format!("2026-03-01T10:{minute:02}:00Z"));
        let started = replicas.started(&name);
        assert!(started == 1 || (minute == 6 || minute == 7) && started == 0, "{name}: {started}");
    }
    assert!(replicas.creations().len() > during);
    replicas.check_writes();
    only.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_a_stand_by_saw_keeps_its_moment() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas.world.create(&cronjob("k", "0 0 1 1 *", json!({}))).await;
    let (first, second) = two(&mut replicas).await;
    replicas.pass_until("2026-03-01T10:20:05Z").await;
    first.kill().await;
    replicas.pass_until("2026-03-01T10:20:08Z").await;
    replicas.world.patch(cronjobs(), "default", "k", &json!({"spec": {"schedule": "*/10 * * * *"}})).await;
    replicas.pass_until("2026-03-01T10:29:59Z").await;
    assert!(second.leadership.is_ours());
    // Without the edit's moment 10:20 would count as missed.
    assert_eq!(replicas.creations(), [""; 0]);
    replicas.pass_until("2026-03-01T10:30:10Z").await;
    assert_eq!(replicas.creations(), [job("k", "2026-03-01T10:30:00Z")]);
    // The moment outlives a term of the process that saw it, too.
    replicas.pass_until("2026-03-01T10:45:05Z").await;
    replicas.world.patch(cronjobs(), "default", "k", &json!({"spec": {"schedule": "*/4 * * * *"}})).await;
    replicas.settle().await;
    second.partition(true);
    replicas.pass_until("2026-03-01T10:45:30Z").await;
    assert!(!second.leadership.is_ours());
    second.partition(false);
    replicas.pass_until("2026-03-01T10:48:10Z").await;
    let last = job("k", "2026-03-01T10:48:00Z");
    assert_eq!(replicas.creations(), [job("k", "2026-03-01T10:30:00Z"), job("k", "2026-03-01T10:40:00Z"), last]);
    replicas.check_writes();
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_leader_before_did_is_asked_for_where_the_caches_do_not_show_it() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas.world.create(&cronjob("k", "* * * * *", json!({}))).await;
    let (first, second) = two(&mut replicas).await;
    replicas.world.sandbox.hold_cache(cronjobs(), Hold { until: Release::Told, lists: true });
    replicas.pass_until("2026-03-01T10:01:02Z").await;
    let name = job("k", "2026-03-01T10:01:00Z");
    // Its name is free again, and the stand-by has seen nothing of it.
    replicas.world.delete(jobs(), "default", &name).await;
    first.stop().await;
    replicas.pass_until("2026-03-01T10:01:50Z").await;
    assert!(second.leadership.is_ours());
    // Something wakes the actor a second time, and the cache still shows no record.
    let owner = json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": "k", "controller": true,
        "uid": replicas.world.sandbox.get(cronjobs(), "default", "k").unwrap()["metadata"]["uid"]}]);
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "registry.example.com/c:1"}]});
    let metadata = json!({"namespace": "default", "name": "by-hand", "ownerReferences": owner});
    let spec = json!({"template": {"spec": pod}});
    replicas.world.create(&json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})).await;
    replicas.pass_until("2026-03-01T10:01:55Z").await;
    assert_eq!(replicas.creations(), std::slice::from_ref(&name));
    replicas.pass_until("2026-03-01T10:02:10Z").await;
    assert_eq!(replicas.creations(), [name, job("k", "2026-03-01T10:02:00Z")]);
    replicas.check_writes();
    second.stop().await;
}

/// What the stand-by's cache still shows of a CronJob whose run has come and gone.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Old {
    /// Its status.
    Status,
    /// That it was suspended.
    Suspended,
    /// A deadline that nothing could keep.
    Deadline,
    /// Another schedule.
    Schedule,
    /// Its predecessor of the same name.
    Predecessor,
    /// Its predecessor, which was suspended.
    SuspendedPredecessor,
}

/// How many Jobs there ever were for eleven o'clock, when the leader hands over in order right after it started that run, saw it
/// complete and cleaned it away, to one whose watch tells each thing 20 s late.
async fn starts_after_a_hand_over_to_an_old_cache(old: Old, policy: &str) -> usize {
    let mut replicas = Replicas::new("2026-03-01T10:58:30Z").await;
    let spec = json!({"successfulJobsHistoryLimit": 0, "concurrencyPolicy": policy});
    let (mut before, mut schedule) = (spec.clone(), "0 * * * *");
    match old {
        Old::Status | Old::Predecessor => {}
        Old::Suspended | Old::SuspendedPredecessor => before["suspend"] = json!(true),
        Old::Deadline => before["startingDeadlineSeconds"] = json!(1),
        Old::Schedule => schedule = "0 0 1 1 *",
    }
    replicas.world.create(&cronjob("k", schedule, before)).await;
    let (first, second) = two(&mut replicas).await;
    replicas.pass_until("2026-03-01T10:59:30Z").await;
    second.lag(Duration::from_secs(20));
    replicas.pass_until("2026-03-01T10:59:40Z").await;
    if matches!(old, Old::Predecessor | Old::SuspendedPredecessor) {
        replicas.world.delete(cronjobs(), "default", "k").await;
        replicas.world.create(&cronjob("k", "0 * * * *", spec)).await;
    } else {
        let edit = json!({"spec": {"suspend": false, "startingDeadlineSeconds": null, "schedule": "0 * * * *"}});
        replicas.world.patch(cronjobs(), "default", "k", &edit).await;
    }
    replicas.pass_until("2026-03-01T11:00:01Z").await;
    let name = job("k", "2026-03-01T11:00:00Z");
    assert_eq!(replicas.started(&name), 1);
    replicas.world.finish("default", &name, "Complete").await;
    replicas.pass_until("2026-03-01T11:00:03Z").await;
    assert!(replicas.world.job_names(jobs(), "k").await.is_empty(), "not cleaned away");
    first.stop().await;
    replicas.pass_until("2026-03-01T11:30:00Z").await;
    assert!(second.leadership.is_ours());
    replicas.check_writes();
    second.lag(Duration::ZERO);
    replicas.pass_until("2026-03-01T12:00:10Z").await;
    assert_eq!(replicas.started(&job("k", "2026-03-01T12:00:00Z")), 1, "{old:?}: the next run is not due");
    second.stop().await;
    replicas.started(&name)
}

#[tokio::test(start_paused = true)]
async fn whatever_an_old_cache_shows_a_run_that_came_and_went_is_not_started_again() {
    for policy in ["Allow", "Forbid", "Replace"] {
        for old in
            [Old::Status, Old::Suspended, Old::Deadline, Old::Schedule, Old::Predecessor, Old::SuspendedPredecessor]
        {
            assert_eq!(starts_after_a_hand_over_to_an_old_cache(old, policy).await, 1, "{old:?}, {policy}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_of_the_lease_replicas_take_turns_by_polling() {
    let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
    replicas
        .world
        .sandbox
        .faults()
        .install(Fault::refuse(403, None).on(Verb::Watch).resource("coordination.k8s.io", "leases"));
    replicas.world.create(&cronjob("k", "* * * * *", json!({}))).await;
    let (first, second) = two(&mut replicas).await;
    replicas.pass_until("2026-03-01T10:05:30Z").await;
    first.stop().await;
    replicas.pass_until("2026-03-01T10:05:35Z").await;
    assert!(second.leadership.is_ours());
    replicas.pass_until("2026-03-01T10:08:30Z").await;
    assert_eq!(replicas.creations().len(), 8);
    replicas.check_writes();
    second.stop().await;
}

/// What befalls the replicas of one run with faults.
async fn suffer(replicas: &mut Replicas, team: &mut Vec<Replica>, rng: &mut StdRng) {
    let leading = team.iter().position(|replica| replica.leadership.is_ours());
    // Mostly the leader.
    let victim = leading.filter(|_| rng.random_bool(0.8)).unwrap_or_else(|| rng.random_range(0..team.len()));
    let pause = Duration::from_millis(rng.random_range(100..25_000));
    match rng.random_range(0..5) {
        0 => {
            team.swap_remove(victim).kill().await;
            replicas.world.pass(pause).await;
            team.push(replicas.start());
        }
        1 => {
            team.swap_remove(victim).stop().await;
            team.push(replicas.start());
        }
        2 => {
            team[victim].partition(true);
            replicas.world.pass(pause).await;
            team[victim].partition(false);
        }
        3 => {
            let fault =
                Fault::new(Action::DelayAnswer(Duration::from_secs(8))).resource("coordination.k8s.io", "leases");
            let fault = replicas.world.sandbox.faults().install(fault.probability(0.7));
            replicas.world.pass(pause).await;
            replicas.world.sandbox.faults().remove(fault);
        }
        _ => {
            let lost = Fault::lost_answer().on(Verb::Update).resource("coordination.k8s.io", "leases").probability(0.5);
            let lost = replicas.world.sandbox.faults().install(lost);
            let busy = Fault::refuse(503, Some(1)).resource("coordination.k8s.io", "leases").probability(0.3);
            let busy = replicas.world.sandbox.faults().install(busy);
            replicas.world.pass(pause).await;
            replicas.world.sandbox.faults().remove(lost);
            replicas.world.sandbox.faults().remove(busy);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_befalls_replicas_each_run_starts_once_and_nobody_writes_out_of_turn() {
    for seed in 0..4 {
        let mut replicas = Replicas::new("2026-03-01T10:00:30Z").await;
        replicas.world.run_jobs();
        for n in 0..12 {
            // History keeps nothing, so that names become free again and a second start would be seen.
            let spec =
                json!({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0, "startingDeadlineSeconds": 50});
            replicas.world.create(&cronjob(&format!("k{n:02}"), "* * * * *", spec)).await;
        }
        let mut rng = StdRng::seed_from_u64(seed);
        let mut team = vec![replicas.start(), replicas.start(), replicas.start()];
        replicas.settle().await;
        let end = at("2026-03-01T10:40:50Z");
        while replicas.world.clock.wall() < end {
            suffer(&mut replicas, &mut team, &mut rng).await;
            // Time for somebody to lead, and something to be due.
            replicas.world.pass(Duration::from_millis(rng.random_range(25_000..60_000))).await;
        }
        replicas.world.sandbox.heal();
        replicas.pass_until("2026-03-01T10:44:30Z").await;
        for n in 0..12 {
            for minute in 1..=44 {
                let name = job(&format!("k{n:02}"), &format!("2026-03-01T10:{minute:02}:00Z"));
                assert_eq!(replicas.started(&name), 1, "seed {seed}: {name}");
            }
        }
        assert_eq!(replicas.ever_started().len(), 12 * 44, "seed {seed}");
        replicas.check_writes();
        for replica in team {
            replica.stop().await;
        }
        assert_eq!(replicas.holder(), "", "seed {seed}");
        assert!(replicas.world.sandbox.get(leases(), "default", "cronjob-controller").is_some());
    }
}
