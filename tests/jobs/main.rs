//! Steps of Jobs against a model of the API server: their exact traces, single syncs, every named rule, and cuts at every request.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod cuts;
mod objects;
mod rules;
mod server;
mod traces;
mod world;
