//! The shadow of one CronJob: what it knows, and a step of it.
//!
//! A step opens the instants that have come due on the state before its mail, takes the mail in, decides anew without what the
//! controller in charge did, and closes what can be judged.

use std::sync::{Arc, OnceLock};

use chrono::TimeDelta;

use super::case::{SETTLE, WITHIN};
use super::feed::{Inbox, Mail, News, wake_of};
use super::judge::Judge;
use super::ledger::Ledger;
use super::plan::{Ask, PUNCTUAL, Plan, Planner};
use super::view::View;
use crate::cluster::{ReflectorHealth, Store};
use crate::engine::{Kind, Next, StepContext, Wake, stable_hash};
use crate::model::{CronJob, ObjectKey, WallTime};
use crate::reconcile::{Timetable, WAKE_DELAY};

/// An instant is opened this long before it comes, so that no act for it can be part of what is decided on.
const LEAD: TimeDelta = TimeDelta::seconds(1);

/// While a watch does not run nothing is judged; how soon to look again.
const BLIND_WAIT: TimeDelta = TimeDelta::seconds(5);

/// All shadows of one API, as the engine sees them.
pub(super) struct Shadows {
    pub(super) planner: Planner,
    pub(super) judge: Judge,
    pub(super) cronjobs: Store<CronJob>,
    /// Both watches, once they run.
    pub(super) watches: OnceLock<[ReflectorHealth; 2]>,
}

/// What the shadow of one CronJob knows.
#[derive(Default)]
pub(super) struct Actor {
    /// `None` before its first step.
    ledger: Option<Box<Ledger>>,
}

impl Kind for Shadows {
    type Key = ObjectKey;
    type Message = News;
    type Mailbox = Inbox;
    type Mail = Mail;
    type State = Actor;

    fn tenant(key: &ObjectKey) -> u64 {
        stable_hash(&*key.namespace)
    }

    fn fold(&self, _key: &ObjectKey, inbox: &mut Inbox, news: News, now: WallTime) -> Wake {
        let wake = wake_of(&news);
        inbox.put(news, now);
        wake
    }

    fn collect(&self, _key: &ObjectKey, inbox: &Inbox) -> Mail {
        inbox.collect()
    }

    /// There is no election, and so no take-over.
    fn due(&self, _key: &ObjectKey, _mail: &Mail, _now: WallTime) -> Option<WallTime> {
        None
    }

    fn open(&self, _key: &ObjectKey) -> Actor {
        Actor::default()
    }

    async fn step(&self, key: &ObjectKey, actor: &mut Actor, mail: Mail, context: &StepContext) -> Next {
        let now = context.now;
        let Some(cached) = self.cronjobs.get(key) else {
            self.judge.forget(actor.ledger.take().map_or(0, |ledger| ledger.cases.len()));
            mail.done();
            return Next::gone();
        };
        if mail.incomplete {
            tracing::warn!(cronjob = %key, "changes came too fast to follow; beginning anew with what the caches show");
            self.judge.forget(actor.ledger.take().map_or(0, |ledger| ledger.cases.len()));
        }
        let begun = actor.ledger.take();
        let mut ledger = begun.unwrap_or_else(|| Box::new(Ledger::begin(self.first_view(cached, &mail), &mail)));
        let before = ledger.cases.len();
        self.open_due(&mut ledger, now).await;
        let moved = ledger.take_in(&mail.changes, self.planner.settings.flavor);
        if moved {
            self.decide(&mut ledger, now).await;
        }
        self.open_overdue(&mut ledger, now).await;
        if self.is_seeing() {
            self.judge.close(&mut ledger, &self.planner, now);
        }
        self.judge.count_open(before, ledger.cases.len());
        let wake = self.next_wake(&mut ledger, now);
        mail.done();
        actor.ledger = Some(ledger);
        Next::done(wake)
    }
}

