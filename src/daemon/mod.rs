//! The daemon: the only code that does I/O.

pub mod clock;
pub mod control;
pub mod hooks;
pub mod interfaces;
pub mod notify;
pub mod store;
pub mod transport;
