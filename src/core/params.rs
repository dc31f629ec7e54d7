//! The settings of one node's election: the part of the checked configuration that the core reads.

use std::fmt;
use std::time::Duration;

use crate::core::quorum::Voters;
use crate::core::quorum::lease::hold_for;
use crate::types::{KeyMode, NodeId, Priority, TieBreak};

/// What a group gives up while it is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A single leader: each side has one.
    Available,
    /// A leader at all times: only a side with a majority of the voters has one.
    Quorum,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::Available => "available",
            Mode::Quorum => "quorum",
        })
    }
}

/// A role that the operator sets, without any election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StaticRole {
    /// Leads whenever it can, and outranks every other node.
    Leader,
    /// Never stands, and follows any leader.
    Follower,
}

/// What a leader does when its `elected` hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnElectedFailure {
    /// Hands leadership over and stays out for [`Params::failure_holdoff`].
    #[default]
    Resign,
    /// Continues to lead.
    Ignore,
}

/// How many health check results in a row change the health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thresholds {
    /// Failures until a healthy node counts as failing; at least 1.
    pub fall: u32,
    /// Successes until a failing node counts as healthy again; at least 1.
    pub rise: u32,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { fall: 3, rise: 2 }
    }
}

/// Settings of quorum mode.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuorumParams {
    /// The voters; the same on every node.
    pub voters: Voters,
    /// How long the demote hook may take after the lease has expired, before another node may lead.
    pub demote_grace: Duration,
}

/// The election's settings. [`Params::new`] derives every default from the heartbeat interval.
///
/// The configuration is validated when it is read. The core accepts any values, though not every
/// choice elects well.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Params {
    /// The highest priority leads.
    pub priority: Priority,
    /// Between equal priorities the lowest tie-break leads, then the lowest node id.
    pub tie_break: TieBreak,
    /// Whether this node may lead. An observer follows but never stands.
    pub candidate: bool,
    /// A role set by hand.
    pub static_role: Option<StaticRole>,
    /// The time between a leader's declarations. Followers' heartbeats come at this interval or
    /// more rarely. Sensible: 20 ms to 10 s.
    pub heartbeat_interval: Duration,
    /// Silence after which the leader is given up. Longer than the heartbeat interval, so that
    /// followers can probe it before, and so that it may pause for the difference.
    pub leader_alive_threshold: Duration,
    /// How long an election collects proposals at most.
    pub leader_election_duration: Duration,
    /// Longest wait for a stable membership at start.
    pub startup_grace_period: Duration,
    /// How often start-up samples the membership.
    pub membership_sample_interval: Duration,
    /// No node leads unless this many candidates, this node included, are visible.
    pub min_candidates: u16,
    /// Whether this node takes over from a worse leader.
    pub preempt: bool,
    /// How long a worse leader must have been seen before this node takes over.
    pub preempt_delay: Duration,
    /// What to do when the `elected` hook fails.
    pub on_elected_failure: OnElectedFailure,
    /// The time from the end of a leader's hook run to the next one, which puts back what others
    /// removed; none without a refresh.
    pub refresh_interval: Option<Duration>,
    /// How long to stay out after that, or after the leader's health check failed; doubles with
    /// every failure in a row.
    pub failure_holdoff: Duration,
    /// How the results of the health check count; none without a check.
    pub check: Option<Thresholds>,
    /// How the results of the leader's health check count; none without one.
    pub check_leader: Option<Thresholds>,
    /// How datagrams are authenticated; none if this node has no keys. If keys are required, a
    /// sender must prove that it is alive before its datagrams count, because an attacker may
    /// replay them.
    pub key_mode: Option<KeyMode>,
    /// Whether datagrams go to each host by itself, besides multicast or in its place. Then a
    /// datagram to all costs one for each, and hosts may be far away.
    pub unicast: bool,
    /// Quorum mode: only a majority of voters makes a leader. None in available mode.
    pub quorum: Option<QuorumParams>,
}

/// The default of [`Params::heartbeat_interval`]. With the threshold that follows from it, a leader
/// survives pauses of half a second, and a lost one is replaced in a quarter of the time that VRRP
/// takes at its default. A shorter interval would cost more. A longer one would need a longer
/// threshold for the same pauses.
const DEFAULT_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(350);

/// How often followers probe a silent leader before they give it up. The time between its overdue
/// declaration and the alive threshold has one part more than that.
pub const PROBES: u32 = 7;

/// `leader_election_duration` is at least this many round trips to the farthest member.
pub const ROUND_TRIPS_PER_ELECTION: u32 = 4;

