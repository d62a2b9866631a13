//! The seeds of the fuzz targets, replayed with the targets' own code: what was found once stays mended, and the targets stay
//! alive on a plain `cargo test` (`docs/fuzzing.md`).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "the crate of the targets shows them to its binaries")]
mod bodies;

/// Runs every seed of a target, in order of names, and names the one that breaks it.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut seeds: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(seeds.len() >= 10, "few seeds of {target}");
    let broken: Vec<_> = seeds
        .into_iter()
        .filter(|seed| {
            let input = fs::read(seed).unwrap();
            std::panic::catch_unwind(|| run(&input)).is_err()
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn schedules() {
    replay("schedule", bodies::schedule::run);
}

#[test]
fn decisions() {
    replay("decision", bodies::decision::run);
}

#[test]
fn configuration_files() {
    replay("config", bodies::config::run);
}

#[test]
fn requests_to_the_sandbox() {
    replay("sandbox", bodies::sandbox::run);
}

#[test]
fn bytes_to_the_ports() {
    replay("port", bodies::port::run);
}
