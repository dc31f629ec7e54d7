//! Elects one leader among the hosts of a LAN over UDP multicast.
#![forbid(unsafe_code)]

pub mod cli;
pub mod config;
pub mod control_api;
pub mod core;
pub mod logging;
pub mod time;
pub mod types;
pub mod wire;
