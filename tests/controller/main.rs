//! The controllers against the API server in the process, under virtual time.

#![allow(clippy::unwrap_used, reason = "tests")]

mod basics;
mod herd;
mod week;
mod world;
