//! A hook run: its event, and the facts in its environment.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::types::{NodeId, Role, Term};

/// Why the hook runs, `LANELECT_EVENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookEvent {
    /// The daemon started and does not lead. The hook cleans up after an earlier life.
    Started,
    /// This node became the leader.
    Elected,
    /// This node stays the leader: through a conflict, under a new term, or for a refresh.
    Reaffirmed,
    /// This node no longer leads.
    Demoted,
}

impl HookEvent {
    /// Whether the hook takes what the leader holds; otherwise it releases that.
    pub const fn takes_over(self) -> bool {
        match self {
            HookEvent::Elected | HookEvent::Reaffirmed => true,
            HookEvent::Started | HookEvent::Demoted => false,
        }
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            HookEvent::Started => "started",
            HookEvent::Elected => "elected",
            HookEvent::Reaffirmed => "reaffirmed",
            HookEvent::Demoted => "demoted",
        })
    }
}

/// What caused a transition, one word, `LANELECT_REASON`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The daemon started.
    Startup,
    /// This node won an election.
    Election,
    /// The leader handed over and named this node.
    Handover,
    /// The operator set the role.
    Static,
    /// A worse leader declared itself; this one continues.
    Conflict,
    /// `refresh_interval` is over, or this host lost an address; this leader continues.
    Refresh,
    /// A better leader declared itself.
    BetterLeader,
    /// A better candidate asked for the leadership.
    Preempted,
    /// The operator asked the leader to step down.
    Yield,
    /// The daemon stops.
    Shutdown,
    /// The operator took the node out of service.
    Maintenance,
    /// No interface can reach the group.
    InterfaceDown,
    /// The health check fails.
    CheckFailed,
    /// Fewer than `min_candidates` candidates are visible.
    TooFewCandidates,
    /// The `elected` hook failed.
    HookFailed,
    /// The daemon died.
    Crashed,
    /// The new configuration does not let this node lead.
    Reconfigured,
    /// A majority of the voters did not answer in time (quorum mode).
    LeaseLost,
}

impl Reason {
    /// The word for hooks, logs and watchers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Startup => "startup",
            Reason::Election => "election",
            Reason::Handover => "handover",
            Reason::Static => "static",
            Reason::Conflict => "conflict",
            Reason::Refresh => "refresh",
            Reason::BetterLeader => "better-leader",
            Reason::Preempted => "preempted",
            Reason::Yield => "yield",
            Reason::Shutdown => "shutdown",
            Reason::Maintenance => "maintenance",
            Reason::InterfaceDown => "interface-down",
            Reason::CheckFailed => "check-failed",
            Reason::TooFewCandidates => "too-few-candidates",
            Reason::HookFailed => "hook-failed",
            Reason::Crashed => "crashed",
            Reason::Reconfigured => "reconfigured",
            Reason::LeaseLost => "lease-lost",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One hook run, with the facts in its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HookRun {
    /// `LANELECT_EVENT`.
    pub event: HookEvent,
    /// `LANELECT_REASON`.
    pub reason: Reason,
    /// `LANELECT_ROLE`: `leader` or `follower`.
    pub role: Role,
    /// `LANELECT_TERM`.
    pub term: Term,
    /// `LANELECT_LEADER`.
    pub leader: Option<NodeId>,
    /// `LANELECT_LEADER_ADDRESS`.
    pub leader_address: Option<IpAddr>,
    /// `LANELECT_PREVIOUS_LEADER`.
    pub previous_leader: Option<NodeId>,
}

/// How a hook run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookOutcome {
    /// It exited with status 0, or no hook is configured.
    Succeeded,
    /// It exited otherwise, was killed, or overran its time limit.
    Failed,
    /// It began, and is not known to have ended: SIGKILL does not end it, or the hook-runner has
    /// ended.
    Lost,
    /// It never started: the hook-runner could not be reached, or the system gave no process.
    NotRun,
    /// It never started: the hook-runner was reached, and did not come to it in time. An earlier
    /// run does not end, or the hook-runner hangs.
    NoTurn,
}
