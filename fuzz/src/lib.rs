//! What each fuzz target does with its input. `tests/corpus.rs` includes this file too and replays the seeds with it, so the
//! same code is fuzzed and tested. A body panics where a promise is broken.

pub mod config;
pub mod decision;
pub mod port;
pub mod sandbox;
pub mod schedule;

/// Runs `work` to its end on one thread, on time that passes only when everybody waits.
fn on_paused_time<T>(work: impl Future<Output = T>) -> T {
    match tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => panic!("no runtime: {error}"),
    }
}
