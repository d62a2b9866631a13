//! The decision: whether a run starts now, and if not, what is said about it.

use chrono::TimeDelta;

use super::{Step, Task};
use crate::model::{EventType, Policy, WallTime, job_name, unix_minutes};
use crate::reconcile::call::{Retry, RunResult, StepError};
use crate::reconcile::due::{Timetable, zone_of};
use crate::reconcile::memory::Once;
use crate::schedule::{Missed, MissedCount, MissedKind, quote};

/// RFC 1123 with a numeric zone, as the peers write it.
const MISS_TIME: &str = "%a, %d %b %Y %H:%M:%S %z";

/// A clock that has run ahead by no more than this is nobody's concern.
const AHEAD_BY: TimeDelta = TimeDelta::minutes(1);

impl Step<'_> {
    /// One gate after the other; the first that is shut ends the step but for its status.
    pub(super) fn pass_gates(&mut self) {
        if self.base.deleting {
            return self.stop();
        }
        let zone_first = self.profile.zone_before_suspend;
        if zone_first && !self.zone_is_usable() {
            return;
        }
        if self.base.spec.suspend {
            return self.stop();
        }
        if !zone_first && !self.zone_is_usable() {
            return;
        }
        let Some(timetable) = self.usable_timetable() else { return };
        self.speak_of_status_ahead();
        self.speak_of_taken_minutes(&timetable);
        match timetable.due() {
            Ok(due) => self.on_due(&timetable, due),
            Err(never) => {
                let error = never.to_string();
                let message = (self.profile.words.never_fires)(&self.base.spec.schedule, &error);
                self.say(EventType::Warning, "InvalidSchedule", message);
                self.on_bad_input(error);
            }
        }
    }

    fn zone_is_usable(&mut self) -> bool {
        let Err(error) = zone_of(&self.base.spec, self.local) else { return true };
        let error = error.to_string();
        let zone = self.base.spec.time_zone.as_deref().unwrap_or_default();
        let (reason, message) = (self.profile.words.bad_zone)(zone, &error);
        self.say(EventType::Warning, reason, message);
        self.on_bad_input(error);
        false
    }

    /// Both controllers say what is wrong with a schedule (rule `bad-schedule-speaks`); what a parser could panic on is such an
    /// error too (rule `no-parser-panic`).
    fn usable_timetable(&mut self) -> Option<Timetable> {
        if self.base.spec.schedule.contains("TZ") {
            let message = (self.profile.words.unsupported_schedule)(&self.base.spec.schedule);
            self.say(EventType::Warning, "UnsupportedSchedule", message);
        }
        match self.timetable() {
            Ok(timetable) => Some(timetable),
            Err(error) => {
                let error = error.to_string();
                let message = format!("unparseable schedule: {} : {error}", quote(&self.base.spec.schedule));
                self.say(EventType::Warning, "UnparseableSchedule", message);
                self.on_bad_input(error);
                None
            }
        }
    }

    /// Rule `ahead-speaks`: as in the peers nothing starts before that instant; but somebody is told, each time that it is looked at.
    fn speak_of_status_ahead(&mut self) {
        let Some(last) = self.status.last_schedule_time else { return };
        if last.signed_duration_since(self.now) > AHEAD_BY {
            let shown = last.format("%Y-%m-%dT%H:%M:%SZ");
            let message =
                format!("Nothing starts before status.lastScheduleTime, which lies ahead of the clock: {shown}");
            self.say(EventType::Warning, "LastScheduleTimeAhead", message);
        }
    }

    /// Rule `minute-taken`: told once for an `@every`, not for each instant that it costs.
    fn speak_of_taken_minutes(&mut self, timetable: &Timetable) {
        let Some(delay_s) = timetable.within_a_minute_s() else { return };
        if self.memory.first(Once::Taken, delay_s) {
            let message = format!(
                "The schedule comes every {delay_s} s, but a Job is named after its minute: one run starts in a minute, the others do not"
            );
            self.say(EventType::Warning, "MinuteTaken", message);
        }
    }

    /// No retry mends an unusable zone or schedule; only an edit does.
    fn on_bad_input(&mut self, error: String) {
        if self.profile.bad_input_is_error {
            self.fail(StepError::new(error, Retry::NextEdit));
        } else {
            self.stop();
        }
    }

    fn on_due(&mut self, timetable: &Timetable, due: Missed) {
        let Some(at) = due.newest else {
            self.speak_of_miss(timetable);
            return self.wait();
        };
        if due.kind == MissedKind::Many && self.memory.first(Once::TooMany, unix_minutes(at)) {
            let message =
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.say_of_run(EventType::Warning, "TooManyMissedTimes", message.to_owned(), at);
        }
        if self.is_recorded(at) || timetable.is_taken(at) {
            return self.wait();
        }
        match self.base.spec.policy {
            Policy::Forbid if !self.active.is_empty() => self.skip(at),
            Policy::Replace => self.start_after_replacing(at, due.count),
            _ => self.start_run(at, due.count),
        }
    }

    /// Rule `miss-speaks`: what is pending lies outside the deadline altogether. Said once for the newest.
    fn speak_of_miss(&mut self, timetable: &Timetable) {
        let Ok(pending) = timetable.pending() else { return };
        let Some(at) = pending.newest else { return };
        if self.memory.first(Once::Miss, unix_minutes(at)) {
            let message = format!("Missed scheduled time to start a job: {}", at.format(MISS_TIME));
            self.say_of_run(EventType::Warning, "MissSchedule", message, at);
            self.note(RunResult::MissedDeadline);
            self.outcome.missed = Some(pending.count);
        }
    }

    /// Whether the status holds this run already: by the name of its Job, or by its instant.
    fn is_recorded(&self, at: WallTime) -> bool {
        let name = job_name(&self.base.key.name, at);
        let named = |reference: &&crate::model::ObjectReference| {
            *reference.name == *name && *reference.namespace == *self.base.key.namespace
        };
        self.active.iter().any(|reference| named(&reference)) || self.status.last_schedule_time >= Some(at)
    }

    fn skip(&mut self, at: WallTime) {
        if self.memory.first(Once::Skip, unix_minutes(at)) {
            let (warning, reason, message) = self.profile.words.forbidden;
            let event_type = if warning { EventType::Warning } else { EventType::Normal };
            self.say_of_run(event_type, reason, message.to_owned(), at);
            self.note(RunResult::SkippedForbid);
        }
        self.wait();
    }

    /// Every active Job is fetched and deleted first (rule `snapshot-iteration`: those that are active now).
    fn start_after_replacing(&mut self, at: WallTime, pending: MissedCount) {
        if let (false, Some((reason, message))) = (self.active.is_empty(), self.profile.words.replacing) {
            self.say(EventType::Warning, reason, message.to_owned());
        }
        let active = self.active.iter().cloned().map(Task::Replace).collect::<Vec<_>>();
        self.start_run(at, pending);
        for task in active.into_iter().rev() {
            self.todo.push_front(task);
        }
    }

    fn start_run(&mut self, at: WallTime, pending: MissedCount) {
        self.pending = pending;
        self.todo.push_front(Task::Create(at));
    }
}
