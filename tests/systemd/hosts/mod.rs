//! What the scenarios are written with.

pub(crate) mod cgroup;
mod host;
mod site;
mod story;
pub(crate) mod trial;

pub(crate) use host::{DAEMON, HOOK_RUNNER, Host};
pub(crate) use site::{Site, bare_scenario, scenario};
pub(crate) use trial::SHARED;
