//! One process on the server: its caches, its memory, and steps driven to their end.

use std::sync::Arc;

use cronjob_controller::jobs::names::MANAGED_BY_US;
use cronjob_controller::jobs::{Answer, Call, Mandate, Memory, Next, Outcome, PodCache, PodPatch, Step};
use cronjob_controller::model::{ApiFailure, BatchJob, BatchJobStatus, Pod, Uid, WallTime};

use crate::objects::at;
use crate::server::{Server, Snapshot, failure};

/// What the caches show: Job and Pods at moments of their own.
#[derive(Clone)]
pub(crate) struct Caches {
    pub job: Snapshot,
    pub pods: Snapshot,
    /// Whether the cache of Pods knows its version.
    pub knows_version: bool,
}

impl PodCache for Caches {
    fn owned(&self, job: &Uid) -> Vec<Arc<Pod>> {
        let owned = |pod: &&Arc<Pod>| pod.controller.as_ref().is_some_and(|owner| owner.uid == *job);
        self.pods.pods.values().filter(owned).cloned().collect()
    }

    fn unowned(&self, namespace: &str) -> Vec<Arc<Pod>> {
        let orphan = |pod: &&Arc<Pod>| pod.controller.is_none() && &*pod.key.namespace == namespace;
        self.pods.pods.values().filter(orphan).cloned().collect()
    }

    fn version(&self) -> Option<Box<str>> {
        self.knows_version.then(|| self.pods.version.to_string().into())
    }
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Answered,
    /// The process dies; the request and those after it in its batch were never sent.
    CrashBefore,
    /// The process dies; the request was carried out, those after it in its batch were never sent.
    CrashAfter,
    /// The step is dropped in the same way, and the process goes on with its memory.
    DropBefore,
    DropAfter,
    /// Never carried out, and no answer came.
    LostBefore,
    /// Carried out, and no answer came.
    LostAfter,
    /// The server refuses.
    Refused,
}

/// How a step ended.
pub(crate) enum End {
    Done(Box<Outcome>),
    Crashed,
    Dropped,
}

pub(crate) struct World {
    pub server: Server,
    pub caches: Caches,
    pub memory: Memory,
    pub now: WallTime,
    /// Requests in the order of their sending, in short.
    pub calls: Vec<String>,
    /// Requests that are answered by a failure: the beginning of the request in short, and the failure.
    pub failing: Vec<(String, ApiFailure)>,
}

/// What one step did.
pub(crate) struct Run {
    pub calls: Vec<String>,
    pub writes: Vec<BatchJobStatus>,
    pub outcome: Outcome,
}

impl Run {
    pub(crate) fn reasons(&self) -> Vec<&'static str> {
        self.outcome.happenings.iter().map(|happening| happening.reason).collect()
    }

    /// How many requests begin like this.
    pub(crate) fn number(&self, of: &str) -> usize {
        self.calls.iter().filter(|call| call.starts_with(of)).count()
    }

    pub(crate) fn error(&self) -> Option<&str> {
        self.outcome.error.as_ref().map(|error| &*error.text)
    }

    pub(crate) fn last(&self) -> &BatchJobStatus {
        self.writes.last().unwrap()
    }

    /// The conditions of the last write, in short.
    pub(crate) fn conditions(&self) -> Vec<String> {
        let text = |c: &cronjob_controller::model::JobCondition| format!("{}={:?}", c.condition_type, c.status);
        self.last().conditions.iter().map(text).collect()
    }
}

impl World {
    /// A process that has watched all along: its memory trusts the caches.
    pub(crate) fn new(job: BatchJob, pods: Vec<Pod>) -> Self {
        let memory = Memory::trusting(job.uid.clone());
        Self { memory, ..Self::restarted(job, pods) }
    }

    /// A process that has just begun.
    pub(crate) fn restarted(job: BatchJob, pods: Vec<Pod>) -> Self {
        let server = Server::new(job, pods);
        let now = server.history[0].clone();
        let caches = Caches { job: now.clone(), pods: now, knows_version: true };
        Self { server, caches, memory: Memory::default(), now: at(0), calls: Vec::new(), failing: Vec::new() }
    }

