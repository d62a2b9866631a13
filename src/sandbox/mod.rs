//! An API server inside the process, and a stand-in for what runs the Jobs.

pub mod resources;
