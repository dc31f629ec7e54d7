//! Standing for leadership in quorum mode. A candidate first asks the voters for their support.
//! Only then it takes a term and asks for their votes.

use std::time::Duration;

use super::{Election, whole_micros};
use crate::core::election::State;
use crate::core::hook::Reason;
use crate::core::quorum::lease::Cover;
use crate::core::quorum::{Census, Lease, Poll, Question};
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{Life, NodeId, Term};
use crate::wire::message::{Body, Message};

impl Election {
    /// Whether this node's own pledge and its hooks allow it to stand.
    pub(in crate::core::election) fn may_stand_in_quorum(&self, now: Time) -> bool {
        self.may_vote(now) && self.quorum.voter.bound_until(now, self.life).is_none()
    }

    /// Whether this node may vote for itself once the leader that it follows has resigned. It may
    /// not if it has just restarted and is pledged to a leader before that one.
    pub(in crate::core::election) fn could_stand_after_leader(&self, now: Time) -> bool {
        let is_leader = |to: Life| self.leader == Some(to.node_id) && self.members.knows(to);
        let is_released = self.quorum.voter.pledge().is_some_and(|pledge| is_leader(pledge.to));
        let is_free = is_released || self.quorum.voter.bound_until(now, self.life).is_none();
        self.may_vote(now) && is_free
    }

    /// Asks the voters whether they would vote for this node. Tries again later if it may not vote
    /// for itself now.
    pub(in crate::core::election) fn stand_in_quorum(&mut self, now: Time) {
        if !self.may_stand_in_quorum(now) {
            let turn = self.turn(now);
            return self.await_leader_for(now, self.params.heartbeat_interval + turn);
        }
        self.state = State::Standing;
        self.put_question(now, Question::Support);
        self.timers.set(Timer::ElectionEnd, now + self.params.leader_election_duration);
        self.count_grant(now, self.life.node_id);
    }

    /// Takes a term and votes for itself in it. It asks the others once its own vote is on disk.
    ///
    /// No term follows the last one, and no vote is given twice: after the last term no node leads.
    pub(in crate::core::election) fn request_votes(&mut self, now: Time) {
        if self.terms.known.next() == self.terms.known {
            return self.lose_election(now);
        }
        self.state = State::Standing;
        self.quorum.poll = None;
        self.quorum.acknowledging = None;
        self.terms.known = self.terms.known.next();
        self.quorum.voter.cast(self.terms.known, self.life);
        let (hold, least_kept) = (self.params.vote_hold(), self.params.declaration_hold());
        self.quorum.voter.give(now, self.life, self.terms.known, hold, least_kept);
        self.persist();
        for timer in [Timer::Candidacy, Timer::Repropose, Timer::Certainty] {
            self.timers.clear(timer);
        }
        // A disk that hangs must not keep this node a candidate for ever.
        self.timers.set(Timer::ElectionEnd, now + self.params.declaration_hold());
    }

    /// Asks for the votes, once this node's own is on disk.
    pub(super) fn ask_once_persisted(&mut self, now: Time) {
        let is_kept = self.disk.written().ballot == self.quorum.voter.ballot()
            && self
                .disk
                .written()
                .ballot
                .is_some_and(|b| b.term == self.terms.known && b.candidate == self.life);
        if self.state != State::Standing || self.quorum.poll.is_some() || !is_kept {
            return;
        }
        self.put_question(now, Question::Vote);
        // Slow disks of the voters get time, but not so much that too little of the lease is left.
        let patience = self.params.leader_election_duration.max(self.params.lease_term() / 2);
        self.timers.set(Timer::ElectionEnd, now + patience);
        self.count_grant(now, self.life.node_id);
    }

    fn put_question(&mut self, now: Time, question: Question) {
        self.ask(now, question);
        self.quorum.poll = Some(Poll::new(question, now, self.sent.newest));
    }

    fn ask(&mut self, now: Time, question: Question) {
        match question {
            Question::Support => self.send(Body::Proposal),
            Question::Vote => {
                self.send(Body::VoteRequest { hold_us: whole_micros(self.params.vote_hold()) });
            }
        }
        self.sent.proposed = Some(now);
        self.timers.set(Timer::Repropose, now + self.params.leader_election_duration / 2);
    }

    /// Asks again, in case the first datagram was lost.
    pub(in crate::core::election) fn repeat_question(&mut self, now: Time) {
        let Some(question) = self.quorum.poll.as_ref().map(Poll::question) else { return };
        self.ask(now, question);
        let request = self.sent.newest;
        if let Some(poll) = &mut self.quorum.poll {
            poll.requests.note_repeated(request);
        }
    }

