//! Flags about the election of a leader, with kube-controller-manager's names and defaults.

use std::time::Duration;

use anyhow::Context;
use clap::{ArgAction, Args};

use super::process::identity;
use super::values::{Contradiction, parse_duration};
use crate::cluster::{Election, ElectionError, Timing};

/// Flags about the election of a leader.
#[derive(Debug, Args)]
#[command(next_help_heading = "Leader election")]
pub struct ElectionArgs {
    /// Work only while holding a Lease that one replica at a time can hold; "--leader-elect=false" always works, for a single
    /// replica.
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set)]
    pub leader_elect: bool,

    /// How long the others wait after the last renewal that they saw before one of them takes over; whole seconds.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    pub leader_elect_lease_duration: Duration,

    /// How long a leader goes on trying to renew before it stops working; less than the lease duration.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub leader_elect_renew_deadline: Duration,

    /// Time between two renewals, and between two tries.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub leader_elect_retry_period: Duration,

    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "cronjob-controller")]
    pub leader_elect_resource_name: String,

    /// Namespace of the Lease. Default: that of the pod, else that of the kubeconfig's context.
    #[arg(long, value_name = "NAMESPACE")]
    pub leader_elect_resource_namespace: Option<String>,
}

impl ElectionArgs {
    /// The election to take part in, if any. `namespace` is where we are.
    ///
    /// # Errors
    /// The durations do not fit each other, or a name is no name.
    pub fn election(&self, namespace: &str) -> anyhow::Result<Option<Election>> {
        if !self.leader_elect {
            return Ok(None);
        }
        let election = self.asked_for(namespace);
        election.check().context("cannot take part in the election (--leader-elect...)")?;
        Ok(Some(election))
    }

    /// What is wrong with flags that are each sound by themselves.
    pub(super) fn contradictions(&self) -> Vec<Contradiction> {
        // Where we are is known later only, and is a name.
        let checked = if self.leader_elect { self.asked_for("default").check() } else { Ok(()) };
        let flags: &'static [&'static str] = match checked {
            Ok(()) => return Vec::new(),
            Err(ElectionError::LeaseDuration) => &["leader-elect-lease-duration"],
            Err(ElectionError::RenewDeadline) => &["leader-elect-lease-duration", "leader-elect-renew-deadline"],
            Err(ElectionError::RetryPeriod) => &["leader-elect-renew-deadline", "leader-elect-retry-period"],
            Err(ElectionError::NoRetryPeriod) => &["leader-elect-retry-period"],
            Err(ElectionError::Name) => &["leader-elect-resource-name", "leader-elect-resource-namespace"],
            Err(ElectionError::Identity) => &["leader-elect"],
        };
        checked.err().map(|error| Contradiction::new(flags, error.to_string())).into_iter().collect()
    }

    fn asked_for(&self, namespace: &str) -> Election {
        Election {
            namespace: self.leader_elect_resource_namespace.clone().unwrap_or_else(|| namespace.to_owned()),
            name: self.leader_elect_resource_name.clone(),
            identity: identity(),
            timing: Timing {
                lease_duration: self.leader_elect_lease_duration,
                renew_deadline: self.leader_elect_renew_deadline,
                retry_period: self.leader_elect_retry_period,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        election: ElectionArgs,
    }

    fn election(flags: &[&str]) -> anyhow::Result<Option<Election>> {
        let line = ["x"].iter().chain(flags);
        Line::try_parse_from(line).unwrap().election.election("here")
    }

    #[test]
    fn without_flags_it_is_the_peers_election() {
        let election = election(&[]).unwrap().unwrap();
        assert_eq!((&*election.namespace, &*election.name), ("here", "cronjob-controller"));
        assert_eq!(election.timing, Timing::default());
        assert!(election.identity.contains('_'));
    }

    #[test]
    fn it_can_be_switched_off_and_on_in_every_spelling() {
        assert!(election(&["--leader-elect=false"]).unwrap().is_none());
        assert!(election(&["--leader-elect=true"]).unwrap().is_some());
        assert!(election(&["--leader-elect"]).unwrap().is_some());
    }

    #[test]
    fn the_namespace_can_be_named() {
        let election = election(&["--leader-elect-resource-namespace=there", "--leader-elect-resource-name=l"]);
        let election = election.unwrap().unwrap();
        assert_eq!((&*election.namespace, &*election.name), ("there", "l"));
    }

    #[test]
    fn durations_that_do_not_fit_are_refused_with_the_rule() {
        for (flags, rule) in [
            (
                ["--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=10s"],
                "greater than the renew deadline",
            ),
            (["--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=2s"], "retry period times 1.2"),
            (["--leader-elect-lease-duration=1500ms", "--leader-elect-renew-deadline=1s"], "whole number of seconds"),
            (["--leader-elect-retry-period=0", "--leader-elect"], "greater than 0"),
            (["--leader-elect-resource-name=a/b", "--leader-elect"], "name"),
        ] {
            let error = format!("{:#}", election(&flags).unwrap_err());
            assert!(error.contains(rule), "{flags:?}: {error}");
        }
    }
}
