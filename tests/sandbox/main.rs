//! The API server inside the process, driven through `kube::Client` and through plain HTTP requests.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;
mod watches;
mod writes;
