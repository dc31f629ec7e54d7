//! Elects one leader among the hosts of a LAN over UDP multicast, and runs a hook on each of them
//! when leadership changes.
//!
//! The package is the daemon `lanelect`. Its election is for other programs too:
//!
//! | What a program does | Features | Begin with |
//! |---|---|---|
//! | It takes part in elections itself | none | [`core::Election`] |
//! | It follows the daemon of its host | `client` | `client` |
//! | It is the daemon | `daemon`, the default | the README |
//!
//! # Embedding the election
//!
//! [`core::Election`] is one node's side of the election. It does no I/O and reads no clock; its
//! caller does both, under one contract: **after every call, carry out all outputs in order; report
//! a state as persisted only when it is on disk; and call again when something happens, or at
//! [`poll_timeout`](core::Election::poll_timeout) at the latest.** The election holds back each
//! datagram that depends on a state until that is persisted.
//!
//! Three nodes elect a leader, on a network and a disk that are this function:
//!
//! ```
//! use std::net::{IpAddr, Ipv4Addr};
//! use std::time::Duration;
//!
//! use lanelect::core::election::{Election, Setup};
//! use lanelect::core::hook::HookOutcome;
//! use lanelect::core::output::Output;
//! use lanelect::core::params::Params;
//! use lanelect::core::persist::PersistentState;
//! use lanelect::time::Time;
//! use lanelect::types::Incarnation;
//!
//! const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
//!
//! let mut now = Time::ZERO;
//! let mut nodes = ["web0", "web1", "web2"].map(|name| {
//!     let setup = Setup {
//!         node_id: name.parse().unwrap(),
//!         incarnation: Incarnation(1), // above that of every earlier life
//!         persisted: PersistentState::default(), // nothing: this is the first one
//!         params: Params::new(Duration::from_secs(1)),
//!         links_up: true,
//!         seed: 42, // from a random source, outside of an example
//!     };
//!     Election::new(setup, now)
//! });
//!
//! let leader = loop {
//!     // Carry out every output, in order ...
//!     for at in 0..nodes.len() {
//!         while let Some(output) = nodes[at].poll_output() {
//!             match output {
//!                 Output::Transmit(message) => {
//!                     for to in (0..nodes.len()).filter(|&to| to != at) {
//!                         nodes[to].handle_datagram(now, ADDRESS, &message);
//!                     }
//!                 }
//!                 // Write and sync it, then report it: datagrams wait for that.
//!                 Output::Persist(state) => nodes[at].handle_persisted(now, state),
//!                 // Start or stop what only the leader runs, then report the end.
//!                 Output::RunHook(_) => nodes[at].handle_hook_finished(now, HookOutcome::Succeeded),
//!                 _ => {}
//!             }
//!         }
//!     }
//!     if let Some(leader) = nodes.iter().find(|node| node.is_leader()) {
//!         break leader;
//!     }
//!     // ... then sleep until the earliest deadline.
//!     now = nodes.iter().filter_map(|node| Some(node.poll_timeout()?.at)).min().unwrap();
//!     for node in &mut nodes {
//!         node.handle_timeout(now); // waking early is harmless
//!     }
//! };
//! assert_eq!(leader.node_id().as_str(), "web0"); // equal priorities: the lowest id leads
//! ```
//!
//! [`wire::frame::Codec`] turns messages into datagrams and back. `examples/embed.rs` does the same
//! over UDP multicast. [`core`] says which outputs a program may ignore, and the [dependency
//! rule](#the-dependency-rule) is why the election runs the same here, in the daemon and in the
//! simulator.
//!
//! # Architecture
//!
//! ```text
//!   main ─▶ cli                      the command line
//!    ├────▶ client ─▶ control_api    queries a running daemon; the messages of both ends
//!    ├────▶ demo                     a whole election on one machine
//!    ├────▶ announce                 announces an address to the neighbours
//!    ├────▶ doctor                   looks for faults, by the parts of the others
//!    ├────▶ hooks ──┬─▶ os           runs commands; the system's clock, files and sockets
//!    └────▶ daemon ─┴─▶ config       what drives an election on a host; the settings
//!              │           │
//!              ▼           ▼
//!            core ─▶ wire ─▶ types, time
//! ```
//!
//! [`core`] is the election: a state machine that takes time, a seed and datagrams in and gives
//! datagrams, hook runs, things to persist and the next deadline out. The daemon drives it with the
//! host's sockets and clock, the simulator in `tests/sim` with virtual ones; both drive the very
//! same code. [`wire`] turns messages into datagrams and back.
//!
//! # The dependency rule
//!
//! Arrows go one way. `core` and `wire` hold addresses as data, but never touch a socket, file,
//! process, environment variable, clock or random source. `tests/architecture.rs` keeps it so.
//!
//! # Glossary
//!
//! | word | meaning |
//! |---|---|
//! | candidate | a node that may lead; while an election runs, one that stands in it |
//! | observer | a node with `candidate = false`: it follows, and never leads |
//! | eligible | a candidate that nothing keeps from standing now: no maintenance, no yield, … |
//! | proposal | "I stand for leadership" |
//! | declaration | "I lead", said at least every heartbeat interval |
//! | heartbeat | "I am here", from everyone else |
//! | member | a node that has been heard; alive, suspect, left or gone by how long it is silent |
//! | rank | who is better: static leader, then priority, then the tie-break, then the lower id |
//! | term | the number of a leadership; grows with each, and is the hooks' fencing token |
//! | incarnation | the number of one life of a daemon; with the sequence number it dates a datagram |
//! | handover | giving leadership up in order: demote hook, resignation, successor |
//! | reaffirmed | stays the leader: through a conflict, under a new term, or for a refresh |
//!
//! `docs/glossary.md` has all words, beside those of Raft, VRRP and Kubernetes.
//!
//! # Units
//!
//! A [`Time`](time::Time) is nanoseconds from an origin that the caller chose, a
//! [`Duration`](std::time::Duration) the distance of two. Fields whose type does not say it end in
//! their unit: `_ms`, `_us`.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

#[cfg(feature = "daemon")]
pub mod announce;
#[cfg(feature = "daemon")]
pub mod cli;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "daemon")]
pub mod commands;
#[cfg(feature = "daemon")]
pub mod config;
#[cfg(feature = "client")]
pub mod control_api;
pub mod core;
#[cfg(feature = "daemon")]
pub mod daemon;
#[cfg(feature = "daemon")]
pub mod demo;
#[cfg(feature = "daemon")]
pub mod doctor;
#[cfg(feature = "daemon")]
pub mod exec;
#[cfg(feature = "daemon")]
pub mod hooks;
#[cfg(feature = "daemon")]
pub mod logging;
#[cfg(feature = "daemon")]
pub mod os;
#[cfg(feature = "daemon")]
pub mod printable;
pub mod time;
pub mod types;
pub mod wire;
