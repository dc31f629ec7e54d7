//! Any message, from a few nodes that know each other.

use arbitrary::Arbitrary;
use lanelect::types::{DatagramId, Incarnation, NodeId, Priority, Role, Sequence, Term, TieBreak};
use lanelect::wire::echo::Echo;
use lanelect::wire::message::{Body, Flags, Message, Standing, VotersDigest};

/// Nodes that talk: the one that listens, or its duplicate, and a few others.
pub const NODES: u8 = 5;

/// A message as it is made up.
#[derive(Debug, Arbitrary)]
pub struct Heard {
    /// Which node speaks.
    pub sender: u8,
    incarnation: u8,
    sequence: u16,
    term: u64,
    role: u8,
    priority: u8,
    tie_break: u32,
    candidate: bool,
    eligible: bool,
    fixed: bool,
    enrolled: bool,
    founding: bool,
    voters: Agreement,
    body: Said,
    echoes: [Option<Echoed>; 2],
}

/// A datagram of a node that the sender has heard; of the listener's own, counted from the last.
#[derive(Debug, Arbitrary)]
struct Echoed {
    of: u8,
    incarnation: u8,
    number: u8,
}

/// Whether the sender names the same voters as the one that listens.
#[derive(Debug, Arbitrary)]
enum Agreement {
    Same,
    Other,
    Available,
}

/// `back` counts from the listener's last datagram, so that answers concern it.
#[derive(Debug, Arbitrary)]
enum Said {
    Heartbeat { interval_us: u32, leader: Option<u8>, conceded: Option<u64>, back: Option<u8> },
    Proposal,
    Declaration { interval_us: u32, hold_us: u32 },
    VoteRequest { hold_us: u32 },
    Vote { candidate: u8, back: u8, granted: bool },
    Inquiry,
    Probe(u8),
    ProbeReply { leader: u8, back: u8 },
    Ping(Option<u8>),
    Pong { asker: u8, back: u8 },
    Resignation(Option<u8>),
    Farewell,
    Claim,
    Objection(u8),
    Challenge,
}

impl Heard {
    /// The message, to a node which names these voters and has sent `last_sent`.
    pub fn message(&self, voters: Option<VotersDigest>, last_sent: DatagramId) -> Message {
        let body = self.body.body(last_sent);
        let is_vote_request = matches!(body, Body::VoteRequest { .. });
        Message {
            sender: node_id(self.sender),
            incarnation: Incarnation(self.incarnation.into()),
            sequence: Sequence(u64::from(self.sequence) * 2 + u64::from(is_vote_request)),
            term: Term(self.term),
            standing: self.standing(voters),
            echoes: self.echoes.iter().flatten().map(|it| it.echo(last_sent)).collect(),
            body,
        }
    }

    fn standing(&self, voters: Option<VotersDigest>) -> Standing {
        const ROLES: [Role; 4] = [Role::Starting, Role::Follower, Role::Candidate, Role::Leader];
        Standing {
            role: ROLES[usize::from(self.role) % ROLES.len()],
            priority: Priority(self.priority),
            tie_break: TieBreak(self.tie_break),
            flags: Flags::default()
                .with(Flags::CANDIDATE, self.candidate)
                .with(Flags::ELIGIBLE, self.eligible)
                .with(Flags::FIXED, self.fixed)
                .with(Flags::ENROLLED, self.enrolled)
                .with(Flags::FOUNDING, self.founding),
            voters: match self.voters {
                Agreement::Same => voters,
                Agreement::Other => Some(VotersDigest([7; 8])),
                Agreement::Available => None,
            },
        }
    }
}

impl Said {
    fn body(&self, last_sent: DatagramId) -> Body {
        let earlier = |back: u8| earlier(last_sent, back);
        match *self {
            Said::Heartbeat { interval_us, leader, conceded, back } => Body::Heartbeat {
                interval_us,
                leader: leader.map(node_id),
                conceded: conceded.map(Term),
                acknowledged: back.map(earlier),
            },
            Said::Proposal => Body::Proposal,
            Said::Declaration { interval_us, hold_us } => {
                Body::Declaration { interval_us, hold_us }
            }
            Said::VoteRequest { hold_us } => Body::VoteRequest { hold_us },
            Said::Vote { candidate, back, granted } => {
                Body::Vote { candidate: node_id(candidate), request: earlier(back), granted }
            }
            Said::Inquiry => Body::Inquiry,
            Said::Probe(leader) => Body::Probe { leader: node_id(leader) },
            Said::ProbeReply { leader, back } => {
                Body::ProbeReply { leader: node_id(leader), newest: earlier(back) }
            }
            Said::Ping(node) => Body::Ping { node: node.map(node_id) },
            Said::Pong { asker, back } => Body::Pong { asker: node_id(asker), ping: earlier(back) },
            Said::Resignation(successor) => Body::Resignation { successor: successor.map(node_id) },
            Said::Farewell => Body::Farewell,
            Said::Claim => Body::Claim,
            Said::Objection(newcomer) => Body::Objection { newcomer: Incarnation(newcomer.into()) },
            Said::Challenge => Body::Challenge,
        }
    }
}

impl Echoed {
    fn echo(&self, last_sent: DatagramId) -> Echo {
        let node_id = node_id(self.of);
        let datagram = if node_id == self::node_id(0) {
            earlier(last_sent, self.number)
        } else {
            let (incarnation, number) = (self.incarnation.into(), u64::from(self.number) << 9);
            DatagramId { incarnation: Incarnation(incarnation), sequence: Sequence(number) }
        };
        Echo { node_id, datagram }
    }
}

/// The datagram so many before this one.
fn earlier(last_sent: DatagramId, back: u8) -> DatagramId {
    let sequence = Sequence(last_sent.sequence.0.saturating_sub(back.into()));
    DatagramId { sequence, ..last_sent }
}

/// Of the datagrams that are made up, vote requests have odd numbers and no others have.
pub const fn is_vote_request(datagram: DatagramId) -> bool {
    datagram.sequence.0 % 2 == 1
}

/// One of the nodes; the one that listens is the first of them.
pub fn node_id(index: u8) -> NodeId {
    format!("n{}", index % NODES).parse().expect("a valid name")
}
