//! Elects one leader among the hosts of a LAN over UDP multicast.
#![forbid(unsafe_code)]

pub mod control_api;
pub mod core;
pub mod daemon;
pub mod hook_runner;
pub mod time;
pub mod types;
