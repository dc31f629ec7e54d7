//! The status, as `lanelect status --json` prints it.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::core::hook::{HookEvent, Reason};
use crate::core::params::Mode;
use crate::core::status::{HealthState, Ineligible, MemberState, VoterStanding};
use crate::types::{GroupName, KeyMode, NodeId, Priority, Role, Term, TieBreakRule};

/// `lanelect status --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The daemon's version.
    pub version: String,
    /// The election group.
    pub group: GroupName,
    /// This node's id.
    pub node_id: NodeId,
    /// What this node does.
    pub role: Role,
    /// Whether it leads and its hook has taken over: [`Readiness::Ready`](super::Readiness::Ready).
    #[serde(default)]
    pub ready: bool,
    /// Whether it is eligible to lead.
    pub eligible: bool,
    /// Why it is not eligible: the first of the reasons; null if it is eligible.
    pub ineligible_reason: Option<Ineligible>,
    /// All the reasons why it is not eligible.
    #[serde(default)]
    pub ineligible_reasons: Vec<Ineligible>,
    /// Time until the holdoff after a failed hook ends; null without a holdoff.
    #[serde(default)]
    pub holdoff_ms: Option<u64>,
    /// Why it hands the leadership over; null if it does not.
    pub handing_over: Option<Reason>,
    /// The highest term it knows.
    pub term: Term,
    /// The leader it follows or is.
    pub leader: Option<LeaderReport>,
    /// The leader that it followed or was before; null if it knows none.
    #[serde(default)]
    pub previous_leader: Option<NodeId>,
    /// The election mode.
    pub mode: Mode,
    /// The voters; null in available mode.
    pub quorum: Option<QuorumReport>,
    /// Time since the role or the leader last changed.
    pub since_ms: u64,
    /// Time since the daemon started.
    pub uptime_ms: u64,
    /// Every member, this node included, ordered by id.
    pub members: Vec<MemberReport>,
    /// The multicast address and port of the group; null without multicast.
    #[serde(default)]
    pub multicast: Option<SocketAddr>,
    /// The interfaces to the group, also those that are down.
    pub interfaces: Vec<InterfaceReport>,
    /// The peers that are sent to by unicast, in the order of the configuration.
    #[serde(default)]
    pub peers: Vec<PeerReport>,
    /// The longest round trip to a member that the settings suit, in microseconds; null in a group
    /// without `peers`.
    #[serde(default)]
    pub round_trip_max_us: Option<u64>,
    /// The hook's last run.
    pub hook: HookReport,
    /// The last run of the fence command; null if it has not run.
    #[serde(default)]
    pub fence: Option<RunReport>,
    /// The health check; null without one.
    #[serde(default)]
    pub check: Option<CheckReport>,
    /// The health check of a leader, in this leadership or in the last one; null without one.
    #[serde(default)]
    pub check_leader: Option<CheckReport>,
    /// How this node uses its keys; null without keys.
    #[serde(default)]
    pub key_mode: Option<KeyMode>,
    /// A short hash of the key that signs, to compare it with other nodes; null without keys.
    #[serde(default)]
    pub key_fingerprint: Option<String>,
    /// Why the state could not be saved, as text; null if it was saved.
    #[serde(default)]
    pub state_failure: Option<String>,
    /// Another daemon with this node's id; null if none was heard.
    #[serde(default)]
    pub duplicate: Option<DuplicateReport>,
    /// Where dropped datagrams come from: at most eight addresses of each kind.
    #[serde(default)]
    pub rejected_from: Vec<RejectedReport>,
    /// Where the configuration comes from, and what of it is not in force.
    #[serde(default)]
    pub config: ConfigReport,
    /// Counts since the daemon started.
    pub counters: Counters,
}

/// A second daemon that ended so long ago was corrected, or is not started again.
const DUPLICATE_RECENT_MS: u64 = 600_000;

impl StatusReport {
    /// Another daemon with this node's id, if it was heard in the last ten minutes.
    pub fn recent_duplicate(&self) -> Option<DuplicateReport> {
        self.duplicate.filter(|duplicate| duplicate.last_ms <= DUPLICATE_RECENT_MS)
    }
}

/// The leader in a [`StatusReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderReport {
    /// Its id.
    pub node_id: NodeId,
    /// The source address of its declarations; null for this node itself without an address.
    pub address: Option<IpAddr>,
    /// Time since its last declaration.
    pub last_heard_ms: u64,
}

/// One member in a [`StatusReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Its id.
    pub node_id: NodeId,
    /// The source address of its datagrams.
    pub address: Option<IpAddr>,
    /// The role in its last datagram.
    pub role: Role,
    /// Its priority.
    pub priority: Priority,
    /// How it orders nodes of equal priority.
    #[serde(default)]
    pub tie_break: TieBreakRule,
    /// Whether it may lead at all.
    pub candidate: bool,
    /// Whether it is eligible to lead now.
    pub eligible: bool,
    /// Whether it is alive.
    pub state: MemberState,
    /// Time since its last datagram.
    pub last_heard_ms: u64,
    /// Time since it last answered a ping of this node; null if it never has.
    pub answered_ms: Option<u64>,
    /// The mean time of a datagram to it and back, in microseconds; null where it is not measured,
    /// or not yet. It is measured in groups that have `peers`.
    #[serde(default)]
    pub round_trip_us: Option<u64>,
    /// How many in a hundred pings to it, or their answers, were lost lately; null where it is not
    /// measured, or not often enough yet.
    #[serde(default)]
    pub loss_percent: Option<u8>,
}

