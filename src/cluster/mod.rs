//! The API server as seen from here: client, write lanes, informers, events, the election of a leader.
//!
//! What may be known here: kube, HTTP, the values of `model`. What may not: what any of it is decided for.

mod api_client;
pub mod events;
mod exchange;
mod failure;
mod lanes;
pub mod lease;
mod limit;
mod metrics;
pub mod reflector;
mod reviews;
mod stack;
#[cfg(test)]
mod testing;
mod validity;

pub use api_client::{ApiClient, ApiClientOptions, RateLimit};
pub use events::{EventOptions, EventRecorder, EventTask, event_recorder};
pub use lanes::{Lane, Urgency};
pub use lease::{Election, ElectionError, Elector, ElectorSetup, LeaderMetrics, Leadership, Lost, Timing};
pub use limit::Concurrency;
pub use metrics::{EventMetrics, ReflectorMetrics, RequestMetrics};
pub use reflector::store::Store;
pub use reflector::{Cached, Change, Phase, Reflector, ReflectorHealth, ReflectorOptions, Sink};
pub use reviews::Reviews;
pub use stack::{Clients, Protocol, StackError, clients, load_config};
pub use validity::Validity;
