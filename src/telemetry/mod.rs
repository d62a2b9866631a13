//! What operators see of a running process: metrics, health, logs.
//!
//! Invariants
//! - Nothing here is global but the log subscriber, which a process installs once in `main`; registry and health checks are
//!   values that the composition root hands to whoever has something to say.
//! - Other rooms own their metrics and register them through [`Registry::register`]; this room owns those about
//!   CronJobs and those about the process.
//! - A scrape or a probe never waits for the controllers: it reads atomics and calls checks that do not block.

mod controller;
mod health;
mod logs;
mod metrics;
mod process;
mod server;

pub use controller::{ControllerMetrics, CronMetrics, InvalidReason, RunResult};
pub use health::{Health, Heartbeat, Scope};
pub use logs::{LogError, LogFormat, init as init_logs, log_panics, subscriber as log_subscriber};
pub use metrics::{Exposition, Registry};
pub use server::{health_router, metrics_router, serve};