impl Shadows {
    /// What is known before the first mail is taken in.
    fn first_view(&self, cached: Arc<CronJob>, mail: &Mail) -> View {
        let first = mail.changes.iter().find_map(|heard| match &heard.news {
            News::CronJob { old, new, .. } => Some(old.clone().unwrap_or_else(|| new.clone())),
            _ => None,
        });
        View::of(first.unwrap_or(cached), &self.planner.jobs)
    }

    /// Opens the instants that come within [`LEAD`], each on the state as it is before anybody acts on it.
    async fn open_due(&self, ledger: &mut Ledger, now: WallTime) {
        while let Some(due) = ledger.next_due.filter(|due| *due <= now + LEAD) {
            let late = now > due + PUNCTUAL;
            let at = if late { now } else { now.max(due) + WAKE_DELAY };
            ledger.next_due = self.next_due(ledger, now.max(due));
            if ledger.knows(due) {
                continue;
            }
            let plan = self.planner.plan(&ledger.view, ledger.floor, at, Ask::Server).await;
            // After a jump of the clock what counts is the newest instant that has passed.
            let due = if late { plan.start.unwrap_or(due) } else { due };
            ledger.open(due, plan, now);
        }
    }

    /// An edit, or the first step, may have left an instant that is due within [`LEAD`].
    async fn open_overdue(&self, ledger: &mut Ledger, now: WallTime) {
        let after = ledger.opened.map_or(now, |opened| opened.max(now));
        ledger.next_due = self.next_due(ledger, after);
        self.open_due(ledger, now).await;
    }

    /// The next due instant after what is pending at `now`.
    fn next_due(&self, ledger: &Ledger, now: WallTime) -> Option<WallTime> {
        let cronjob = &ledger.view.cronjob;
        if cronjob.deleting {
            return None;
        }
        let (last, local) = (cronjob.status.last_schedule_time, self.planner.settings.local_zone);
        Timetable::new(cronjob, last, local, ledger.floor, now).ok()?.next_due()
    }

    /// Something changed: what would we do now?
    async fn decide(&self, ledger: &mut Ledger, now: WallTime) {
        ledger.settle_owed();
        for at in 0..ledger.cases.len() {
            if ledger.is_open_to_plans(at) {
                let (due, view) = ledger.view_of_case(at);
                let when = if due <= now + PUNCTUAL { now.max(due + WAKE_DELAY) } else { now };
                let plan = self.plan(ledger, &view, when).await;
                ledger.note_history(&plan, now);
                ledger.update(at, plan, now);
            }
        }
        ledger.settle_owed();
        if !ledger.gone.is_empty() {
            let plan = self.plan(ledger, &ledger.view_with_gone(), now).await;
            ledger.settle_gone(&plan);
        }
        ledger.drop_edited();
        if ledger.cases.iter().all(|case| !case.is_missing() && !case.is_unmatched()) {
            let plan = self.plan(ledger, &ledger.view, now).await;
            ledger.note_history(&plan, now);
            if let Some(due) = plan.start.filter(|due| !ledger.knows(*due)) {
                ledger.open(due, plan, now);
            }
        }
    }

    async fn plan(&self, ledger: &Ledger, view: &View, now: WallTime) -> Plan {
        self.planner.plan(view, ledger.floor, now, Ask::Copy).await
    }

    /// Whether both watches run; else what is not seen may have happened all the same.
    fn is_seeing(&self) -> bool {
        self.watches.get().is_none_or(|watches| watches.iter().all(|health| health.report().trouble.is_none()))
    }

    fn next_wake(&self, ledger: &mut Ledger, now: WallTime) -> Option<WallTime> {
        let opens = ledger.next_due.and_then(|due| due.checked_sub_signed(LEAD));
        let cases = (0..ledger.cases.len()).map(|at| ledger.deadline(at));
        let kept = ledger.standing.iter().filter(|kept| !kept.reported).map(|kept| kept.since + WITHIN);
        let gone = ledger.gone.iter().map(|gone| gone.heard + SETTLE);
        let wake = cases.chain(kept).chain(gone).chain(opens).min()?;
        // What is overdue waits for the watches.
        Some(if wake <= now { now + BLIND_WAIT } else { wake })
    }
}
