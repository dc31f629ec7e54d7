//! Elects one leader among the hosts of a LAN over UDP multicast, and runs a hook on each of them
//! when leadership changes.
//!
//! # Architecture
//!
//! ```text
//!   main ─▶ cli                      the command line
//!    ├────▶ client ─▶ control_api    what asks a running daemon, and the words of both ends
//!    ├────▶ demo                     a whole election on one machine
//!    ├────▶ announce                 where an address is now, said to the neighbours
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
//! | rank | who is better: static leader, then priority, then the lower id |
//! | term | the number of a leadership; grows with each, and is the hooks' fencing token |
//! | incarnation | the number of one life of a daemon; with the sequence number it dates a datagram |
//! | handover | giving leadership up in order: demote hook, resignation, successor |
//! | reaffirmed | stayed the leader through a conflict, under a new term |
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

pub mod announce;
pub mod cli;
pub mod client;
pub mod config;
pub mod control_api;
pub mod core;
pub mod daemon;
pub mod demo;
pub mod hooks;
pub mod logging;
pub mod os;
pub mod printable;
pub mod time;
pub mod types;
pub mod wire;
