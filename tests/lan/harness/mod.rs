//! What the scenarios are written with.

pub(crate) mod carrier;
pub(crate) mod claims;
pub(crate) mod faults;
pub(crate) mod flood;
pub(crate) mod forge;
pub(crate) mod frame;
pub(crate) mod group;
pub(crate) mod host;
pub(crate) mod inside;
pub(crate) mod journal;
pub(crate) mod keys;
pub(crate) mod lan;
pub(crate) mod later;
pub(crate) mod patience;
pub(crate) mod peer;
pub(crate) mod program;
pub(crate) mod routed;
pub(crate) mod service;
pub(crate) mod stuck;
pub(crate) mod switch;
pub(crate) mod tap;
pub(crate) mod usage;

pub(crate) use host::Host;
pub(crate) use lan::{
    BEST_SUCCEEDS, Lan, PATIENT, dual_homed_scenario, quorum_scenario, scenario, scenario_with,
};
pub(crate) use patience::{wait_for, wait_until};
