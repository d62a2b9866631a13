//! What many runs came to, as a table.

use std::collections::BTreeMap;
use std::fmt;

use crate::oracle::{Tally, Violation};
use crate::plan::{HOUR, Plan};

#[derive(Default)]
pub(crate) struct Table {
    runs: u64,
    hits: u64,
    sum: Tally,
    troubles: BTreeMap<&'static str, u64>,
    violations: BTreeMap<u8, u64>,
}

impl Table {
    pub(crate) fn add(&mut self, plan: &Plan, tally: &Tally, hits: u64, violations: &[Violation]) {
        self.runs += 1;
        self.hits += hits;
        self.sum.due += tally.due;
        self.sum.started += tally.started;
        self.sum.requests += tally.requests;
        self.sum.changes += tally.changes;
        self.sum.calm += tally.calm;
        self.sum.length += tally.length;
        self.sum.busiest = self.sum.busiest.max(tally.busiest);
        for trouble in &plan.troubles {
            *self.troubles.entry(trouble.kind.name()).or_default() += 1;
        }
        for violation in violations {
            *self.violations.entry(violation.invariant).or_default() += 1;
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, hits, sum, troubles, violations } = self;
        let hours = sum.length / HOUR;
        writeln!(f, "seeds {runs}, {hours} h of virtual time, {} h of it calm", sum.calm / HOUR)?;
        writeln!(f, "requests {} ({hits} hit by faults), changes in the store {}", sum.requests, sum.changes)?;
        writeln!(f, "most requests about one CronJob in a minute {}", sum.busiest)?;
        let injected: u64 = troubles.values().sum();
        let skipped = sum.due.saturating_sub(sum.started);
        let found: u64 = violations.values().sum();
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
