//! The status of a node and its group.

use std::net::IpAddr;
use std::time::Duration;

use crate::core::health::Health;
pub use crate::core::health::HealthState;
use crate::core::hook::Reason;
use crate::types::{NodeId, Priority, Role, Term, TieBreakRule};

/// The state of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// Heard within its patience: two and a half of the intervals at which it sends.
    Alive,
    /// Silent for longer, or given up as a silent leader; it still counts.
    Suspect,
    /// It sent a farewell.
    Left,
    /// Silent for more than twice its patience; it counts no more.
    Gone,
}

impl MemberState {
    /// Whether the member still counts.
    pub const fn is_visible(self) -> bool {
        matches!(self, MemberState::Alive | MemberState::Suspect)
    }
}

/// Why a node is not eligible now, in the order in which the reasons are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ineligible {
    /// The daemon is stopping.
    Stopping,
    /// `candidate = false`.
    Observer,
    /// Not in `voters`, and only voters lead (quorum mode).
    NotVoter,
    /// `static_role = "follower"`.
    StaticFollower,
    /// The operator took the node out of service.
    Maintenance,
    /// No interface can reach the group.
    InterfaceDown,
    /// Nothing of this life is on disk yet, so the node may say nothing, and nobody would hear of
    /// its leadership.
    DiskPending,
    /// The hook-runner has not confirmed that it uses the same configuration.
    NoHookRunner,
    /// The hook for `started` or `demoted` could not be run, is not known to have ended, or failed
    /// in quorum mode; it is tried again.
    NotReleased,
    /// The health check fails, or the leader's health check failed and the hold-off is not over.
    CheckFailed,
    /// The health check has no result yet.
    CheckPending,
    /// The `elected` hook failed, and the holdoff is not over.
    HookFailed,
    /// It yielded because what it led for had failed, and the holdoff is not over.
    ServiceFailed,
    /// It yielded the leadership, and waits for another leader.
    Yielding,
    /// A voter without its state: its first start, or its state was lost.
    Unenrolled,
    /// Fewer than `min_candidates` candidates are visible.
    TooFewCandidates,
}

/// The leader as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderStatus {
    /// Its id; this node's own if it leads.
    pub node_id: NodeId,
    /// The address of its declarations; none for this node itself.
    pub address: Option<IpAddr>,
    /// The time since its last declaration; zero if this node leads.
    pub last_heard: Duration,
}

/// One member as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its id.
    pub node_id: NodeId,
    /// The address of its last datagram; none for this node itself.
    pub address: Option<IpAddr>,
    /// The role that it last announced.
    pub role: Role,
    /// Its priority.
    pub priority: Priority,
    /// How it orders nodes of equal priority.
    pub tie_break: TieBreakRule,
    /// Whether it may lead at all.
    pub candidate: bool,
    /// Whether it is eligible now.
    pub eligible: bool,
    /// Its state.
    pub state: MemberState,
    /// The time since its last datagram; zero for this node itself.
    pub last_heard: Duration,
    /// The time since it last answered a [`ping`](crate::core::election::Election::ping) of this
    /// node; none if it never has.
    pub answered: Option<Duration>,
    /// The mean time of a datagram to it and back; none where it is not measured, or not yet.
    pub round_trip: Option<Duration>,
    /// How many in a hundred datagrams to it, or their answers, are lost; none where it is not
    /// measured, or not often enough yet.
    pub loss_percent: Option<u8>,
}

/// Who leads, without the members: cheap in a group of any size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The role of this node.
    pub role: Role,
    /// The highest term it knows.
    pub term: Term,
    /// The leader it follows or is.
    pub leader: Option<LeaderStatus>,
}

/// A snapshot of one node's election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// This node's id.
    pub node_id: NodeId,
    /// Its role.
    pub role: Role,
    /// Why it is not eligible now, in the order of [`Ineligible`]; empty if it is.
    pub ineligible: Vec<Ineligible>,
    /// The state of its health check; none without one.
    pub health: Option<Health>,
    /// The state of its leader's health check; none without one.
    pub leader_health: Option<Health>,
    /// The highest term it knows.
    pub term: Term,
    /// The leader it follows or is.
    pub leader: Option<LeaderStatus>,
    /// The leader that it followed or was before; none if this life knows none.
    pub previous_leader: Option<NodeId>,
    /// The time until the holdoff after a failed hook ends; none without a holdoff.
    pub holdoff: Option<Duration>,
    /// The time since its role or its leader last changed.
    pub since: Duration,
    /// Why it hands the leadership over; none if it does not.
    pub handing_over: Option<Reason>,
    /// Every member it knows, itself included, ordered by id.
    pub members: Vec<MemberStatus>,
    /// The voters; none in available mode.
    pub quorum: Option<QuorumStatus>,
}

/// The voters as this node sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumStatus {
    /// Every voter, in byte order.
    pub voters: Vec<VoterStatus>,
    /// How many make a majority.
    pub needed: usize,
    /// How much of this node's lease is left; none if it does not lead.
    pub lease: Option<Duration>,
    /// The node to which this voter is pledged, and for how much longer.
    pub pledged: Option<(NodeId, Duration)>,
    /// Members that name other voters, or that run in available mode.
    pub disagreeing: Vec<NodeId>,
}

/// One voter as this node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoterStatus {
    /// Its id.
    pub node_id: NodeId,
    /// Whether its vote counts now, and if not, why.
    pub standing: VoterStanding,
}

/// Whether a voter's vote counts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoterStanding {
    /// The vote counts.
    Counts,
    /// The voter is silent.
    Silent,
    /// It names other voters, or runs in available mode.
    Disagrees,
    /// It is without its state.
    Unenrolled,
    /// Two daemons use its id.
    DuplicateNodeId,
}
