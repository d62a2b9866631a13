//! Shadow mode beside a controller in charge: the sandbox's server, paused time, and peers that do right and wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod beside;
mod common;
mod peers;
mod rules;
#[path = "../controller/world.rs"]
#[allow(dead_code, reason = "another test crate's world; each uses its part")]
mod world;
