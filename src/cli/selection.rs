//! Which controllers run: `--controllers` and `--feature-gates`, in the forms of Kubernetes' controller managers.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::controllers::{Gate, REGISTRY, Registration};

/// Value of `--controllers`: `*` for all that are on by default, `NAME` to enable, `-NAME` to disable. The first entry that
/// names a controller decides, wherever `*` stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerList {
    entries: Vec<String>,
}

impl ControllerList {
    /// Whether `controller` is asked for.
    pub fn enables(&self, controller: &Registration) -> bool {
        let decided = self.entries.iter().find_map(|entry| match entry.strip_prefix('-') {
            Some(name) => controller.answers_to(name).then_some(false),
            None => controller.answers_to(entry).then_some(true),
        });
        decided.unwrap_or(controller.on_by_default && self.entries.iter().any(|entry| entry == "*"))
    }
}

impl FromStr for ControllerList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entries: Vec<String> = text.split(',').map(|entry| entry.trim().to_owned()).collect();
        for entry in &entries {
            let name = entry.strip_prefix('-').unwrap_or(entry);
            if entry != "*" && !REGISTRY.iter().any(|known| known.answers_to(name)) {
                return Err(format!("{name:?} is not in the list of known controllers: {}", known_names()));
            }
        }
        Ok(Self { entries })
    }
}

impl fmt::Display for ControllerList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.entries.join(","))
    }
}

fn known_names() -> String {
    let names = REGISTRY.map(|known| known.name);
    let [cronjobs @ .., job, expiry] = names;
    format!("{}, cronjob-controller (both), {job}, {expiry}", cronjobs.join(", "))
}

/// Value of `--feature-gates`: `NAME=true|false`, comma-separated. What is not named keeps its default, which is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    set: BTreeMap<Gate, bool>,
}

impl FeatureGates {
    /// Whether the feature is on.
    pub fn enabled(&self, feature: Gate) -> bool {
        self.set.get(&feature).copied().unwrap_or(true)
    }
}

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut set = BTreeMap::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry.split_once('=').ok_or_else(|| format!("missing bool value for {entry}"))?;
            let feature = Gate::ALL.into_iter().find(|feature| feature.name() == name.trim());
            let feature = feature.ok_or_else(|| format!("unrecognized feature gate: {name}"))?;
            let on = match value.trim() {
                "true" => true,
                "false" => false,
                other => return Err(format!("invalid value of {name}={other}: true or false")),
            };
            set.insert(feature, on);
        }
        Ok(Self { set })
    }
}

impl fmt::Display for FeatureGates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<String> = self.set.iter().map(|(feature, on)| format!("{}={on}", feature.name())).collect();
        f.write_str(&entries.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(text: &str) -> Vec<&'static str> {
        let list: ControllerList = text.parse().unwrap();
        REGISTRY.iter().filter(|known| list.enables(known)).map(|known| known.name).collect()
    }

    #[test]
    fn a_star_enables_all_and_a_minus_takes_one_away() {
        assert_eq!(running("*"), ["kubernetes-cronjob", "volcano-cronjob"]);
        assert_eq!(running("*,-volcano-cronjob"), ["kubernetes-cronjob"]);
        assert_eq!(running("-volcano-cronjob,*"), ["kubernetes-cronjob"]);
        assert_eq!(running("volcano-cronjob"), ["volcano-cronjob"]);
        assert_eq!(running("-volcano-cronjob"), [""; 0]);
    }

    #[test]
    fn what_is_off_by_default_is_named() {
        assert_eq!(running("*,kubernetes-job"), ["kubernetes-cronjob", "volcano-cronjob", "kubernetes-job"]);
        assert_eq!(
            running("job-controller,ttl-after-finished-controller"),
            ["kubernetes-job", "kubernetes-ttl-after-finished"]
        );
    }

    #[test]
    fn the_peers_name_means_both() {
        assert_eq!(running("cronjob-controller"), ["kubernetes-cronjob", "volcano-cronjob"]);
        assert_eq!(running("*,-cronjob-controller"), [""; 0]);
    }

    #[test]
    fn the_first_entry_that_names_a_controller_decides() {
        assert_eq!(running("volcano-cronjob,-cronjob-controller"), ["volcano-cronjob"]);
        assert_eq!(running("-cronjob-controller,volcano-cronjob"), [""; 0]);
    }

    #[test]
    fn an_unknown_controller_is_refused_with_the_known_ones() {
        let error = "*,-jobs".parse::<ControllerList>().unwrap_err();
        assert_eq!(
            error,
            "\"jobs\" is not in the list of known controllers: kubernetes-cronjob, volcano-cronjob, cronjob-controller (both), \
             kubernetes-job, kubernetes-ttl-after-finished"
        );
        assert!("".parse::<ControllerList>().is_err());
    }

    #[test]
    fn gates_are_on_unless_switched_off() {
        let gates: FeatureGates = "VolcanoJobSupport=true, CronVolcanoJobSupport=false".parse().unwrap();
        assert!(gates.enabled(Gate::VolcanoJobSupport));
        assert!(!gates.enabled(Gate::CronVolcanoJobSupport));
        assert!(FeatureGates::default().enabled(Gate::CronVolcanoJobSupport));
        assert_eq!("".parse(), Ok(FeatureGates::default()));
    }

    #[test]
    fn a_gate_that_is_none_of_ours_or_has_no_value_is_refused() {
        assert_eq!("Other=true".parse::<FeatureGates>(), Err("unrecognized feature gate: Other".to_owned()));
        assert_eq!(
            "VolcanoJobSupport".parse::<FeatureGates>(),
            Err("missing bool value for VolcanoJobSupport".to_owned())
        );
        assert!("VolcanoJobSupport=yes".parse::<FeatureGates>().is_err());
    }
}
