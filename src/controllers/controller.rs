//! What the manager and the terms of leadership ask of a controller, whatever it controls.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::cronjob::CronJobController;
use super::expiry::ExpiryController;
use super::job::JobController;
use super::readiness::Readiness;
use super::{Counts, Deps, Options, Registration, Serves};

/// A controller. Its caches live as long as the process, its actors as long as a term of leadership.
pub(super) trait Controller: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Fills the caches from now on, as tasks of `tasks`, until `stop`; what is returned tells when they can be worked on.
    fn watch(&self, deps: &Deps, tasks: &TaskTracker, stop: &CancellationToken) -> Readiness;

    /// Lets the actors of the first term stand by; to be called before [`Controller::watch`].
    fn stand_by(&self);

    /// Drops the term that has ended; its successor stands by.
    fn end_term(&self);

    /// Steps the actors of the term once the caches have synced, until `stop`; then gives the steps in flight `budget`. `cut` ends
    /// everything at once.
    fn work(&self, stop: CancellationToken, budget: Duration, cut: CancellationToken) -> BoxFuture<'_, ()>;

    /// What is held in memory.
    fn counts(&self) -> Counts;
}

/// Builds what is registered. Nothing runs yet.
pub(super) fn initialize(registration: &Registration, deps: &Deps, options: &Options) -> Arc<dyn Controller> {
    match registration.serves {
        Serves::CronJobs(flavor) => Arc::new(CronJobController::initialize(registration, flavor, deps, options)),
        Serves::Jobs => Arc::new(JobController::initialize(registration, deps, options)),
        Serves::ExpiredJobs => Arc::new(ExpiryController::initialize(registration, deps, options)),
    }
}
