#![no_main]

libfuzzer_sys::fuzz_target!(|journey: lanelect_fuzz::seal::Journey| lanelect_fuzz::seal::run(
    journey
));
