//! Steps against a model of the server: cut at every gap, and on inputs that nobody would write.

mod cuts;
mod model;
mod properties;
