//! Three replicas as processes on a real control plane, and what happens to them: the leader is killed, told to end, stopped for
//! longer than its lease, cut off from the server, again and again. Whatever happens, each due instant has one Job.
//!
//! `HANDOVERS` is how many hand-overs to make (12 if not set, 100 for the long run), `HANDOVER_SEED` repeats the choices of an
//! earlier run. Needs the programs of tests/controlplane; without them it names itself as skipped.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod audit;
mod fleet;
mod ledger;
mod proxy;
mod report;
#[path = "../support/mod.rs"]
mod support;
mod watches;

use std::time::Duration;

use cronjob_controller::clock::Clock;
use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng, TryRng};
use tokio::time::sleep;

use audit::Audit;
use fleet::Fleet;
use ledger::Ledger;
use report::Report;
use support::controlplane::{ControlPlane, Options};

/// The durations of the election; the peers' are five times as long.
const LEASE: Duration = Duration::from_secs(3);
const RENEW: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(500);

/// A leader that ends in order is followed within this time.
const GRACEFUL: Duration = Duration::from_secs(1);
/// One that does not, within this.
const CRASH: Duration = Duration::from_secs(5);

/// What happens to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Blow {
    /// SIGKILL; another process takes its place later.
    Kill,
    /// SIGTERM; likewise.
    Terminate,
    /// SIGSTOP for longer than the lease, then SIGCONT.
    Stop,
    /// Nothing passes to or from the server; what was sent arrives when it is over.
    Freeze,
    /// Connections break and none comes about, until it is over.
    Cut,
}

impl Blow {
    const ALL: [Self; 5] = [Self::Kill, Self::Terminate, Self::Stop, Self::Freeze, Self::Cut];

    /// How long it may take until another leads.
    pub(crate) fn bound(self) -> Duration {
        if self == Self::Terminate { GRACEFUL } else { CRASH }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_run_is_lost_or_repeated_however_leaders_end() {
    let handovers: usize = setting("HANDOVERS").unwrap_or(12);
    let seed = setting("HANDOVER_SEED").unwrap_or_else(|| SysRng.try_next_u64().unwrap() % 1_000_000);
    let audit = Audit::new();
    let options = Options { apiserver: audit.flags() };
    let Some(plane) = ControlPlane::start("handover", options).await else { return };
    println!("{handovers} hand-overs, HANDOVER_SEED={seed}");
    let (clock, mut rng) = (Clock::system(), StdRng::seed_from_u64(seed));
    let client = plane.client().await;
    let ledger = Ledger::start(&client, &clock).await;
    let mut fleet = Fleet::start(plane, &client, &clock).await;
    ledger.create_cronjobs().await;
    let mut report = Report::default();
    for _ in 0..handovers {
        let blow = Blow::ALL[rng.random_range(0..Blow::ALL.len())];
        // Anywhere between two starts, of which there is one every second.
        sleep(between(&mut rng, 300, 2_000)).await;
        let leader = fleet.leader().await;
        let begun = clock.mono();
        fleet.strike(leader, blow);
        let taken = fleet.next_leader(leader).await;
        report.on_handover(blow, taken.saturating_duration_since(begun));
        let suffering = LEASE + between(&mut rng, 300, 2_000);
        sleep(suffering.saturating_sub(clock.mono() - begun)).await;
        fleet.heal(leader, blow).await;
    }
    let outcome = ledger.close().await;
    drop(ledger);
    fleet.end().await;
    println!("{}", report.table());
    println!("{outcome}");
    let verdict = audit.judge(fleet.thaws());
    println!(
        "{} writes in {} tenures: {} out of turn, besides {} that a frozen line gave back late",
        verdict.writes,
        verdict.tenures,
        verdict.out_of_turn.len(),
        verdict.thawed
    );
    report.check();
    outcome.check();
    assert!(verdict.writes > 0 && verdict.tenures > handovers, "the audit log is not complete");
    assert_eq!(verdict.out_of_turn, [""; 0], "written by who did not lead");
    assert!(fleet.terms_after_a_loss() > 0 || handovers < 50, "no process has led a second time");
}

fn between(rng: &mut StdRng, from_ms: u64, to_ms: u64) -> Duration {
    Duration::from_millis(rng.random_range(from_ms..to_ms))
}

fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text:?} is not a number")))
}
