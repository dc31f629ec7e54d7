//! What a datagram says.

use serde::{Deserialize, Serialize};

use crate::types::{Incarnation, NodeId, Priority, Role, Sequence, Term};

/// One datagram's content, without the group and the authenticator, which the frame adds.
///
/// The order of the fields is the order on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who sends it.
    pub sender: NodeId,
    /// Which life of the sender's daemon.
    pub incarnation: Incarnation,
    /// Its number within that life, from 1.
    pub sequence: Sequence,
    /// The highest term that the sender knows.
    pub term: Term,
    /// What the sender is, as far as others must know to rank it.
    pub standing: Standing,
    /// What it is about.
    pub body: Body,
}

/// What every datagram tells about its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// What it does. A leader that hands over says `Leader` until it has resigned.
    pub role: Role,
    /// How much it wants to lead.
    pub priority: Priority,
    /// Whether it may and does stand.
    pub flags: Flags,
}

/// Yes-or-no facts of a [`Standing`], one bit each. Unknown bits are kept and mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(u8);

impl Flags {
    /// May lead at all: `candidate = true`.
    pub const CANDIDATE: Flags = Flags(1);
    /// Stands for leadership now.
    pub const ELIGIBLE: Flags = Flags(1 << 1);
    /// Leads by `static_role`, and so outranks every elected node.
    pub const FIXED: Flags = Flags(1 << 2);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These, and `other` where `condition` holds.
    #[must_use]
    pub const fn with(self, other: Flags, condition: bool) -> Flags {
        if condition { Flags(self.0 | other.0) } else { self }
    }
}

/// What a datagram is about. The order of the variants is their number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// "I am here." Membership is inferred from it; a node that is starting asks for the leader
    /// with it.
    Heartbeat {
        /// Whom the sender follows; none where it knows no leader.
        leader: Option<NodeId>,
        /// The term in which the sender led until it gave way to a better leader; none where it
        /// has not lately.
        conceded: Option<Term>,
    },
    /// "I stand for leadership."
    Proposal,
    /// "I lead."
    Declaration {
        /// When the next one comes at the latest, in microseconds.
        interval_us: u32,
    },
    /// "I led, and no longer do."
    Resignation {
        /// Who takes over at once; none where nobody could.
        successor: Option<NodeId>,
    },
    /// "I stop."
    Farewell {
        /// Whether an older daemon goes on under this node id: what is known of this life is then
        /// to be forgotten.
        id_taken: bool,
    },
    /// "I am better than the leader, and ask it to hand over" (preemption).
    Claim,
    /// "You use my node id": to a daemon that started under a name which is taken.
    Objection {
        /// The life that is told to stop.
        newcomer: Incarnation,
    },
}
