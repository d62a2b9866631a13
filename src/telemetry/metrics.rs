//! The registry of metrics and its two text forms.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry as Metrics;

use super::process::Process;
use crate::clock::Clock;

/// `Content-Type` of OpenMetrics 1.0; Prometheus 3 refuses an answer that does not name its form.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A text form of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0: what Prometheus asks for first.
    OpenMetrics,
    /// Prometheus text 0.0.4: for people and for what does not ask.
    PrometheusText,
}

impl Exposition {
    /// The form for a request with this `Accept` header.
    pub fn for_accept(accept: Option<&str>) -> Self {
        match accept {
            Some(accept) if accept.contains("application/openmetrics-text") => Self::OpenMetrics,
            _ => Self::PrometheusText,
        }
    }

    /// The `Content-Type` to answer with.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => OPENMETRICS,
            Self::PrometheusText => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// All metrics of one process. Cheap to clone; clones share the metrics.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    metrics: Arc<RwLock<Metrics>>,
}

impl Registry {
    /// A registry without metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `register` add metrics. The counter suffix `_total` is appended when the metrics are written, not here.
    pub fn register<T>(&self, register: impl FnOnce(&mut Metrics) -> T) -> T {
        register(&mut self.metrics.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds `cronjob_controller_build_info{version, tzdb}` and the `process_*` metrics; `clock` gives the start time.
    pub fn register_process(&self, clock: &Clock, tzdb: &'static str) {
        let build = Info::new([("version", env!("CARGO_PKG_VERSION")), ("tzdb", tzdb)]);
        self.register(|metrics| {
            metrics.register("cronjob_controller_build", "Version of the binary and of its time zone data", build);
            metrics.register_collector(Box::new(Process::started_at(clock.wall())));
        });
    }

    /// All metrics as text.
    ///
    /// # Errors
    /// A metric of ours failed to write itself.
    pub fn encode(&self, form: Exposition) -> Result<String, fmt::Error> {
        let metrics = self.metrics.read().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        match form {
            Exposition::OpenMetrics => text::encode(&mut out, &metrics)?,
            Exposition::PrometheusText => prometheus_text::encode(&mut out, &metrics)?,
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::metrics::counter::Counter;

    fn registry_with_a_counter() -> Registry {
        let registry = Registry::new();
        let counter: Counter = Counter::default();
        counter.inc();
        registry.register(|metrics| metrics.register("things", "Things seen", counter));
        registry
    }

    #[test]
    fn openmetrics_ends_with_its_marker_and_names_the_family_without_suffix() {
        let text = registry_with_a_counter().encode(Exposition::OpenMetrics).unwrap();
        assert_eq!(text, "# HELP things Things seen.\n# TYPE things counter\nthings_total 1\n# EOF\n");
    }

    #[test]
    fn prometheus_text_names_the_family_as_the_sample() {
        let text = registry_with_a_counter().encode(Exposition::PrometheusText).unwrap();
        assert_eq!(text, "# HELP things_total Things seen.\n# TYPE things_total counter\nthings_total 1\n");
    }

    #[test]
    fn the_form_follows_what_the_scraper_accepts() {
        let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        assert_eq!(Exposition::for_accept(Some(prometheus_3)), Exposition::OpenMetrics);
        assert_eq!(Exposition::for_accept(Some("*/*")), Exposition::PrometheusText);
        assert_eq!(Exposition::for_accept(None), Exposition::PrometheusText);
    }

    #[tokio::test]
    async fn the_process_tells_its_version_and_its_age() {
        let registry = Registry::new();
        registry.register_process(&Clock::system(), "2025b");
        let text = registry.encode(Exposition::PrometheusText).unwrap();
        let build =
            format!("cronjob_controller_build_info{{version=\"{}\",tzdb=\"2025b\"}} 1\n", env!("CARGO_PKG_VERSION"));
        assert!(text.contains(&build), "{text}");
        assert!(text.contains("\nprocess_start_time_seconds "), "{text}");
    }
}
