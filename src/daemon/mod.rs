//! The daemon's side of the world: the only code that does I/O.

pub mod store;
