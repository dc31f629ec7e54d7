//! What one node's election is set to: the checked half of the configuration that the core reads.

use std::time::Duration;

use crate::types::Priority;

/// A role that is set by hand, without any election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaticRole {
    /// Leads whenever it can, and outranks everyone.
    Leader,
    /// Never stands; follows whoever declares.
    Follower,
}

/// What a leader does when its hook fails for `elected`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnElectedFailure {
    /// Hands leadership over and stays out for [`Params::failure_holdoff`].
    #[default]
    Resign,
    /// Leads on.
    Ignore,
}

/// The election's settings. [`Params::new`] derives every default from the heartbeat interval.
///
/// What must hold between them is checked where the configuration is read; the core works with
/// any values, though not every choice elects well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The highest leads; ties go to the lowest node id.
    pub priority: Priority,
    /// Whether this node may lead. An observer follows but never stands.
    pub candidate: bool,
    /// A role set by hand.
    pub static_role: Option<StaticRole>,
    /// Between a leader's declarations; followers' heartbeats come at this interval or more
    /// rarely. Sensible: 20 ms to 10 s.
    pub heartbeat_interval: Duration,
    /// Silence after which the leader counts as gone. At least two heartbeat intervals, so that
    /// one lost declaration does not start an election.
    pub leader_alive_threshold: Duration,
    /// How long an election collects proposals at the most.
    pub leader_election_duration: Duration,
    /// Longest wait for a stable membership at start.
    pub startup_grace_period: Duration,
    /// How often start-up samples the membership.
    pub membership_sample_interval: Duration,
    /// No leader unless this many candidates, this node included, are visible.
    pub min_candidates: u16,
    /// Whether this node takes over from a worse leader.
    pub preempt: bool,
    /// How long a worse leader must have been seen before this node takes over.
    pub preempt_delay: Duration,
    /// What to do when the hook fails for `elected`.
    pub on_elected_failure: OnElectedFailure,
    /// How long to stay out after that; doubles with every failure in a row.
    pub failure_holdoff: Duration,
}

impl Params {
    /// The defaults at a heartbeat interval.
    pub fn new(heartbeat_interval: Duration) -> Self {
        Params {
            priority: Priority::default(),
            candidate: true,
            static_role: None,
            heartbeat_interval,
            leader_alive_threshold: heartbeat_interval * 3,
            leader_election_duration: heartbeat_interval,
            startup_grace_period: heartbeat_interval * 15,
            membership_sample_interval: heartbeat_interval,
            min_candidates: 1,
            preempt: false,
            preempt_delay: Duration::ZERO,
            on_elected_failure: OnElectedFailure::default(),
            failure_holdoff: Duration::from_secs(60),
        }
    }
}

impl Default for Params {
    /// The defaults at one heartbeat a second.
    fn default() -> Self {
        Params::new(Duration::from_secs(1))
    }
}
