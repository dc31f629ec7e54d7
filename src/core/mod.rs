//! The election as a pure state machine.

pub mod hook;
pub mod params;
pub mod persist;
pub mod status;
