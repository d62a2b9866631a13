//! Manifests: YAML or JSON files, with several documents and lists in them, as values of JSON.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

/// Ends of file names that a directory is searched for, as kubectl does.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// Why manifests could not be read.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not YAML.
    #[error("{} is not YAML", path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<serde_saphyr::Error>,
    },
    /// A document is not an object of Kubernetes.
    #[error("{}, document {document}: not an object with apiVersion and kind", path.display())]
    NoObject {
        /// The file.
        path: PathBuf,
        /// Its document, counted from 1.
        document: usize,
    },
    /// The directory holds no manifest.
    #[error("{} holds no .yaml, .yml or .json file", path.display())]
    NoFiles {
        /// The directory.
        path: PathBuf,
    },
}

/// One object, and where it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The file; `-` for standard input.
    pub path: PathBuf,
    /// The object.
    pub object: Value,
}

/// All objects of a file, of standard input (`-`), or of the files right inside a directory in order of name. The items of a
/// `List` (or of any `…List`) stand for themselves; empty documents are passed over.
///
/// # Errors
/// A file that cannot be read or is not YAML, or a document that is no object of Kubernetes.
pub fn read(path: &Path) -> Result<Vec<Manifest>, ManifestError> {
    let mut found = Vec::new();
    for file in files(path)? {
        let text = read_text(&file).map_err(|source| ManifestError::Read { path: file.clone(), source })?;
        found.extend(parse(&file, &text)?);
    }
    Ok(found)
}

/// All objects of `text`; `path` is for messages.
///
/// # Errors
/// `text` is not YAML, or a document in it is no object of Kubernetes.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Manifest>, ManifestError> {
    let documents: Vec<Value> = match serde_json::from_str(text) {
        Ok(document) => vec![document],
        Err(_not_json) => serde_saphyr::from_multiple_with_options(text, yaml_options(text))
            .map_err(|source| ManifestError::Yaml { path: path.to_owned(), source: Box::new(source) })?,
    };
    let mut found = Vec::new();
    for (at, document) in documents.into_iter().enumerate().filter(|(_, document)| !document.is_null()) {
        let objects =
            objects(document).ok_or_else(|| ManifestError::NoObject { path: path.to_owned(), document: at + 1 })?;
        found.extend(objects.into_iter().map(|object| Manifest { path: path.to_owned(), object }));
    }
    Ok(found)
}

/// A whole cluster's CronJobs may stand in one file: what is bounded by the length of the text needs no other bound. Those against
/// aliases that multiply stay.
fn yaml_options(text: &str) -> serde_saphyr::Options {
    let mut budget = serde_saphyr::Budget::default();
    // An event or node may stand for no character at all (an empty value).
    let events = text.len().saturating_mul(4).max(budget.max_events);
    budget.max_events = events;
    budget.max_nodes = events;
    budget.max_documents = events;
    budget.max_total_scalar_bytes = text.len().max(budget.max_total_scalar_bytes);
    serde_saphyr::options! { budget: Some(budget) }
}

/// The object itself, or what a list holds; `None` when that is no object of Kubernetes.
fn objects(mut document: Value) -> Option<Vec<Value>> {
    let kind = document.get("kind")?.as_str()?.to_owned();
    let api_version = document.get("apiVersion")?.as_str()?.to_owned();
    let Some(item_kind) = kind.strip_suffix("List") else { return Some(vec![document]) };
    let items = match document.get_mut("items")?.take() {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        _ => return None,
    };
    items.into_iter().map(|item| typed(item, item_kind, &api_version)).collect()
}

/// An item of a typed list (`CronJobList`) need not repeat what the list says of it.
fn typed(mut item: Value, kind: &str, api_version: &str) -> Option<Value> {
    let fields = item.as_object_mut()?;
    if !kind.is_empty() {
        fields.entry("kind").or_insert_with(|| kind.into());
        fields.entry("apiVersion").or_insert_with(|| api_version.into());
    }
    (fields.contains_key("kind") && fields.contains_key("apiVersion")).then_some(item)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, ManifestError> {
    if path == Path::new("-") || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |source| ManifestError::Read { path: path.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() { Err(ManifestError::NoFiles { path: path.to_owned() }) } else { Ok(files) }
}

fn read_text(path: &Path) -> io::Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let manifests = parse(Path::new("x.yaml"), text).unwrap();
        manifests.iter().map(|found| found.object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    fn error(text: &str) -> String {
        parse(Path::new("x.yaml"), text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_clusters_cronjobs_may_stand_in_one_file() {
        let item = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, labels: {a: b, c: d}}, spec: {schedule: '@daily'}}";
        let documents = vec![item; 3000].join("\n---\n");
        assert_eq!(parse(Path::new("x.yaml"), &documents).unwrap().len(), 3000);
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", vec![item; 20_000].join("\n- "));
        assert_eq!(parse(Path::new("x.yaml"), &list).unwrap().len(), 20_000);
    }

    #[test]
    fn aliases_that_multiply_are_refused() {
        let mut bomb = "kind: List\napiVersion: v1\nl0: &l0 [x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let aliases = vec![format!("*l{}", level - 1); 8].join(", ");
            bomb += &format!("l{level}: &l{level} [{aliases}]\n");
        }
        assert!(matches!(parse(Path::new("x.yaml"), &bomb), Err(ManifestError::Yaml { .. })));
    }

    #[test]
    fn documents_and_lists_are_read_in_order() {
        let text = "\
# only a remark
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: a}
---
---
apiVersion: v1
kind: List
items:
- {apiVersion: batch/v1, kind: CronJob, metadata: {name: b}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
---
apiVersion: batch/v1
kind: CronJobList
items:
- metadata: {name: d}
";
        assert_eq!(names(text), ["a", "b", "c", "d"]);
        let last = parse(Path::new("x.yaml"), text).unwrap().pop().unwrap().object;
        assert_eq!((&last["kind"], &last["apiVersion"]), (&"CronJob".into(), &"batch/v1".into()));
    }

    #[test]
    fn json_is_yaml() {
        assert_eq!(names(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"a"}}"#), ["a"]);
    }

    #[test]
    fn an_unquoted_star_is_an_error_that_names_the_file() {
        assert_eq!(
            error("apiVersion: batch/v1\nkind: CronJob\nspec:\n  schedule: */5 * * * *\n"),
            "x.yaml is not YAML"
        );
    }

    #[test]
    fn a_document_that_is_no_object_is_named_by_its_number() {
        assert_eq!(
            error("apiVersion: v1\nkind: ConfigMap\n---\nhello\n"),
            "x.yaml, document 2: not an object with apiVersion and kind"
        );
        assert_eq!(
            error("kind: List\napiVersion: v1\nitems: [1]\n"),
            "x.yaml, document 1: not an object with apiVersion and kind"
        );
    }

    #[test]
    fn a_directory_is_read_in_order_of_name_without_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert!(matches!(read(folder.path()), Err(ManifestError::NoFiles { .. })));
        write("b.yml", "{apiVersion: v1, kind: A, metadata: {name: second}}");
        write("a.yaml", "{apiVersion: v1, kind: A, metadata: {name: first}}");
        write("README.md", "not YAML: [");
        let found: Vec<Value> =
            read(folder.path()).unwrap().into_iter().map(|found| found.object["metadata"]["name"].clone()).collect();
        assert_eq!(found, ["first", "second"]);
    }
}
