//! The content of a datagram.

use serde::{Deserialize, Serialize};

use crate::types::{
    DatagramId, Incarnation, Life, NodeId, Priority, Role, Sequence, Term, TieBreak,
};
use crate::wire::echo::{Echo, Echoes};

/// One datagram's content, without the group and the authenticator, which the frame adds.
///
/// The order of the fields is the order on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Message {
    /// The sender.
    pub sender: NodeId,
    /// The life of the sender's daemon.
    pub incarnation: Incarnation,
    /// Its number in that life, from 1.
    pub sequence: Sequence,
    /// The highest term that the sender knows.
    pub term: Term,
    /// The sender's role and rank.
    pub standing: Standing,
    /// Datagrams that the sender received before it sent this one, for proofs of liveness. None
    /// without keys.
    pub echoes: Echoes,
    /// The body.
    pub body: Body,
}

impl Message {
    /// The sender in the life that sent this.
    pub const fn life(&self) -> Life {
        Life { node_id: self.sender, incarnation: self.incarnation }
    }

    /// The highest term in this message: the sender's, or the one that it concedes.
    pub fn highest_term(&self) -> Term {
        match self.body {
            Body::Heartbeat { conceded: Some(term), .. } => self.term.max(term),
            _ => self.term,
        }
    }

    /// The datagram's id.
    pub const fn id(&self) -> DatagramId {
        DatagramId { incarnation: self.incarnation, sequence: self.sequence }
    }

    /// An echo of it.
    pub const fn echo(&self) -> Echo {
        Echo { node_id: self.sender, datagram: self.id() }
    }
}

/// The facts about its sender that every datagram has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Standing {
    /// Its role. A leader that hands over has the role `Leader` until it resigns.
    pub role: Role,
    /// Its priority.
    pub priority: Priority,
    /// What decides between it and a node of the same priority.
    pub tie_break: TieBreak,
    /// Whether it is a candidate, and whether it is eligible now.
    pub flags: Flags,
    /// In quorum mode: the digest of the sender's `voters`. `None` in available mode.
    pub voters: Option<VotersDigest>,
}

/// A digest of the voters: nodes with different digests do not count each other's votes. The first
/// eight bytes of SHA-256 over the voters' ids in their byte order, each followed by a zero byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VotersDigest(pub [u8; 8]);

/// Flags of a [`Standing`], one bit each. Unknown bits are kept and ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(u8);

impl Flags {
    /// May lead at all: `candidate = true`.
    pub const CANDIDATE: Flags = Flags(1);
    /// Is eligible to lead now.
    pub const ELIGIBLE: Flags = Flags(1 << 1);
    /// Leads by `static_role`, and so outranks every elected node.
    pub const FIXED: Flags = Flags(1 << 2);
    /// Has its votes on disk, and may vote (quorum mode).
    pub const ENROLLED: Flags = Flags(1 << 3);
    /// Has seen that no voter has saved votes, which only happens in a new group.
    pub const FOUNDING: Flags = Flags(1 << 4);
    /// This datagram must not be understood in part: a receiver that does not know its kind, or
    /// what is appended to it, drops it. Of no release yet.
    pub const CRITICAL: Flags = Flags(1 << 7);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags, and `other` if `condition` is true.
    #[must_use]
    pub const fn with(self, other: Flags, condition: bool) -> Flags {
        if condition { Flags(self.0 | other.0) } else { self }
    }
}

/// The body of a datagram. The order of the variants is their number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Body {
    /// A heartbeat: the sender is alive. A starting node asks for the leader with it.
    Heartbeat {
        /// When the next one comes at the latest, in microseconds.
        interval_us: u32,
        /// The leader that the sender follows; `None` if it knows no leader.
        leader: Option<NodeId>,
        /// A term above the leader's, of a leadership that the leader has missed. The leader must
        /// lead in this term or a higher one. `None` if it has missed none.
        conceded: Option<Term>,
        /// The leader's declaration that this voter acknowledges. The voter promises not to vote
        /// for another node for the time that the declaration asks for. `None` from other nodes.
        acknowledged: Option<DatagramId>,
    },
    /// A candidate stands for election. In quorum mode this is also the pre-vote request.
    Proposal,
    /// The sender leads.
    Declaration {
        /// When the next one comes at the latest, in microseconds.
        interval_us: u32,
        /// How long a voter that acknowledges it promises not to vote for another node, in
        /// microseconds; zero in available mode.
        hold_us: u32,
    },
    /// The sender no longer leads.
    Resignation {
        /// The successor, which takes over at once; `None` if there is none.
        successor: Option<NodeId>,
    },
    /// The sender stops.
    Farewell,
    /// A better candidate asks the leader to hand over (preemption).
    Claim,
    /// Asks a daemon with a duplicate node id, which started later, to stop.
    Objection {
        /// The life that must stop.
        newcomer: Incarnation,
    },
    /// A request for votes in the datagram's term (quorum mode).
    VoteRequest {
        /// How long a voter that grants it promises not to vote for another node, in microseconds.
        hold_us: u32,
    },
    /// A voter's answer to a proposal, a vote request or an inquiry.
    Vote {
        /// The sender of the datagram that this answers.
        candidate: NodeId,
        /// The datagram that this answers.
        request: DatagramId,
        /// Yes or no. In an answer to an inquiry: whether the sender testifies.
        granted: bool,
    },
    /// A voter without saved votes asks for the current term (voter recovery).
    Inquiry,
    /// A probe to a leader whose declaration is overdue. The leader declares itself at once.
    Probe {
        /// The leader that is probed.
        leader: NodeId,
    },
    /// The answer of a node that still receives the leader's datagrams to a probe, if the leader
    /// does not answer.
    ProbeReply {
        /// The leader.
        leader: NodeId,
        /// Its newest datagram.
        newest: DatagramId,
    },
    /// Asks the nodes of the echoed datagrams for a proof of liveness. Only with keys.
    Challenge,
    /// Asks for a pong. Says nothing else.
    Ping {
        /// The node that answers, at once; `None` if every node does, when it suits the group.
        node: Option<NodeId>,
    },
    /// The sender has received this ping.
    Pong {
        /// The sender of the ping.
        asker: NodeId,
        /// The ping.
        ping: DatagramId,
    },
    /// Of a kind that a later release has added. It shows that its sender is alive. Never sent.
    #[serde(skip)]
    Unknown,
}

impl Body {
    /// How many kinds this release knows. Their numbers are below this.
    pub const KINDS: u32 = 15;

    /// The only node that it concerns; `None` if it concerns all.
    pub const fn addressee(&self) -> Option<NodeId> {
        match self {
            Body::Heartbeat { acknowledged: Some(_), leader, .. } => *leader,
            Body::Vote { candidate, .. } => Some(*candidate),
            Body::Ping { node } => *node,
            Body::Pong { asker, .. } => Some(*asker),
            _ => None,
        }
    }
}
