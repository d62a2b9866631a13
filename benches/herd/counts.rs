//! What the server counted: requests by kind and code.

use std::collections::BTreeMap;

use anyhow::Context;
use kube::Client;

/// Requests by `VERB resource[/subresource] code`, as in `PATCH cronjobs/status 200`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(pub(crate) BTreeMap<String, u64>);

/// The groups that count: what a CronJob controller has to do with. Events are in the core group.
const RESOURCES: [&str; 3] = ["cronjobs", "jobs", "events"];

impl Counts {
    /// Asks the server.
    pub(crate) async fn of(client: &Client) -> anyhow::Result<Self> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let text = client.request_text(request).await.context("the server shows no metrics")?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            let Some((labels, value)) =
                line.strip_prefix("apiserver_request_total{").and_then(|rest| rest.split_once("} "))
            else {
                continue;
            };
            let (resource, subresource) = (label(labels, "resource"), label(labels, "subresource"));
            if RESOURCES.contains(&resource) && label(labels, "dry_run").is_empty() {
                let slash = if subresource.is_empty() { "" } else { "/" };
                let row = format!("{} {resource}{slash}{subresource} {}", label(labels, "verb"), label(labels, "code"));
                // The real server writes 1e+06 from a million on.
                *counts.entry(row).or_default() += value.parse::<f64>().unwrap_or_default() as u64;
            }
        }
        Self(counts)
    }

    /// What was added since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let added = self.0.iter().map(|(row, count)| (row, count - before.0.get(row).unwrap_or(&0)));
        Self(added.filter(|(_, count)| *count > 0).map(|(row, count)| (row.clone(), count)).collect())
    }

    /// Sum of the rows that begin so.
    pub(crate) fn sum(&self, beginnings: &[&str]) -> u64 {
        let fits = |row: &String| beginnings.iter().any(|beginning| row.starts_with(beginning));
        self.0.iter().filter(|(row, _)| fits(row)).map(|(_, count)| count).sum()
    }

    /// Requests that change something.
    pub(crate) fn writes(&self) -> u64 {
        self.sum(&["POST", "PUT", "PATCH", "DELETE"])
    }

    /// Writes refused since the object had changed.
    pub(crate) fn conflicts(&self) -> u64 {
        self.0.iter().filter(|(row, _)| row.ends_with(" 409")).map(|(_, count)| count).sum()
    }
}

fn label<'a>(labels: &'a str, name: &str) -> &'a str {
    let parts = labels.split("\",").map(|part| part.trim_end_matches('"'));
    parts.filter_map(|part| part.split_once("=\"")).find(|(found, _)| *found == name).map_or("", |(_, value)| value)
}
