//! `lanelect-http` beside real daemons on real hosts, asked by real clients.
//!
//! The hosts are those of `tests/lan`: network namespaces on a wire of their own.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]
#![expect(clippy::disallowed_methods, reason = "a test waits for real hosts, in real time")]

#[path = "../lan/harness/mod.rs"]
#[expect(dead_code, reason = "the other tests need more of it")]
#[expect(unused_imports, reason = "the other tests need more of it")]
mod harness;

mod answers;
mod bounds;
mod browser;
mod events;
mod metrics;
mod page;
mod prometheus;
mod server;
mod usage;