    /// A voter has answered.
    pub(in crate::core::election) fn handle_vote(&mut self, now: Time, message: &Message) {
        let Body::Vote { candidate, request, granted } = message.body else { return };
        let concerns_us =
            candidate == self.life.node_id && request.incarnation == self.life.incarnation;
        if !concerns_us {
            return;
        }
        let asked = |poll: &Poll| poll.requests.contain(request.sequence);
        let inquired = |census: &Census| census.requests.contain(request.sequence);
        if self.quorum.census.as_ref().is_some_and(inquired) {
            self.note_answer(now, message, granted);
        } else if granted
            && self.counts(now, &message.sender)
            && self.quorum.poll.as_ref().is_some_and(asked)
        {
            self.count_grant(now, message.sender);
        }
    }

    /// Counts a granted answer. A majority ends the poll.
    fn count_grant(&mut self, now: Time, voter: NodeId) {
        if voter == self.life.node_id && !self.own_vote_counts(now) {
            return;
        }
        let Some(needed) = self.params.quorum.as_ref().map(|params| params.voters.needed()) else {
            return;
        };
        let Some(poll) = self.quorum.poll.as_mut().filter(|_| self.state == State::Standing) else {
            return;
        };
        if poll.note_granted(voter) < needed {
            return;
        }
        match (poll.question(), poll.asked()) {
            (Question::Support, _) => self.request_votes(now),
            (Question::Vote, asked) => self.win(now, asked),
        }
    }

    /// A majority has voted for this node. The lease counts from the request. If it has expired
    /// already, because the process was held, the election is lost.
    fn win(&mut self, now: Time, asked: Time) {
        let cover = Cover::new(asked, self.params.lease_term(), Duration::ZERO);
        if cover.lease_end <= now {
            return self.lose_election(now);
        }
        self.quorum.poll = None;
        self.quorum.lease = Some(Lease::new(cover));
        self.timers.set(Timer::Lease, cover.lease_end);
        let reason = if self.quorum.named { Reason::Handover } else { Reason::Election };
        if self.may_take_office(now) {
            self.take_office(now, reason);
        } else {
            self.quorum.lease = None;
            self.timers.clear(Timer::Lease);
        }
    }

    /// Too few voters have granted. The resignation releases those that did. Random delays keep
    /// candidates from standing at the same time again.
    pub(in crate::core::election) fn lose_election(&mut self, now: Time) {
        let asked_for_votes = self.quorum.asks(Question::Vote);
        self.abandon_candidacy();
        if asked_for_votes {
            self.send(Body::Resignation { successor: None });
        }
        let spread = self.chance.up_to(self.params.leader_election_duration / 2);
        let turn = self.turn(now);
        self.await_leader_for(now, turn + spread);
    }

    /// Learns a term that another node knows. A candidate in a lower term has lost: it waits for
    /// votes in that term, but from now on its datagrams carry the new one.
    pub(in crate::core::election) fn learn_term_in_quorum(&mut self, now: Time, term: Term) {
        let outdated = self.asks_for_votes() && term > self.terms.known;
        self.learn_term(term);
        if outdated {
            self.lose_election(now);
        }
    }

    /// Whether this node has taken a term and asks for votes in it.
    pub(super) fn asks_for_votes(&self) -> bool {
        self.state == State::Standing && !self.quorum.asks(Question::Support)
    }

    /// Drops its question, so that this node may vote for others.
    pub(in crate::core::election) fn drop_question(&mut self) {
        self.quorum.poll = None;
        self.quorum.named = false;
        self.quorum.voter.release(self.life, self.terms.known);
    }

    /// The leader resigned and named this node. It need not ask for support first, because no other
    /// node stands.
    pub(in crate::core::election) fn request_votes_as_successor(&mut self, now: Time) {
        if self.may_stand_in_quorum(now) {
            self.leave_startup();
            self.abandon_candidacy();
            self.quorum.named = true;
            self.request_votes(now);
        } else {
            self.await_leader(now);
        }
    }

    /// Whether this candidate leaves the leadership to the better `candidate`. It does so once: a
    /// better candidate that hears no voter, or that no voter hears, would stand for ever and never
    /// win.
    pub(in crate::core::election) fn defers_once_to(&mut self, candidate: NodeId) -> bool {
        if self.asks_for_votes() || self.quorum.deferred_to.contains(&candidate) {
            return false;
        }
        self.quorum.deferred_to.push(candidate);
        true
    }
}
