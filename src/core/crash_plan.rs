//! A node's crash plan: what `post-stop` must do in its name if its daemon dies.
//!
//! A killed daemon cannot run its demote hook or resign. So it stores the plan beforehand, and
//! updates it with each change.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::hook::HookRun;
use crate::time::Time;
use crate::types::{NodeId, Term};
use crate::wire::message::Message;

/// The steps after the daemon's death; the hook comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrashPlan {
    /// The demote hook; none if the hooks hold nothing.
    pub hook: Option<HookRun>,
    /// How long the hook may take before another node may lead, if it starts before the lease has
    /// expired. None in available mode, in which no node waits.
    pub grace: Option<Duration>,
    /// The end of the grace by the daemon's clock, if it has begun.
    pub grace_end: Option<Time>,
    /// The datagram to send once the hook has ended. Its sequence number is above all others of
    /// this life.
    pub resignation: Message,
}

/// The inputs of a crash plan; a change of them needs a new plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Basis {
    /// The term of the hook run and the resignation.
    pub(crate) term: Term,
    /// Whether the hooks have begun to take over and have not let go since.
    pub(crate) hooks_hold: bool,
    /// How long the hook may take before another node may lead.
    pub(crate) grace: Option<Duration>,
    /// When that time is over, if it has begun.
    pub(crate) grace_end: Option<Time>,
    /// The successor that the resignation names.
    pub(crate) planned_successor: Option<NodeId>,
}
