//! What a datagram says.

use serde::{Deserialize, Serialize};

use crate::types::{DatagramId, Incarnation, Life, NodeId, Priority, Role, Sequence, Term};
use crate::wire::echo::{Echo, Echoes};

/// One datagram's content, without the group and the authenticator, which the frame adds.
///
/// The order of the fields is the order on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// What the sender has heard before it sent this, as far as anybody needs to know. None without
    /// keys.
    pub echoes: Echoes,
    /// What it is about.
    pub body: Body,
}

impl Message {
    /// The sender in the life that sent this.
    pub const fn life(&self) -> Life {
        Life { node_id: self.sender, incarnation: self.incarnation }
    }

    /// The highest term that this tells: the sender's, or the one that it concedes.
    pub fn highest_term(&self) -> Term {
        match self.body {
            Body::Heartbeat { conceded: Some(term), .. } => self.term.max(term),
            _ => self.term,
        }
    }

    /// Which of the sender's datagrams this is.
    pub const fn id(&self) -> DatagramId {
        DatagramId { incarnation: self.incarnation, sequence: self.sequence }
    }

    /// An echo of it.
    pub const fn echo(&self) -> Echo {
        Echo { node_id: self.sender, datagram: self.id() }
    }
}

/// What every datagram tells about its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Standing {
    /// What it does. A leader that hands over says `Leader` until it has resigned.
    pub role: Role,
    /// How much it wants to lead.
    pub priority: Priority,
    /// Whether it may and does stand.
    pub flags: Flags,
    /// In quorum mode: whom the sender takes for the voters. None in available mode.
    pub voters: Option<VotersDigest>,
}

/// A set of voters, told in few bytes: nodes whose digests differ do not count each other's votes.
/// The first eight bytes of SHA-256 over the voters' ids in their byte order, each followed by a
/// zero byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VotersDigest(pub [u8; 8]);

/// Yes-or-no facts of a [`Standing`], one bit each. Unknown bits are kept and mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(u8);

impl Flags {
    /// May lead at all: `candidate = true`.
    pub const CANDIDATE: Flags = Flags(1);
    /// Stands for leadership now.
    pub const ELIGIBLE: Flags = Flags(1 << 1);
    /// Leads by `static_role`, and so outranks every elected node.
    pub const FIXED: Flags = Flags(1 << 2);
    /// Remembers every vote it gave, and so may give another (quorum mode).
    pub const ENROLLED: Flags = Flags(1 << 3);
    /// Has seen every voter without a memory, as only happens where the group is new.
    pub const FOUNDING: Flags = Flags(1 << 4);

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Body {
    /// "I am here." Membership is inferred from it; a node that is starting asks for the leader
    /// with it.
    Heartbeat {
        /// When the next one comes at the latest, in microseconds.
        interval_us: u32,
        /// Whom the sender follows; none where it knows no leader.
        leader: Option<NodeId>,
        /// The term that the leader is behind: it has missed a leadership, and has to lead in this
        /// term or a higher one. None where it has missed none.
        conceded: Option<Term>,
        /// The leader's declaration that a voter hereby acknowledges: for as long as that asked
        /// for, it gives nobody else its vote. None from everyone else.
        acknowledged: Option<DatagramId>,
    },
    /// "I stand for leadership." In quorum mode a question too: "would you vote for me?"
    Proposal,
    /// "I lead."
    Declaration {
        /// When the next one comes at the latest, in microseconds.
        interval_us: u32,
        /// How long a voter that acknowledges it gives nobody else its vote, in microseconds; zero
        /// in available mode.
        hold_us: u32,
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
    /// "Vote for me", under the datagram's term (quorum mode).
    VoteRequest {
        /// How long a voter that grants it gives nobody else its vote, in microseconds.
        hold_us: u32,
    },
    /// What a voter says to a proposal, a vote request or an inquiry.
    Vote {
        /// Whose datagram is answered.
        candidate: NodeId,
        /// Which of its datagrams.
        request: DatagramId,
        /// Yes or no. To an inquiry: whether the sender testifies.
        granted: bool,
    },
    /// "I remember no votes; which term is it?": from a voter that starts for the first time or
    /// has lost its disk.
    Inquiry,
    /// "Are you still there?": to a leader whose declaration is overdue, which declares at once.
    Probe {
        /// Who is asked.
        leader: NodeId,
    },
    /// "I hear the leader": to followers that ask for it, where it does not answer them itself.
    ProbeReply {
        /// Who was heard.
        leader: NodeId,
        /// Its newest datagram.
        newest: DatagramId,
    },
    /// "Those that I echo may be replayed, for all I know: let them say something." Only with keys.
    Challenge,
}
