//! Environment variables as a layer of configuration: `CRONJOB_CONTROLLER_` and the flag in capitals, `_` for each dash.
//!
//! An empty variable is not set. Kubernetes writes variables of its own for each Service of the namespace, and ours is called
//! cronjob-controller-metrics, so some carry our prefix: they are told apart by their group and passed over. No flag can be
//! called as they are (a test).

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{Arg, Command};

use super::{Origin, Setting};

/// Begins the name of each variable of ours.
const PREFIX: &str = "CRONJOB_CONTROLLER_";

/// A variable that others share, and the flag that it sets when ours does not.
const SHARED: (&str, &str) = ("RUST_LOG", "log-level");

/// The variables of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        // No variable of ours has a name that is not Unicode.
        Self(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect())
    }

    /// These.
    #[cfg(test)]
    pub(super) fn of(variables: &[(&str, &str)]) -> Self {
        Self(variables.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect())
    }

    /// What is set for flags of `run`.
    pub(super) fn settings(&self, run: &Command) -> Vec<Setting> {
        let flags = run.get_arguments().filter_map(Arg::get_long);
        let setting = |flag: &str| {
            let shared = Some(SHARED.0.to_owned()).filter(|_| flag == SHARED.1);
            let mut names = [variable(flag)].into_iter().chain(shared);
            let (name, value) = names.find_map(|name| self.set(&name).cloned().map(|value| (name, value)))?;
            Some(Setting { flag: flag.to_owned(), value, origin: Origin::Environment(name) })
        };
        flags.filter_map(setting).collect()
    }

    /// Variables with our prefix that mean nothing to `run`.
    pub(super) fn unknown(&self, run: &Command) -> Vec<String> {
        let known: Vec<String> = run.get_arguments().filter_map(Arg::get_long).map(variable).collect();
        let ours = self.0.keys().filter(|name| name.starts_with(PREFIX));
        ours.filter(|name| !known.contains(name) && !self.is_of_a_service(name)).cloned().collect()
    }

    fn set(&self, name: &str) -> Option<&OsString> {
        self.0.get(name).filter(|value| !value.is_empty())
    }

    /// Whether Kubernetes wrote it: for a Service `a-b` there is `A_B_SERVICE_HOST`, and beside it `A_B_SERVICE_PORT…` and
    /// `A_B_PORT…`.
    fn is_of_a_service(&self, name: &str) -> bool {
        let services = self.0.keys().filter_map(|name| name.strip_suffix("_SERVICE_HOST"));
        services.filter_map(|service| name.strip_prefix(service)).any(is_of_the_group)
    }
}

fn is_of_the_group(end: &str) -> bool {
    ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"]
        .iter()
        .any(|part| end.strip_prefix(part).is_some_and(|behind| behind.is_empty() || behind.starts_with('_')))
}

/// The variable of a flag.
pub(super) fn variable(flag: &str) -> String {
    format!("{PREFIX}{}", flag.to_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Args;
    use clap::CommandFactory;

    fn run() -> Command {
        Args::command().find_subcommand("run").unwrap().clone()
    }

    #[test]
    fn a_variable_sets_its_flag_and_an_empty_one_does_not() {
        let environment = Environment::of(&[
            ("CRONJOB_CONTROLLER_KUBE_API_QPS", "7"),
            ("CRONJOB_CONTROLLER_MASTER", ""),
            ("RUST_LOG", "debug"),
            ("HOME", "/root"),
        ]);
        let settings = environment.settings(&run());
        let told: Vec<_> =
            settings.iter().map(|s| (s.flag.as_str(), s.value.to_str().unwrap(), s.origin.to_string())).collect();
        assert_eq!(
            told,
            [
                ("kube-api-qps", "7", "environment variable CRONJOB_CONTROLLER_KUBE_API_QPS".to_owned()),
                ("log-level", "debug", "environment variable RUST_LOG".to_owned())
            ]
        );
    }

    #[test]
    fn our_variable_goes_before_the_shared_one() {
        let environment = Environment::of(&[("CRONJOB_CONTROLLER_LOG_LEVEL", "warn"), ("RUST_LOG", "debug")]);
        assert_eq!(environment.settings(&run())[0].value, "warn");
        assert_eq!(environment.settings(&run()).len(), 1);
    }

    #[test]
    fn unknown_variables_are_told_and_those_of_services_are_not() {
        let environment = Environment::of(&[
            ("CRONJOB_CONTROLLER_METRICS_SERVICE_HOST", "10.0.0.7"),
            ("CRONJOB_CONTROLLER_METRICS_SERVICE_PORT", "8443"),
            ("CRONJOB_CONTROLLER_METRICS_SERVICE_PORT_METRICS", "8443"),
            ("CRONJOB_CONTROLLER_METRICS_PORT", "tcp://10.0.0.7:8443"),
            ("CRONJOB_CONTROLLER_METRICS_PORT_8443_TCP_ADDR", "10.0.0.7"),
            ("CRONJOB_CONTROLLER_METRIC_PORT", "9"),
            ("CRONJOB_CONTROLLER_KUBE_API_QPS", "7"),
            ("CRONJOB_CONTROLLER_KUBE_API_QSP", "7"),
            ("CRONJOB", "7"),
        ]);
        let unknown = ["CRONJOB_CONTROLLER_KUBE_API_QSP", "CRONJOB_CONTROLLER_METRIC_PORT"];
        assert_eq!(environment.unknown(&run()), unknown);
    }

    #[test]
    fn no_flag_is_called_as_kubernetes_calls_the_variables_of_services() {
        let run = run();
        for flag in run.get_arguments().filter_map(Arg::get_long) {
            let name = variable(flag);
            for (at, _) in name.match_indices('_') {
                assert!(!is_of_the_group(&name[at..]), "--{flag}");
            }
        }
    }
}
