//! Elects one leader among the hosts of a LAN over UDP multicast.
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod cli;
pub mod client;
pub mod config;
pub mod control_api;
pub mod core;
pub mod daemon;
pub mod demo;
pub mod hook_runner;
pub mod logging;
pub mod time;
pub mod types;
pub mod wire;
