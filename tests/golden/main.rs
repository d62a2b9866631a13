//! Recorded answers of the real controllers and of the real schedule library, put to the same code that runs in production.
//! What the files hold: `README.md` beside them.

#![allow(clippy::unwrap_used, reason = "a vector that cannot be read has failed")]

mod compare;
mod handlers;
mod helpers;
mod loader;
mod oracle;
mod peers;
mod schedule;
mod server;
mod sync;
