//! The rooms' walls, read from the sources: imports run one way, each room keeps to its crates, no file grows without bound.
//! `docs/ARCHITECTURE.md` draws the same picture for people.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// What one room (a top-level module) may know.
struct Room {
    name: &'static str,
    /// Rooms it may import, or single items of a room (`model::WallTime`).
    may_use: &'static [&'static str],
    /// External crates that it must never name.
    never: &'static [&'static str],
}

const KUBERNETES: [&str; 2] = ["kube", "k8s_openapi"];
const RUNTIMES: [&str; 4] = ["kube", "k8s_openapi", "tokio", "dashmap"];

/// From the ground up. A room absent from this table fails the test, so that a new one gets its row.
const ROOMS: &[Room] = &[
    Room {
        name: "model",
        may_use: &[],
        never: &["kube", "k8s_openapi", "tokio", "dashmap", "serde", "serde_json", "axum"],
    },
    Room { name: "latest", may_use: &[], never: &KUBERNETES },
    Room { name: "clock", may_use: &["model", "latest"], never: &KUBERNETES },
    Room { name: "bucket", may_use: &["clock"], never: &KUBERNETES },
    Room { name: "file", may_use: &[], never: &RUNTIMES },
    Room { name: "schedule", may_use: &["model::WallTime"], never: &RUNTIMES },
    Room { name: "workqueue", may_use: &["clock", "model::WallTime"], never: &KUBERNETES },
    Room { name: "telemetry", may_use: &["model", "clock", "bucket", "file"], never: &KUBERNETES },
    Room { name: "api", may_use: &["model"], never: &["tokio", "dashmap"] },
    Room { name: "reconcile", may_use: &["model", "schedule"], never: &RUNTIMES },
    Room { name: "jobs", may_use: &["model"], never: &RUNTIMES },
    Room {
        name: "engine",
        may_use: &["workqueue", "clock", "latest", "model::WallTime", "model::ObjectKey"],
        never: &KUBERNETES,
    },
    Room { name: "cluster", may_use: &["model", "latest", "clock", "bucket", "telemetry"], never: &[] },
    Room { name: "sandbox", may_use: &["model", "latest", "clock", "schedule"], never: &[] },
    Room {
        name: "controllers",
        may_use: &[
            "model",
            "clock",
            "schedule",
            "workqueue",
            "telemetry",
            "api",
            "reconcile",
            "jobs",
            "engine",
            "cluster",
        ],
        never: &["axum", "clap"],
    },
    Room {
        name: "cli",
        may_use: &[
            "model",
            "clock",
            "file",
            "schedule",
            "workqueue",
            "telemetry",
            "api",
            "reconcile",
            "jobs",
            "engine",
            "cluster",
            "sandbox",
            "controllers",
        ],
        never: &[],
    },
];

/// Every src file stays below this many lines; long before it, ask whether two rooms share the file.
const LINE_CEILING: usize = 600;

#[test]
fn imports_run_one_way_and_rooms_keep_to_their_crates() {
    let violations: Vec<Violation> = sources().iter().flat_map(|source| check(&source.path, &source.text)).collect();
    assert!(violations.is_empty(), "{}", list(&violations));
}

/// Where a run must repeat from its seed: everything that the simulator drives, and itself; and the tests that are like it.
const REPEATABLE: [&str; 3] = ["src", "tests/simulation", "tests/controller"];

#[test]
fn no_select_chooses_at_random() {
    let sources = REPEATABLE.iter().flat_map(|folder| sources_in(folder));
    let violations: Vec<Violation> = sources.flat_map(|source| unbiased_selects(&source.path, &source.text)).collect();
    assert!(violations.is_empty(), "{}", list(&violations));
}