    /// The watches catch up.
    pub(crate) fn sync(&mut self) {
        let now = self.server.history.last().unwrap().clone();
        self.caches = Caches { job: now.clone(), pods: now, ..self.caches.clone() };
    }

    /// The process begins anew, with caches as of so many changes ago.
    pub(crate) fn restart(&mut self, job_behind: usize, pods_behind: usize) {
        let back = |changes: usize| {
            let history = &self.server.history;
            history[history.len().saturating_sub(changes + 1)].clone()
        };
        self.caches = Caches { job: back(job_behind), pods: back(pods_behind), ..self.caches.clone() };
        self.memory = Memory::default();
    }

    /// One step to its end, without trouble but for what is `failing`.
    pub(crate) fn step(&mut self) -> Run {
        let (calls, writes) = (self.calls.len(), self.server.writes.len());
        let End::Done(outcome) = self.step_with(&mut |_| Fate::Answered, false) else { panic!("nothing dies here") };
        Run { calls: self.calls[calls..].to_vec(), writes: self.server.writes[writes..].to_vec(), outcome: *outcome }
    }

    /// One step whose requests meet these fates, batches backwards if so asked.
    pub(crate) fn step_with(&mut self, fate: &mut dyn FnMut(&Call) -> Fate, backwards: bool) -> End {
        let mandate = Mandate::all(MANAGED_BY_US);
        let mut step = Step::begin(&mandate, self.caches.job.job.clone(), &self.caches, &mut self.memory, self.now);
        loop {
            let calls = match step.advance() {
                Next::Done(outcome) => return End::Done(outcome),
                Next::Calls(calls) => calls,
            };
            let mut order: Vec<usize> = (0..calls.len()).collect();
            if backwards {
                order.reverse();
            }
            for place in order {
                let call = &calls[place];
                self.calls.push(short(call));
                let fate = fate(call);
                let carried_out = matches!(fate, Fate::Answered | Fate::CrashAfter | Fate::DropAfter | Fate::LostAfter);
                let told = self.calls.last().unwrap();
                let refused = self.failing.iter().find(|(start, _)| told.starts_with(&**start));
                let answer = match refused {
                    Some((_, failure)) => refusal(call, failure.clone()),
                    None if carried_out => self.server.apply(call, self.now),
                    None => refusal(call, failure(500, "InternalError")),
                };
                match fate {
                    Fate::Answered | Fate::Refused => step.answer(place, answer),
                    Fate::LostBefore | Fate::LostAfter => step.answer(place, refusal(call, failure(0, ""))),
                    Fate::CrashBefore | Fate::CrashAfter => return End::Crashed,
                    Fate::DropBefore | Fate::DropAfter => return End::Dropped,
                }
            }
        }
    }
}

fn refusal(call: &Call, failure: ApiFailure) -> Answer {
    match call {
        Call::GetJob { .. } | Call::PatchStatus { .. } => Answer::Job(Err(failure)),
        Call::ListPods { .. } => Answer::Pods(Err(failure)),
        Call::CreatePod { .. } | Call::PatchPod { .. } => Answer::Pod(Err(failure)),
        Call::DeletePod { .. } => Answer::Deleted(Err(failure)),
    }
}

/// A request in short.
pub(crate) fn short(call: &Call) -> String {
    match call {
        Call::GetJob { .. } => "getJob".into(),
        Call::ListPods { .. } => "listPods".into(),
        Call::CreatePod { additions, .. } => {
            additions.completion_index().map_or("create".into(), |index| format!("create {index}"))
        }
        Call::PatchPod { key, patch } => match patch {
            PodPatch::Untrack => format!("untrack {}", key.name),
            PodPatch::Adopt { .. } => format!("adopt {}", key.name),
            PodPatch::Release { .. } => format!("release {}", key.name),
        },
        Call::DeletePod { key } => format!("delete {}", key.name),
        Call::PatchStatus { .. } => "put".into(),
    }
}
