//! Each right of the manifest is needed: one after the other is taken away, and a scenario fails for it.
//!
//! Invariants
//! - Rights are those that the roles bound to the controllers' service account grant, read from `deploy/install.yaml`. One that has
//!   no row in [`table::NEEDED_BY`] fails the test, and so does a row without its right.
//! - In each round the roles are written anew, whole, less one right; the server is asked until it says so.
//! - A round counts only if the controllers were refused for that very right, so that a slow machine proves nothing.
//!
//! The server has no streamed lists, like those of older releases: with them, `list` is never sent.

mod rights;
mod table;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use futures::future::join_all;
use http::Method;
use serde_json::Value;

use crate::api::K8S;
use crate::cluster::{Cluster, request};
use crate::plane::Plane;
use crate::stage::Stage;
use crate::suite::{self, named};
use rights::{Right, Roles};
use table::{METRICS_READ, NEEDED_BY, Need};

/// Control planes at work at the same time; a round is mostly waiting.
const LANES: usize = 3;

/// With all rights a scenario has this long; without one it has failed after the other.
const PATIENCE: Duration = Duration::from_secs(45);
const IMPATIENCE: Duration = Duration::from_secs(6);

const FLAGS: &[&str] = &["--feature-gates=WatchList=false"];

#[test]
fn every_right_has_its_scenario() {
    let granted: BTreeSet<Right> = Roles::of_the_manifest().rights().into_iter().collect();
    let listed: BTreeSet<Right> = NEEDED_BY.iter().map(Need::right).collect();
    let (useless, missing) = (granted.difference(&listed), listed.difference(&granted));
    let (useless, missing): (Vec<_>, Vec<_>) = (useless.collect(), missing.collect());
    assert!(useless.is_empty(), "no scenario needs these rights, take them out of deploy/: {useless:#?}");
    assert!(missing.is_empty(), "these rights are not granted: {missing:#?}");
    assert_eq!(listed.len(), NEEDED_BY.len(), "a right stands twice in the table");
}

#[tokio::test]
async fn without_any_one_right_a_scenario_fails() {
    let lanes = (0..LANES).map(async |lane| {
        let needs: Vec<&Need> = NEEDED_BY.iter().skip(lane).step_by(LANES).collect();
        let Some(plane) = Plane::start("rbac", FLAGS).await else { return Vec::new() };
        let lane = Lane { plane: Arc::new(plane), roles: Roles::of_the_manifest(), round: 0.into() };
        lane.run(&needs).await
    });
    let wrong: Vec<String> = join_all(lanes).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One control plane with its controllers.
struct Lane {
    plane: Arc<Plane>,
    roles: Roles,
    round: std::cell::Cell<usize>,
}

impl Lane {
    /// What is wrong with these needs.
    async fn run(&self, needs: &[&Need]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut played = BTreeSet::new();
        for need in needs {
            if played.insert((need.scenario, need.start))
                && let Err(error) = self.holds_with_all_rights(need).await
            {
                wrong.push(format!("{} with all rights: {error:#}", need.scenario));
            }
        }
        for need in needs {
            match self.fails_without(need).await {
                Ok(why) => println!("without {}: {} fails: {why}", need.right(), need.scenario),
                Err(error) => wrong.push(format!("without {}: {error:#}", need.right())),
            }
        }
        // The roles were whole but for one right to the end.
        if let Some(last) = needs.last()
            && let Err(error) = self.holds_with_all_rights(last).await
        {
            wrong.push(format!("{} with all rights again: {error:#}", last.scenario));
        }
        wrong
    }

    async fn holds_with_all_rights(&self, need: &Need) -> anyhow::Result<()> {
        self.plane.set_patience(PATIENCE);
        self.roles.grant_all_but(&self.plane, None).await?;
        let outcome = self.play(need).await?;
        outcome.with_context(|| self.plane.log())
    }

    /// Why the scenario fails; an error if it does not, or not for the right.
    async fn fails_without(&self, need: &Need) -> anyhow::Result<String> {
        self.plane.set_patience(IMPATIENCE);
        self.roles.grant_all_but(&self.plane, Some(&need.right())).await?;
        let outcome = self.play(need).await?;
        let Err(failure) = outcome else { bail!("{} holds all the same: is the right needed?", need.scenario) };
        let (told, refusal) = (self.told().await?, need.right().refusal());
        ensure!(
            told.contains(&refusal),
            "{} fails, but nobody was told {refusal:?}: {failure:#}\n{told}",
            need.scenario
        );
        Ok(failure.to_string().lines().next().unwrap_or_default().to_owned())
    }

    /// What the controllers have said of their troubles, in the log and in events.
    async fn told(&self) -> anyhow::Result<String> {
        let events = request(&self.plane.client(), Method::GET, "/api/v1/events", &Value::Null).await;
        let events = events.map_err(|status| anyhow::anyhow!("events: {status}"))?;
        Ok(format!("{}{events}", self.plane.log()))
    }

    /// One round with fresh controllers. An error is one of the test's own.
    async fn play(&self, need: &Need) -> anyhow::Result<anyhow::Result<()>> {
        self.round.set(self.round.get() + 1);
        let scenario = (need.scenario != METRICS_READ).then(|| named(need.scenario));
        let namespace = format!("{}-{}", need.scenario, self.round.get());
        let stage = Stage::open(self.plane.clone(), scenario.map_or(&K8S, |scenario| scenario.api), namespace).await?;
        need.start.set_up(&stage).await?;
        let controllers = self.plane.start_controllers(need.start.flags());
        need.start.hand_over(&stage).await?;
        self.plane.until_at_work(Duration::from_secs(4)).await;
        let outcome = match scenario {
            Some(scenario) => suite::play(scenario, &stage).await,
            None => self.metrics_are_read(&stage).await,
        };
        Plane::kill(controllers)?;
        Ok(outcome)
    }

    async fn metrics_are_read(&self, stage: &Stage) -> anyhow::Result<()> {
        let token = self.plane.metrics_readers_token(&stage.namespace);
        stage.until_true("metrics are read", async || Ok(self.plane.read_metrics(&token).await == Some(200))).await
    }
}
