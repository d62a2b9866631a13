//! The API server inside the process, driven through `kube::Client` and through plain HTTP requests.

#![allow(clippy::unwrap_used, reason = "a script that cannot go on has failed")]

mod common;
mod deletes;
mod faults;
mod lists;
mod pods;
mod properties;
mod refusals;
mod repeats;
mod watches;
mod writes;
