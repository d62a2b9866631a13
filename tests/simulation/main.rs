//! Nothing lost, nothing twice: the production controllers in a simulated world that is out to make them fail, judged by an
//! oracle that shares no code with their decisions. docs/simulation.md says how to read and repeat a run.
//!
//! `SIM_SEEDS=A..B SIM_HOURS=H cargo test --release --test simulation -- --nocapture` chooses seeds and length.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod dice;
mod drive;
mod history;
mod line;
mod oracle;
mod people;
mod plan;
mod table;
mod trace;
mod troubles;
mod wishes;
mod world;

use std::hash::Hasher;

use oracle::{Violation, judge};
use plan::{Named, Plan};
use rustc_hash::FxHasher;
use table::Table;
use wishes::Wish;

/// Half of the time went to the system's allocator; this one takes a third of that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs a plan and judges it.
fn judged(plan: &Plan) -> Vec<Violation> {
    judge(plan, &drive::run(plan).entries).0
}

/// One number for a text: the same for the same text, in every process.
fn hash(text: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// What there is to say about a seed that failed.
fn report(plan: &Plan, hours: u64, violations: &[Violation]) -> String {
    let mut text = format!("seed {}: SIM_SEEDS={}..{} SIM_HOURS={hours}\n", plan.seed, plan.seed, plan.seed + 1);
    for Violation { invariant, at, about, what } in violations.iter().take(12) {
        text += &format!("  invariant {invariant} at {at} ms, {about}: {what}\n");
    }
    text
}

/// The number of troubles that a run needs to fail in the same way, one left out after the other.
fn shrunk(plan: &Plan, first: &Violation) -> Vec<usize> {
    let mut dropped: Vec<usize> = Vec::new();
    for number in 0..plan.troubles.len() {
        dropped.push(number);
        let violations = judged(&plan.without(&dropped));
        if !violations.iter().any(|v| v.invariant == first.invariant && v.about == first.about) {
            dropped.pop();
        }
    }
    (0..plan.troubles.len()).filter(|number| !dropped.contains(number)).collect()
}

/// Runs a seed; what is wrong, as text.
fn try_seed(seed: u64, hours: u64, table: &mut Table) -> Option<String> {
    let plan = Plan::draw(seed, hours);
    let record = drive::run(&plan);
    let (violations, tally) = judge(&plan, &record.entries);
    table.add(&plan, &tally, &record, &violations);
    if std::env::var_os("SIM_HASHES").is_some() {
        println!("hash {seed} {:016x}", hash(&trace::whole(&plan, &record.entries)));
    }
    let first = violations.first()?;
    let mut text = report(&plan, hours, &violations);
    if std::env::var_os("SIM_TRACE").is_some() {
        let path = std::env::temp_dir().join(format!("simulation-{seed}.trace"));
        std::fs::write(&path, trace::whole(&plan, &record.entries)).unwrap();
        text += &format!("  the whole trace is in {}\n", path.display());
    }
    if std::env::var_os("SIM_SHRINK").is_some() {
        let needed = shrunk(&plan, first);
        for number in needed {
            text += &format!("  needed: {number} {:?}\n", plan.troubles[number]);
        }
    }
    if let Some((namespace, name)) = first.about.split(' ').next().and_then(|about| about.split_once('/')) {
        let name = name.rsplit_once('-').filter(|(_, m)| m.len() == 8).map_or(name, |(name, _)| name);
        let history = trace::about(&plan, &record.entries, namespace, name);
        let lines: Vec<&str> = history.lines().collect();
        let until = lines
            .partition_point(|line| line.trim_start().split(' ').next().unwrap().parse::<u64>().unwrap() <= first.at);
        for line in &lines[until.saturating_sub(60)..(until + 4).min(lines.len())] {
            text += &format!("    {line}\n");
        }
    }
    Some(text)
}

#[test]
fn no_seed_makes_them_lose_or_double_a_run() {
    let wished = |name: &str| std::env::var_os(name);
    let Wish { seeds, hours } = Wish::parse(wished("SIM_SEEDS").as_deref(), wished("SIM_HOURS").as_deref())
        .unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{hours} h each of seeds {seeds}");
    let mut table = Table::default();
    let mut failed = Vec::new();
    for seed in seeds.iter() {
        if let Some(text) = try_seed(seed, hours, &mut table) {
            println!("{text}");
            failed.push(seed);
            if std::env::var_os("SIM_FAIL_FAST").is_some() {
                break;
            }
        }
    }
    let commit = std::env::var("SIM_COMMIT").unwrap_or_else(|_| "unknown".to_owned());
    println!("{table}{}", table.slice(&seeds.to_string(), hours, &commit, &failed));
    assert!(failed.is_empty(), "seeds {failed:?}");
}

#[test]
fn a_seed_repeats_byte_for_byte() {
    // Each of these showed two traces while who waits was woken in a random order.
    for seed in [0, 6, 9, 10] {
        let plan = Plan::draw(seed, 2);
        let traces = [0, 1].map(|_| trace::whole(&plan, &drive::run(&plan).entries));
        let differs = traces[0].lines().zip(traces[1].lines()).find(|(one, other)| one != other);
        assert!(differs.is_none() && traces[0].len() == traces[1].len(), "seed {seed}: {differs:#?}");
        assert!(traces[0].lines().count() > 100);
    }
}

#[test]
fn a_plan_can_be_made_smaller() {
    let plan = Plan::draw(5, 2);
    let all: Vec<usize> = (0..plan.troubles.len()).collect();
    let crons = |plan: &Plan| plan.actions.iter().filter(|(_, a)| matches!(a, plan::Action::Create(_))).count();
    let quiet = plan.without(&all);
    assert!(quiet.actions.len() + 2 * all.len() == plan.actions.len() && crons(&quiet) == crons(&plan));
    let empty = plan.only(&|_: &Named| false);
    assert_eq!(crons(&empty), 0);
}
