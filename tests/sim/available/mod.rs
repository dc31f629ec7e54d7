//! Available mode: random groups under random faults, and a reference model beside them.

pub mod checkers;
pub mod model;
pub mod swarm;
