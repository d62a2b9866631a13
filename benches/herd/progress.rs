//! The progress bar, on standard error and only where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `length` steps with a word on what is done.
pub(crate) fn bar(what: &str, length: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed_precise} {msg:44} {bar:40} {pos}/{len} {per_sec}");
    let bar = ProgressBar::new(length as u64).with_message(what.to_owned());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// A sign of life while something takes a time that nobody knows.
pub(crate) fn spinner(what: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(200));
    spinner
}
