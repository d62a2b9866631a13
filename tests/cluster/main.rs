//! The client side of the API server: against real sockets (`stack`) and against the sandbox with faults (`watches`, `writes`).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[cfg(feature = "sandbox")]
mod common;
mod stack;
#[cfg(feature = "sandbox")]
mod watches;
#[cfg(feature = "sandbox")]
mod writes;
