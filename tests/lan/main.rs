//! The real binary on real hosts: network namespaces joined by a switch that the tests control.
//!
//! Every test runs its scenario in a process of its own inside fresh user, network, mount and
//! process namespaces, as root or as a normal user, so that it cannot send on the machine's own
//! interfaces, leaves nothing behind, and runs in parallel with the others. Where the machine
//! forbids such namespaces the tests say so and pass; `LANELECT_LAN_REQUIRED=1` makes them fail.
//!
//! `harness` builds the LAN and waits; the other modules are the scenarios, by topic.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]
#![expect(clippy::disallowed_methods, reason = "a test waits for real hosts, in real time")]

mod harness;

mod announced;
mod bridge;
mod campaign;
mod checks;
mod clock;
mod commands;
mod disk;
mod doctor;
mod duplicates;
mod exec;
mod failures;
mod firewall;
mod from_keepalived;
mod hooks;
mod interfaces;
mod leader_checks;
mod one_way;
mod partition;
mod peer;
mod quorum;
mod refresh;
mod resources;
mod selftest;
mod sending;
mod settings;
mod sites;
mod spread;
mod startup;
mod status;
mod trust;
mod undead;
mod unicast;
mod upgrade;
