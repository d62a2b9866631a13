//! Terms of leadership: the controllers stand by, take over, and stand by again, in one process.
//!
//! Invariants
//! - Nothing steps outside a term, and nothing of one term outlives it: when leadership is lost, writing has ended already (the
//!   gate), then the steps are cut off, then their actors are dropped.
//! - A term that ends because the process does ends in order: steps in flight finish, what they said is written, and only then
//!   the Lease is given away.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::controller::Controller;
use super::manager::Telling;
use super::readiness::Readiness;
use crate::cluster::Elector;

/// How often a process that starts looks whether its caches are complete.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The controllers of a process that takes part in an election.
pub(super) struct Terms {
    pub(super) elector: Elector,
    pub(super) controllers: Vec<Arc<dyn Controller>>,
    /// One for each controller.
    pub(super) readiness: Vec<Readiness>,
    /// How long steps in flight may take at the end.
    pub(super) budget: Duration,
    /// How long to wait for complete caches before standing for election all the same: a controller whose cache cannot be
    /// filled must not keep the others from working.
    pub(super) patience: Duration,
}

impl Terms {
    /// One term after the other, until `stop`. What was said has been written at the end, if we led.
    pub(super) async fn run(mut self, stop: CancellationToken, telling: &Telling) {
        self.elector.announce();
        // Whoever takes over shall do so from complete caches.
        stop.run_until_cancelled(timeout(self.patience, self.warm())).await;
        while stop.run_until_cancelled(self.elector.acquire()).await.is_some() {
            if self.lead(&stop, telling).await {
                break;
            }
            self.controllers.iter().for_each(|it| it.end_term());
        }
        self.elector.release().await;
    }

    /// One term; whether it ended because the process does, in order.
    async fn lead(&mut self, stop: &CancellationToken, telling: &Telling) -> bool {
        let cut = CancellationToken::new();
        let working = self.controllers.iter().map(|it| it.work(stop.clone(), self.budget, cut.clone()));
        let work = async {
            // Also without any controller a term lasts until its end.
            tokio::join!(join_all(working), cut.run_until_cancelled(stop.cancelled()));
            if !cut.is_cancelled() {
                telling.end().await;
            }
        };
        let mut work = pin!(work);
        tokio::select! {
            biased;
            lost = self.elector.hold() => {
                let next = if stop.is_cancelled() { "ends" } else { "stands by again" };
                tracing::warn!(%lost, next, "leads no more");
            }
            () = &mut work => return true,
        }
        cut.cancel();
        work.await;
        false
    }

    async fn warm(&self) {
        while self.readiness.iter().any(|readiness| readiness.check().is_err()) {
            sleep(LOOK_EVERY).await;
        }
    }
}
