//! The fields of the configuration file, read from the schema of its shape, and joined with what the flags say of themselves.

use clap::{Arg, Command};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::environment::variable;
use super::shape::ControllerConfiguration;

/// Part of the schema that names a field's flag.
const FLAG: &str = "x-flag";
/// Part of the schema that names a field's environment variable.
const VARIABLE: &str = "x-environment";

/// A place in the file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// A text that must stand there.
    Fixed(String),
    /// A value of a flag.
    Field(Field),
    /// Places by name, in order of name.
    Group(Vec<(String, Place)>),
}

/// A field that sets a flag.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    /// The flag, without the dashes.
    pub(super) flag: String,
    /// What stands in the field.
    pub(super) form: Form,
}

/// How the text of a flag is written in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A list of texts, for a flag that takes them comma-separated.
    List,
    /// A map from names to switches, for a flag that takes `NAME=true|false`, comma-separated.
    Switches,
}

impl Form {
    /// The value of a flag, `text`, as it is written in the file.
    pub(super) fn write(self, text: &str) -> Value {
        let parts = || text.split(',').filter(|part| !part.is_empty());
        match self {
            Self::Switch | Self::Whole | Self::Number => text.parse().unwrap_or_else(|_no_json| text.into()),
            Self::Text => text.into(),
            Self::List => parts().collect(),
            Self::Switches => Value::Object(
                parts()
                    .filter_map(|part| part.split_once('='))
                    .map(|(name, on)| (name.to_owned(), json!(on == "true")))
                    .collect(),
            ),
        }
    }
}

/// All places, as a tree. Its root is a group.
pub(super) fn places() -> Place {
    place(&bare_schema())
}

/// The schema of the file: the shape, and for each field what its flag in `run` says of itself.
pub(super) fn schema(run: &Command) -> Value {
    let mut schema = bare_schema();
    explain(&mut schema, run);
    schema
}

/// The default of a flag, as clap knows it.
pub(super) fn default_of(arg: &Arg) -> Option<&str> {
    arg.get_default_values().first()?.to_str()
}

/// The flag `long` of a command.
pub(super) fn find<'a>(command: &'a Command, long: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(long))
}

fn bare_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<ControllerConfiguration>().to_value()
}

fn place(schema: &Value) -> Place {
    if let Some(flag) = schema[FLAG].as_str() {
        return Place::Field(Field { flag: flag.to_owned(), form: form(schema) });
    }
    if let Some(groups) = schema["properties"].as_object() {
        return Place::Group(groups.iter().map(|(name, schema)| (name.clone(), place(schema))).collect());
    }
    let fixed = schema.get("const").unwrap_or(&schema["enum"][0]);
    Place::Fixed(fixed.as_str().unwrap_or_default().to_owned())
}

fn form(schema: &Value) -> Form {
    let is = |name: &str| schema["type"].as_array().into_iter().flatten().any(|found| found == name);
    match () {
        () if is("boolean") => Form::Switch,
        () if is("integer") => Form::Whole,
        () if is("number") => Form::Number,
        () if is("array") => Form::List,
        () if is("object") => Form::Switches,
        () => Form::Text,
    }
}

fn explain(schema: &mut Value, run: &Command) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(flag) = fields.get(FLAG).and_then(Value::as_str).map(str::to_owned) {
        let form = form(&Value::Object(fields.clone()));
        let Some(arg) = find(run, &flag) else { return };
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
        fields.insert("description".to_owned(), help.into());
        fields.insert(VARIABLE.to_owned(), variable(&flag).into());
        if let Some(default) = default_of(arg) {
            fields.insert("default".to_owned(), form.write(default));
        }
        // Of whole numbers the schema knows the size in memory, which is no limit of ours.
        fields.remove("format");
        return;
    }
    for (_, below) in fields.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        explain(below, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Args;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    fn flags(place: &Place, into: &mut Vec<String>) {
        match place {
            Place::Fixed(_) => {}
            Place::Field(field) => into.push(field.flag.clone()),
            Place::Group(places) => places.iter().for_each(|(_, place)| flags(place, into)),
        }
    }

    #[test]
    fn each_flag_of_run_has_one_field() {
        let mut fields = Vec::new();
        flags(&places(), &mut fields);
        let command = Args::command();
        let run = command.find_subcommand("run").unwrap();
        // The file does not say where the file is.
        let all: BTreeSet<&str> =
            run.get_arguments().filter_map(Arg::get_long).filter(|flag| *flag != "config").collect();
        fields.sort();
        assert_eq!(fields, all.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_field_of_the_schema_says_what_its_flag_says() {
        let command = Args::command();
        let schema = schema(command.find_subcommand("run").unwrap());
        let syncs = &schema["properties"]["controllers"]["properties"]["concurrentCronJobSyncs"];
        assert_eq!(syncs["default"], 256);
        assert_eq!(syncs["x-flag"], "concurrent-cron-job-syncs");
        assert_eq!(syncs["x-environment"], "CRONJOB_CONTROLLER_CONCURRENT_CRON_JOB_SYNCS");
        assert!(syncs["description"].as_str().unwrap().starts_with("CronJobs that each controller works on"));
        assert_eq!(syncs["type"], json!(["integer", "null"]));
        assert_eq!(schema["additionalProperties"], false);
    }

    #[test]
    fn texts_of_flags_are_written_in_the_form_of_their_field() {
        assert_eq!(Form::Switch.write("true"), json!(true));
        assert_eq!(Form::Number.write("0.5"), json!(0.5));
        assert_eq!(Form::Text.write("15s"), json!("15s"));
        assert_eq!(Form::List.write("*,-volcano-cronjob"), json!(["*", "-volcano-cronjob"]));
        assert_eq!(Form::Switches.write("A=true,B=false"), json!({"A": true, "B": false}));
        assert_eq!(Form::Switches.write(""), json!({}));
    }
}