#[test]
fn a_select_that_chooses_at_random_is_detected() {
    let count = |text: &str| unbiased_selects(Path::new("src/engine/actor.rs"), text).len();
    assert_eq!(count("tokio::select! { () = a => {} }"), 1);
    assert_eq!(count("select! {\n// biased;\n() = a => {} }"), 1);
    assert_eq!(count("futures::select! { () = biased => {} }"), 1);
    assert_eq!(count("tokio::select! { biased; () = a => {} }"), 0);
    assert_eq!(count("tokio::select! {\n// In order.\nbiased;\n() = a => {} }"), 0);
    assert_eq!(count("fn select(!: u8) {} // select! { () = a => {} }"), 0);
}

#[test]
fn no_source_file_exceeds_the_ceiling() {
    let long: Vec<String> = sources()
        .iter()
        .map(|source| (source.text.lines().count(), &source.path))
        .filter(|(lines, _)| *lines > LINE_CEILING)
        .map(|(lines, path)| format!("{}: {lines} lines, at most {LINE_CEILING}", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_room_has_its_row_and_the_table_runs_downwards() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(name == "lib" || name == "main" || room(&name).is_some(), "src/{name} has no row in ROOMS");
    }
    for (at, room) in ROOMS.iter().enumerate() {
        for used in room.may_use {
            let used = used.split("::").next().unwrap();
            assert!(
                ROOMS[..at].iter().any(|lower| lower.name == used),
                "{} may use {used}, which is not below it",
                room.name
            );
        }
    }
}

#[test]
fn a_bad_sample_is_detected() {
    let cases = [
        ("src/schedule/next.rs", "use crate::clock::Clock;", "schedule must not use clock"),
        ("src/model/job.rs", "fn f() -> crate::api::Body {}", "model must not use api"),
        (
            "src/engine/actor.rs",
            "use crate::{clock::Clock, model::{WallTime, CronJob}};",
            "engine must not use model::CronJob",
        ),
        ("src/engine/actor.rs", "use crate::model;", "engine must not use model"),
        ("src/engine/mod.rs", "use super::reconcile::Step;", "engine must not use reconcile"),
        ("src/engine/shard.rs", "use super::super::cluster::Store;", "engine must not use cluster"),
        ("src/engine/mod.rs", "mod tests { use super::super::cluster::Store; }", "engine must not use cluster"),
        ("src/workqueue/delay.rs", "fn f(c: &kube::Client) {}", "workqueue must not name the crate kube"),
        (
            "src/reconcile/step.rs",
            "use {chrono::Utc, tokio::time::Instant};",
            "reconcile must not name the crate tokio",
        ),
        (
            "src/sandbox/store.rs",
            "use crate::{\n    model::{Uid, WallTime},\n    controllers::cronjob,\n};",
            "sandbox must not use controllers",
        ),
        ("src/cluster/client.rs", "use crate::nowhere::Thing;", "cluster must not use nowhere"),
        ("src/main.rs", "use cronjob_controller::{cli, cluster};", "main must not use cluster"),
    ];
    for (path, text, expected) in cases {
        let found: Vec<String> = check(Path::new(path), text).iter().map(|v| v.what.clone()).collect();
        assert_eq!(found, [expected], "in {path}: {text}");
    }
}

#[test]
fn a_good_sample_passes() {
    let cases = [
        ("src/engine/actor.rs", "use crate::{clock::Clock, model::WallTime, workqueue::{self, Queue}};"),
        (
            "src/schedule/next.rs",
            "// crate::clock is not ours\n/* kube::Client */ const S: &str = \"crate::cli tokio::spawn\"; use super::Zone;",
        ),
        (
            "src/schedule/text.rs",
            "const Q: char = '\"'; const R: &str = r#\"kube::\"#; fn f<'a>(s: &'a str) -> &'a str { s }",
        ),
        ("src/api/decode.rs", "use kube::core::{ErrorResponse, tokio};"),
        ("src/clock.rs", "fn f() { g(); } #[cfg(test)] mod tests { use super::*; }"),
        ("src/lib.rs", "pub mod cli;\npub mod api;"),
        ("src/cli/run.rs", "use crate::{cluster, controllers::Registry, sandbox::*};"),
    ];
    for (path, text) in cases {
        let violations = check(Path::new(path), text);
        assert!(violations.is_empty(), "{}", list(&violations));
    }
}

struct Violation {
    path: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.what)
    }
}

