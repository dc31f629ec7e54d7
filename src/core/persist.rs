//! What must outlive the daemon.

use std::hash::Hash;
use std::hash::Hasher;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::types::{Incarnation, Life, Term};
use crate::wire::message::Flags;

/// What a node must know in its next life. It is on disk before any datagram that rests on it
/// leaves, and changes rarely: never per heartbeat.
///
/// A field that an earlier version did not write reads as its default; one that a later version
/// wrote is refused, because forgetting it could break a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PersistentState {
    /// Tells this state from others that the same life asked to be kept and that may say the same.
    /// Not on disk.
    #[serde(skip)]
    pub revision: u64,
    /// The highest term that this node has known.
    pub term: Term,
    /// The life that wrote this; the next one takes a higher number.
    pub incarnation: Incarnation,
    /// Whether the operator took the node out of service.
    pub maintenance: bool,
    /// Whether this is all that the node ever promised.
    pub enrolment: Enrolment,
    /// The last vote.
    pub ballot: Option<Ballot>,
    /// The last pledge.
    pub pledge: Option<Pledge>,
}

impl PersistentState {
    /// Whether the two are alike on disk.
    pub fn says_the_same_as(&self, other: &PersistentState) -> bool {
        PersistentState { revision: other.revision, ..*self } == *other
    }
}

/// By what it says.
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

/// How far a node's memory of its votes is whole (quorum mode). A disk that was lost looks like one
/// that never was written, so a voter starts with none and does not vote until it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Enrolment {
    /// It remembers nothing: its first start, or its disk was lost.
    #[default]
    None,
    /// It has seen every voter in this state: the group is new.
    Founding,
    /// It remembers every vote that it may have given.
    Enrolled,
}

impl Enrolment {
    /// What a voter's flags say of its memory.
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
    /// In which term.
    pub term: Term,
    /// For whom.
    pub candidate: Life,
}

/// A promise to give nobody else a vote for a while. When it began is not kept: after a restart it
/// counts anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pledge {
    /// The highest term in which that life led, or stood, when it asked for the pledge.
    pub term: Term,
    /// For how long at the most, in microseconds, rounded up.
    hold_us: u64,
    /// To whom.
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

    /// For how long it holds.
    pub const fn hold(&self) -> Duration {
        Duration::from_micros(self.hold_us)
    }
}
