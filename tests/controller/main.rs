//! The controllers against the API server in the process, under virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod basics;
mod election;
mod herd;
mod replicas;
mod server;
mod stale;
mod week;
mod world;
