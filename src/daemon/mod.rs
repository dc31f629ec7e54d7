//! The daemon: the only code that does I/O.

pub mod clock;
pub mod control;
pub mod interfaces;
pub mod notify;
pub mod transport;
