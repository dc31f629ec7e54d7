#![no_main]

libfuzzer_sys::fuzz_target!(|steps: Vec<lanelect_fuzz::control::Step<'_>>| {
    lanelect_fuzz::control::run(steps)
});
