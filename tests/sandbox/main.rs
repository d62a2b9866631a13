//! The API server inside the process, driven through `kube::Client` and through plain HTTP requests.

mod common;
mod deletes;
mod faults;
mod lists;
mod refusals;
mod repeats;
mod watches;
mod writes;
