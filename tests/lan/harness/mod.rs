//! What the scenarios are written with.

pub(crate) mod frame;
pub(crate) mod host;
pub(crate) mod inside;
pub(crate) mod journal;
pub(crate) mod lan;
pub(crate) mod patience;
pub(crate) mod switch;

pub(crate) use host::Host;
pub(crate) use lan::{dual_homed_scenario, scenario};
pub(crate) use patience::wait_until;
