//! What an election asks of its caller.

use std::net::IpAddr;
use std::time::Duration;

use crate::core::hook::{HookRun, Reason};
use crate::core::persist::PersistentState;
use crate::types::{NodeId, Role, Term};
use crate::wire::message::Message;

/// One thing to do. They are done in the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Write this to disk, and only then go on to the outputs that follow.
    Persist(PersistentState),
    /// Multicast this to the group.
    Transmit(Message),
    /// Start the hook; its end is reported by
    /// [`handle_hook_finished`](crate::core::Election::handle_hook_finished). No other run is
    /// asked for before.
    RunHook(HookRun),
    /// Tell the log, or the watchers.
    Notify(Event),
    /// The election is over; nothing follows.
    Stopped(StopCause),
}

/// Why an election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// It was asked to.
    Requested,
    /// Another node has this node's id, and was here first.
    NodeIdTaken {
        /// Where the holder of the id is.
        holder: IpAddr,
    },
}

/// Something that happened, named after its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The role, the leader or the reign changed.
    Transition(Transition),
    /// A node that was not there before is.
    MemberJoined {
        /// Who.
        node_id: NodeId,
        /// From where.
        address: IpAddr,
    },
    /// A member has been silent for one alive threshold.
    MemberSuspect {
        /// Who.
        node_id: NodeId,
        /// For how long.
        silence: Duration,
    },
    /// A member has been silent for two alive thresholds and no longer counts.
    MemberGone {
        /// Who.
        node_id: NodeId,
        /// For how long.
        silence: Duration,
    },
    /// A member said that it stops.
    MemberLeft {
        /// Who.
        node_id: NodeId,
    },
    /// The leader's declarations stayed out for longer than the alive threshold.
    LeaderSilent {
        /// Who led.
        leader: NodeId,
        /// For how long.
        silence: Duration,
    },
    /// The leader said that it no longer leads, or was heard in another role.
    LeaderResigned {
        /// Who led.
        leader: NodeId,
    },
    /// This node left the leadership to a better candidate.
    DeferredTo {
        /// To whom.
        candidate: NodeId,
    },
    /// A worse leader declared itself while this node leads.
    RivalLeader {
        /// Who.
        rival: NodeId,
        /// From where.
        address: IpAddr,
    },
    /// Another node leads by `static_role` too; neither gives way.
    RivalStaticLeader {
        /// Who.
        rival: NodeId,
        /// From where.
        address: IpAddr,
    },
    /// A node that started later uses this node's id; it is told to stop.
    NodeIdContested {
        /// Where it is.
        newcomer: IpAddr,
    },
    /// This node would lead, but sees too few candidates.
    TooFewCandidates {
        /// Visible, this node included.
        visible: usize,
        /// `min_candidates`.
        needed: usize,
    },
    /// The hook failed for `elected`, and this node stays out for a while.
    HeldOff {
        /// How long.
        holdoff: Duration,
    },
}

/// A change of role, of leader, or of the term that this node leads in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// What this node now does.
    pub role: Role,
    /// What it did before.
    pub previous_role: Role,
    /// The highest term it knows.
    pub term: Term,
    /// The leader it now follows or is.
    pub leader: Option<NodeId>,
    /// The leader it followed or was before.
    pub previous_leader: Option<NodeId>,
    /// What caused it, where this node's own leadership changed.
    pub reason: Option<Reason>,
}
