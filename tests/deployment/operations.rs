//! The tables of docs/operations.md are made of what the binary says. `UPDATE_DOCS=1 cargo test --test deployment` writes them anew.

use clap::CommandFactory;
use cronjob_controller::cli::Args;

use crate::objects::{read, root};
use crate::scrape::families;

const DOCUMENT: &str = "docs/operations.md";

/// Compares what stands between `<!-- NAME -->` and `<!-- /NAME -->` with `made`, or writes it.
fn section_holds(name: &str, made: &str) {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let document = read(DOCUMENT);
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("{DOCUMENT} has no {begin}"));
    let (written, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{DOCUMENT} has no {end}"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join(DOCUMENT), format!("{before}{begin}{made}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(written, made, "{DOCUMENT} is behind: UPDATE_DOCS=1 cargo test --test deployment -- --test-threads=1");
}

/// Text as it may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[test]
fn the_table_of_flags_is_that_of_help() {
    let command = Args::command();
    let run = command.find_subcommand("run").unwrap();
    let mut table = String::from("| flag | default | meaning |\n|---|---|---|\n");
    for argument in run.get_arguments() {
        let Some(long) = argument.get_long() else { continue };
        let defaults: Vec<&str> = argument.get_default_values().iter().filter_map(|value| value.to_str()).collect();
        let default = match defaults.concat() {
            none if none.is_empty() => String::new(),
            default => format!("`{default}`"),
        };
        // The short form: --help has the rest.
        let help = argument.get_help().unwrap().to_string();
        table.push_str(&format!("| `--{long}` | {} | {} |\n", cell(&default), cell(&help)));
    }
    section_holds("flags", &table);
}

#[test]
fn the_table_of_metrics_is_what_is_exported() {
    let mut table = String::from("| metric | type | labels | meaning |\n|---|---|---|---|\n");
    for (name, family) in families() {
        let labels: Vec<String> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        table.push_str(&format!("| `{name}` | {} | {} | {} |\n", family.kind, labels.join(", "), cell(&family.help)));
    }
    section_holds("metrics", &table);
}
