//! The Job controller from end to end: the production wiring on the sandbox's API server, under paused time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod core;
mod indexed;
mod lifecycle;
mod nodes;
mod policies;
mod world;
