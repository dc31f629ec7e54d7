//! The units as they are shipped, on hosts with a real systemd each.
//!
//! Every host is a system manager in namespaces of its own, on an overlay of this machine's root,
//! and boots in about a second. It takes root and what `hosts::trial` asks for: where the machine
//! cannot do it, the tests say so and pass; `LANELECT_LAN_REQUIRED=1` makes them fail. As in
//! `tests/lan`, from which isolation, switch and journal are taken, a test runs in a process of its
//! own and leaves nothing behind.
//!
//! `hosts` boots them and waits; the other modules are the scenarios, by topic.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]
#![expect(clippy::disallowed_methods, reason = "a test waits for real hosts, in real time")]

#[path = "../lan/harness/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests on hosts without systemd need more of it")]
mod harness;
mod hosts;
#[path = "../common/pages.rs"]
#[expect(dead_code, reason = "the tests of the documents need more of it")]
mod pages;

mod checks;
mod crashes;
mod doctor;
mod followers;
mod from_keepalived;
mod hooks;
mod package;
mod selftest;
mod service;
mod stops;
