//! `cronjob-controller`: a drop-in replacement for the controllers that start scheduled work in Kubernetes clusters.
//!
//! `docs/ARCHITECTURE.md` says what each room is for; imports run only downwards in the order below (`tests/architecture.rs`).

pub mod api;
mod bucket;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod controllers;
pub mod engine;
pub mod file;
pub mod jobs;
pub mod latest;
pub mod model;
pub mod reconcile;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod schedule;
pub mod telemetry;
pub mod workqueue;
