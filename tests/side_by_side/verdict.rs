//! Which differences there are, and whether each is one that a rule explains.

use std::collections::BTreeMap;

use crate::cases::{Case, Expected};
use crate::record::Record;

#[derive(Default)]
pub(crate) struct Verdict {
    cases: usize,
    lines: usize,
    /// Rule to the differences it explains, as `case: side line`.
    explained: BTreeMap<&'static str, Vec<String>>,
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
        text
    }

    /// What no rule explains.
    pub(crate) fn faults(&self) -> &[String] {
        &self.faults
    }
}

/// Whether `text` is `pattern`, in which each `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, "")) => text.starts_with(head),
        Some((head, rest)) => text
            .strip_prefix(head)
            .is_some_and(|text| text.char_indices().any(|(at, _)| fits(rest, &text[at..])) || fits(rest, "")),
    }
}
