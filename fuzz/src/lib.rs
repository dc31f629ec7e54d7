//! What the fuzzers do with the bytes that they invent, and the replay of those that were worth
//! keeping.
//!
//! Each target is a module with a function `run`, which takes anything and panics where something
//! does not hold. `fuzz_targets` gives them to libFuzzer, `fuzz/run` runs one of them for a while.
//! What a fuzzer found worth keeping is in `corpus`; the tests run every target over it, without
//! any fuzzer.

pub mod config;
pub mod control;
pub mod decode;
pub mod election;
pub mod heard;
pub mod hook_lines;
#[cfg(test)]
mod replay;
pub mod seal;