/// The voters in a [`StatusReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuorumReport {
    /// Every voter, in byte order.
    pub voters: Vec<NodeId>,
    /// The number that makes a majority.
    pub needed: usize,
    /// The number of voters that count now, with this node if it counts.
    pub reachable: usize,
    /// The rest of this node's lease; null if it does not lead.
    pub lease_ms: Option<u64>,
    /// The voters that count now.
    pub counting: Vec<NodeId>,
    /// The other voters.
    pub not_counting: Vec<VoterReport>,
    /// The node to which this voter has promised its vote; null if it has made no promise.
    pub pledged_to: Option<PledgeReport>,
    /// The members, voters or not, that have other voters or are in available mode.
    pub disagreeing: Vec<NodeId>,
}

/// A voter that does not count, in a [`QuorumReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoterReport {
    /// Its id.
    pub node_id: NodeId,
    /// Why it does not count.
    pub reason: VoterStanding,
}

/// The pledge of a voter, in a [`QuorumReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PledgeReport {
    /// The node that has the promise.
    pub node_id: NodeId,
    /// Time until it expires, unless it is renewed.
    pub left_ms: u64,
}

/// One interface in a [`StatusReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceReport {
    /// Its name.
    pub name: String,
    /// The source address of datagrams sent on it.
    pub address: Option<IpAddr>,
    /// Whether the group can be reached by it.
    pub up: bool,
    /// Why it cannot, as text; null if it can.
    pub problem: Option<String>,
}

/// One peer in a [`StatusReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerReport {
    /// The peer as the configuration lists it.
    pub peer: String,
    /// Its addresses. Datagrams from them count.
    pub addresses: Vec<IpAddr>,
    /// Whether it is this host, which does not send to itself.
    pub is_self: bool,
    /// This host's address that datagrams to it leave with.
    pub source: Option<IpAddr>,
    /// Whether the kernel accepts datagrams to it. That they arrive is not known.
    pub up: bool,
    /// Why not, as text; null if it does.
    pub problem: Option<String>,
}

/// The hook in a [`StatusReport`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HookReport {
    /// Whether it runs now.
    pub running: bool,
    /// Whether a run is in progress or waits: for the one before it, for the commands of `lanelect
    /// exec`, for the majority, or to be tried again.
    #[serde(default)]
    pub pending: bool,
    /// The event of the last run that was started.
    pub last_event: Option<HookEvent>,
    /// Why that run was started.
    pub last_reason: Option<Reason>,
    /// The event of the last finished run.
    #[serde(default)]
    pub last_exit_event: Option<HookEvent>,
    /// How the last finished run exited: its status, or 128 and the signal that ended it, also if
    /// it exited with 0 on that signal.
    pub last_exit: Option<i32>,
    /// How long the last finished run took.
    pub last_ms: Option<u64>,
    /// Quorum mode: the term that the hook has not released, because `demoted` failed or the demote
    /// grace is over; null otherwise.
    #[serde(default)]
    pub overdue_term: Option<Term>,
    /// The term of the last run that was started.
    #[serde(default)]
    pub last_term: Option<Term>,
    /// When that run was started, in milliseconds since 1970.
    #[serde(default)]
    pub last_start_ms: Option<u64>,
    /// Where its output goes, as text.
    #[serde(default)]
    pub output: Option<String>,
    /// How often the hook failed for `elected`.
    #[serde(default)]
    pub elected_failures: u64,
    /// The last run for `elected` that failed; null if none did.
    #[serde(default)]
    pub last_elected_failure: Option<RunReport>,
    /// How long the finished runs took, by event.
    #[serde(default)]
    pub run_times: Vec<RunTimes>,
}

/// The upper bounds of [`RunTimes::counts`], in milliseconds.
pub const RUN_TIME_BOUNDS_MS: [u64; 9] = [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 60_000];

/// How long the hook's finished runs for one event took, in a [`HookReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// The event.
    pub event: HookEvent,
    /// How many runs took longer than the bound before, and at most the bound at this place, of
    /// [`RUN_TIME_BOUNDS_MS`]; then how many took longer than the last bound.
    pub counts: [u64; RUN_TIME_BOUNDS_MS.len() + 1],
    /// How long they took together.
    pub sum_ms: u64,
}

impl RunTimes {
    /// No run for this event yet.
    pub const fn new(event: HookEvent) -> Self {
        RunTimes { event, counts: [0; RUN_TIME_BOUNDS_MS.len() + 1], sum_ms: 0 }
    }

    /// A run has ended.
    pub fn note(&mut self, took_ms: u64) {
        self.counts[RUN_TIME_BOUNDS_MS.partition_point(|bound| *bound < took_ms)] += 1;
        self.sum_ms = self.sum_ms.saturating_add(took_ms);
    }
}

