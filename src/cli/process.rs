//! What a long-running command needs of its process: to be told to end, and a seed.

use rand::TryRng;
use rand::rngs::SysRng;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A token that SIGTERM or SIGINT cancels. A second signal ends the process at once with code 1, for those who cannot wait.
///
/// # Errors
/// The system does not let us hear signals. Call it on a runtime.
pub(super) fn stop_on_signals() -> std::io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let told = stop.clone();
    TaskTracker::new().spawn(async move {
        loop {
            tokio::select! {
                biased;
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if told.is_cancelled() {
                tracing::warn!("told to end a second time: ending at once");
                std::process::exit(1);
            }
            tracing::info!("told to end: no new work from now on");
            told.cancel();
        }
    });
    Ok(stop)
}

/// A seed that nobody can guess, or 0 if the system gives no random numbers.
pub(super) fn any_seed() -> u64 {
    SysRng.try_next_u64().unwrap_or_default()
}

/// A name that no other process has had: the name of this host (of the pod, in one), and random digits.
pub(super) fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "unknown" } else { host.trim() };
    format!("{host}_{:016x}{:016x}", any_seed(), any_seed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_never_given_twice() {
        let (a, b) = (identity(), identity());
        assert_ne!(a, b);
        assert_eq!(a.rsplit_once('_').unwrap().1.len(), 32);
    }
}
