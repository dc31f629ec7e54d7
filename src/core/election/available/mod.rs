//! Available mode: the best visible candidate leads, without votes, until it hears a better leader.
//!
//! `conflicts` is for two leaders that hear each other.

mod conflicts;

use std::net::IpAddr;
use std::time::Duration;

use super::{Election, State, at_least_a_millisecond};
use crate::core::hook::Reason;
use crate::core::rank::Rank;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{NodeId, Term};
use crate::wire::message::{Body, Message};

pub(super) use conflicts::Conflicts;

impl Election {
    /// Applies a new datagram of a member.
    pub(super) fn take_in_available(
        &mut self,
        now: Time,
        from: IpAddr,
        rank: Rank,
        message: &Message,
    ) {
        let sender = message.sender;
        if let Body::Declaration { interval_us, .. } = message.body {
            let interval = Duration::from_micros(interval_us.into());
            self.members.note_declaration(now, &sender, interval);
            return self.handle_declaration(now, from, rank, message);
        }
        self.learn_term(message.term);
        self.handle_concession(now, message);
        self.notice_fall(now, message);
        match message.body {
            Body::Heartbeat { interval_us, .. } => self.handle_heartbeat(now, message, interval_us),
            Body::Probe { leader } => self.handle_probe(now, message, leader),
            Body::ProbeReply { leader, newest } => self.handle_probe_reply(now, leader, newest),
            Body::Proposal => self.handle_proposal(now, sender, rank),
            Body::Claim => self.handle_claim(now, sender, rank),
            Body::Resignation { successor } => self.handle_resignation(now, message, successor),
            Body::Farewell => self.handle_farewell(now, message),
            Body::Declaration { .. }
            | Body::Objection { .. }
            | Body::VoteRequest { .. }
            | Body::Vote { .. }
            | Body::Inquiry
            | Body::Challenge
            | Body::Ping { .. }
            | Body::Pong { .. }
            | Body::Unknown => {}
        }
    }

    /// Proposes itself, and collects the proposals of better candidates.
    pub(super) fn collect_proposals(&mut self, now: Time) {
        if self.succeeds_for_certain(now) {
            return self.become_leader(now, Reason::Election);
        }
        self.state = State::Standing;
        self.timers.set(Timer::ElectionEnd, now + self.params.leader_election_duration);
        self.timers.set(Timer::Certainty, now + self.params.answer_time());
        self.propose(now);
        if !self.members.any_visible(now) {
            self.become_leader(now, Reason::Election);
        }
    }

    /// Sends the proposal, and repeats it until the election ends.
    pub(super) fn send_proposal(&mut self, now: Time) {
        self.send(Body::Proposal);
        self.sent.proposed = Some(now);
        let again = now + at_least_a_millisecond(self.params.answer_time());
        if self.timers.get(Timer::ElectionEnd).is_some_and(|end| again < end) {
            self.timers.set(Timer::Repropose, again);
        }
    }

    /// Every candidate has had the time to answer. If none is better, this node has won.
    pub(super) fn declare_if_certain(&mut self, now: Time) {
        if self.better_rivals(now) == 0 {
            self.become_leader(now, Reason::Election);
        }
    }

    /// Another node leads. The best-ranked leader is followed, and a worse one hears a declaration.
    fn handle_declaration(&mut self, now: Time, from: IpAddr, rank: Rank, message: &Message) {
        let sender = message.sender;
        let better = rank > self.rank();
        match self.state {
            State::Leading if self.rank().is_fixed() && rank.is_fixed() => {
                self.learn_term(message.term);
                self.report_static_rival(sender, from);
            }
            State::Leading | State::HandingOver { .. } if !self.has_declared() => {
                self.withdraw_undeclared(now, sender, message.term);
            }
            State::Leading if better => self.step_down(now, sender, message.term),
            State::Leading => self.defend(now, sender, from, message.term),
            // Any leader is better than one that hands over.
            State::HandingOver { .. } => self.step_down(now, sender, message.term),
            State::Starting { .. } | State::Standing | State::Following => {
                self.learn_term(message.term);
                self.follow_the_best(now, sender, rank, message.term);
            }
            State::Stopped => {}
        }
    }

    /// Follows the best-ranked of several active leaders.
    fn follow_the_best(&mut self, now: Time, sender: NodeId, rank: Rank, term: Term) {
        let current =
            self.leader.and_then(|id| Some(Rank::new(id, &self.members.get(&id)?.standing)));
        if self.leader == Some(sender) {
            self.hear_leader_again(now);
            let concedes = self.concession().is_some();
            self.note_current_term(term);
            if !concedes {
                self.concede_soon(now);
            }
            self.use_the_wake(now);
        } else if current.is_none_or(|current| rank > current) {
            self.note_current_term(term);
            self.follow(now, sender);
            self.concede_soon(now);
        }
    }

    /// The leader failed or resigned. Follows the best other leader that declares, if there is one.
    pub(super) fn follow_another_leader(&mut self, now: Time) {
        if let Some(active) = self.members.best_active_leader(now) {
            self.follow(now, active.node_id());
            self.concede_soon(now);
        }
    }
}
