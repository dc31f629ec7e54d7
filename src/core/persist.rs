//! The state that must outlive the daemon.

use std::hash::Hash;
use std::hash::Hasher;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::types::{Incarnation, Life, Term};
use crate::wire::message::Flags;

/// The state that a node needs in its next life. It is on disk before any datagram that depends on
/// it is sent, and changes rarely, never with each heartbeat.
///
/// A field that an earlier version did not write gets its default. A field of a later version is an
/// error, because dropping it could break a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PersistentState {
    /// Distinguishes this state from an equal one that the same life requested. Not on disk.
    #[serde(skip)]
    pub revision: u64,
    /// The highest term that this node has known.
    pub term: Term,
    /// The life that wrote this; the next one takes a higher number.
    pub incarnation: Incarnation,
    /// Whether the operator took the node out of service.
    pub maintenance: bool,
    /// Whether the state holds all promises of this node.
    pub enrolment: Enrolment,
    /// The last vote.
    pub ballot: Option<Ballot>,
    /// The last pledge.
    pub pledge: Option<Pledge>,
}

impl PersistentState {
    /// Whether both are equal on disk.
    pub fn says_the_same_as(&self, other: &PersistentState) -> bool {
        PersistentState { revision: other.revision, ..*self } == *other
    }

    /// Whether a voter has made the same promises in both.
    pub fn promises_the_same_as(&self, other: &PersistentState) -> bool {
        let promises = |state: &PersistentState| (state.enrolment, state.ballot, state.pledge);
        promises(self) == promises(other)
    }
}

/// The hash ignores the revision.
impl Hash for PersistentState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let PersistentState {
            revision: _,
            term,
            incarnation,
            maintenance,
            enrolment,
            ballot,
            pledge,
        } = self;
        (term, incarnation, maintenance, enrolment, ballot, pledge).hash(hasher);
    }
}

/// Whether a voter's state holds all of its votes (quorum mode). A lost disk looks like one that
/// was never written, so a voter without a state must not vote yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enrolment {
    /// The voter is without its state: its first start, or its disk was lost.
    #[default]
    None,
    /// It has seen every voter without a state, so the group is new.
    Founding,
    /// Its state holds every vote that it may have given.
    Enrolled,
}

impl Enrolment {
    /// The enrolment that a voter's flags announce.
    pub const fn told_by(flags: Flags) -> Self {
        if flags.contains(Flags::ENROLLED) {
            Enrolment::Enrolled
        } else if flags.contains(Flags::FOUNDING) {
            Enrolment::Founding
        } else {
            Enrolment::None
        }
    }
}

/// One vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ballot {
    /// The term of the vote.
    pub term: Term,
    /// The candidate that it is for.
    pub candidate: Life,
}

/// A promise to give no other node a vote for a while. Its start is not kept: after a restart it
/// begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pledge {
    /// The highest term in which that life led, or stood, when it asked for the pledge.
    pub term: Term,
    /// The longest time it lasts, in microseconds, rounded up.
    hold_us: u64,
    /// The holder of the pledge.
    pub to: Life,
}

impl Pledge {
    /// A pledge of `hold`, rounded up to whole microseconds.
    pub fn new(to: Life, term: Term, hold: Duration) -> Self {
        let micros = hold.as_nanos().div_ceil(1000);
        Pledge { to, term, hold_us: u64::try_from(micros).unwrap_or(u64::MAX) }
    }

    /// This pledge with a later one to the same life: it keeps the higher term and the longer hold.
    #[must_use]
    pub(crate) fn grown_by(self, later: Pledge) -> Self {
        Pledge {
            to: self.to,
            term: self.term.max(later.term),
            hold_us: self.hold_us.max(later.hold_us),
        }
    }

    /// How long it lasts.
    pub const fn hold(&self) -> Duration {
        Duration::from_micros(self.hold_us)
    }
}
