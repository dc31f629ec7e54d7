//! What one node's election is set to: the checked half of the configuration that the core reads.

use std::fmt;
use std::time::Duration;

use crate::core::quorum::Voters;
use crate::core::quorum::lease::hold_for;
use crate::types::Priority;

/// What a group gives up where it is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// That there is one leader: each side has one.
    Available,
    /// That there is always a leader: only the side with a majority of voters has one.
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

/// A role that is set by hand, without any election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StaticRole {
    /// Leads whenever it can, and outranks everyone.
    Leader,
    /// Never stands; follows whoever declares.
    Follower,
}

/// What a leader does when its hook fails for `elected`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnElectedFailure {
    /// Hands leadership over and stays out for [`Params::failure_holdoff`].
    #[default]
    Resign,
    /// Leads on.
    Ignore,
}

/// How many results of the health check in a row it takes.
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
    /// Who votes; the same on every node.
    pub voters: Voters,
    /// How long the demote hook may take after the lease has run out, before anyone else may lead.
    pub demote_grace: Duration,
}

/// The election's settings. [`Params::new`] derives every default from the heartbeat interval.
///
/// What must hold between them is checked where the configuration is read; the core works with
/// any values, though not every choice elects well.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
    /// Silence after which the leader counts as gone. Longer than the heartbeat interval: it is
    /// asked in between.
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
    /// How the results of the health check count; none where there is no check.
    pub check: Option<Thresholds>,
    /// Whether datagrams are authenticated. Then a sender has to show that it is there before
    /// anything it says counts: what it once sent may be sent again by others.
    pub authenticated: bool,
    /// Quorum mode: only a majority of voters makes a leader. None in available mode.
    pub quorum: Option<QuorumParams>,
}

/// How often a silent leader is asked before it is given up: the time between its overdue
/// declaration and the alive threshold has one part more than that.
pub const PROBES: u32 = 7;

/// The shortest stop of its daemon for which a leader in quorum mode is ended, where there is a
/// choice.
const WATCHDOG_LEAST: Duration = Duration::from_millis(500);

/// Heartbeats of followers that a member is to receive in one heartbeat interval, whatever the size
/// of the group (as RTCP bounds its reports, RFC 3550, section 6.2).
const REPORTS_PER_INTERVAL: u32 = 32;

/// A follower's heartbeats are not closer together: who is there is for people and for the next
/// election, and neither needs it sooner.
const REPORT_INTERVAL_MIN: Duration = Duration::from_secs(1);

/// No follower's heartbeats are further apart, so that a group of any size knows its members.
const REPORT_INTERVAL_MAX: Duration = Duration::from_secs(300);

impl Params {
    /// The defaults of available mode at a heartbeat interval.
    pub fn new(heartbeat_interval: Duration) -> Self {
        Params {
            priority: Priority::default(),
            candidate: true,
            static_role: None,
            heartbeat_interval,
            leader_alive_threshold: heartbeat_interval * 5 / 4,
            leader_election_duration: heartbeat_interval / 4,
            startup_grace_period: heartbeat_interval * 15,
            membership_sample_interval: heartbeat_interval,
            min_candidates: 1,
            preempt: false,
            preempt_delay: Duration::ZERO,
            on_elected_failure: OnElectedFailure::default(),
            failure_holdoff: Duration::from_secs(60),
            check: None,
            authenticated: false,
            quorum: None,
        }
    }

    /// The default of [`Params::leader_alive_threshold`] in quorum mode, where a leader has to hear
    /// a majority within it and not only be heard.
    pub fn quorum_alive_threshold(heartbeat_interval: Duration) -> Duration {
        heartbeat_interval * 2
    }
}

/// What follows from the settings.
impl Params {
    /// Which promise is kept.
    pub const fn mode(&self) -> Mode {
        if self.quorum.is_some() { Mode::Quorum } else { Mode::Available }
    }

    /// What of these settings applies to a node that runs under `old`, without a restart. The mode
    /// and the voters stay: a node that changed its voters in the middle of a leadership would
    /// count votes that were given for another set.
    pub(crate) fn without_restart(self, old: &Params) -> Params {
        let quorum = match (&old.quorum, &self.quorum) {
            (Some(old), Some(new)) => {
                Some(QuorumParams { voters: old.voters.clone(), demote_grace: new.demote_grace })
            }
            (old, _) => old.clone(),
        };
        if quorum.is_none() {
            return Params { quorum, ..self };
        }
        // Settings of available mode wait for the restart into it: a static leader needs no votes.
        Params { quorum, static_role: None, min_candidates: 1, ..self }
    }

    /// How long the leader, or a better candidate, has to answer a proposal before its silence
    /// says that it is not there: a quarter of the election.
    pub fn answer_time(&self) -> Duration {
        self.leader_election_duration / 4
    }

    /// The least time between two declarations, however many ask for one.
    pub fn declaration_gap(&self) -> Duration {
        self.heartbeat_interval / 40
    }

    /// The least time between two inquiries of a voter, and between two objections.
    pub fn repetition_gap(&self) -> Duration {
        self.heartbeat_interval / 10
    }

    /// Between two probes of a leader whose declaration was due `window` before it is given up.
    pub fn probe_spacing(window: Duration) -> Duration {
        window / (PROBES + 1)
    }

