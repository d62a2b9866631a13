//! A history as text, one line for each thing; docs/simulation.md has the legend.

use std::fmt::Write;

use cronjob_controller::sandbox::store::Change;
use serde_json::Value;

use crate::history::{Asked, Changed, Entry, Said, What, text_of, wall};
use crate::plan::Plan;

/// The whole trace.
pub(crate) fn whole(plan: &Plan, entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        push_line(&mut text, plan, entry);
    }
    text
}

/// The lines that concern a CronJob, and what concerns all.
pub(crate) fn about(plan: &Plan, entries: &[Entry], namespace: &str, name: &str) -> String {
    let mut text = String::new();
    for entry in entries.iter().filter(|entry| concerns(entry, namespace, name)) {
        push_line(&mut text, plan, entry);
    }
    text
}

fn concerns(entry: &Entry, namespace: &str, name: &str) -> bool {
    let is_of = |full: &str| full == name || full.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    match &entry.what {
        What::Changed(Changed { resource, object, .. }) => match resource.plural {
            "cronjobs" | "jobs" => object.namespace() == namespace && is_of(object.name()),
            _ => false,
        },
        What::Served { request, .. } => request.namespace == namespace && is_of(&request.name),
        What::Said(Said { about, .. }) => &*about.namespace == namespace && &*about.name == name,
        What::Unsettled { .. } => false,
        _ => true,
    }
}

fn push_line(text: &mut String, plan: &Plan, entry: &Entry) {
    let at = text_of(wall(plan.start, entry.at, 0));
    let _ = write!(text, "{:>11} {} ", entry.at, &at[5..23]);
    let _ = match &entry.what {
        What::Changed(changed) => writeln!(text, "{}", change(changed)),
        What::Served { replica, request } => {
            let Asked { verb, resource, namespace, name, status, code, .. } = request;
            let part = if *status { "/status" } else { "" };
            writeln!(text, "r{replica} ? {verb} {} {namespace}/{name}{part} {code}", resource.qualified())
        }
        What::Said(Said { replica, process, about, reason, minutes, .. }) => {
            let minutes = minutes.map(|minutes| format!(" @{minutes}")).unwrap_or_default();
            writeln!(text, "r{replica}.{process} ! {about} {reason}{minutes}")
        }
        What::Started { replica, process } => writeln!(text, "r{replica}.{process} starts"),
        What::Ended { replica, process } => writeln!(text, "r{replica}.{process} ends"),
        What::Clock { replica, off_ms } => writeln!(text, "r{replica} clock off by {off_ms} ms"),
        What::Unsettled { until } => writeln!(text, "~ until {until}"),
        What::Note(note) => writeln!(text, "# {note}"),
        What::Breach(what) => writeln!(text, "breach: {what}"),
        What::Leftovers(what) => writeln!(text, "left over: {what}"),
    };
}

fn change(changed: &Changed) -> String {
    let Changed { revision, resource, change, object, by } = changed;
    let sign = match change {
        Change::Added => '+',
        Change::Modified => '*',
        Change::Deleted => '-',
    };
    let by = by.map_or("others".to_owned(), |by| format!("r{by}"));
    let facts = match resource.plural {
        "cronjobs" => cron_facts(&object.value()),
        "jobs" => job_facts(&object.value()),
        "leases" => object.value()["spec"]["holderIdentity"].to_string(),
        _ => String::new(),
    };
    let uid = object.uid.get(..6).unwrap_or_default();
    format!("{by} {sign} {revision} {} {} {uid} {facts}", resource.qualified(), object.key)
}

fn cron_facts(value: &Value) -> String {
    let (spec, status) = (&value["spec"], &value["status"]);
    let active =
        status["active"].as_array().map(|active| active.iter().filter_map(|r| r["name"].as_str()).collect::<Vec<_>>());
    let mut text = format!("{} {}", spec["schedule"], spec["concurrencyPolicy"]);
    for (label, field) in [
        ("zone", &spec["timeZone"]),
        ("deadline", &spec["startingDeadlineSeconds"]),
        ("suspend", &spec["suspend"]),
        ("last", &status["lastScheduleTime"]),
        ("success", &status["lastSuccessfulTime"]),
    ] {
        if !field.is_null() && *field != false {
            let _ = write!(text, " {label}={field}");
        }
    }
    format!("{text} active={}", active.unwrap_or_default().join(","))
}

fn job_facts(value: &Value) -> String {
    let metadata = &value["metadata"];
    let owner = metadata["ownerReferences"][0]["uid"].as_str().and_then(|uid| uid.get(..6)).unwrap_or("nobody");
    let status = &value["status"];
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let conditions: Vec<&str> = conditions.iter().filter_map(|condition| condition["type"].as_str()).collect();
    format!("of {owner} {}{}", conditions.join(","), status["state"]["phase"].as_str().unwrap_or_default())
}
