//! The voter: what it answers to candidates and leaders.
//!
//! It supports, votes for and acknowledges a node only if its pledge allows that. It answers only
//! once its promise is on disk.

use std::time::Duration;

use super::{Election, Request};
use crate::core::election::State;
use crate::core::persist::Enrolment;
use crate::core::quorum::lease::HOLD_MAX;
use crate::core::rank::Rank;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{DatagramId, Life, NodeId};
use crate::wire::message::{Body, Message};

impl Election {
    /// Answers a candidate whether this voter would vote for it. If only its pledge stands against
    /// that, it answers yes once the pledge expires.
    pub(in crate::core::election) fn answer_proposal_as_voter(
        &mut self,
        now: Time,
        message: &Message,
        rank: Rank,
    ) {
        let request = Request::of(message);
        if self.follows_another(request.from) {
            return;
        }
        let free = !self.stands_before(request.from.node_id, rank)
            && self.is_free_to_vote(now, request.from);
        let bound_until = self.quorum.voter.bound_until(now, request.from);
        if let Some(end) = bound_until.filter(|_| free) {
            self.quorum.postponed = Some(request);
            self.timers.set(Timer::PledgeEnd, end);
        }
        self.answer(request, free && bound_until.is_none());
    }

    /// Whether this node stands, is better than `candidate`, and has not refused it since there
    /// last was a leader.
    fn stands_before(&mut self, candidate: NodeId, rank: Rank) -> bool {
        let stands = self.state == State::Standing && self.rank() > rank;
        let insists = stands && !self.quorum.refused.contains(&candidate);
        if insists {
            self.quorum.refused.push(candidate);
        }
        insists
    }

    /// The pledge has expired that kept this voter from supporting a candidate.
    pub(in crate::core::election) fn answer_postponed(&mut self, now: Time) {
        let Some(request) = self.quorum.postponed.take() else { return };
        let free = self.is_free_to_vote(now, request.from)
            && self.quorum.voter.bound_until(now, request.from).is_none()
            && !self.follows_another(request.from);
        if free {
            self.answer(request, true);
        }
    }

    /// A candidate asks for this node's vote.
    pub(in crate::core::election) fn handle_vote_request(
        &mut self,
        now: Time,
        message: &Message,
        hold: Duration,
    ) {
        let request = Request::of(message);
        if self.follows_another(request.from) {
            return;
        }
        let may = self.is_free_to_vote(now, request.from)
            && self.quorum.voter.bound_until(now, request.from).is_none()
            && self.quorum.voter.may_cast(message.term, request.from)
            && message.term >= self.terms.known
            && hold <= HOLD_MAX;
        if !may {
            return self.answer(request, false);
        }
        self.abandon_candidacy();
        self.quorum.voter.cast(message.term, request.from);
        self.quorum.voter.give(
            now,
            request.from,
            message.term,
            hold,
            self.params.declaration_hold(),
        );
        self.quorum.owed = Some(request);
        self.quorum.acknowledging = None;
        self.persist();
        self.pay_vote(now);
        self.await_leader(now);
    }

    /// Sends the granted vote once it is on disk, unless this voter has since pledged itself to
    /// another node, or heard its duplicate.
    pub(super) fn pay_vote(&mut self, now: Time) {
        let Some(request) = self.quorum.owed else { return };
        let (ballot, pledge) = (self.quorum.voter.ballot(), self.quorum.voter.pledge());
        if self.disk.written().ballot != ballot || !self.disk.has_promises() {
            return;
        }
        self.quorum.owed = None;
        let stands = ballot.is_some_and(|ballot| ballot.candidate == request.from)
            && pledge.is_some_and(|pledge| pledge.to == request.from)
            && self.own_vote_counts(now);
        if stands {
            self.answer(request, true);
        }
    }

    /// Another node declares itself the leader. This voter makes its pledge to it, if it may.
    pub(in crate::core::election) fn pledge_to_leader(
        &mut self,
        now: Time,
        message: &Message,
        hold: Duration,
    ) {
        let may = self.own_vote_counts(now)
            && hold <= HOLD_MAX
            && self.quorum.voter.bound_until(now, message.life()).is_none();
        if !may {
            return;
        }
        self.quorum.voter.give(
            now,
            message.life(),
            message.term,
            hold,
            self.params.declaration_hold(),
        );
        self.quorum.acknowledging = Some(Request::of(message));
        self.persist();
        self.acknowledge(now);
    }

    /// Acknowledges the leader's newest declaration, once the pledge is on disk.
    pub(super) fn acknowledge(&mut self, now: Time) {
        if self.due_acknowledgement(now).is_none() {
            return;
        }
        if self.params.unicast {
            self.send_acknowledgement(now);
        } else {
            self.send_heartbeat(now);
        }
    }

    /// The declaration that the next heartbeat acknowledges; each declaration once.
    pub(in crate::core::election) fn take_acknowledgement(
        &mut self,
        now: Time,
    ) -> Option<DatagramId> {
        let request = self.due_acknowledgement(now)?;
        self.quorum.acknowledging = None;
        Some(request.datagram())
    }

    /// The leader's newest declaration, if its pledge is on disk and this voter still counts.
    fn due_acknowledgement(&self, now: Time) -> Option<Request> {
        let may = self.disk.has_promises() && self.own_vote_counts(now);
        self.quorum.acknowledging.filter(|request| may && self.leader == Some(request.from.node_id))
    }

    /// A voter without its state asks for this one's term. This voter testifies once it has known
    /// the asking life for as long as the longest pledge can last. By then each pledge of an
    /// earlier life has expired.
    pub(in crate::core::election) fn handle_inquiry(&mut self, now: Time, message: &Message) {
        if !self.is_voter() || self.is_duplicated(now) {
            return;
        }
        let pledged = self.quorum.voter.pledge().map_or(Duration::ZERO, |pledge| pledge.hold());
        let longest = self.params.declaration_hold().max(pledged);
        let is_whole = self.disk.written().enrolment != Enrolment::None;
        let testifies = is_whole && self.members.known_for(now, &message.sender) >= longest;
        self.answer(Request::of(message), testifies);
        self.inquire_where_outdated(now, message);
    }

    /// Whether this voter hears a leader other than `life`, or is one. Then it does not answer a
    /// candidate, because the leader declares itself. True for a node that is no voter.
    fn follows_another(&self, life: Life) -> bool {
        !self.is_voter()
            || matches!(self.state, State::Leading | State::Stopped)
            || self.leader.is_some_and(|leader| leader != life.node_id)
    }

    /// Whether this voter may support or vote for a candidate, if its pledge allows that. Its hooks
    /// have released everything, it is enrolled, its id is unique, and it does not ask for votes
    /// itself.
    fn is_free_to_vote(&self, now: Time, candidate: Life) -> bool {
        self.params.has_vote(&candidate.node_id)
            && !self.asks_for_votes()
            && !self.state.is_in_office()
            && self.may_vote(now)
    }

    /// Whether this node may vote for any node, itself included, if its pledge allows that.
    pub(in crate::core::election) fn may_vote(&self, now: Time) -> bool {
        self.own_vote_counts(now) && self.hooks.have_released()
    }

    fn answer(&mut self, request: Request, granted: bool) {
        let candidate = request.from.node_id;
        self.send(Body::Vote { candidate, request: request.datagram(), granted });
    }
}
