//! What many runs came to, as a table.

use std::collections::BTreeMap;
use std::fmt;

use crate::drive::Record;
use crate::oracle::{Tally, Violation};
use crate::plan::{Action, HOUR, Plan};

#[derive(Default)]
pub(crate) struct Table {
    runs: u64,
    hits: u64,
    /// Runs due in the seed that had the most.
    most_due: u64,
    /// CronJobs that users made, and of the seed that had the most.
    crons: (usize, usize),
    sum: Tally,
    /// Those that could act, by kind.
    troubles: BTreeMap<&'static str, u64>,
    violations: BTreeMap<u8, u64>,
}

impl Table {
    pub(crate) fn add(&mut self, plan: &Plan, tally: &Tally, record: &Record, violations: &[Violation]) {
        self.runs += 1;
        self.hits += record.hits;
        self.most_due = self.most_due.max(tally.due);
        let crons = plan.actions.iter().filter(|(_, action)| matches!(action, Action::Create(_))).count();
        self.crons = (self.crons.0 + crons, self.crons.1.max(crons));
        self.sum.due += tally.due;
        self.sum.started += tally.started;
        self.sum.requests += tally.requests;
        self.sum.changes += tally.changes;
        self.sum.calm += tally.calm;
        self.sum.length += tally.length;
        self.sum.busiest = self.sum.busiest.max(tally.busiest);
        for number in &record.acted {
            *self.troubles.entry(plan.troubles[*number].kind.name()).or_default() += 1;
        }
        for violation in violations {
            *self.violations.entry(violation.invariant).or_default() += 1;
        }
    }
}

impl Table {
    fn injected(&self) -> u64 {
        self.troubles.values().sum()
    }

    fn skipped(&self) -> u64 {
        self.sum.due.saturating_sub(self.sum.started)
    }

    fn found(&self) -> u64 {
        self.violations.values().sum()
    }

    /// The sums of a slice of seeds on one line, for adding up over slices. docs/simulation.md names the fields.
    pub(crate) fn slice(&self, seeds: &str, hours: u64, commit: &str, failed: &[u64]) -> String {
        let Self { runs, hits, most_due, sum, .. } = self;
        let (injected, skipped, found) = (self.injected(), self.skipped(), self.found());
        let failed: Vec<String> = failed.iter().map(u64::to_string).collect();
        format!(
            "slice seeds={seeds} hours={hours} commit={commit} runs={runs} faults={injected} hits={hits} requests={} due={} \
             most_due={most_due} started={} skipped={skipped} violations={found} failed={}",
            sum.requests,
            sum.due,
            sum.started,
            failed.join(","),
        )
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, hits, most_due, crons, sum, troubles, violations } = self;
        let mean = |sum: u64| sum / (*runs).max(1);
        let hours = sum.length / HOUR;
        writeln!(f, "seeds {runs}, {hours} h of virtual time, {} h of it calm", sum.calm / HOUR)?;
        writeln!(f, "requests {} ({hits} hit by faults), changes in the store {}", sum.requests, sum.changes)?;
        writeln!(f, "most requests about one CronJob in a minute {}", sum.busiest)?;
        let (cron_mean, most_crons) = (mean(crons.0 as u64), crons.1);
        writeln!(
            f,
            "runs due by seed: mean {}, most {most_due}; CronJobs made: mean {cron_mean}, most {most_crons}",
            mean(sum.due)
        )?;
        let (injected, skipped, found) = (self.injected(), self.skipped(), self.found());
        writeln!(f, "| faults injected | runs due | started | rightly skipped | violations |")?;
        writeln!(f, "|---|---|---|---|---|")?;
        writeln!(f, "| {injected} | {} | {} | {skipped} | {found} |", sum.due, sum.started)?;
        let list: Vec<String> = troubles.iter().map(|(name, count)| format!("{name} {count}")).collect();
        writeln!(f, "faults by kind: {}", list.join(", "))?;
        if found > 0 {
            writeln!(f, "violations by invariant: {violations:?}")?;
        }
        Ok(())
    }
}
