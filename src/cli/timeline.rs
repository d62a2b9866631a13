//! The sandbox's timeline: one line for each thing that a controller says about a CronJob or a Job, in words for people.
//!
//! Invariant: saying never waits for the terminal; lines go through a channel to the one task that prints.

use std::io::{self, Write};

use chrono::SubsecRound;
use tokio::sync::mpsc;

use crate::controllers::Observer;
use crate::model::{Happening, ObjectKey, WallTime};

/// Hears what the controllers say and queues it for printing.
pub(super) struct Timeline(mpsc::UnboundedSender<String>);

/// A timeline, and the lines that it makes.
pub(super) fn timeline() -> (Timeline, mpsc::UnboundedReceiver<String>) {
    let (send, receive) = mpsc::unbounded_channel();
    (Timeline(send), receive)
}

/// Prints lines until there are no more, or nobody reads them.
pub(super) async fn print(mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if writeln!(io::stdout().lock(), "{line}").is_err() {
            return;
        }
    }
}

impl Observer for Timeline {
    fn on_happening(&self, controller: &'static str, about: &ObjectKey, at: WallTime, happening: &Happening) {
        // The receiver is gone only when nobody reads the output any more.
        let _unread = self.0.send(line(controller, about, at, happening));
    }
}

fn line(controller: &'static str, about: &ObjectKey, at: WallTime, happening: &Happening) -> String {
    let api = match controller {
        "volcano-cronjob" => "volcano",
        "kubernetes-job" => "job",
        _ => "batch",
    };
    let at = at.trunc_subsecs(0).format("%a %Y-%m-%d %H:%M:%S");
    format!("{at}  {api:<7}  {:<24}  {}", about.to_string(), words(happening))
}

/// The event in a verb first, so that starts, ends and skips stand out; an event without a verb of its own keeps its reason.
fn words(happening: &Happening) -> String {
    let message = &*happening.message;
    let name = |prefix: &str| message.strip_prefix(prefix).map(|rest| rest.trim_matches('"'));
    let verb = match happening.reason {
        "SuccessfulCreate" => name("Created job ").map(|rest| {
            let job = rest.split_once(" for ").map_or(rest, |(job, _)| job);
            format!("started  {job}")
        }),
        "SawCompletedJob" => name("Saw completed job: ").map(|rest| {
            let rest = rest.trim_end_matches(" in active, remove");
            match rest.split_once(", condition: ") {
                Some((job, condition)) => format!("ended    {job} ({condition})"),
                None => format!("ended    {rest}"),
            }
        }),
        "SuccessfulDelete" => name("Deleted job ").map(|job| format!("deleted  {job}")),
        "JobAlreadyActive" | "ForbidConcurrent" => Some(format!("skipped  {message}")),
        "MissSchedule" => Some(format!("missed   {message}")),
        _ => None,
    };
    verb.unwrap_or_else(|| format!("{}: {message}", happening.reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EventType;
    use chrono::TimeZone;

    fn said(reason: &'static str, message: &str) -> String {
        let at = chrono::Utc.timestamp_millis_opt(1_772_359_200_104).unwrap();
        let happening =
            Happening { event_type: EventType::Normal, reason, message: message.to_owned(), due_minutes: None };
        line("kubernetes-cronjob", &ObjectKey::new("shop", "backup"), at, &happening)
    }

    #[test]
    fn a_line_names_time_api_cronjob_and_what_happened() {
        assert_eq!(
            said("SuccessfulCreate", "Created job backup-1"),
            "Sun 2026-03-01 10:00:00  batch    shop/backup               started  backup-1"
        );
    }

    #[test]
    fn both_peers_words_become_the_same_verbs() {
        for (reason, message, end) in [
            ("SuccessfulCreate", "Created job b-1 for CronJob shop/backup", "started  b-1"),
            ("SawCompletedJob", "Saw completed job: b-1, condition: Failed", "ended    b-1 (Failed)"),
            ("SawCompletedJob", "Saw completed job: b-1 in active, remove", "ended    b-1"),
            ("SuccessfulDelete", "Deleted job \"b-1\"", "deleted  b-1"),
            ("SuccessfulDelete", "Deleted job b-1", "deleted  b-1"),
            ("FailedCreate", "Error creating job: no", "FailedCreate: Error creating job: no"),
        ] {
            assert!(said(reason, message).ends_with(end), "{reason}: {message}");
        }
    }
}
