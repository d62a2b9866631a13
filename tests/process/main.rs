//! The process from outside: how it is configured, and what its ports show to whom.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod binary;
mod config;
mod controlplane;
mod documents;
mod layers;
mod ports;
