#![no_main]

libfuzzer_sys::fuzz_target!(|conversation: lanelect_fuzz::hook_lines::Conversation<'_>| {
    lanelect_fuzz::hook_lines::run(conversation)
});
