//! A node's crash plan: what remains to be done in its name where its daemon ends without a word.
//!
//! A daemon that is killed cannot run its demote hook or resign. So it leaves word beforehand, and
//! renews it whenever that changes. Whoever finds the daemon dead carries it out: `post-stop`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::hook::HookRun;
use crate::time::Time;
use crate::types::{NodeId, Term};
use crate::wire::message::Message;

/// What is to be done after the daemon's death, the hook first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrashPlan {
    /// The demote hook; none where the hooks hold nothing.
    pub hook: Option<HookRun>,
    /// How long that may take before another node may lead, at the least where it starts before the
    /// lease has run out. None in available mode, where nobody waits.
    pub grace: Option<Duration>,
    /// When it is over, where it has begun: by the clock that the daemon goes by.
    pub grace_end: Option<Time>,
    /// To be sent once the hook has ended. The last datagram of the daemon's life: none that it
    /// sent counts as newer.
    pub resignation: Message,
}

/// What a crash plan depends on; a new one is made where this differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Basis {
    /// The term that goes with the hook and the resignation.
    pub(crate) term: Term,
    /// Whether the hooks have begun to take over and not let go since.
    pub(crate) hooks_hold: bool,
    /// How long the hook may take before another node may lead.
    pub(crate) grace: Option<Duration>,
    /// When that is over, where it has begun.
    pub(crate) grace_end: Option<Time>,
    /// Who is named as the successor.
    pub(crate) planned_successor: Option<NodeId>,
}