fn list(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

struct Source {
    path: PathBuf,
    text: String,
}

/// Every `.rs` file below `src`.
fn sources() -> Vec<Source> {
    sources_in("src")
}

/// Every `.rs` file below a folder, with its path from the crate's root, in order of path.
fn sources_in(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source { path: path.strip_prefix(root).unwrap().to_owned(), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn room(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

/// What the source at `path` (from the crate's root) names and must not.
fn check(path: &Path, text: &str) -> Vec<Violation> {
    let modules = module_path(path);
    let name = modules.first().map_or("main", String::as_str);
    let tokens = tokens(text);
    let mut violations = Vec::new();
    let mut report = |line: usize, what: String| violations.push(Violation { path: path.to_owned(), line, what });
    for used in uses(&tokens, modules.len()) {
        if !allowed(name, &used.items) {
            report(used.line, format!("{name} must not use {}", told(name, &used.items)));
        }
    }
    for (at, token) in tokens.iter().enumerate() {
        let starts_a_path =
            tokens.get(at + 1).is_some_and(|next| next.text == "::") && (at == 0 || tokens[at - 1].text != "::");
        // Inside the braces of `use a::{b::c}` b is not a crate, but no brace of ours hides a crate that is forbidden elsewhere.
        if starts_a_path && room(name).is_some_and(|room| room.never.contains(&token.text.as_str())) {
            report(token.line, format!("{name} must not name the crate {}", token.text));
        }
    }
    violations
}

/// Every `select! { … }` that does not say `biased;` first: it would poll its branches in an order that no seed decides.
fn unbiased_selects(path: &Path, text: &str) -> Vec<Violation> {
    let tokens = tokens(text);
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let opens = |at: usize| is(at, "select") && is(at + 1, "!") && (is(at + 2, "{") || is(at + 2, "("));
    let what = || "select! must say `biased;` first, else it chooses at random and a seed does not repeat".to_owned();
    (0..tokens.len())
        .filter(|at| opens(*at) && !(is(at + 3, "biased") && is(at + 4, ";")))
        .map(|at| Violation { path: path.to_owned(), line: tokens[at].line, what: what() })
        .collect()
}

/// `main` and `lib` speak to the command line only; a room to itself and to what its row names.
fn allowed(name: &str, items: &[String]) -> bool {
    let Some(room) = room(name) else { return items[0] == "cli" };
    let item = items.join("::");
    items[0] == name || room.may_use.iter().any(|may| *may == items[0] || *may == item)
}

/// The room, or its item where a row tells items of that room apart.
fn told(name: &str, items: &[String]) -> String {
    let by_item =
        room(name).is_some_and(|room| room.may_use.iter().any(|may| may.starts_with(&format!("{}::", items[0]))));
    if by_item { items.join("::") } else { items[0].clone() }
}

/// `src/engine/actor.rs` is `[engine, actor]`, `src/engine/mod.rs` is `[engine]`, `src/main.rs` is empty.
fn module_path(path: &Path) -> Vec<String> {
    let without_extension = path.with_extension("");
    let mut parts: Vec<String> =
        without_extension.iter().skip(1).map(|part| part.to_str().unwrap().to_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "main" | "lib")) {
        parts.pop();
    }
    parts
}

/// A path that starts at the crate's root: `[room]` or `[room, item]`.
struct Use {
    line: usize,
    items: Vec<String>,
}

/// All paths from the crate's root in a file whose module lies `depth` below it.
fn uses(tokens: &[Token], depth: usize) -> Vec<Use> {
    let inline = inline_depths(tokens);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let from_root = match tokens[at].text.as_str() {
            "crate" | "cronjob_controller" => Some(at + 1),
            "super" if at < 2 || tokens[at - 2].text != "super" => {
                let supers = tokens[at..].iter().step_by(2).take_while(|token| token.text == "super").count();
                (supers == depth + inline[at]).then_some(at + 2 * supers - 1)
            }
            _ => None,
        };
        if let Some(next) = from_root.filter(|next| tokens.get(*next).is_some_and(|token| token.text == "::")) {
            tree(tokens, next + 1, &[], &mut found);
        }
    }
    found
}

/// For each token, how many `mod name { … }` of the file it stands in.
fn inline_depths(tokens: &[Token]) -> Vec<usize> {
    let mut open: Vec<bool> = Vec::new();
    let mut depths = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => open.push(at >= 2 && tokens[at - 2].text == "mod"),
            "}" => {
                open.pop();
            }
            _ => {}
        }
        depths.push(open.iter().filter(|is_module| **is_module).count());
    }
    depths
}

