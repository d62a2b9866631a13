//! Schedules: cron text to the next instant, exactly as the peers compute it.
