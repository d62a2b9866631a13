//! Alerts and dashboard name only metrics that the binary exports, and the rules do what they say.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::objects::{parse, read, root, text};
use crate::scrape::families;

/// If set to 1, a test that cannot run for want of promtool fails instead of being skipped.
const REQUIRE: &str = "CRONJOB_REQUIRE_PROMTOOL";
/// The group that may ask kube-state-metrics.
const FOREIGN_GROUP: &str = "cronjobs-kube-state-metrics";

fn groups() -> Vec<Value> {
    parse(&read("deploy/monitoring/alerts.yaml"))[0]["groups"].as_array().unwrap().clone()
}

fn rules(group: &Value) -> &Vec<Value> {
    group["rules"].as_array().unwrap()
}

/// Names of metrics in a PromQL expression: words that are neither labels, strings, durations, keywords, nor functions.
pub(crate) fn metrics_of(expression: &str) -> BTreeSet<String> {
    const KEYWORDS: [&str; 10] =
        ["and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "bool"];
    const LABEL_LISTS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
    let mut metrics = BTreeSet::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        match first {
            '"' => rest = after(&rest[1..], '"'),
            '{' => rest = after_selector(rest),
            '[' => rest = after(rest, ']'),
            c if is_word(c) => {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let (word, behind) = rest.split_at(end);
                let behind = behind.trim_start();
                rest = behind;
                let aggregates = ["by", "without"].iter().any(|clause| behind.starts_with(clause));
                if LABEL_LISTS.contains(&word) && behind.starts_with('(') {
                    rest = after(behind, ')');
                } else if !aggregates && !behind.starts_with('(') && !KEYWORDS.contains(&word) && !c.is_ascii_digit() {
                    metrics.insert(word.to_owned());
                }
            }
            other => rest = &rest[other.len_utf8()..],
        }
    }
    metrics
}

fn after(text: &str, end: char) -> &str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

