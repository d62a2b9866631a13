//! Which Jobs are ours, by `spec.managedBy`. The field cannot change, so a Job is ours for good or never.

use std::sync::Arc;

use super::names::MANAGED_BY_BUILT_IN;
use crate::model::BatchJob;

/// Which Jobs this controller looks after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mandate {
    name: Arc<str>,
    unmarked: bool,
}

impl Mandate {
    /// Jobs whose `spec.managedBy` is `name`: those of everybody else are left to the built-in controller.
    pub fn marked(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), unmarked: false }
    }

    /// The same, and all Jobs that the built-in controller would look after, in its place.
    pub fn all(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), unmarked: true }
    }

    /// Whether the Job is ours.
    pub fn covers(&self, job: &BatchJob) -> bool {
        match job.spec.managed_by.as_deref() {
            None | Some(MANAGED_BY_BUILT_IN) => self.unmarked,
            Some(name) => *name == *self.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::fixtures::job;

    #[test]
    fn a_job_belongs_to_whom_it_names_and_otherwise_to_the_built_in_controller() {
        let managed_by = |name: Option<&str>| {
            let mut job = job();
            job.spec.managed_by = name.map(Into::into);
            job
        };
        let jobs = [None, Some(MANAGED_BY_BUILT_IN), Some("a.io/ours"), Some("a.io/theirs")].map(managed_by);
        let ours = |mandate: Mandate| jobs.each_ref().map(|job| mandate.covers(job));
        assert_eq!(ours(Mandate::marked("a.io/ours")), [false, false, true, false]);
        assert_eq!(ours(Mandate::all("a.io/ours")), [true, true, true, false]);
    }
}
