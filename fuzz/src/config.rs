//! The configuration file of `run`: the bytes as they are.

use std::path::Path;

use cronjob_controller::cli::config::check;

/// Runs one input.
pub fn run(input: &[u8]) {
    let faults = check(Path::new("config.yaml"), input).map_err(|error| error.to_string());
    let Ok(faults) = faults else { panic!("the command line is sound: {faults:?}") };
    for fault in &faults {
        assert!(fault.starts_with("config.yaml"), "a fault says where it is: {fault}");
        assert!(!fault.chars().any(char::is_control), "a fault gives no orders to a terminal: {fault:?}");
    }
    assert_eq!(check(Path::new("config.yaml"), input).ok(), Some(faults), "the same file, the same faults");
}
