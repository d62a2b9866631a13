//! The controllers: name, initialize, run.