/// Reads one use-tree at `at` and returns the place behind it.
fn tree(tokens: &[Token], mut at: usize, parents: &[String], found: &mut Vec<Use>) -> usize {
    let Some(token) = tokens.get(at) else { return at };
    if token.text == "{" {
        at += 1;
        while tokens.get(at).is_some_and(|token| token.text != "}") {
            at = if tokens[at].text == "," { at + 1 } else { tree(tokens, at, parents, found).max(at + 1) };
        }
        return at + 1;
    }
    let mut items = parents.to_vec();
    if token.text != "self" {
        items.push(token.text.clone());
    }
    let goes_on = tokens.get(at + 1).is_some_and(|next| next.text == "::");
    if goes_on && items.len() < 2 {
        return tree(tokens, at + 2, &items, found);
    }
    found.push(Use { line: token.line, items });
    // Deeper parts do not matter any more: skip to the end of this branch.
    let mut open = 0_usize;
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "{" => open += 1,
            "}" if open == 0 => break,
            "}" => open -= 1,
            "," | ";" if open == 0 => break,
            _ => {}
        }
        at += 1;
    }
    at
}

struct Token {
    line: usize,
    text: String,
}

/// Identifiers, `::` and single signs of a Rust source, without comments, texts and characters.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < chars.len() {
        let start = at;
        at = match (chars[at], chars.get(at + 1)) {
            ('/', Some('/')) => find(&chars, at, |rest| rest[0] == '\n'),
            ('/', Some('*')) => end_of_block_comment(&chars, at),
            ('"', _) => end_of_text(&chars, at + 1),
            ('r', Some('"' | '#')) if raw_text(&chars, at).is_some() => raw_text(&chars, at).unwrap(),
            ('\'', Some('\\')) => find(&chars, at + 3, |rest| rest[0] == '\'') + 1,
            ('\'', Some(_)) if chars.get(at + 2) == Some(&'\'') => at + 3,
            (':', Some(':')) => {
                tokens.push(Token { line, text: "::".to_owned() });
                at + 2
            }
            (c, _) if c.is_alphanumeric() || c == '_' => {
                let end = find(&chars, at, |rest| !(rest[0].is_alphanumeric() || rest[0] == '_'));
                tokens.push(Token { line, text: chars[at..end].iter().collect() });
                end
            }
            (c, _) => {
                if !c.is_whitespace() {
                    tokens.push(Token { line, text: c.to_string() });
                }
                at + 1
            }
        };
        line += chars[start..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

fn find(chars: &[char], from: usize, stop: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|at| stop(&chars[*at..])).unwrap_or(chars.len())
}

fn end_of_text(chars: &[char], from: usize) -> usize {
    let mut at = from;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn end_of_block_comment(chars: &[char], from: usize) -> usize {
    let (mut at, mut open) = (from, 0_usize);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (at, open) = (at + 2, open + 1),
            ('*', Some('/')) => (at, open) = (at + 2, open - 1),
            _ => at += 1,
        }
        if open == 0 {
            break;
        }
    }
    at
}

/// The end of a raw text (`r"…"`, `r#"…"#`) that starts at `at`; none for a raw identifier.
fn raw_text(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then(|| {
        let end = find(chars, at + 2 + hashes, |rest| {
            rest[0] == '"' && rest[1..].iter().take_while(|c| **c == '#').count() >= hashes
        });
        end + 1 + hashes
    })
}
