//! Which differences there are, and whether each is one that a rule explains.

use std::collections::{BTreeMap, BTreeSet};

use crate::cases::{Case, Expected};
use crate::record::Record;
use crate::support::pattern::fits;

#[derive(Default)]
pub(crate) struct Verdict {
    cases: usize,
    lines: usize,
    /// Rule to the differences it explains, as `case: side line`.
    explained: BTreeMap<&'static str, Vec<String>>,
    /// What the real controller says only now and then, by the state of its caches.
    by_chance: Vec<String>,
    faults: Vec<String>,
}

impl Verdict {
    /// Compares what both sides did with one CronJob.
    pub(crate) fn judge(&mut self, case: &Case, theirs: &Record, ours: &Record) {
        if case.expected.is_empty() {
            let more = ours.said_more_often_than(theirs);
            self.faults.extend(more.into_iter().map(|line| format!("{}: said too often: {line}", case.name)));
        }
        let (theirs, ours) = (theirs.lines(), ours.lines());
        self.cases += 1;
        self.lines += theirs.intersection(&ours).count();
        let sides = [
            (
                "real",
                theirs.difference(&ours).cloned().collect::<Vec<_>>(),
                (|e: &Expected| e.theirs) as fn(&Expected) -> _,
            ),
            ("ours", ours.difference(&theirs).cloned().collect::<Vec<_>>(), |e: &Expected| e.ours),
        ];
        for (side, lines, patterns) in sides {
            for line in &lines {
                let rule =
                    case.expected.iter().find(|expected| patterns(expected).iter().any(|p: &&str| fits(p, line)));
                match rule {
                    Some(expected) => {
                        self.explained.entry(expected.rule).or_default().push(format!("{}: {side}: {line}", case.name));
                    }
                    None if side == "real" && misses_what_it_deleted(line, &theirs) => {
                        self.by_chance.push(format!("{}: {line}", case.name));
                    }
                    None => self.faults.push(format!("{}: only {side}: {line}", case.name)),
                }
            }
            for expected in &case.expected {
                for pattern in patterns(expected).iter().filter(|pattern| !lines.iter().any(|line| fits(pattern, line)))
                {
                    let what = format!("{} expects of {side}, but there is not: {pattern}", expected.rule);
                    self.faults.push(format!("{}: {what}", case.name));
                }
            }
        }
    }

    /// Counts, and every explained difference under its rule.
    pub(crate) fn summary(&self) -> String {
        let mut text = format!("{} CronJobs, {} facts alike; differences by rule:", self.cases, self.lines);
        for (rule, lines) in &self.explained {
            text += &format!("\n{rule}: {}", lines.len());
            for line in lines {
                text += &format!("\n    {}", line.chars().take(160).collect::<String>());
            }
        }
        for line in &self.by_chance {
            text += &format!("\nthe real one missed a Job that it had deleted itself: {line}");
        }
        text
    }

    /// What no rule explains.
    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }
}

/// Whether `line` says that an active Job went missing which the same controller deleted. The real one decides on whatever its caches
/// show, so it may find an entry of its older status without the Job; whether that happens hangs on milliseconds.
fn misses_what_it_deleted(line: &str, all: &BTreeSet<String>) -> bool {
    let Some(missing) = line.strip_prefix("event Normal MissingJob Active job went missing: ") else { return false };
    let job = missing.split(' ').next().unwrap_or_default();
    let deleted = format!("event Normal SuccessfulDelete Deleted job {job} ");
    all.iter().any(|line| line.starts_with(&deleted))
}
