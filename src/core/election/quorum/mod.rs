//! What quorum mode adds to the election, by who does it:
//!
//! ```text
//!   Standing ── enough support ──▶ term and own vote to disk ──▶ enough votes ──▶ Leading
//!   (candidate)                    (candidate)                    (candidate)       │
//!      ▲ pledges expire                                                             │ enough
//!      │ (voter)                                                                    ▼ acknowledged
//!   Following ◀── demote hook ended ── HandingOver ◀── lease expires ─────── elected hook
//!                                                       (leader)
//! ```
//!
//! `candidate` asks, `voting` answers and acknowledges, `leader` keeps the lease, and `enrolment`
//! is for voters without their state.

mod candidate;
mod enrolment;
mod leader;
mod voting;

use std::time::Duration;

use super::Election;
use crate::core::member::Shared;
use crate::core::output::Event;
use crate::core::quorum::{Census, Lease, Poll, Question, Voter};
use crate::core::rank::Rank;
use crate::core::status::VoterStanding;
use crate::time::Time;
use crate::types::{DatagramId, Life, NodeId, Sequence};
use crate::wire::message::{Body, Message};

/// The state that only quorum mode uses. Only the voter's promises survive the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Quorum {
    /// What this node promised as a voter.
    pub(super) voter: Voter,
    /// The candidate's question to the voters.
    poll: Option<Poll>,
    /// This leader's right to act; none once it is over.
    pub(super) lease: Option<Lease>,
    /// The vote request that this voter grants once its ballot is on disk.
    owed: Option<Request>,
    /// The leader's newest declaration, if this voter has yet to acknowledge it.
    acknowledging: Option<Request>,
    /// The proposal that only this voter's pledge keeps it from supporting.
    postponed: Option<Request>,
    /// The other voters' answers to this one, which is without its state.
    census: Option<Census>,
    /// Whether this node stands because the leader that resigned named it.
    pub(super) named: bool,
    /// The counts of silent and enrolled voters that were last reported while this node waits.
    reported_awaiting: Option<(usize, usize)>,
    /// Better candidates that this one has deferred to since there last was a leader. It defers to
    /// each once: that candidate may hear no voter, or no voter may hear it.
    pub(super) deferred_to: Vec<NodeId>,
    /// Worse candidates that this one has refused its support since then while it stood itself. It
    /// refuses each once, for the same reason.
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

    /// The answers so far may be forged. The next inquiry begins another census.
    pub(super) fn forget_census(&mut self) {
        self.census = None;
    }

    /// The leader is lost, and its declaration is not acknowledged any more.
    pub(super) const fn forget_declaration(&mut self) {
        self.acknowledging = None;
    }

    /// Whether this candidate asks `question`.
    fn asks(&self, question: Question) -> bool {
        self.poll.as_ref().is_some_and(|poll| poll.question() == question)
    }
}

/// A datagram that waits for an answer.
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
    /// Applies a new datagram of a member. Only voters lead, vote and hand over, and only if both
    /// sides name the same voters.
    pub(super) fn take_in_for_quorum(
        &mut self,
        now: Time,
        rank: Rank,
        message: &Message,
        agrees: bool,
    ) {
        let sender = message.sender;
        // A node that is no voter takes part in no term, so it must not move one. A voter that
        // names other voters may already be part of a change that this node has yet to make.
        if self.params.has_vote(&sender) && message.standing.voters.is_some() {
            self.learn_term_in_quorum(now, message.term);
        }
        if agrees {
            self.notice_fall(now, message);
        }
        match message.body {
            Body::Farewell => self.handle_farewell(now, message),
            _ if !agrees => {}
            Body::Heartbeat { interval_us, .. } => {
                self.handle_acknowledgement(now, message);
                self.handle_heartbeat(now, message, interval_us);
            }
            Body::Probe { leader } => self.handle_probe(now, message, leader),
            _ if !self.params.has_vote(&sender) => {}
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
                let successor = successor.filter(|successor| self.params.has_vote(successor));
                self.handle_resignation(now, message, successor);
            }
            Body::Inquiry => self.handle_inquiry(now, message),
            Body::Objection { .. }
            | Body::Challenge
            | Body::Ping { .. }
            | Body::Pong { .. }
            | Body::Unknown => {}
        }
    }

    /// Sends what waited for the disk.
    pub(super) fn send_what_waited(&mut self, now: Time) {
        self.take_up_enrolment(now);
        self.judge_census();
        self.ask_once_persisted(now);
        self.pay_vote(now);
        self.acknowledge(now);
    }

    pub(super) fn is_voter(&self) -> bool {
        self.params.has_vote(&self.life.node_id)
    }

    /// Whether a member's votes and acknowledgements count now.
    pub(super) fn counts(&self, now: Time, node_id: &NodeId) -> bool {
        self.params.quorum.as_ref().is_some_and(|params| {
            params.voters.contains(node_id)
                && self.members.voter_standing(now, node_id, params.voters.digest())
                    == VoterStanding::Counts
        })
    }

    /// Whether this node's own vote counts now. It does not if another daemon uses its id.
    pub(super) fn own_vote_counts(&self, now: Time) -> bool {
        self.is_voter() && self.disk.is_enrolled() && !self.is_duplicated(now)
    }

    /// Whether `message` comes from a member that names the same voters. Reports a member that does
    /// not, once. In available mode that is a member in quorum mode.
    pub(super) fn agrees_on_voters(&mut self, message: &Message) -> bool {
        let own = self.params.quorum.as_ref().map(|params| params.voters.digest());
        let agrees = message.standing.voters == own;
        if self.members.note_difference(&message.sender, Shared::Voters, !agrees) && !agrees {
            self.notify(Event::VotersDisagree {
                node_id: message.sender,
                in_quorum_mode: message.standing.voters.is_some(),
            });
        }
        agrees
    }
}

/// `duration` in microseconds, rounded up, as datagrams carry it.
pub(super) fn whole_micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u32::MAX)
}
