//! The daemon: the only code that does I/O.

pub mod control;
pub mod notify;
