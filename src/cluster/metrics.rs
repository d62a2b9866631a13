//! Metrics of this room. `rest_client_*` have the names and meanings of client-go's; the others are our own.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::lanes::Lane;

/// client-go's buckets of request durations, in seconds.
const DURATION_BUCKETS_S: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

/// Labels of a counted answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Answered {
    /// HTTP status code, or `<error>` when no answer came.
    code: String,
    method: String,
    host: String,
}

/// Labels of a timed request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Timed {
    verb: String,
    host: String,
}

/// Labels of a lane's gauges.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct InLane {
    lane: &'static str,
}

/// Metrics of requests; the default is registered nowhere. Clones share their values.
#[derive(Clone, Debug)]
pub struct RequestMetrics {
    requests: Family<Answered, Counter>,
    durations: Family<Timed, Histogram, fn() -> Histogram>,
    retries: Family<Answered, Counter>,
    pub(crate) lanes: LaneMetrics,
}

impl Default for RequestMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS_S)),
            retries: Family::default(),
            lanes: LaneMetrics::default(),
        }
    }
}

impl RequestMetrics {
    /// Metrics that `registry` shows.
    pub fn register(registry: &mut Registry) -> Self {
        let it = Self::default();
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host",
            it.requests.clone(),
        );
        registry.register(
            "rest_client_request_duration_seconds",
            "Request latency in seconds, by verb and host",
            it.durations.clone(),
        );
        registry.register(
            "rest_client_request_retries",
            "Number of request retries, by the status code that led to them, method, and host",
            it.retries.clone(),
        );
        it.lanes.register(registry);
        it
    }

    /// One attempt: `code` 0 means that no answer came.
    pub(crate) fn on_attempt(&self, code: u16, method: &http::Method, host: &str, took: Duration) {
        self.requests.get_or_create(&answered(code, method, host)).inc();
        let timed = Timed { verb: method.to_string(), host: host.to_owned() };
        self.durations.get_or_create(&timed).observe(took.as_secs_f64());
    }

    /// A request is sent again after an answer with `code`.
    pub(crate) fn on_retry(&self, code: u16, method: &http::Method, host: &str) {
        self.retries.get_or_create(&answered(code, method, host)).inc();
    }

    #[cfg(test)]
    pub(crate) fn retries(&self, code: u16, method: &http::Method) -> u64 {
        self.retries.get_or_create(&answered(code, method, "")).get()
    }
}

fn answered(code: u16, method: &http::Method, host: &str) -> Answered {
    let code = if code == 0 { "<error>".to_owned() } else { code.to_string() };
    Answered { code, method: method.to_string(), host: host.to_owned() }
}

/// Gauges of the write lanes.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneMetrics {
    in_flight: Family<InLane, Gauge>,
    queued: Family<InLane, Gauge>,
    /// The concurrency limit of the moment.
    pub(crate) limit: Gauge,
}

impl LaneMetrics {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "api_requests_in_flight",
            "Requests sent and not answered yet, by lane",
            self.in_flight.clone(),
        );
        registry.register("api_requests_queued", "Requests that wait for a slot, by lane", self.queued.clone());
        registry.register("api_requests_limit", "Requests allowed in flight at the moment", self.limit.clone());
    }

    pub(crate) fn in_flight(&self, lane: Lane) -> Gauge {
        self.in_flight.get_or_create_owned(&InLane { lane: lane.as_str() })
    }

    pub(crate) fn queued(&self, lane: Lane) -> Gauge {
        self.queued.get_or_create_owned(&InLane { lane: lane.as_str() })
    }
}

/// Labels of a reflector's metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Watched {
    resource: String,
}

/// Why a list or watch ended otherwise than by its time-out, as a label value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the label's values")]
pub(crate) enum Interruption {
    absent,
    expired,
    no_streaming,
    invalid,
    connection,
    throttled,
}

impl Interruption {
    const ALL: [Self; 6] =
        [Self::absent, Self::expired, Self::no_streaming, Self::invalid, Self::connection, Self::throttled];
}

/// Labels of ended watches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Ended {
    resource: String,
    reason: Interruption,
}

/// Metrics of all reflectors of a process; the default is registered nowhere. Clones share their values.
#[derive(Clone, Debug, Default)]
pub struct ReflectorMetrics {
    lists: Family<Watched, Counter>,
    interruptions: Family<Ended, Counter>,
    undecodable: Family<Watched, Counter>,
    objects: Family<Watched, Gauge>,
}

impl ReflectorMetrics {
    /// Metrics that `registry` shows.
    pub fn register(registry: &mut Registry) -> Self {
        let it = Self::default();
        registry.register("reflector_lists", "Full lists begun, by resource", it.lists.clone());
        registry.register(
            "reflector_interruptions",
            "Lists and watches that ended otherwise than by their time-out, by resource and reason",
            it.interruptions.clone(),
        );
        registry.register(
            "reflector_undecodable_objects",
            "Objects left out of the cache because they could not be read, by resource",
            it.undecodable.clone(),
        );
        registry.register("reflector_objects", "Objects in the cache, by resource", it.objects.clone());
        it
    }

    /// The metrics of one reflector; its counters exist at zero from here on, as `increase()` needs it.
    pub(crate) fn of(&self, resource: &str) -> ResourceMetrics {
        let watched = Watched { resource: resource.to_owned() };
        for reason in Interruption::ALL {
            drop(self.interruptions.get_or_create(&Ended { resource: resource.to_owned(), reason }));
        }
        ResourceMetrics {
            lists: self.lists.get_or_create_owned(&watched),
            undecodable: self.undecodable.get_or_create_owned(&watched),
            objects: self.objects.get_or_create_owned(&watched),
            interruptions: self.interruptions.clone(),
            resource: watched.resource,
        }
    }
}

/// The metrics of one reflector.
#[derive(Clone, Debug)]
pub(crate) struct ResourceMetrics {
    resource: String,
    interruptions: Family<Ended, Counter>,
    pub(crate) lists: Counter,
    pub(crate) undecodable: Counter,
    pub(crate) objects: Gauge,
}

impl ResourceMetrics {
    pub(crate) fn on_interruption(&self, reason: Interruption) {
        self.interruptions.get_or_create(&Ended { resource: self.resource.clone(), reason }).inc();
    }
}

/// Metrics of the event recorder; the default is registered nowhere. Clones share their values.
#[derive(Clone, Debug, Default)]
pub struct EventMetrics {
    pub(crate) recorded: Counter,
    pub(crate) dropped_full: Counter,
    pub(crate) dropped_spam: Counter,
    pub(crate) failed: Counter,
}

impl EventMetrics {
    /// Metrics that `registry` shows.
    pub fn register(registry: &mut Registry) -> Self {
        let it = Self::default();
        registry.register("events_recorded", "Events handed to the recorder", it.recorded.clone());
        registry.register("events_dropped_queue_full", "Events dropped because too many wait", it.dropped_full.clone());
        registry.register(
            "events_dropped_spam",
            "Events dropped by the filter against floods",
            it.dropped_spam.clone(),
        );
        registry.register("events_failed", "Events that the API server did not take", it.failed.clone());
        it
    }
}
