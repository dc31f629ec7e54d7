#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lanelect_fuzz::config::run(bytes));
