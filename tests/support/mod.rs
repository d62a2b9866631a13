//! What several test crates share. Each includes it with `#[path = "../support/mod.rs"] mod support;`.
#![allow(dead_code, reason = "each test crate uses its part")]

pub(crate) mod binaries;
mod certificates;
pub(crate) mod controlplane;
pub(crate) mod guardian;
pub(crate) mod kubelet;
pub(crate) mod pattern;
pub(crate) mod web;
