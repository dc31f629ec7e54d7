//! What an election is set to, what it starts from, and what happens to it, as a fuzzer makes it
//! up.

use std::num::NonZero;
use std::time::Duration;

use arbitrary::Arbitrary;
use lanelect::core::election::Setup;
use lanelect::core::hook::HookOutcome;
use lanelect::core::params::{OnElectedFailure, Params, QuorumParams, StaticRole, Thresholds};
use lanelect::core::persist::{Ballot, Enrolment, PersistentState, Pledge};
use lanelect::core::quorum::Voters;
use lanelect::types::{Incarnation, KeyMode, Life, Priority, Term};

use crate::heard::{Heard, NODES, node_id};

/// One node's lives.
#[derive(Debug, Arbitrary)]
pub struct Script {
    pub(super) settings: Settings,
    pub(super) disk: Disk,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, Arbitrary)]
pub(super) struct Settings {
    pub(super) quorum: Option<Quorum>,
    heartbeat_ms: NonZero<u16>,
    threshold_ms: NonZero<u16>,
    election_ms: NonZero<u16>,
    priority: u8,
    candidate: bool,
    fixed: Option<bool>,
    min_candidates: u8,
    preempt: bool,
    ignores_failures: bool,
    /// Failures to fall and successes to rise.
    check: Option<(u8, u8)>,
    links_up: bool,
    seed: u64,
    authenticated: bool,
}

/// The first nodes vote, this one among them; or all but this one.
#[derive(Debug, Clone, Arbitrary)]
pub(super) struct Quorum {
    voters: u8,
    this_one_too: bool,
    grace_ms: u16,
}

/// What an earlier life left behind, and how the disk does now.
#[derive(Debug, Arbitrary)]
pub(super) struct Disk {
    term: u64,
    incarnation: u32,
    in_maintenance: bool,
    /// None: the life before was in a group that was being founded.
    enrolled: Option<bool>,
    ballot: Option<(u64, u8)>,
    pledge: Option<(u64, u8, u16)>,
    /// Writes end only where a step says so.
    pub(super) is_slow: bool,
}

#[derive(Debug, Arbitrary)]
pub(super) enum Step {
    Hear(Heard),
    /// Time passes; the clock may also stand still.
    Wait(u16),
    /// Sleeps until the election asked to be woken.
    SleepUntilDue,
    EndHook(Outcome),
    /// What is being written reaches the disk.
    EndWrite,
    /// The daemon dies, with whatever is not on disk, and starts again.
    Crash,
    Yield,
    Maintain(bool),
    Ping,
    Plug(bool),
    /// The checks pass or fail.
    Check(bool),
    Reconfigure(Settings),
    Stop,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
pub(super) enum Outcome {
    Succeeded,
    Failed,
    Lost,
    NotRun,
}

impl Settings {
    pub(super) fn setup(&self, persisted: PersistentState) -> Setup {
        Setup {
            node_id: node_id(0),
            incarnation: Incarnation(persisted.incarnation.0 + 1),
            persisted,
            params: self.params(),
            links_up: self.links_up,
            seed: self.seed,
        }
    }

    /// These after others: the mode and the voters change with the next life.
    pub(super) fn after(self, others: &mut Settings) -> Self {
        Settings { quorum: others.quorum.take(), ..self }
    }

    fn thresholds(&self) -> Option<Thresholds> {
        let (fall, rise) = self.check?;
        Some(Thresholds { fall: fall.into(), rise: rise.into() })
    }

    pub(super) fn params(&self) -> Params {
        let fixed = self.fixed.filter(|_| self.quorum.is_none());
        Params {
            priority: Priority(self.priority),
            candidate: self.candidate,
            static_role: fixed.map(|leads| match leads {
                true => StaticRole::Leader,
                false => StaticRole::Follower,
            }),
            leader_alive_threshold: ms(self.threshold_ms.get()),
            leader_election_duration: ms(self.election_ms.get()),
            min_candidates: self.min_candidates.into(),
            preempt: self.preempt,
            on_elected_failure: match self.ignores_failures {
                true => OnElectedFailure::Ignore,
                false => OnElectedFailure::Resign,
            },
            key_mode: self.authenticated.then_some(KeyMode::Require),
            check: self.thresholds(),
            check_leader: self.thresholds(),
            quorum: self.quorum.as_ref().map(|quorum| QuorumParams {
                voters: quorum.voters(),
                demote_grace: ms(quorum.grace_ms),
            }),
            ..Params::new(ms(self.heartbeat_ms.get()))
        }
    }
}

impl Quorum {
    pub(super) fn voters(&self) -> Voters {
        let first = u8::from(!self.this_one_too);
        let last = first.max(self.voters % NODES);
        Voters::new((first..=last).map(node_id)).expect("each node once, and one at the least")
    }
}

impl Disk {
    pub(super) fn persisted(&self) -> PersistentState {
        // No vote or pledge is remembered whose term is not, and only by an enrolled voter.
        let term = |term: u64| Term(term.min(self.term));
        let enrolment = match self.enrolled {
            None => Enrolment::Founding,
            Some(false) => Enrolment::None,
            Some(true) => Enrolment::Enrolled,
        };
        let may_have_promised = enrolment == Enrolment::Enrolled;
        PersistentState {
            revision: 0,
            term: Term(self.term),
            incarnation: Incarnation(self.incarnation.into()),
            maintenance: self.in_maintenance,
            enrolment,
            ballot: self
                .ballot
                .filter(|_| may_have_promised)
                .map(|(cast, candidate)| Ballot { term: term(cast), candidate: life(candidate) }),
            pledge: self
                .pledge
                .filter(|_| may_have_promised)
                .map(|(given, to, hold)| Pledge::new(life(to), term(given), ms(hold))),
        }
    }
}

impl From<Outcome> for HookOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => HookOutcome::Succeeded,
            Outcome::Failed => HookOutcome::Failed,
            Outcome::Lost => HookOutcome::Lost,
            Outcome::NotRun => HookOutcome::NotRun,
        }
    }
}

/// A node in its first life.
fn life(index: u8) -> Life {
    Life { node_id: node_id(index), incarnation: Incarnation(0) }
}

fn ms(ms: u16) -> Duration {
    Duration::from_millis(ms.into())
}