/// A run of the hook or the fence command, in a [`StatusReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// When it ended, in milliseconds since 1970.
    pub time_ms: u64,
    /// Whether it succeeded.
    pub succeeded: bool,
    /// How it exited: its status, or 128 and the signal that ended it; null if it did not run.
    pub exit: Option<i32>,
    /// How long it took.
    pub took_ms: u64,
}

/// A health check in a [`StatusReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// The state that its results lead to.
    pub state: HealthState,
    /// Whether it runs now.
    pub running: bool,
    /// Failures in a row up to now.
    pub failures: u32,
    /// The number of failures in a row that make a healthy node a failing one.
    pub fall: u32,
    /// Successes in a row up to now.
    pub successes: u32,
    /// The number of successes in a row that make a failing node a healthy one.
    pub rise: u32,
    /// How the last run exited: its status, or 128 and the signal that ended it; null if it could
    /// not run, or exceeded its time limit.
    pub last_exit: Option<i32>,
    /// How long the last run took; null if it exceeded its time limit.
    pub last_ms: Option<u64>,
}

/// Where the configuration comes from, and how the file's differs from the one in force, in a
/// [`StatusReport`]. As of the last reload: a file that was edited since is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConfigReport {
    /// Why the last reload was refused, as text, one problem a line; null if it was not. Then the
    /// configuration before it stays in force.
    pub reload_failure: Option<String>,
    /// The keys that the last reload that was not refused found changed, and that only a restart
    /// applies.
    pub restart_needed: Vec<String>,
    /// The config file; null without one.
    #[serde(default)]
    pub file: Option<String>,
    /// When the configuration in force was read, in milliseconds since 1970.
    #[serde(default)]
    pub read_ms: u64,
    /// The ctime of the file when it was read, in milliseconds since 1970; null without one. A file
    /// that was edited since has another.
    #[serde(default)]
    pub changed_ms: Option<u64>,
    /// The directory of the state.
    #[serde(default)]
    pub state_dir: String,
    /// The socket of the hook-runner; null if the daemon runs the hook itself.
    #[serde(default)]
    pub hook_socket: Option<String>,
}

/// Datagrams of one kind from one address that were dropped, in a [`StatusReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedReport {
    /// The kind.
    pub kind: RejectedKind,
    /// Where they come from.
    pub address: IpAddr,
    /// The sender that the first one claims; null if it claims none. It is not verified.
    pub node_id: Option<NodeId>,
    /// Why they are dropped, and what to do, for people.
    pub why: String,
    /// How many there were.
    pub count: u64,
    /// Time since the last one.
    pub last_ms: u64,
}

/// Why datagrams are dropped, in a [`RejectedReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RejectedKind {
    /// Not a datagram of this protocol, truncated, or too long.
    Malformed,
    /// Of another protocol version.
    Version,
    /// Without a key, and this node requires one.
    Unsealed,
    /// With a key, and this node has none.
    Sealed,
    /// With a key that this node does not have.
    Forged,
    /// Through a router, or from another program: the TTL is less than 255.
    Hops,
    /// From an address that no host on the LAN can have.
    Source,
    /// With a term that is absurdly high.
    AbsurdTerm,
}

/// Another daemon with this node's id, in a [`StatusReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuplicateReport {
    /// Where it was heard.
    pub address: IpAddr,
    /// Time since it was last rejected.
    pub last_ms: u64,
}

/// Counts since the daemon started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Datagrams that left, counted once for each interface.
    pub datagrams_sent: u64,
    /// Datagrams that arrived from other nodes, accepted or not.
    pub datagrams_received: u64,
    /// Accepted datagrams that a later release has extended. This one skips what it does not know.
    #[serde(default)]
    pub datagrams_extended: u64,
    /// Datagrams that the kernel did not send.
    pub send_errors: u64,
    /// Datagrams that were dropped, by reason.
    pub rejected: Rejected,
    /// How often this node's role changed.
    pub transitions: u64,
    /// How often the state was written and synced to the disk.
    pub state_saves: u64,
    /// How often the hook exceeded `demote_grace`; the fence command runs then.
    pub fences: u64,
}

/// Datagrams dropped on arrival, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rejected {
    /// Not a datagram of this protocol, truncated, or too long.
    pub malformed: u64,
    /// Missing, unexpected or wrong authenticator.
    pub auth: u64,
    /// From an earlier life, out of order, or repeated.
    pub replayed: u64,
    /// For another group.
    pub foreign_group: u64,
    /// Of another protocol version, or of a later release that this one cannot follow.
    pub version: u64,
    /// From a node for which the membership table has no room.
    pub table_full: u64,
    /// With a term that is absurdly far above the highest known one.
    #[serde(default)]
    pub absurd_term: u64,
    /// From a node without a proof of liveness: the datagram may be replayed. The first datagrams
    /// of a node that starts are counted here.
    #[serde(default)]
    pub unproven: u64,
    /// Through a router, or from another program: the TTL is less than 255.
    #[serde(default)]
    pub hops: u64,
    /// From an address that no host on the LAN can have.
    #[serde(default)]
    pub source: u64,
}
