//! The table of scenarios, and how they are played.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{LocalBoxFuture, join_all};

use crate::api::{Api, K8S, VOLCANO};
use crate::cluster::Cluster;
use crate::scenarios::{change, deletion, foreign, history, invalid, limits, policies, template, time};
use crate::stage::Stage;

type Play = for<'a> fn(&'a Stage) -> LocalBoxFuture<'a, anyhow::Result<()>>;

/// One row.
pub(crate) struct Scenario {
    pub(crate) api: &'static Api,
    pub(crate) name: &'static str,
    /// What must be there before the controllers start.
    prepare: Option<Play>,
    play: Play,
}

macro_rules! row {
    ($api:ident $name:literal $play:path) => {
        Scenario { api: &$api, name: $name, prepare: None, play: |stage| $play(stage).boxed_local() }
    };
    ($api:ident $name:literal $prepare:path, $play:path) => {
        Scenario {
            prepare: Some(|stage| $prepare(stage).boxed_local()),
            ..row!($api $name $play)
        }
    };
}

/// Every scenario, in the order of what users rely on: policies, time, edits, history, deletion, names, others'
/// objects, limits, templates.
pub(crate) static SCENARIOS: &[Scenario] = &[
    row!(K8S "starts" policies::starts),
    row!(VOLCANO "starts" policies::starts),
    row!(K8S "allow" policies::allow),
    row!(VOLCANO "allow" policies::allow),
    row!(K8S "forbid" policies::forbid),
    row!(VOLCANO "forbid" policies::forbid),
    row!(K8S "replace" policies::replace),
    row!(VOLCANO "replace" policies::replace),
    row!(K8S "replace-at-once" policies::replace_at_once),
    row!(VOLCANO "replace-at-once" policies::replace_at_once),
    row!(K8S "time-zone" time::time_zone),
    row!(VOLCANO "time-zone" time::time_zone),
    row!(K8S "deadline" time::deadline),
    row!(VOLCANO "deadline" time::deadline),
    row!(K8S "every" time::every),
    row!(VOLCANO "every" time::every),
    row!(K8S "suspend-resume" change::suspend_resume),
    row!(VOLCANO "suspend-resume" change::suspend_resume),
    row!(K8S "edit-schedule" change::edit_schedule),
    row!(VOLCANO "edit-schedule" change::edit_schedule),
    row!(K8S "edit-zone" change::edit_zone),
    row!(VOLCANO "edit-zone" change::edit_zone),
    row!(K8S "history" history::history),
    row!(VOLCANO "history" history::history),
    row!(K8S "runs-complete" history::runs_complete),
    row!(VOLCANO "runs-complete" history::runs_complete),
    row!(K8S "run-fails" history::run_fails),
    row!(VOLCANO "run-fails" history::run_fails),
    row!(K8S "forgotten-run" history::forgotten_run),
    row!(VOLCANO "forgotten-run" history::forgotten_run),
    row!(K8S "deleted-with-its-jobs" deletion::deleted_with_its_jobs),
    row!(VOLCANO "deleted-with-its-jobs" deletion::deleted_with_its_jobs),
    row!(K8S "jobs-left-as-orphans" deletion::jobs_left_as_orphans),
    row!(VOLCANO "jobs-left-as-orphans" deletion::jobs_left_as_orphans),
    row!(K8S "held-by-a-finalizer" deletion::held_by_a_finalizer),
    row!(VOLCANO "held-by-a-finalizer" deletion::held_by_a_finalizer),
    row!(K8S "terminating-namespace" deletion::terminating_namespace),
    row!(K8S "active-job-deleted" foreign::active_job_deleted),
    row!(VOLCANO "active-job-deleted" foreign::active_job_deleted),
    row!(K8S "name-taken" foreign::name_taken),
    row!(VOLCANO "name-taken" foreign::name_taken),
    row!(K8S "owner-of-the-same-name" foreign::owner_of_the_same_name),
    row!(VOLCANO "owner-of-the-same-name" foreign::owner_of_the_same_name),
    row!(K8S "job-by-hand" foreign::job_by_hand),
    row!(VOLCANO "job-by-hand" foreign::job_by_hand),
    row!(K8S "fields-of-others" foreign::fields_of_others),
    row!(VOLCANO "fields-of-others" foreign::fields_of_others),
    row!(K8S "paging" limits::fill_pages, limits::paging),
    row!(VOLCANO "paging" limits::fill_pages, limits::paging),
    row!(K8S "longest-name" limits::longest_name),
    row!(VOLCANO "longest-name" limits::longest_name),
    row!(K8S "name-too-long" limits::name_too_long),
    row!(K8S "quota-full" limits::quota_full),
    row!(VOLCANO "quota-full" limits::quota_full),
    row!(K8S "quota-freed" limits::quota_freed),
    row!(K8S "invalid-refused" invalid::refused),
    row!(K8S "invalid-stored" invalid::stored),
    row!(VOLCANO "invalid-stored" invalid::stored),
    row!(K8S "never-fires" invalid::never_fires),
    row!(VOLCANO "never-fires" invalid::never_fires),
    row!(K8S "template" template::kubernetes),
    row!(VOLCANO "template" template::volcano),
];

