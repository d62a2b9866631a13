//! What is deployed: the manifests against themselves, against the chart, against the code and against a real API server; alerts,
//! dashboard and the tables of docs/operations.md against what the binary says; the static binary in an empty root directory.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod chart;
mod manifests;
#[cfg(feature = "sandbox")]
mod monitoring;
mod objects;
#[cfg(feature = "sandbox")]
mod operations;
#[cfg(feature = "sandbox")]
mod scrape;
mod server;
mod static_binary;
mod values;
