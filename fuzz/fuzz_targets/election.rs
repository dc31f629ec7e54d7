#![no_main]

libfuzzer_sys::fuzz_target!(
    |script: lanelect_fuzz::election::Script| lanelect_fuzz::election::run(script)
);