impl Scenario {
    pub(crate) fn full_name(&self) -> String {
        format!("{}-{}", self.api.name, self.name)
    }
}

/// The rows that `CRONJOB_E2E` names, all without it.
///
/// # Panics
/// When it names one that is not there.
pub(crate) fn selected() -> Vec<&'static Scenario> {
    match std::env::var("CRONJOB_E2E") {
        Ok(names) => names.split(',').map(named).collect(),
        Err(_) => SCENARIOS.iter().collect(),
    }
}

/// The row of this name.
///
/// # Panics
/// When there is none.
pub(crate) fn named(name: &str) -> &'static Scenario {
    SCENARIOS.iter().find(|scenario| scenario.full_name() == name).unwrap_or_else(|| {
        let names: Vec<String> = SCENARIOS.iter().map(Scenario::full_name).collect();
        panic!("no scenario {name}; there are\n{}", names.join("\n"))
    })
}

/// Makes a stage for each row, with what must be there before the controllers start.
pub(crate) async fn prepare(
    cluster: Arc<dyn Cluster>,
    scenarios: Vec<&'static Scenario>,
) -> Vec<(&'static Scenario, Stage)> {
    let made = scenarios.into_iter().map(async |scenario| {
        let name = scenario.full_name();
        let stage = Stage::open(cluster.clone(), scenario.api, name.clone()).await;
        let stage = stage.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        if let Some(prepare) = scenario.prepare {
            prepare(&stage).await.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
        (scenario, stage)
    });
    join_all(made).await
}

/// Plays all rows at the same time, and then checks that what was seen in the end has lasted.
///
/// # Panics
/// When one fails; all are played before.
pub(crate) async fn play_all(stages: &[(&'static Scenario, Stage)]) {
    assert!(!stages.is_empty());
    let clock = stages[0].1.cluster.clock().clone();
    let begun = clock.mono();
    let played = join_all(stages.iter().map(async |(scenario, stage)| {
        let outcome = play(scenario, stage).await;
        let took_s = clock.mono().duration_since(begun).as_secs_f64();
        println!("{:32} {} {took_s:6.1} s", scenario.full_name(), if outcome.is_ok() { "ok    " } else { "FAILED" });
        outcome
    }));
    let outcomes = played.await;
    let lasted = join_all(stages.iter().map(async |(_, stage)| stage.check_that_it_lasts().await)).await;
    let failed = outcomes.into_iter().zip(lasted).zip(stages).filter_map(|((outcome, lasts), (scenario, _))| {
        outcome.and(lasts).err().map(|error| format!("{}: {error:#}", scenario.full_name()))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), stages.len(), failed.join("\n"));
}

/// Plays one row.
pub(crate) async fn play(scenario: &Scenario, stage: &Stage) -> anyhow::Result<()> {
    (scenario.play)(stage).await
}
