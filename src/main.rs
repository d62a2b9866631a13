//! The binary: parses the command line and hands over to [`cronjob_controller::cli`].

fn main() {}
