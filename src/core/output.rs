//! What an election asks of its caller.

use std::net::IpAddr;
use std::time::Duration;

use crate::core::hook::{HookEvent, HookRun, Reason};
use crate::core::persist::PersistentState;
use crate::time::Time;
use crate::types::{NodeId, Role, Term};
use crate::wire::message::Message;

/// One thing to do. They are done in the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few at a time, each carried out at once: boxing would cost an allocation a datagram"
)]
pub enum Output {
    /// Write this to disk, and tell
    /// [`handle_persisted`](crate::core::Election::handle_persisted) when it is there. A newer one
    /// replaces an older one that is still to be written.
    Persist(PersistentState),
    /// Multicast this to the group.
    Transmit(Message),
    /// Start the hook; its end is reported by
    /// [`handle_hook_finished`](crate::core::Election::handle_hook_finished). No other run is
    /// asked for before.
    RunHook(HookRun),
    /// End the hook that runs, by force where it does not by `by`: leadership is lost, and the
    /// demote hook waits for its turn. Its end is reported as any other.
    CutHookShort {
        /// When to end it by force.
        by: Time,
    },
    /// Run the fence command: this node's hooks have not let go within the grace. Its end is
    /// reported by [`handle_fence_finished`](crate::core::Election::handle_fence_finished). No
    /// other run of it is asked for before.
    Fence {
        /// The term of the leadership whose end the hooks overran.
        term: Term,
    },
    /// Keep [`crash_plan`](crate::core::Election::crash_plan), or that there is none any more,
    /// where it outlives the daemon but not the machine's boot.
    UpdateCrashPlan,
    /// Tell the log, or the watchers.
    Notify(Event),
    /// The election is over; nothing follows.
    Stopped(StopCause),
}

/// Why an election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopCause {
    /// It was asked to.
    Requested,
    /// Another node has this node's id, and was here first.
    NodeIdTaken {
        /// Where the holder of the id is.
        holder: IpAddr,
    },
    /// Another daemon runs in this very life, with a copy of this one's memory.
    LifeShared {
        /// Where the other one is.
        with: IpAddr,
    },
}

/// Something that happened, named after its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The role, the leader or the leadership changed.
    Transition(Transition),
    /// A node that was not there before is.
    MemberJoined {
        /// Who.
        node_id: NodeId,
        /// From where.
        address: IpAddr,
    },
    /// A member has been silent for longer than its patience.
    MemberSuspect {
        /// Who.
        node_id: NodeId,
        /// For how long.
        silence: Duration,
    },
    /// A member has been silent for twice as long and no longer counts.
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
    /// Datagrams come under a node's name, and nobody answers a challenge by that name: they are
    /// replayed, or it does not hear this node.
    NoProof {
        /// Who is said to have sent them.
        node_id: NodeId,
    },
    /// This node would lead, but sees too few candidates.
    TooFewCandidates {
        /// Visible, this node included.
        visible: usize,
        /// `min_candidates`.
        needed: usize,
    },
    /// A member names other voters than this node does, or runs in the other mode; their votes do
    /// not count for each other.
    VotersDisagree {
        /// Who.
        node_id: NodeId,
        /// Whether it runs in quorum mode at all.
        in_quorum_mode: bool,
    },
    /// This voter has no memory of its votes, and votes once it has asked a majority which has, or,
    /// in a new group, once it has seen every voter.
    AwaitingEnrolment {
        /// Voters that are not heard.
        silent: usize,
        /// Voters that are heard and remember their votes.
        enrolled: usize,
    },
    /// This voter's votes count from now on.
    Enrolled {
        /// No vote is given in this term or an earlier one.
        above: Term,
    },
    /// The hooks had not let go when the demote grace ended.
    GraceOverrun {
        /// The term of the leadership that was to be over.
        term: Term,
    },
    /// A run by which the hooks were to let go has failed or was lost (quorum mode). It is
    /// repeated.
    NotLetGo {
        /// What the hook ran for.
        event: HookEvent,
        /// The term that it ran for.
        term: Term,
        /// When it is run again.
        retry_in: Duration,
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
