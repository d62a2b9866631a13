//! Reads the golden files: from `GOLDEN_DIR` if that is set (same names, any number of lines), else from beside this file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;

/// The lines of `NAME.jsonl.gz`, in order.
///
/// If `total` lines are not what the committed file holds, the test fails; with `GOLDEN_DIR` any number above zero will do.
pub(crate) fn load<T: DeserializeOwned>(name: &str, total: usize) -> Vec<T> {
    let elsewhere = elsewhere();
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = elsewhere.clone().map_or_else(own, PathBuf::from).join(format!("{name}.jsonl.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines: Vec<T> = BufReader::new(GzDecoder::new(file))
        .lines()
        .enumerate()
        .map(|(number, line)| {
            let line = line.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), number + 1))
        })
        .collect();
    match elsewhere {
        Some(_) => assert!(!lines.is_empty(), "{} is empty", path.display()),
        None => assert_eq!(lines.len(), total, "lines of {}", path.display()),
    }
    lines
}

/// The value of `GOLDEN_DIR`.
fn elsewhere() -> Option<OsString> {
    std::env::var_os("GOLDEN_DIR").filter(|dir| !dir.is_empty())
}
