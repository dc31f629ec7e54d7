//! What quorum mode adds to the election, by who does it:
//!
//! ```text
//!   Standing ── enough support ──▶ term and own vote to disk ──▶ enough votes ──▶ Leading
//!   (candidate)                    (candidate)                    (candidate)       │
//!      ▲ pledges run out                                                            │ enough
//!      │ (voter)                                                                    ▼ acknowledged
//!   Following ◀── demote hook ended ── HandingOver ◀── lease runs out ────── elected hook
//!                                                       (leader)
//! ```
//!
//! `candidate` asks, `voter` answers and acknowledges, `leader` keeps the lease, `enrolment` is for
//! voters without a memory.

mod candidate;
mod enrolment;
mod leader;
mod voter;

use std::time::Duration;

use super::Election;
use crate::core::output::Event;
use crate::core::params::QuorumParams;
use crate::core::quorum::{Census, Lease, Poll, Voter};
use crate::core::rank::Rank;
use crate::core::status::VoterStanding;
use crate::time::Time;
use crate::types::{DatagramId, Life, NodeId, Sequence};
use crate::wire::message::{Body, Message};

/// What an election keeps in mind for quorum mode. Unused in available mode. All but the voter's
/// promises is forgotten with the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Quorum {
    /// What this node promised as a voter.
    pub(super) voter: Voter,
    /// The question that this candidate has put to the voters.
    poll: Option<Poll>,
    /// This leader's right to act. Once it is over there is none.
    pub(super) lease: Option<Lease>,
    /// The request that got this voter's ballot and waits for it to be on disk.
    owed: Option<Request>,
    /// The newest declaration of the leader, where it is to be acknowledged.
    acknowledging: Option<Request>,
    /// The proposal that this voter would support, were it not for its pledge.
    postponed: Option<Request>,
    /// What the others have answered to this voter, which has no memory.
    census: Option<Census>,
    /// Whether it stands because the leader that resigned named it.
    pub(super) named: bool,
    /// What was last reported of the voters that it waits for: silent, and enrolled.
    reported_awaiting: Option<(usize, usize)>,
    /// Better candidates that this one has left the leadership to since there last was a leader.
    /// None gets a second chance: it may be one that nobody hears, or that hears nobody.
    pub(super) deferred_to: Vec<NodeId>,
    /// Worse candidates that this one, standing itself, has refused its support since then; once
    /// each, for the same reason.
    pub(super) refused: Vec<NodeId>,
}

impl Quorum {
    pub(super) const fn new(voter: Voter) -> Self {
        Quorum {
            voter,
            poll: None,
            lease: None,
            owed: None,
            acknowledging: None,
            postponed: None,
            census: None,
            named: false,
            reported_awaiting: None,
            deferred_to: Vec::new(),
            refused: Vec::new(),
        }
    }
}

/// A datagram that is to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Request {
    from: Life,
    sequence: Sequence,
}

impl Request {
    const fn of(message: &Message) -> Self {
        Request { from: message.life(), sequence: message.sequence }
    }

    const fn datagram(self) -> DatagramId {
        DatagramId { incarnation: self.from.incarnation, sequence: self.sequence }
    }
}

impl Election {
    /// Takes in what a member says that is news. Nobody leads, votes or hands over but the voters
    /// on whom both sides agree.
    pub(super) fn take_in_for_quorum(
        &mut self,
        now: Time,
        rank: Rank,
        message: &Message,
        agrees: bool,
    ) {
        let sender = message.sender;
        // A node that is no voter takes part in no term, and must not move one either. A voter that
        // names other voters may have taken part in a change that this node has yet to make.
        if self.has_vote(&sender) && message.standing.voters.is_some() {
            self.learn_term_in_quorum(now, message.term);
        }
        if agrees {
            self.notice_fall(now, message);
        }
        match message.body {
            Body::Farewell { id_taken } => self.handle_farewell(now, message, id_taken),
            _ if !agrees => {}
            Body::Heartbeat { interval_us, .. } => {
                self.handle_acknowledgement(now, message);
                self.handle_heartbeat(now, message, interval_us);
            }
            Body::Probe { leader } => self.handle_probe(now, leader),
            _ if !self.has_vote(&sender) => {}
            Body::ProbeReply { leader, newest } => self.handle_probe_reply(now, leader, newest),
            Body::Declaration { .. } => self.handle_declaration_in_quorum(now, message),
            Body::Proposal => {
                self.handle_proposal(now, sender, rank);
                self.answer_proposal_as_voter(now, message, rank);
            }
            Body::VoteRequest { hold_us } => {
                self.handle_vote_request(now, message, Duration::from_micros(hold_us.into()));
            }
            Body::Vote { .. } => self.handle_vote(now, message),
            Body::Claim => self.handle_claim(now, sender, rank),
            Body::Resignation { successor } => {
                let successor = successor.filter(|successor| self.has_vote(successor));
                self.handle_resignation(now, message, successor);
            }
            Body::Inquiry => self.handle_inquiry(now, message),
            Body::Objection { .. } | Body::Challenge => {}
        }
    }

    /// Sends what waited for the disk.
    pub(super) fn send_what_waited(&mut self, now: Time) {
        self.take_up_enrolment(now);
        self.judge_census();
        self.ask_once_persisted(now);
        self.pay_vote();
        self.acknowledge(now);
    }

    /// The settings of quorum mode; none in available mode.
    pub(super) const fn quorum_params(&self) -> Option<&QuorumParams> {
        self.params.quorum.as_ref()
    }

    /// Whether `node_id` is one of the voters.
    pub(super) fn has_vote(&self, node_id: &NodeId) -> bool {
        self.quorum_params().is_some_and(|params| params.voters.contains(node_id))
    }

    /// Whether this node has a vote.
    pub(super) fn is_voter(&self) -> bool {
        self.has_vote(&self.life.node_id)
    }

    /// Whether a member's votes and acknowledgements count now.
    pub(super) fn counts(&self, now: Time, node_id: &NodeId) -> bool {
        self.quorum_params().is_some_and(|params| {
            params.voters.contains(node_id)
                && self.members.voter_standing(now, node_id, params.voters.digest())
                    == VoterStanding::Counts
        })
    }

    /// Whether this node's own vote counts now: it does not where another daemon uses its id.
    pub(super) fn own_vote_counts(&self, now: Time) -> bool {
        self.is_voter() && self.is_enrolled() && !self.is_contested(now)
    }

    /// Whether `message` comes from a member that names the same voters. Says so once where it does
    /// not; in available mode, where it runs in quorum mode.
    pub(super) fn agrees_on_voters(&mut self, message: &Message) -> bool {
        let own = self.quorum_params().map(|params| params.voters.digest());
        let agrees = message.standing.voters == own;
        if self.members.note_disagreement(&message.sender, !agrees) && !agrees {
            self.notify(Event::VotersDisagree {
                node_id: message.sender,
                in_quorum_mode: message.standing.voters.is_some(),
            });
        }
        agrees
    }
}

/// `duration` in microseconds, rounded up, as datagrams tell it.
pub(super) fn whole_micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u32::MAX)
}
