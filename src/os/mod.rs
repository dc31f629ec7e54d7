//! The operating system: the clock, files, sockets, and the service manager.

pub(crate) mod address;
pub mod clock;
pub mod notify;
pub(crate) mod polling;
pub(crate) mod process;
#[cfg(test)]
pub mod simulated;
pub(crate) mod small_file;
pub mod socket_file;
