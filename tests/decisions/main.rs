//! Steps against a model of the server: cut at every gap, and on inputs that nobody would write.

#![allow(clippy::unwrap_used, reason = "a model that cannot be built has failed")]

mod cuts;
mod model;
mod properties;
