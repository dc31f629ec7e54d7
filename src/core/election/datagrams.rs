//! What each kind of datagram does.

use std::net::IpAddr;
use std::time::Duration;

use super::{Election, State};
use crate::core::member::Heard;
use crate::core::output::Event;
use crate::core::rank::Rank;
use crate::time::Time;
use crate::types::{NodeId, Role, Term};
use crate::wire::message::{Body, Message};

impl Election {
    pub(super) fn receive(&mut self, now: Time, from: IpAddr, message: &Message) {
        if self.state == State::Stopped {
            return;
        }
        if message.life() == self.life {
            return self.receive_from_own_life(now, from, message);
        }
        let is_fresh = self.is_fresh(now, message);
        if !is_fresh {
            self.meet_stranger(now, message);
        } else if self.is_far_ahead(message) && !self.members.has_heard(message) {
            self.refuse_term(message);
        } else if message.sender == self.life.node_id {
            self.receive_from_duplicate(now, from, message);
        } else {
            self.receive_from_member(now, from, message);
        }
        if is_fresh {
            self.note_shown(now, message);
        }
    }

    fn receive_from_member(&mut self, now: Time, from: IpAddr, message: &Message) {
        let heard = self.members.hear(now, from, message);
        if heard != Heard::Stale {
            self.overhear(message);
        }
        match heard {
            Heard::Stale => self.outbox.ignored.stale += 1,
            Heard::TableFull => self.outbox.ignored.table_full += 1,
            Heard::Knocking => {
                self.members.note_met(&message.sender, self.sent.newest);
                self.declare_soon(now);
            }
            Heard::Known => {
                self.make_acquaintance(message);
                self.take_in(now, from, message);
            }
            Heard::Joined => {
                self.members.note_met(&message.sender, self.sent.newest);
                self.make_acquaintance(message);
                self.notify(Event::MemberJoined { node_id: message.sender, address: from });
                self.take_in(now, from, message);
                self.make_up_for_silence(now);
            }
        }
    }

    /// Takes in a datagram that is news.
    fn take_in(&mut self, now: Time, from: IpAddr, message: &Message) {
        let sender = message.sender;
        let rank = Rank::new(sender, &message.standing);
        let agrees = self.agrees_on_voters(message);
        if message.body == Body::Challenge {
            self.handle_challenge(now, message);
        }
        if self.in_quorum_mode() {
            return self.take_in_for_quorum(now, rank, message, agrees);
        }
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
            Body::Probe { leader } => self.handle_probe(now, leader),
            Body::Sighting { leader, newest } => self.handle_sighting(now, leader, newest),
            Body::Proposal => self.handle_proposal(now, sender, rank),
            Body::Claim => self.handle_claim(now, sender, rank),
            Body::Resignation { successor } => self.handle_resignation(now, message, successor),
            Body::Farewell { id_taken } => self.handle_farewell(now, message, id_taken),
            Body::Declaration { .. }
            | Body::Objection { .. }
            | Body::VoteRequest { .. }
            | Body::Vote { .. }
            | Body::Inquiry
            | Body::Challenge => {}
        }
    }

    /// The same in quorum mode, where nobody leads, votes or hands over but the voters on whom both
    /// sides agree.
    fn take_in_for_quorum(&mut self, now: Time, rank: Rank, message: &Message, agrees: bool) {
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
            Body::Sighting { leader, newest } => self.handle_sighting(now, leader, newest),
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

    /// Another node leads. The best-ranked leader is followed; a worse one is told so.
    fn handle_declaration(&mut self, now: Time, from: IpAddr, rank: Rank, message: &Message) {
        let sender = message.sender;
        let better = rank > self.rank();
        match self.state {
            State::Leading if self.rank().is_fixed() && rank.is_fixed() => {
                self.report_static_rival(sender, from);
            }
            State::Leading if better => self.step_down(now, sender, message.term),
            State::Leading => self.defend(now, sender, from, message.term),
            // Whoever leads is better than one that is on its way out.
            State::HandingOver { .. } => self.step_down(now, sender, message.term),
            State::Starting { .. } | State::Standing | State::Following => {
                self.learn_term(message.term);
                self.follow_the_best(now, sender, rank, message.term);
            }
            State::Stopped => {}
        }
    }

    /// Of several active leaders the best-ranked one is followed.
    fn follow_the_best(&mut self, now: Time, sender: NodeId, rank: Rank, reign: Term) {
        let current =
            self.leader.and_then(|id| Some(Rank::new(id, &self.members.get(&id)?.standing)));
        if self.leader == Some(sender) {
            self.watch_leader();
            self.consider_claim(now);
            let concedes = self.concession().is_some();
            self.learn_reign(reign);
            if !concedes {
                self.concede_soon(now);
            }
            self.use_the_wake(now);
        } else if current.is_none_or(|current| rank > current) {
            self.learn_reign(reign);
            self.follow(now, sender);
            self.concede_soon(now);
        }
    }

    fn handle_heartbeat(&mut self, now: Time, message: &Message, interval_us: u32) {
        self.members.note_report(&message.sender, Duration::from_micros(interval_us.into()));
        if message.standing.role == Role::Starting {
            // It asks who leads.
            self.declare_soon(now);
        }
    }

    /// A leader that is heard in another role leads no more, whatever else it says, and one that is
    /// heard in another life has yet to declare. One that says so names its successor too.
    fn notice_fall(&mut self, now: Time, message: &Message) {
        let sender = message.sender;
        let resigns = matches!(message.body, Body::Resignation { .. } | Body::Farewell { .. });
        let leads_on =
            message.standing.role == Role::Leader && self.members.awaited(&sender).is_some();
        if self.leader == Some(sender) && !leads_on && !resigns {
            self.report_resignation(sender);
            self.lose_leader(now, sender);
            self.await_leader(now);
        }
    }

    fn handle_farewell(&mut self, now: Time, message: &Message, id_taken: bool) {
        let sender = message.sender;
        self.handle_resignation(now, message, None);
        self.members.note_farewell(&sender);
        if !id_taken {
            self.notify(Event::MemberLeft { node_id: sender });
        }
        self.check_visible_candidates(now);
    }

    /// A follower of this leader knows of a leadership that has ended and that this one has to be
    /// above. Nothing else that is heard of higher terms moves a leader: a third node would carry
    /// the terms of two leaders that do not hear each other from one to the other, and each would
    /// outbid the other for ever.
    fn handle_concession(&mut self, now: Time, message: &Message) {
        let Body::Heartbeat { leader: Some(leader), conceded: Some(term), .. } = message.body
        else {
            return;
        };
        let leads = self.state == State::Leading && leader == self.life.node_id;
        if leads && term > self.terms.known {
            self.outdo(now, term);
        }
    }

    pub(super) fn report_resignation(&mut self, leader: NodeId) {
        self.notify(Event::LeaderResigned { leader });
    }
}