/// `leader_alive_threshold` is at least a heartbeat interval and this many round trips.
pub const ROUND_TRIPS_PER_WINDOW: u32 = 3;

/// The watchdog time of a leader in quorum mode whose lease is short, if the grace allows it: the
/// daemon may have to wait for a busy host.
const WATCHDOG_USUAL: Duration = Duration::from_millis(500);

/// A short grace does not make the watchdog time shorter than this.
const WATCHDOG_LEAST: Duration = Duration::from_millis(250);

/// Heartbeats of followers that a member should receive in one heartbeat interval, in a group of
/// any size (RTCP bounds its reports likewise: RFC 3550, section 6.2).
const REPORTS_PER_INTERVAL: u32 = 32;

/// The same with unicast, where each heartbeat is a datagram for every member.
const UNICAST_REPORTS_PER_INTERVAL: u32 = 4;

/// The shortest time between a follower's heartbeats. The list of members serves people and the
/// next election, and neither needs it sooner.
pub(crate) const REPORT_INTERVAL_MIN: Duration = Duration::from_secs(2);

/// The longest time between a follower's heartbeats, so that a group of any size knows its
/// members.
const REPORT_INTERVAL_MAX: Duration = Duration::from_secs(300);

impl Params {
    /// The defaults at a heartbeat interval.
    pub fn new(heartbeat_interval: Duration) -> Self {
        Params {
            priority: Priority::default(),
            tie_break: TieBreak::default(),
            candidate: true,
            static_role: None,
            heartbeat_interval,
            leader_alive_threshold: heartbeat_interval * 5 / 2,
            leader_election_duration: heartbeat_interval / 4,
            startup_grace_period: heartbeat_interval * 15,
            membership_sample_interval: heartbeat_interval,
            min_candidates: 1,
            preempt: false,
            preempt_delay: Duration::ZERO,
            on_elected_failure: OnElectedFailure::default(),
            refresh_interval: None,
            failure_holdoff: Duration::from_secs(60),
            check: None,
            check_leader: None,
            key_mode: None,
            unicast: false,
            quorum: None,
        }
    }
}

/// What follows from the settings.
impl Params {
    /// Which of its promises the group keeps in a split.
    pub const fn mode(&self) -> Mode {
        if self.quorum.is_some() { Mode::Quorum } else { Mode::Available }
    }

    /// Whether `node_id` is one of the voters; false in available mode, which has none.
    pub fn has_vote(&self, node_id: &NodeId) -> bool {
        self.quorum.as_ref().is_some_and(|quorum| quorum.voters.contains(node_id))
    }

    /// Whether a sender must prove that it is alive before its datagrams count.
    pub fn demands_proof(&self) -> bool {
        self.key_mode.is_some_and(|mode| !mode.accepts_open())
    }

    /// Whether this node proves to others that it is alive.
    pub fn gives_proof(&self) -> bool {
        self.key_mode.is_some_and(KeyMode::seals)
    }

    /// The part of these settings that a node under `old` may apply without a restart. The mode and
    /// the voters stay: otherwise a leader would count votes that were given for another set. So
    /// does the carrier of the datagrams.
    pub(crate) fn without_restart(self, old: &Params) -> Params {
        let quorum = match (&old.quorum, &self.quorum) {
            (Some(old), Some(new)) => {
                Some(QuorumParams { voters: old.voters.clone(), demote_grace: new.demote_grace })
            }
            (old, _) => old.clone(),
        };
        let unicast = old.unicast;
        if quorum.is_none() {
            return Params { quorum, unicast, ..self };
        }
        // A static leader needs no votes, so settings of available mode wait for the restart into
        // it.
        Params { quorum, unicast, static_role: None, min_candidates: 1, ..self }
    }

    /// How often the members' states are updated: often enough to notice a silent member before
    /// twice its patience is over, even if an update comes an interval early.
    pub fn sweep_interval(&self) -> Duration {
        self.member_patience().max(Duration::from_millis(1))
    }

    /// How long the leader, or a better candidate, has to answer a proposal before it is presumed
    /// failed: a quarter of the election.
    pub fn answer_time(&self) -> Duration {
        self.leader_election_duration / ROUND_TRIPS_PER_ELECTION
    }

    /// The longest round trip to a member that these settings suit. A proposal is answered within
    /// the time for answers. Of the probes of an overdue leader, two thirds can be answered before
    /// the leader is given up.
    pub fn round_trip_max(&self) -> Duration {
        let window = self.leader_alive_threshold.saturating_sub(self.heartbeat_interval);
        self.answer_time().min(window / ROUND_TRIPS_PER_WINDOW)
    }

