//! The hand-overs, counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use crate::Blow;

#[derive(Default)]
pub(crate) struct Report {
    /// From the blow until another held the Lease.
    taken: BTreeMap<Blow, Vec<Duration>>,
}

impl Report {
    pub(crate) fn on_handover(&mut self, blow: Blow, took: Duration) {
        self.taken.entry(blow).or_default().push(took);
    }

    pub(crate) fn table(&self) -> String {
        let mut table = String::from("what ended a leader   hand-overs   least     median    most      bound\n");
        for (blow, times) in &self.taken {
            let mut times = times.clone();
            times.sort_unstable();
            let (count, ms) = (times.len(), |at: usize| format!("{} ms", times[at].as_millis()));
            let bound = format!("{} ms", blow.bound().as_millis());
            let _ = writeln!(
                table,
                "{:<21} {count:>10}   {:<9} {:<9} {:<9} {bound}",
                format!("{blow:?}"),
                ms(0),
                ms(count / 2),
                ms(count - 1)
            );
        }
        table
    }

    pub(crate) fn check(&self) {
        for (blow, times) in &self.taken {
            for took in times {
                assert!(*took < blow.bound(), "{blow:?}: another led after {took:?}");
            }
        }
    }
}
