//! Decisions: what a CronJob needs now, as a pure step machine.