    /// The least time between two declarations, however many nodes ask for one.
    pub fn declaration_gap(&self) -> Duration {
        self.heartbeat_interval / 40
    }

    /// The least time between two inquiries of a voter, and between two objections.
    pub fn repetition_gap(&self) -> Duration {
        self.heartbeat_interval / 10
    }

    /// The time between two probes of a leader whose declaration was due `window` before it is
    /// given up.
    pub fn probe_spacing(window: Duration) -> Duration {
        window / (PROBES + 1)
    }

    /// The time between the heartbeats of a follower that sees `others` besides itself: two
    /// intervals, or two seconds, and longer in a large group.
    pub fn report_interval(&self, others: usize) -> Duration {
        self.shared_interval(others).max(self.shortest_report_interval())
    }

    /// The same for a voter. Others must notice soon that a second daemon uses its id, so its
    /// heartbeats are as frequent as declarations; by unicast, rarer in a large group.
    pub fn voter_report_interval(&self, others: usize) -> Duration {
        match self.unicast {
            true => self.shared_interval(others).max(self.heartbeat_interval),
            false => self.heartbeat_interval,
        }
    }

    /// How rarely each of so many members sends heartbeats to all, so that a member receives few in
    /// a group of any size.
    fn shared_interval(&self, others: usize) -> Duration {
        let group = u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1);
        let reports = match self.unicast {
            true => UNICAST_REPORTS_PER_INTERVAL,
            false => REPORTS_PER_INTERVAL,
        };
        let shared = self.heartbeat_interval.saturating_mul(group) / reports;
        shared.min(REPORT_INTERVAL_MAX)
    }

    /// The time between the heartbeats of a follower in a small group. It is shorter if candidates
    /// are counted, because a leader must notice soon that too few are left.
    pub fn shortest_report_interval(&self) -> Duration {
        if self.min_candidates > 1 {
            self.heartbeat_interval
        } else {
            (self.heartbeat_interval * 2).max(REPORT_INTERVAL_MIN)
        }
    }

    /// Silence after which a member that has not announced its interval is suspected.
    pub fn member_patience(&self) -> Duration {
        self.leader_alive_threshold.max(patience_for(self.heartbeat_interval))
    }

    /// Nodes that start together challenge each other after a random time up to this, and answer
    /// after another one. So they know each other before the first sample.
    pub fn introduction_time(&self) -> Duration {
        self.membership_sample_interval / 4
    }

    /// How much later each worse candidate stands than the next better one: long enough to hear of
    /// the better one first.
    pub fn candidacy_slot(&self) -> Duration {
        self.leader_election_duration / 8
    }

    /// The number of slots; the worst candidates share the last one.
    pub const fn candidacy_slots(&self) -> u32 {
        8
    }

    /// How long a candidate defers to a better one that has proposed itself, before it stands after
    /// all.
    pub fn deference(&self) -> Duration {
        self.leader_election_duration * 2
    }

    /// How long a node that yielded stays out unless another leader declares.
    pub fn yield_time(&self) -> Duration {
        self.leader_alive_threshold * 6
    }

    /// How long a connected group may take, after the last disturbance, until all nodes know one
    /// leader. Nodes that start, yield, are held off, see too few candidates or wait for a hook add
    /// their own times. In the worst case:
    ///
    /// * followers notice the leader's silence: one alive threshold, and twice the time for probes
    ///   if too few were sent;
    /// * a node defers to a better one that does not win: two elections;
    /// * it waits for its turn and collects proposals: one election each;
    /// * two leaders notice their conflict by a declaration: two heartbeats, with the jitter.
    pub fn settling_time(&self) -> Duration {
        self.leader_alive_threshold
            + self.leader_alive_threshold.saturating_sub(self.heartbeat_interval) * 2
            + self.leader_election_duration * 4
            + self.heartbeat_interval * 2
    }

    /// How long a leader may act after a request that voters granted or acknowledged (quorum mode):
    /// as long as followers tolerate its silence.
    pub fn lease_term(&self) -> Duration {
        self.leader_alive_threshold
    }

    /// The time reserved for the demote hook after a lease has expired.
    pub fn demote_grace(&self) -> Duration {
        self.quorum.as_ref().map_or(Duration::ZERO, |quorum| quorum.demote_grace)
    }

    /// The watchdog time of a leader's daemon in quorum mode. If the daemon is stopped for this
    /// long, its host ends it, so that its hooks release everything before another node may lead.
    /// None in available mode, in which another node leads by then anyway.
    ///
    /// It is half a lease, or longer for a busy host, up to half of lease and grace. But if
    /// acknowledgements were lost before the daemon stopped, the lease may end at once, and only
    /// the grace is left. So the time is at most a quarter of the grace, or 250 ms if that is
    /// longer. Hooks without a grace need no time.
    pub fn leader_watchdog(&self) -> Option<Duration> {
        let (lease, grace) = (self.lease_term(), self.quorum.as_ref()?.demote_grace);
        let usual = (lease / 2).max(WATCHDOG_USUAL).min(lease.saturating_add(grace) / 2);
        let without_lease = (grace / 4).max(WATCHDOG_LEAST);
        Some(if grace.is_zero() { usual } else { usual.min(without_lease) })
    }

    /// How long a voter's pledge to a candidate lasts: without a grace, because no hook has run
    /// yet.
    pub fn vote_hold(&self) -> Duration {
        hold_for(self.lease_term())
    }

    /// How long a voter's pledge to a leader lasts; zero in available mode, which has no pledges.
    pub fn declaration_hold(&self) -> Duration {
        match &self.quorum {
            Some(quorum) => hold_for(self.lease_term().saturating_add(quorum.demote_grace)),
            None => Duration::ZERO,
        }
    }
}

