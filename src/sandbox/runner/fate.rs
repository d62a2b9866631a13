//! How long something runs and how it ends: annotations decide, options where there are none, chance where those leave it.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Outcome, RunnerOptions, parse_duration};

/// How long, as in `90s`.
pub(super) const DURATION: &str = "sandbox.cronjob-controller.dev/duration";
/// How it ends: `complete`, `fail` or `hang`.
pub(super) const OUTCOME: &str = "sandbox.cronjob-controller.dev/outcome";
/// With which code the containers of a Pod fail.
const EXIT_CODE: &str = "sandbox.cronjob-controller.dev/exit-code";

/// What the annotations say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::sandbox) struct Said {
    duration: Option<Duration>,
    outcome: Option<Outcome>,
    /// From 1 to 255.
    pub(in crate::sandbox) exit_code: Option<i32>,
}

impl Said {
    /// Reads the annotations of `who`.
    pub(in crate::sandbox) fn read(who: &str, annotation: impl Fn(&str) -> Option<String>) -> Self {
        let code = |text: &str| text.parse().ok().filter(|code| (1..=255).contains(code));
        Self {
            duration: read(who, DURATION, annotation(DURATION), parse_duration),
            outcome: read(who, OUTCOME, annotation(OUTCOME), Outcome::parse),
            exit_code: read(who, EXIT_CODE, annotation(EXIT_CODE), code),
        }
    }
}

/// What has been decided about one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sandbox) struct Fate {
    pub(in crate::sandbox) duration: Duration,
    pub(in crate::sandbox) outcome: Outcome,
}

impl Fate {
    pub(in crate::sandbox) fn draw(rng: &mut StdRng, options: &RunnerOptions, said: &Said) -> Self {
        let extra = options.spread.mul_f64(rng.random::<f64>());
        let fails = rng.random_range(0..100) < options.failure_percent;
        let usual = if fails && options.outcome == Outcome::Complete { Outcome::Fail } else { options.outcome };
        Self {
            duration: said.duration.unwrap_or_else(|| options.duration.saturating_add(extra)),
            outcome: said.outcome.unwrap_or(usual),
        }
    }
}

/// The value of an annotation; one that cannot be read is told of and ignored.
fn read<T>(who: &str, annotation: &str, text: Option<String>, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = text?;
    let value = parse(&text);
    if value.is_none() {
        tracing::warn!(who, annotation, text, "the stand-in cannot read this annotation and ignores it");
    }
    value
}

/// FNV-1a: the same on every machine and in every release.
pub(in crate::sandbox) fn hash_of(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
