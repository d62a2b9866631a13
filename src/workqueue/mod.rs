//! The rate-limited delaying work queue.
