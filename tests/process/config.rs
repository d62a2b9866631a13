//! The command `config` and the files in `config/`. With `UPDATE_DOCS=1` in the environment, what is
//! generated is written anew.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::binary::{run, text};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Whether the file at `path` holds `expected`; with `UPDATE_DOCS=1` it does.
pub(crate) fn must_hold(path: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root(path), expected).unwrap();
    }
    let found = fs::read_to_string(root(path)).unwrap_or_default();
    assert!(found == expected, "{path} is behind: UPDATE_DOCS=1 cargo test --test process");
}

#[test]
fn the_committed_files_are_those_of_the_binary_and_every_configuration_is_valid() {
    must_hold("config/default.yaml", &text(&run(&["config", "print-defaults"]).stdout));
    must_hold("config/schema.json", &text(&run(&["config", "print-schema"]).stdout));
    let mut files: Vec<PathBuf> = fs::read_dir(root("config")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let output = run(&["config", "validate", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), format!("{} is valid\n", file.display()));
    }
}

#[test]
fn every_fault_of_a_file_is_told_and_ends_with_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let body = "apiVersion: cronjob-controller.config/v1alpha1\nkind: ControllerConfiguration\n\
                metrics:\n  bindAdress: ':1'\n  bindAddress: here\nshutdownBudget: 25\n";
    fs::write(&file, body).unwrap();
    let path = file.to_str().unwrap();
    for command in [&["config", "validate", path][..], &["run", "--config", path]] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(2));
        let told = text(&output.stderr);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 3, "{told}");
        for (at, field) in [
            (4, "metrics.bindAdress: unknown field"),
            (6, "shutdownBudget: expected a text"),
            (5, "metrics.bindAddress: \"here\""),
        ] {
            let start = format!("error: {path}:{at}: {field}");
            assert!(lines.iter().any(|line| line.starts_with(&start)), "{start} is not in\n{told}");
        }
    }
}

#[test]
fn a_file_that_is_not_there_ends_with_code_1() {
    for command in [&["config", "validate", "no/such/file.yaml"][..], &["run", "--config", "no/such/file.yaml"]] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("no/such/file.yaml"), "{}", text(&output.stderr));
    }
}

/// A field of the schema that sets a flag.
pub(crate) struct Field {
    pub(crate) path: String,
    pub(crate) schema: Value,
}

/// All of them, in order of path.
pub(crate) fn fields() -> Vec<Field> {
    let schema: Value = serde_json::from_slice(&run(&["config", "print-schema"]).stdout).unwrap();
    let mut found = Vec::new();
    collect("", &schema, &mut found);
    found
}

fn collect(path: &str, schema: &Value, into: &mut Vec<Field>) {
    if schema["x-flag"].is_string() {
        into.push(Field { path: path.to_owned(), schema: schema.clone() });
    } else if let Some(properties) = schema["properties"].as_object() {
        for (name, below) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            collect(&path, below, into);
        }
    }
}
