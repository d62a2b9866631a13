//! The loop: list, watch, and what follows from each way in which they fail.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Cached, Phase, Reflector, Sink};
use crate::cluster::metrics::Interruption;
use crate::model::ApiFailure;

/// Why a list or watch is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The server does not know the kind.
    Absent,
    /// The version to watch from is gone: a new list.
    Expired(String),
    /// Streamed lists do not work here: a paged list at once.
    NoStreaming(String),
    /// Whatever there was cannot be trusted or continued: a new list.
    Anew(String),
    /// A connection broke or the server is in trouble: on from the same version.
    Again(String),
    /// The server asks for less: on from the same version, not before this time.
    Throttled(Duration, String),
}

impl Trouble {
    /// What a refused list or watch means.
    pub(super) fn of(failure: ApiFailure) -> Self {
        let text = if failure.code == 0 {
            failure.message.to_string()
        } else {
            format!("{} {}: {}", failure.code, failure.reason, failure.message)
        };
        match failure.code {
            404 => Self::Absent,
            410 => Self::Expired(text),
            429 => Self::Throttled(failure.retry_after.unwrap_or_default(), text),
            0 | 401 | 403 | 500..=503 => Self::Again(text),
            // Among them 504: the server has not seen the version that we ask for.
            _ => Self::Anew(text),
        }
    }

    /// What a refused streamed list means: servers without the feature answer in various ways.
    pub(super) fn of_streamed_list(self) -> Self {
        match self {
            Self::Anew(text) => Self::NoStreaming(text),
            other => other,
        }
    }

    /// Value of the metrics' label `reason`.
    fn reason(&self) -> Interruption {
        match self {
            Self::Absent => Interruption::absent,
            Self::Expired(_) => Interruption::expired,
            Self::NoStreaming(_) => Interruption::no_streaming,
            Self::Anew(_) => Interruption::invalid,
            Self::Again(_) => Interruption::connection,
            Self::Throttled(..) => Interruption::throttled,
        }
    }
}

impl<T: Cached, S: Sink<T>> Reflector<T, S> {
    /// Keeps the store up to date until `stop` is cancelled.
    pub async fn run(mut self, stop: CancellationToken) {
        stop.run_until_cancelled(self.run_on()).await;
    }

    async fn run_on(&mut self) {
        loop {
            if let Err(trouble) = self.list_and_watch().await {
                let pause = self.on_trouble(trouble);
                sleep(pause).await;
            }
        }
    }

    /// A list, if one is needed, and a watch until it ends as it should.
    async fn list_and_watch(&mut self) -> Result<(), Trouble> {
        let watch = match self.version.clone() {
            Some(version) => self.watch_from(&version).await?,
            None if self.streaming => self.list_by_stream().await?,
            None => return self.list_by_pages().await,
        };
        self.follow(watch).await
    }

    /// Prepares the next attempt; returns the pause before it.
    fn on_trouble(&mut self, trouble: Trouble) -> Duration {
        self.metrics.on_interruption(trouble.reason());
        let now = self.clock.mono();
        let (pause, why) = match trouble {
            Trouble::Throttled(wait, why) => (self.pauses.before_resuming(now).max(wait), why),
            Trouble::Expired(why) | Trouble::Anew(why) => {
                self.version = None;
                (self.pauses.before_relisting(now), why)
            }
            Trouble::Again(why) => (self.pauses.before_resuming(now), why),
            Trouble::NoStreaming(why) => {
                tracing::info!(resource = %self.options.resource, why, "streamed lists do not work here; paged lists from now on");
                self.streaming = false;
                return Duration::ZERO;
            }
            Trouble::Absent => return self.on_absent(now),
        };
        tracing::warn!(resource = %self.options.resource, why, pause_s = pause.as_secs_f64(), "list or watch interrupted");
        self.health.on_trouble(Phase::Pausing, why, now, pause);
        pause
    }

    fn on_absent(&mut self, now: Instant) -> Duration {
        if !self.health.report().absent {
            tracing::warn!(resource = %self.options.resource, "the server does not know this kind; waiting for it to appear");
        }
        self.take_out_all();
        // What the kind's server can do is found out anew when it appears.
        self.streaming = self.options.streamed_lists;
        let pause = self.options.absent_recheck;
        self.health.on_trouble(Phase::Absent, "the server does not know this kind".into(), now, pause);
        pause
    }
}
