//! Recorded answers of the real controllers and of the real schedule library, put to the same code that runs in production.
//! What the files hold: `README.md` beside them.

mod compare;
mod handlers;
mod helpers;
mod loader;
mod oracle;
mod peers;
mod schedule;
mod server;
mod sync;