/// Behind `{…}`, in which strings may hold braces.
fn after_selector(text: &str) -> &str {
    let mut in_string = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => in_string = !in_string,
            '}' if !in_string => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

#[test]
fn names_of_metrics_are_found_in_expressions() {
    let names = |text: &str| metrics_of(text).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(names(r#"sum by (a, b) (rate(x_total{c=~"}|y"}[5m])) and on (job) z == 1"#), "x_total z");
    assert_eq!(names("histogram_quantile(0.99, sum(rate(h_bucket[$__rate_interval])) by (le)) > 1e3"), "h_bucket");
    assert_eq!(names(r#"label_values(m{n=~"$n"}, job)"#), "job m");
}

/// Whether a sample of this name is exported.
fn exported(sample: &str) -> bool {
    let stem = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| sample.strip_suffix(suffix));
    let is = |name: &str, histogram: bool| families().get(name).is_some_and(|it| (it.kind == "histogram") == histogram);
    is(sample, false) || stem.is_some_and(|stem| is(stem, true))
}

#[test]
fn every_metric_of_the_alerts_is_exported() {
    let mut missing = Vec::new();
    for group in groups() {
        for rule in rules(&group) {
            let metrics = metrics_of(text(&rule["expr"]));
            assert!(!metrics.is_empty(), "{rule}");
            let foreign = group["name"] == FOREIGN_GROUP;
            let known = |metric: &&String| exported(metric) || (foreign && metric.starts_with("kube_cronjob_"));
            let unknown = metrics.iter().filter(|metric| !known(metric));
            missing.extend(unknown.map(|metric| format!("{}: {metric}", text(&rule["alert"]))));
        }
    }
    assert!(missing.is_empty(), "{missing:#?} of {:#?}", families().keys());
}

#[test]
fn every_metric_of_the_dashboard_is_exported() {
    let dashboard: Value = serde_json::from_str(&read("deploy/monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut expressions = Vec::new();
    for target in panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten() {
        expressions.push(text(&target["expr"]).to_owned());
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(asked) = text(&variable["query"]).strip_prefix("label_values(") {
            expressions.push(asked.rsplit_once(',').unwrap().0.to_owned());
        }
    }
    assert!(expressions.len() > 20, "{expressions:#?}");
    let unknown: Vec<String> =
        expressions.iter().flat_map(|expr| metrics_of(expr)).filter(|metric| !exported(metric)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn labels_that_the_alerts_select_by_exist() {
    for group in groups().iter().filter(|group| group["name"] != FOREIGN_GROUP) {
        for rule in rules(group) {
            let expression = text(&rule["expr"]);
            for (metric, rest) in
                metrics_of(expression).iter().filter_map(|m| Some((m, expression.split_once(m.as_str())?.1)))
            {
                let Some(selector) = rest.strip_prefix('{') else { continue };
                let stem = metric.strip_suffix("_bucket").unwrap_or(metric);
                let labels = &families()[stem].labels;
                for pair in selector.split_once('}').unwrap().0.split(", ") {
                    let label = pair.split(['=', '!']).next().unwrap();
                    assert!(
                        labels.contains(label),
                        "{}: {metric} has no label {label}, only {labels:?}",
                        rule["alert"]
                    );
                }
            }
        }
    }
}

#[test]
fn every_alert_has_its_section_its_link_and_a_unit_test() {
    let (operations, tests) = (read("docs/operations.md"), read("deploy/monitoring/alerts_test.yaml"));
    let headings: BTreeSet<&str> = operations.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    for group in groups() {
        for rule in rules(&group) {
            let alert = text(&rule["alert"]);
            assert!(headings.contains(alert), "docs/operations.md has no section \"### {alert}\"");
            let anchor = format!("/docs/operations.md#{}", alert.to_lowercase());
            assert!(text(&rule["annotations"]["runbook_url"]).ends_with(&anchor), "{alert}: no link to {anchor}");
            for annotation in ["summary", "description"] {
                assert!(rule["annotations"][annotation].is_string(), "{alert} has no {annotation}");
            }
            assert!(["critical", "warning", "info"].contains(&text(&rule["labels"]["severity"])), "{alert}");
        }
    }
    let alerts: BTreeSet<String> =
        groups().iter().flat_map(|group| rules(group).iter().map(|rule| text(&rule["alert"]).to_owned())).collect();
    for alert in alerts {
        // By name, or by the pattern that takes several.
        let family = ["CronJobController(", "CronJobRuns("].iter().find(|stem| {
            let stem_only = stem.trim_end_matches('(');
            let rest = alert.strip_prefix(stem_only).unwrap_or_default();
            tests.lines().any(|line| {
                let choices = line.split_once(**stem).and_then(|(_, behind)| behind.split_once(')'));
                choices.is_some_and(|(choices, _)| choices.split('|').any(|choice| choice == rest))
            })
        });
        assert!(tests.contains(&alert) || family.is_some(), "no unit test fires {alert}");
    }
}

/// Runs promtool; `None` after `test` has named itself as skipped.
fn promtool(test: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new("promtool").args(arguments).current_dir(root().join("deploy/monitoring")).output();
    let Ok(output) = output else {
        assert!(std::env::var_os(REQUIRE).is_none_or(|value| value != "1"), "{test}: no promtool");
        eprintln!("SKIPPED {test}: no promtool (Debian's package prometheus has it)");
        return None;
    };
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    Some(said)
}

#[test]
fn promtool_accepts_the_rules() {
    let Some(said) = promtool("promtool_accepts_the_rules", &["check", "rules", "alerts.yaml"]) else { return };
    let count: usize = groups().iter().map(|group| rules(group).len()).sum();
    assert!(said.contains(&format!("SUCCESS: {count} rules found")), "{said}");
}

#[test]
fn promtool_passes_the_unit_tests_of_the_rules() {
    assert!(Path::new(root()).join("deploy/monitoring/alerts_test.yaml").exists());
    let _ran = promtool("promtool_passes_the_unit_tests_of_the_rules", &["test", "rules", "alerts_test.yaml"]);
}
