//! The daemon's side of the world: the only code that does I/O.

pub mod clock;
pub mod hooks;
pub mod store;
