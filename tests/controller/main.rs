//! The controllers against the API server in the process, under virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod basics;
mod blocked;
mod cleanup;
mod clock_changes;
mod crowds;
mod edges;
mod edits;
mod election;
mod forged;
mod herd;
mod hostile;
mod missed;
mod replicas;
mod scale;
mod server;
mod silence;
mod stale;
mod twice;
mod week;
mod world;
mod zones;
