//! What the scenarios are written with.

mod cgroup;
mod host;
mod site;
mod story;
mod trial;

pub(crate) use host::{DAEMON, HOOK_RUNNER, Host};
pub(crate) use site::{Site, scenario};
