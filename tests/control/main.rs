//! The control socket from both ends: the daemon's server with clients of every kind, and the
//! client commands with daemons of every kind.

#![expect(clippy::unwrap_used, reason = "test code: a failed set-up call fails the test")]

mod client;
mod daemon;
mod server;
