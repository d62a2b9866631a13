//! What stands in the repository beside the code says what the code does: samples, decisions, links. The manifests have
//! a test crate of their own, `deployment`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

#[test]
fn the_samples_show_both_apis_every_policy_and_each_trap() {
    let mut seen = BTreeSet::new();
    for file in files("config/samples", "yaml") {
        for object in documents(&file) {
            if object["kind"] != "CronJob" {
                continue;
            }
            let spec = &object["spec"];
            seen.insert(object["apiVersion"].as_str().unwrap().to_owned());
            seen.insert(spec["concurrencyPolicy"].as_str().unwrap_or("Allow").to_owned());
            let traps = [("zone", spec["timeZone"].is_string()), ("suspended", spec["suspend"] == true)];
            seen.extend(traps.iter().filter(|(_, there)| *there).map(|(trap, _)| (*trap).to_owned()));
        }
    }
    let expected = ["Allow", "Forbid", "Replace", "batch.volcano.sh/v1alpha1", "batch/v1", "suspended", "zone"];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn every_decision_is_in_the_index_under_its_own_title() {
    let index = fs::read_to_string(root().join("docs/adr/README.md")).unwrap();
    for file in files("docs/adr", "md") {
        let name = file.rsplit('/').next().unwrap();
        let Some(number) = name.get(..4).filter(|number| number.bytes().all(|c| c.is_ascii_digit())) else { continue };
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let title = text.lines().next().unwrap().trim_start_matches(&format!("# {number}: ")).to_owned();
        let row = format!("| [{number}]({name}) | {title} |");
        assert!(index.contains(&row), "docs/adr/README.md lacks the row\n{row}");
    }
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut broken = Vec::new();
    for folder in [".", "docs", "docs/adr", "config", "deploy/helm/cronjob-controller"] {
        for file in files(folder, "md") {
            let text = fs::read_to_string(root().join(&file)).unwrap();
            let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for target in targets.filter(|target| !target.contains("://")) {
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = if path.is_empty() { root().join(&file) } else { root().join(folder).join(path) };
                let there = match anchor {
                    "" => path.exists(),
                    anchor => fs::read_to_string(&path).is_ok_and(|text| anchors(&text).contains(anchor)),
                };
                if !there {
                    broken.push(format!("{file}: {target}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The sections of docs/reports.md, with the last number of each.
const THEMES: [(&str, u32); 8] = [
    ("Missed, late or never", 11),
    ("Double or early runs", 19),
    ("Edits of the spec", 22),
    ("Time zones and clock changes", 30),
    ("Concurrency policies", 36),
    ("History and cleaning", 42),
    ("API edges and permissions", 47),
    ("Volcano and Rust specifics", 50),
];

#[test]
fn every_report_names_tests_that_are_there() {
    let page = fs::read_to_string(root().join("docs/reports.md")).unwrap();
    let mut sections = page.split("\n## ").skip(1);
    let mut last = 0;
    for (theme, end) in THEMES {
        let section = sections.next().unwrap_or_else(|| panic!("no section {theme}"));
        assert_eq!(section.lines().next(), Some(theme));
        for row in section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #")) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let &[number, threads, seen, done, tests] = cells.as_slice() else { panic!("not five cells: {row}") };
            let number: u32 = number.parse().unwrap_or_else(|_| panic!("no number: {row}"));
            assert!(number == last + 1 && number <= end, "{number} does not follow {last}, or is out of its section");
            assert!([threads, seen, done].iter().all(|cell| !cell.is_empty()), "{number} has an empty cell");
            last = number;
            let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
            assert!(!named.is_empty(), "{number} names no test");
            for test in named {
                let (path, name) = test.split_once("::").unwrap_or_else(|| panic!("{number}: not path::name: {test}"));
                let source = fs::read_to_string(root().join(path)).unwrap_or_else(|_| panic!("{number}: no {path}"));
                assert!(source.contains(&format!("fn {name}(")), "{number}: {path} has no {name}");
            }
        }
    }
    assert_eq!(sections.next(), None, "a section without a theme");
    assert_eq!(last, 50);
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let anchor = |heading: &str| -> String {
        let kept = heading.to_lowercase();
        kept.chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.map(anchor).collect()
}

/// Paths from the root of the files with this extension right inside a folder, in order.
fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let wanted = paths.iter().filter(|path| path.extension().is_some_and(|found| found == extension));
    wanted.map(|path| format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap())).collect()
}