    /// Between the heartbeats of a follower that sees `others` besides itself: two intervals, or a
    /// second, and longer in a large group.
    pub fn report_interval(&self, others: usize) -> Duration {
        let group = u32::try_from(others).unwrap_or(u32::MAX).saturating_add(1);
        let shared = self.heartbeat_interval.saturating_mul(group) / REPORTS_PER_INTERVAL;
        let least = self.shortest_report_interval();
        shared.min(REPORT_INTERVAL_MAX).max(least)
    }

    /// Between the heartbeats of a follower in a small group; where candidates are counted, a
    /// leader is to notice soon that too few are left.
    pub fn shortest_report_interval(&self) -> Duration {
        if self.min_candidates > 1 {
            self.heartbeat_interval
        } else {
            (self.heartbeat_interval * 2).max(REPORT_INTERVAL_MIN)
        }
    }

    /// Silence after which a member that has not told how often it sends is in doubt.
    pub fn member_patience(&self) -> Duration {
        self.leader_alive_threshold.max(patience_for(self.heartbeat_interval))
    }

    /// How long nodes that start together take at random to ask each other whether they are there,
    /// and again to answer: with both they know each other before the first sample.
    pub fn time_to_meet(&self) -> Duration {
        self.membership_sample_interval / 4
    }

    /// How much later each worse candidate stands than the next better one: long enough to hear of
    /// the better one first.
    pub fn candidacy_slot(&self) -> Duration {
        self.leader_election_duration / 8
    }

    /// The worst candidates share the last of so many slots.
    pub const fn candidacy_slots(&self) -> u32 {
        8
    }

    /// How long a candidate leaves the leadership to a better one that has proposed, before it
    /// stands itself after all.
    pub fn deference(&self) -> Duration {
        self.leader_election_duration * 2
    }

    /// How long a node that yielded stays out unless another leader declares.
    pub fn yield_time(&self) -> Duration {
        self.leader_alive_threshold * 6
    }

    /// How long a connected group of running nodes may take to have exactly one leader, known to
    /// all, from the last disturbance on: nodes that start, yield, are held off or wait for a hook
    /// add their own times. At the worst a leader's silence has to be noticed (one alive
    /// threshold, and twice the time for probes where too few were sent), a node that defers waits
    /// for a better one in vain (two elections), waits for its turn (one) and collects proposals
    /// (one), and a conflict of two leaders needs a declaration to be noticed (two heartbeats, with
    /// the jitter).
    pub fn settling_time(&self) -> Duration {
        self.leader_alive_threshold
            + self.leader_alive_threshold.saturating_sub(self.heartbeat_interval) * 2
            + self.leader_election_duration * 4
            + self.heartbeat_interval * 2
    }

    /// How long a leader may act on what voters granted or acknowledged, from when it asked
    /// (quorum mode): as long as followers bear with its silence.
    pub fn lease_term(&self) -> Duration {
        self.leader_alive_threshold
    }

    /// The time kept free for the demote hook after a lease has run out.
    pub fn demote_grace(&self) -> Duration {
        self.quorum.as_ref().map_or(Duration::ZERO, |quorum| quorum.demote_grace)
    }

    /// After how long a stop of its daemon the host of a leader in quorum mode is to end it, so
    /// that its hooks let go before another node may lead: half a lease, and where the grace
    /// allows not so short that a busy host does it. None in available mode, where another leads by
    /// then anyway.
    pub fn leader_watchdog(&self) -> Option<Duration> {
        let grace = self.quorum.as_ref()?.demote_grace;
        let latest = self.lease_term().saturating_add(grace) / 2;
        Some((self.lease_term() / 2).max(WATCHDOG_LEAST.min(latest)))
    }

    /// How long a voter holds still for a candidate that it votes for: no hook has run yet.
    pub fn vote_hold(&self) -> Duration {
        hold_for(self.lease_term())
    }

    /// How long a voter holds still for a leader that it acknowledges; zero in available mode,
    /// where nobody is asked to.
    pub fn declaration_hold(&self) -> Duration {
        match &self.quorum {
            Some(quorum) => hold_for(self.lease_term().saturating_add(quorum.demote_grace)),
            None => Duration::ZERO,
        }
    }
}

impl Default for Params {
    /// The defaults at one heartbeat a second.
    fn default() -> Self {
        Params::new(Duration::from_secs(1))
    }
}

/// Silence after which a member that sends every `interval` is in doubt: one datagram may be lost.
pub(crate) fn patience_for(interval: Duration) -> Duration {
    interval.saturating_mul(5) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every default but the time out after a failed hook, as a multiple of the heartbeat.
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
        let expected = [1.25, 0.25, 15.0, 1.0, 0.0625, 0.03125, 0.5, 7.5, 4.75, 0.025];
        for millis in [20, 1000, 10_000] {
            assert_eq!(in_heartbeats(&Params::new(Duration::from_millis(millis))), expected);
        }
    }

    #[test]
    fn the_default_is_one_heartbeat_a_second() {
        assert_eq!(Params::default(), Params::new(Duration::from_secs(1)));
    }

    #[test]
    fn better_candidates_have_proposed_before_worse_ones_turn_comes() {
        let params = Params::default();
        assert!(params.candidacy_slot() * params.candidacy_slots() <= params.deference());
        assert!(params.answer_time() < params.leader_election_duration);
        assert!(params.declaration_gap() < params.heartbeat_interval);
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
