//! `docs/configuration.md` names every field, flag and variable as the schema does.

use std::fs;
use std::path::Path;

use crate::config::{Field, fields, must_hold};

const PATH: &str = "docs/configuration.md";
const BEGIN: &str = "<!-- generated from the schema: begin -->\n";
const END: &str = "<!-- generated from the schema: end -->\n";

fn row(field: &Field) -> String {
    let schema = &field.schema;
    let types: Vec<&str> = match schema["type"].as_array() {
        Some(types) => types.iter().filter_map(|name| name.as_str()).filter(|name| *name != "null").collect(),
        None => vec![schema["type"].as_str().unwrap()],
    };
    let default = schema.get("default").map(|default| format!("`{default}`")).unwrap_or_default();
    let about = schema["description"].as_str().unwrap().replace("\n\n", " ").replace('\n', " ").replace('|', "\\|");
    format!(
        "| `{}` | `--{}` | `{}` | {} | {default} | {about} |\n",
        field.path,
        schema["x-flag"].as_str().unwrap(),
        schema["x-environment"].as_str().unwrap(),
        types.join(", ")
    )
}

#[test]
fn the_table_of_fields_is_that_of_the_schema() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PATH)).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the table begins");
    let (_, after) = rest.split_once(END).expect("the mark where the table ends");
    let rows: String = fields().iter().map(row).collect();
    let table = format!("| field | flag | variable | type | default | meaning |\n|---|---|---|---|---|---|\n{rows}");
    must_hold(PATH, &format!("{before}{BEGIN}{table}{END}{after}"));
}
