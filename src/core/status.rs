//! What the core tells about itself and its group.

use std::net::IpAddr;
use std::time::Duration;

use crate::core::health::Health;
pub use crate::core::health::HealthState;
use crate::core::hook::Reason;
use crate::types::{NodeId, Priority, Role, Term};

/// Whether a member can be counted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberState {
    /// Heard within its patience: two and a half of the intervals at which it sends.
    Alive,
    /// Silent for longer, or given up as a silent leader; still counted.
    Suspect,
    /// Said that it stops.
    Left,
    /// Silent for more than twice its patience; no longer counted.
    Gone,
}

impl MemberState {
    /// Whether it counts as being there.
    pub const fn is_visible(self) -> bool {
        matches!(self, MemberState::Alive | MemberState::Suspect)
    }
}

/// Why a node does not stand for leadership now, in the order in which they are reported.
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
    /// Out of service by the operator's order.
    Maintenance,
    /// No interface can reach the group.
    InterfaceDown,
    /// The hook-runner has not said that it runs by the same configuration.
    NoHookRunner,
    /// The health check fails.
    CheckFailed,
    /// The health check has no result yet.
    CheckPending,
    /// The hook failed for `elected`, and the hold-off runs.
    HookFailed,
    /// Gave leadership up on request, and waits for another leader.
    Yielding,
    /// A voter that does not know how it voted before: its first start, or its state was lost.
    Unenrolled,
    /// Fewer than `min_candidates` candidates are visible.
    TooFewCandidates,
}

/// The leader as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderStatus {
    /// Its id; this node's own where it leads.
    pub node_id: NodeId,
    /// Where its declarations come from; none for this node itself.
    pub address: Option<IpAddr>,
    /// Since its last declaration; zero where this node leads.
    pub last_heard: Duration,
}

/// One member as this node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// Its id.
    pub node_id: NodeId,
    /// Where its last datagram came from; none for this node itself.
    pub address: Option<IpAddr>,
    /// What it last said it does.
    pub role: Role,
    /// Its priority.
    pub priority: Priority,
    /// Whether it may lead at all.
    pub candidate: bool,
    /// Whether it stands now.
    pub eligible: bool,
    /// Whether it can be counted on.
    pub state: MemberState,
    /// Since its last datagram; zero for this node itself.
    pub last_heard: Duration,
}

/// Who leads, without the members: cheap, however many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// What this node does.
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
    /// What it does.
    pub role: Role,
    /// Why it does not stand now; none where it does.
    pub ineligible: Option<Ineligible>,
    /// What its health check says of it; none where there is none.
    pub health: Option<Health>,
    /// The highest term it knows.
    pub term: Term,
    /// The leader it follows or is.
    pub leader: Option<LeaderStatus>,
    /// Since its role or its leader last changed.
    pub since: Duration,
    /// Why it is handing leadership over, where it is.
    pub handing_over: Option<Reason>,
    /// Every member it knows, itself included, ordered by id.
    pub members: Vec<MemberStatus>,
    /// How the voters stand; none in available mode.
    pub quorum: Option<QuorumStatus>,
}

/// The voters as this node sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumStatus {
    /// Every voter, in byte order.
    pub voters: Vec<VoterStatus>,
    /// How many make a majority.
    pub needed: usize,
    /// What is left of this node's lease; none where it does not lead.
    pub lease: Option<Duration>,
    /// To whom this node holds still with its vote, and for how much longer.
    pub pledged: Option<(NodeId, Duration)>,
    /// Members that name other voters, or that run in available mode.
    pub disagreeing: Vec<NodeId>,
}

/// One voter as this node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoterStatus {
    /// Its id.
    pub node_id: NodeId,
    /// Whether its vote counts now, and why not where it does not.
    pub standing: VoterStanding,
}

/// Whether a voter's vote counts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoterStanding {
    /// It does.
    Counts,
    /// It is not heard.
    Silent,
    /// It names other voters, or runs in available mode.
    Disagrees,
    /// It does not know how it voted before.
    Unenrolled,
    /// Two daemons use its id.
    Contested,
}
