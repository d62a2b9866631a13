//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Parser, ValueEnum};

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Many CronJobs due at one instant.
    Herd,
    /// One CronJob due at a time, on an idle server; with --beside, while a herd runs in another namespace.
    Alone,
    /// CronJobs spread over the minutes of an hour, for hours of virtual time, in this process.
    Steady,
    /// From the start of the process to its first decision.
    ColdStart,
    /// Resident memory: base, steady, at the start and while everything is listed anew.
    Memory,
    /// CPU while nothing is due.
    Idle,
}

/// Which API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Sandbox,
    Real,
    Url(String),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sandbox" => Ok(Self::Sandbox),
            "real" => Ok(Self::Real),
            url if url.starts_with("http://") || url.starts_with("https://") => Ok(Self::Url(url.to_owned())),
            _ => Err("must be sandbox, real or a URL".to_owned()),
        }
    }
}

/// Load benchmark of the controller, side by side with the floor (plain POSTs) and kube-controller-manager.
#[derive(Clone, Debug, Parser)]
#[command(name = "herd")]
pub(crate) struct Args {
    /// What to measure.
    #[arg(value_enum, default_value_t = Scenario::Herd)]
    pub(crate) scenario: Scenario,

    /// CronJobs (of the herd; in `alone`: those that are due one at a time).
    #[arg(long, value_name = "N")]
    pub(crate) cronjobs: Option<usize>,

    /// Namespaces that they are spread over.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) namespaces: usize,

    /// Finished Jobs that each CronJob has at the beginning.
    #[arg(long, value_name = "H")]
    pub(crate) history: Option<usize>,

    /// CronJobs besides that are not due.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) others: usize,

    /// `sandbox` (the binary's own, in a process of its own), `real` (etcd and kube-apiserver, started here) or the URL of one.
    #[arg(long, value_name = "SERVER", default_value = "sandbox")]
    pub(crate) server: Choice,

    /// Kubeconfig for --server URL. Default: no credentials.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// kube-controller-manager to measure beside us, with its CronJob controller alone; needs a real server.
    #[arg(long, value_name = "PATH")]
    pub(crate) peer: Option<PathBuf>,

    /// Processes of ours; of several one leads and the others stand by.
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) replicas: usize,

    /// Act as a service account with the rights of deploy/install.yaml, under the server's fairness, instead of as an
    /// administrator whom it exempts; needs --server real.
    #[arg(long)]
    pub(crate) service_account: bool,

    /// How often everything is measured; figures are medians.
    #[arg(long, value_name = "P", default_value_t = 5, value_parser = at_least_one)]
    pub(crate) pairs: usize,

    /// Due instants to wait for in `alone`; hours in `steady`; seconds in `idle` and `memory`.
    #[arg(long, value_name = "N")]
    pub(crate) length: Option<usize>,

    /// In `alone`: CronJobs of a herd in another namespace, due in the middle of it.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) beside: usize,

    /// Let each CronJob be due every so many seconds from its creation on, instead of all at one minute (herd) or each once a
    /// minute (alone): for a quick try.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) every: Option<u32>,

    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,

    /// Where to draw the arrivals over time, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,

    /// Keep what the processes logged in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) logs: Option<PathBuf>,

    /// What cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "must be a whole number of at least 1".to_owned())
}
