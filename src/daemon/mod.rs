//! The daemon: the only code that does I/O.

pub mod clock;
pub mod interfaces;
pub mod transport;
