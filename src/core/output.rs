//! The outputs of an election: what its caller must carry out.

use std::net::IpAddr;
use std::time::Duration;

use crate::core::hook::{HookEvent, HookRun, Reason};
use crate::core::persist::PersistentState;
use crate::time::Time;
use crate::types::{NodeId, Role, Term, TieBreakRule};
use crate::wire::message::Message;

/// One output. The caller carries them out in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a few at a time, each carried out at once: boxing would cost an allocation a datagram"
)]
pub enum Output {
    /// Write this to disk, then call [`handle_persisted`](crate::core::Election::handle_persisted).
    /// A newer state replaces an older one that is still to be written.
    Persist(PersistentState),
    /// Multicast this to the group.
    Transmit(Message),
    /// Start the hook, and report its end to
    /// [`handle_hook_finished`](crate::core::Election::handle_hook_finished). No other run is
    /// requested before that.
    RunHook(HookRun),
    /// End the running hook, by force after `by`: the lease has expired, and the demote hook waits.
    /// Its end is reported as any other.
    CutHookShort {
        /// When to end it by force.
        by: Time,
    },
    /// Run the fence command, because the hooks have not released everything within the grace.
    /// Report its end to [`handle_fence_finished`](crate::core::Election::handle_fence_finished).
    /// No other run of it is requested before that.
    Fence {
        /// The term of the leadership that the hooks still hold.
        term: Term,
    },
    /// Store the present [`crash_plan`](crate::core::Election::crash_plan), or that there is none,
    /// so that it survives the daemon but not a reboot.
    UpdateCrashPlan,
    /// Log this event, and send it to the watchers.
    Notify(Event),
    /// The election is over; nothing follows.
    Stopped(StopCause),
}

/// Why an election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopCause {
    /// A stop was requested.
    Requested,
    /// Another node had this node's id first.
    NodeIdTaken {
        /// The address of that node.
        holder: IpAddr,
    },
    /// Another daemon uses this very life, with a copy of this one's memory.
    LifeShared {
        /// The address of that daemon.
        with: IpAddr,
    },
}

/// Something that happened, named after its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The role, the leader or the leadership changed.
    Transition(Transition),
    /// A node became visible.
    MemberJoined {
        /// The member.
        node_id: NodeId,
        /// Its address.
        address: IpAddr,
    },
    /// A member has been silent for longer than its patience.
    MemberSuspect {
        /// The member.
        node_id: NodeId,
        /// How long it has been silent.
        silence: Duration,
    },
    /// A member has been silent for twice its patience and counts no more.
    MemberGone {
        /// The member.
        node_id: NodeId,
        /// How long it has been silent.
        silence: Duration,
    },
    /// A member sent a farewell.
    MemberLeft {
        /// The member.
        node_id: NodeId,
    },
    /// The leader sent no declaration for longer than the alive threshold.
    LeaderSilent {
        /// The former leader.
        leader: NodeId,
        /// How long it has been silent.
        silence: Duration,
    },
    /// The leader resigned, or announced another role.
    LeaderResigned {
        /// The former leader.
        leader: NodeId,
    },
    /// This node left the leadership to a better candidate.
    DeferredTo {
        /// The better candidate.
        candidate: NodeId,
    },
    /// A worse leader declared itself while this node leads.
    RivalLeader {
        /// The rival.
        rival: NodeId,
        /// Its address.
        address: IpAddr,
    },
    /// Another node leads by `static_role` too; neither gives way.
    RivalStaticLeader {
        /// The rival.
        rival: NodeId,
        /// Its address.
        address: IpAddr,
    },
    /// A node that started later uses this node's id, and receives an objection.
    DuplicateNodeId {
        /// Its address.
        newcomer: IpAddr,
    },
    /// Datagrams arrive with a node's id, but challenges to it stay without an answer. They are
    /// replayed, or the node does not hear this one.
    NoProof {
        /// The node that the datagrams name.
        node_id: NodeId,
    },
    /// This node would lead, but sees too few candidates.
    TooFewCandidates {
        /// How many are visible, this node included.
        visible: usize,
        /// `min_candidates`.
        needed: usize,
    },
    /// A member names other voters than this node, or runs in the other mode. Their votes do not
    /// count for each other.
    VotersDisagree {
        /// The member.
        node_id: NodeId,
        /// Whether it runs in quorum mode.
        in_quorum_mode: bool,
    },
    /// A member orders nodes of equal priority by another rule than this node.
    TieBreakDiffers {
        /// The member.
        node_id: NodeId,
        /// Its rule.
        theirs: TieBreakRule,
    },
    /// This voter is without its state. It votes after a majority of voters has testified, or, in a
    /// new group, after it has heard every voter.
    AwaitingEnrolment {
        /// Voters that are silent.
        silent: usize,
        /// Voters that are heard and enrolled.
        enrolled: usize,
    },
    /// This voter's votes count from now on.
    Enrolled {
        /// The voter gives no vote in this term or an earlier one.
        above: Term,
    },
    /// The hooks had not released everything when the demote grace ended.
    GraceOverrun {
        /// The term of the ended leadership.
        term: Term,
    },
    /// A run that should make the hooks release everything could not begin or was lost, or in
    /// quorum mode failed. It is repeated. In available mode only the first is reported.
    NotReleased {
        /// The event of the run.
        event: HookEvent,
        /// The term of the run.
        term: Term,
        /// When the run is repeated.
        retry_in: Duration,
    },
    /// This node has claimed the leadership, and a worse node leads. It claims it again only after
    /// a pause.
    ClaimFailed {
        /// How long it waits.
        pause: Duration,
    },
    /// The `elected` hook or the leader's health check failed, and this node stays out for a while.
    HeldOff {
        /// Which of the two.
        reason: Reason,
        /// For how long.
        holdoff: Duration,
    },
}

/// A change of role, of leader, or of the term that this node leads in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The role of this node.
    pub role: Role,
    /// Its role before.
    pub previous_role: Role,
    /// The highest term it knows.
    pub term: Term,
    /// The leader it now follows or is.
    pub leader: Option<NodeId>,
    /// The leader it followed or was before.
    pub previous_leader: Option<NodeId>,
    /// The cause, if this node's own leadership changed.
    pub reason: Option<Reason>,
}
