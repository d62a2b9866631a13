//! The scenarios. Each is played on a stage of its own and waits only for what it names.
//!
//! How they save time: a CronJob that was suspended and is resumed has one run due at once (`Stage::create_overdue`). Schedules
//! name minutes, so that nothing else becomes due while the scenario lasts.

pub(crate) mod change;
pub(crate) mod deletion;
pub(crate) mod foreign;
pub(crate) mod history;
pub(crate) mod invalid;
pub(crate) mod limits;
pub(crate) mod policies;
pub(crate) mod template;
pub(crate) mod time;
