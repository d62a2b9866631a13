//! Metrics, logs, health.
