//! What an idle actor costs in resident memory, on Linux: a size, not a timing. One test alone in its binary, since it
//! reads the memory of the whole process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of a test may panic")]

use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, TimeZone};
use cronjob_controller::clock::Clock;
use cronjob_controller::engine::{Counts, Kind, Next, Options, StepContext, Supervisor, Wake, stable_hash};
use cronjob_controller::model::{CronJob, CronJobSpec, CronJobStatus, JobTemplate, ObjectKey, Policy, WallTime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const ACTORS: usize = 20_000;
const EVENTS: u32 = 10;
/// The bound of the issue: beside its payload (the Job template), an idle actor stays below this.
const BOUND_BYTES: usize = 1024;

/// What an actor remembers by itself, in the size of a compiled schedule and a few instants.
struct State {
    compiled_schedule: [u64; 8],
    last_writes: [Option<WallTime>; 3],
}

struct Herd;

impl Kind for Herd {
    type Key = ObjectKey;
    type Message = Option<Arc<CronJob>>;
    type Mailbox = Option<Arc<CronJob>>;
    type Mail = Option<Arc<CronJob>>;
    type State = State;

    fn tenant(key: &ObjectKey) -> u64 {
        stable_hash(&key.namespace)
    }

    fn fold(&self, _key: &ObjectKey, mailbox: &mut Self::Mailbox, news: Self::Message, _now: WallTime) -> Wake {
        *mailbox = news;
        Wake::Now
    }

    fn collect(&self, _key: &ObjectKey, mailbox: &Self::Mailbox) -> Self::Mail {
        mailbox.clone()
    }

    fn due(&self, _key: &ObjectKey, _mail: &Self::Mail, _now: WallTime) -> Option<WallTime> {
        None
    }

    fn open(&self, _key: &ObjectKey) -> State {
        State { compiled_schedule: [7; 8], last_writes: [None; 3] }
    }

    async fn step(&self, _key: &ObjectKey, state: &mut State, mail: Self::Mail, context: &StepContext) -> Next {
        state.compiled_schedule[0] += 1;
        state.last_writes[0] = Some(context.now);
        tokio::task::yield_now().await;
        if mail.is_some() { Next::done(Some(context.now + TimeDelta::days(3))) } else { Next::gone() }
    }
}

/// Resident bytes of this process, from the second field of `/proc/self/statm` in pages of 4 KiB.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn key(n: usize) -> ObjectKey {
    ObjectKey::new(format!("team-{}", n % 100), format!("nightly-report-{n:05}"))
}

/// The `n`th CronJob as a decoder makes it, but for the template, which does not count.
fn cronjob(n: usize, version: u32, template: &Arc<JobTemplate>) -> Arc<CronJob> {
    Arc::new(CronJob {
        key: key(n),
        uid: format!("8f0c6d5e-52ad-4b0c-9a77-0d3d5e{n:06}").into(),
        resource_version: (1_000_000 + version).to_string().into(),
        creation_time: Some(noon()),
        deleting: false,
        spec: CronJobSpec {
            schedule: "*/5 * * * *".into(),
            time_zone: Some("Europe/Berlin".into()),
            starting_deadline_s: None,
            policy: Policy::Forbid,
            suspend: false,
            successful_limit: Some(3),
            failed_limit: Some(1),
            template: template.clone(),
        },
        status: CronJobStatus {
            active: Vec::new(),
            last_schedule_time: Some(noon()),
            last_successful_time: Some(noon()),
        },
    })
}

fn noon() -> WallTime {
    chrono::Utc.with_ymd_and_hms(2026, 3, 8, 12, 0, 0).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_idle_actor_costs_less_than_a_kibibyte_after_ten_events() {
    let supervisor = Supervisor::new(Herd, Options::new(Clock::starting_at(noon())));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    tasks.spawn({
        let (supervisor, stop) = (supervisor.clone(), stop.clone());
        async move { supervisor.run(stop, Duration::ZERO).await }
    });
    supervisor.open();
    // The workers and the runtime's own buffers are there before the first measurement.
    tokio::time::sleep(Duration::from_secs(1)).await;

    let template = Arc::default();
    let before = resident_bytes();
    // The first event is the list at start, all at once; later ones come while the workers run.
    for version in 1..=EVENTS {
        for n in 0..ACTORS {
            let cronjob = cronjob(n, version, &template);
            supervisor.send(cronjob.key.clone(), Some(cronjob));
            if version > 1 && n % 500 == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let bytes = resident_bytes().saturating_sub(before) / ACTORS;
    let idle = supervisor.debug_counts();
    assert_eq!((idle.cells, idle.queues.delayed, idle.queues.queued), (ACTORS, ACTORS, 0));
    println!(
        "{bytes} B resident per idle actor ({ACTORS} actors, {EVENTS} events each, timer, name and mailbox included)"
    );
    assert!(bytes > 100, "the measurement missed the actors: {bytes} B each");
    assert!(bytes < BOUND_BYTES, "{bytes} B per idle actor");

    (0..ACTORS).for_each(|n| supervisor.send(key(n), None));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(supervisor.debug_counts(), Counts::default());
    stop.cancel();
    tasks.close();
    tasks.wait().await;
}
