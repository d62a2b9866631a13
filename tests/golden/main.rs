//! Recorded answers of the real controllers and of the real schedule library, put to the same code that runs in production.
//! What the files hold: `README.md` beside them.

mod loader;
mod schedule;
