//! What operators see of a running process: metrics, health, status, logs, and the ports that show them.
//!
//! Invariants
//! - Nothing here is global but the log subscriber, which a process installs once in `main`; registry and health checks are
//!   values that the composition root hands to whoever has something to say.
//! - Other rooms own their metrics and register them through [`Registry::register`]; this room owns those about
//!   CronJobs and Jobs and those about the process.
//! - What needs a right is behind [`Access`], which asks the API server through a trait, so that this room knows no client.
//! - A scrape or a probe never waits for the controllers: it reads atomics and calls checks that do not block.

mod access;
mod answers;
mod certificate;
mod controller;
mod health;
mod jobs;
mod listen;
mod logs;
mod metrics;
mod pages;
mod ports;
mod process;
mod routes;

pub use self::jobs::JobMetrics;
pub use access::{Access, Question, Reviewer, User, Verdict};
pub use certificate::{Certificate, CertificateError, CertificateSource};
pub use controller::{Breach, CROWD, ControllerMetrics, CronMetrics, InvalidReason, RunResult};
pub use health::{Health, Heartbeat, Scope};
pub use listen::{answer, serve};
pub use logs::{LogError, LogFormat, init as init_logs, log_panics, subscriber as log_subscriber};
pub use metrics::{Exposition, Registry};
pub use pages::{Flag, Status, pages_router};
pub use ports::PortMetrics;
pub use routes::{health_router, metrics_router};