impl Default for Params {
    /// The defaults at the default heartbeat interval.
    fn default() -> Self {
        Params::new(DEFAULT_HEARTBEAT_INTERVAL)
    }
}

/// Silence after which a member that sends every `interval` is suspected: one datagram may be lost.
pub(crate) fn patience_for(interval: Duration) -> Duration {
    interval.saturating_mul(5) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every default but the holdoff after a failed hook, as a multiple of the heartbeat.
    fn in_heartbeats(params: &Params) -> [f64; 10] {
        [
            params.leader_alive_threshold,
            params.leader_election_duration,
            params.startup_grace_period,
            params.membership_sample_interval,
            params.answer_time(),
            params.candidacy_slot(),
            params.deference(),
            params.yield_time(),
            params.settling_time(),
            params.declaration_gap(),
        ]
        .map(|duration| duration.div_duration_f64(params.heartbeat_interval))
    }

    #[test]
    fn changing_the_heartbeat_alone_rescales_every_interval() {
        let expected = [2.5, 0.25, 15.0, 1.0, 0.0625, 0.03125, 0.5, 15.0, 8.5, 0.025];
        for millis in [20, 1000, 10_000] {
            assert_eq!(in_heartbeats(&Params::new(Duration::from_millis(millis))), expected);
        }
    }

    #[test]
    fn leader_that_pauses_for_half_a_second_survives_by_default() {
        let params = Params::default();
        let pause = params.leader_alive_threshold - params.heartbeat_interval;
        assert!(pause > Duration::from_millis(500));
    }

    #[test]
    fn better_candidates_have_proposed_before_worse_ones_turn_comes() {
        let params = Params::default();
        assert!(params.candidacy_slot() * params.candidacy_slots() <= params.deference());
        assert!(params.answer_time() < params.leader_election_duration);
        assert!(params.declaration_gap() < params.heartbeat_interval);
    }

    #[test]
    fn watchdog_leaves_the_hooks_most_of_the_grace_however_long_the_lease() {
        for (lease, grace, watchdog) in [
            (875, 5_000, 500),
            (10_000, 5_000, 1_250),
            (10_000, 60_000, 5_000),
            (875, 1_500, 375),
            (10_000, 1_000, 250),
            (10_000, 100, 250),
            (50, 200, 125),
            (250, 0, 125),
            (10_000, 0, 5_000),
        ] {
            let [lease, grace, watchdog] = [lease, grace, watchdog].map(Duration::from_millis);
            let voters = Voters::new(["a", "b", "c"].map(|id| id.parse().unwrap())).unwrap();
            let mut params = Params { leader_alive_threshold: lease, ..Params::default() };
            assert_eq!(params.leader_watchdog(), None);
            params.quorum = Some(QuorumParams { voters, demote_grace: grace });
            assert_eq!(params.leader_watchdog(), Some(watchdog), "{lease:?} and {grace:?}");
        }
    }

    #[test]
    fn extreme_settings_overflow_nothing() {
        let params = Params::new(Duration::from_nanos(1));
        assert_eq!(params.declaration_gap(), Duration::ZERO);
        assert_eq!(params.answer_time(), Duration::ZERO);
        let month = Params::new(Duration::from_secs(30 * 24 * 3600));
        assert!(month.settling_time() > month.leader_alive_threshold);
    }
}
