#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cronjob_controller_fuzz::decision::run(input));
