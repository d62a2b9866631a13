//! Frees Pods that lost their Job of its finalizer: a queue of its own, whose keys are what is to be looked at.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::join_all;

use super::calls::Calls;
use super::voice::Voice;
use crate::cluster::Store;
use crate::controllers::requests::back_off;
use crate::engine::{Kind, Next, StepContext, Wake, stable_hash};
use crate::jobs::{self, Call, JobCache, Mandate, StepError, free, is_gone, orphan, sweep_result};
use crate::model::{BatchJob, LabelSelector, Labels, ObjectKey, Pod, Uid, WallTime};

impl JobCache for Store<BatchJob> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<BatchJob>> {
        Self::get(self, key)
    }

    fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<ObjectKey> {
        let all = self.in_namespace(&namespace.into());
        all.iter().filter(|job| job.spec.selector.matches(labels)).map(|job| job.key.clone()).collect()
    }
}

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Suspect {
    /// This Pod.
    Pod(ObjectKey),
    /// The Pods of a Job, and those without a controller that its selector matches.
    Of { namespace: Arc<str>, uid: Uid, selector: LabelSelector },
}

impl Suspect {
    fn namespace(&self) -> &Arc<str> {
        match self {
            Self::Pod(key) => &key.namespace,
            Self::Of { namespace, .. } => namespace,
        }
    }
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod(key) => key.fmt(f),
            Self::Of { namespace, uid, .. } => write!(f, "Pods of the Job {uid} in {namespace}"),
        }
    }
}

/// All that may have lost its Job, as the engine sees it. An actor lives until its suspect is cleared.
pub(super) struct Orphans {
    pub(super) mandate: Mandate,
    pub(super) jobs: Store<BatchJob>,
    pub(super) pods: Store<Pod>,
    pub(super) calls: Calls,
    pub(super) voice: Voice,
}

impl Orphans {
    fn suspected(&self, suspect: &Suspect) -> Vec<Arc<Pod>> {
        match suspect {
            Suspect::Pod(key) => self.pods.get(key).into_iter().collect(),
            Suspect::Of { namespace, uid, selector } => {
                let unowned = self.pods.unowned(namespace).into_iter().filter(|pod| selector.matches(&pod.labels));
                self.pods.children(uid).into_iter().chain(unowned).collect()
            }
        }
    }

    /// Takes the finalizer off those of the Pods that lost their Job.
    async fn free_all(&self, tenant: &Arc<str>, pods: &[Arc<Pod>]) -> Result<(), StepError> {
        let mut gone = BTreeMap::new();
        let mut calls = Vec::new();
        for pod in pods {
            let lost = match orphan(&self.mandate, pod, &self.jobs) {
                jobs::Orphan::No => false,
                jobs::Orphan::Yes => true,
                jobs::Orphan::Unless { job, uid } => match gone.get(&uid) {
                    Some(known) => *known,
                    None => {
                        let answer = self.calls.perform(tenant, &Call::GetJob { key: job }).await;
                        let is_gone = is_gone(&uid, answer)?;
                        gone.insert(uid, is_gone);
                        is_gone
                    }
                },
            };
            if lost {
                calls.push(free(pod));
            }
        }
        sweep_result(join_all(calls.iter().map(|call| self.calls.perform(tenant, call))).await)
    }
}

impl Kind for Orphans {
    type Key = Suspect;
    type Message = Wake;
    type Mailbox = ();
    type Mail = ();
    type State = ();

    fn tenant(suspect: &Suspect) -> u64 {
        stable_hash(&**suspect.namespace())
    }

    fn fold(&self, _suspect: &Suspect, _mailbox: &mut (), wake: Wake, _now: WallTime) -> Wake {
        wake
    }

    fn collect(&self, _suspect: &Suspect, _mailbox: &()) {}

    fn due(&self, _suspect: &Suspect, _mail: &(), _now: WallTime) -> Option<WallTime> {
        None
    }

    fn open(&self, _suspect: &Suspect) {}

    async fn step(&self, suspect: &Suspect, _state: &mut (), _mail: (), _context: &StepContext) -> Next {
        let pods = self.suspected(suspect);
        match self.free_all(suspect.namespace(), &pods).await {
            Ok(()) => Next::gone(),
            Err(error) => {
                self.voice.say_failed(suspect, &error);
                Next::failed(back_off(error.retry_after), None)
            }
        }
    }
}
