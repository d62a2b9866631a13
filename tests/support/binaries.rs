//! Where the programs of the real control plane are, and what to say when they are nowhere.
//!
//! The folder named by `KUBEBUILDER_ASSETS` comes first (the convention of setup-envtest: etcd, kube-apiserver, kubectl), then
//! `target/controlplane`, where `tests/controlplane/build` puts them.

use std::path::{Path, PathBuf};

/// If set to 1, a test that cannot run for want of a program fails instead of being skipped.
const REQUIRE: &str = "CRONJOB_REQUIRE_CONTROLPLANE";

/// The path of `program`, or `None` after the test has named itself as skipped.
///
/// # Panics
/// When it is not there and `CRONJOB_REQUIRE_CONTROLPLANE=1` is set.
pub(crate) fn find(test: &str, program: &str) -> Option<PathBuf> {
    let found = folders().into_iter().map(|folder| folder.join(program)).find(|path| path.is_file());
    if found.is_none() {
        let why = format!(
            "no {program} in KUBEBUILDER_ASSETS or target/controlplane: run tests/controlplane/build (needs Go)"
        );
        assert!(std::env::var_os(REQUIRE).is_none_or(|value| value != "1"), "{test}: {why}");
        eprintln!("SKIPPED {test}: {why}");
    }
    found
}

fn folders() -> Vec<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/controlplane");
    assets.into_iter().chain([built]).collect()
}
