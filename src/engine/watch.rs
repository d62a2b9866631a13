//! The watch on the wall clock: due instants are wall time, timers are monotonic, and the difference may jump.

use chrono::TimeDelta;
use tokio_util::sync::CancellationToken;

use super::kind::Kind;
use super::supervisor::Engine;
use crate::workqueue::Class;

/// Differences up to this are let be: the slow steering of NTP adds up to it before timers are armed anew.
const TOLERANCE: TimeDelta = TimeDelta::milliseconds(50);

impl<K: Kind> Engine<K> {
    /// Compares the clocks until `stop`.
    pub(super) async fn watch_clock(&self, stop: &CancellationToken) {
        let mut armed_at = self.drift_at_start;
        let compare = || {
            let drift = self.clock.drift();
            let step = drift - armed_at;
            if step.abs() > TOLERANCE {
                armed_at = drift;
                tracing::warn!(step_ms = step.num_milliseconds(), "the wall clock was stepped: arming timers anew");
                self.metrics.as_ref().inspect(|metrics| metrics.on_clock_step());
                self.on_clock_step(step > TimeDelta::zero());
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.clock.watch_steps(compare) => {}
        }
    }

    fn on_clock_step(&self, forward: bool) {
        for (due, unseen, key) in self.cells.by_due() {
            let queue = self.queue_of(&key);
            match due {
                // News since its last step may have named another instant, with a timer that nobody here can arm anew.
                _ if unseen => queue.add_in(key, Class::Listed),
                // Now nearer, perhaps passed; the earliest wish wins.
                Some(due) if forward => queue.add_after(key, self.clock.until(due)),
                None if forward => {}
                // Instants named under the wrong time may lie beyond the right ones: everybody decides again.
                _ => queue.add_in(key, Class::Listed),
            }
        }
    }
}
