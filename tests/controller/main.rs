//! The controllers against the API server in the process, under virtual time.

mod basics;
mod world;
