//! The path of a datagram: is it proven, is its sender a member, and what does it change. The mode
//! decides what each kind of datagram changes.

use std::net::IpAddr;
use std::time::Duration;

use super::terms::is_absurd;
use super::{Election, State};
use crate::core::member::{Heard, Shared};
use crate::core::output::Event;
use crate::time::Time;
use crate::types::Role;
use crate::wire::message::{Body, Message};

impl Election {
    pub(super) fn receive(&mut self, now: Time, from: IpAddr, message: &Message) {
        if self.state == State::Stopped {
            return;
        }
        if message.life() == self.life {
            return self.receive_from_own_life(now, from, message);
        }
        if self.receive_ping_or_pong(now, message) {
            return;
        }
        let is_proven = self.is_proven(now, message);
        let known = self.terms.known.max(self.conflicts.heard);
        if !is_proven {
            self.receive_unproven(now, message);
        } else if is_absurd(message.highest_term(), known) && !self.members.has_heard(message) {
            self.refuse_term(message);
        } else if message.sender == self.life.node_id {
            self.receive_from_duplicate(now, from, message);
        } else {
            self.receive_from_member(now, from, message);
        }
        if is_proven {
            self.replay.note_proof(now, message, &self.members);
        }
    }

    fn receive_from_member(&mut self, now: Time, from: IpAddr, message: &Message) {
        let heard = self.members.hear(now, from, message);
        if !matches!(heard, Heard::Stale | Heard::Excluded) {
            self.overhear(message);
            self.note_if_open(message);
        }
        match heard {
            Heard::Stale => self.outbox.ignored.stale += 1,
            Heard::Excluded => {
                self.outbox.ignored.stale += 1;
                // It has to hear and to believe the leader all the same, or it would lead too.
                self.handle_challenge(now, message);
                if message.standing.role == Role::Starting {
                    self.declare_to(now, message);
                }
            }
            Heard::TableFull => self.outbox.ignored.table_full += 1,
            Heard::Newcomer => {
                self.members.note_known_at(&message.sender, self.sent.newest);
                self.handle_challenge(now, message);
                self.learn_newcomers_term(message.term);
                self.declare_to(now, message);
            }
            Heard::Known => {
                self.replay.note_member(message.life());
                self.take_in(now, from, message);
            }
            Heard::Joined => {
                self.members.note_known_at(&message.sender, self.sent.newest);
                self.replay.note_member(message.life());
                self.notify(Event::MemberJoined { node_id: message.sender, address: from });
                self.take_in(now, from, message);
                if self.params.demands_proof() {
                    // This node ignored an earlier question of the newcomer, because it had no
                    // proof yet.
                    self.declare_soon(now);
                }
            }
        }
    }

    /// The number of an open datagram, which may be forged, is never echoed.
    pub(super) fn note_if_open(&mut self, message: &Message) {
        if self.replay.is_receiving_open() {
            self.members.note_open(message);
        }
    }

    /// Applies a datagram that is newer than the sender's earlier ones.
    fn take_in(&mut self, now: Time, from: IpAddr, message: &Message) {
        let agrees = self.agrees_on_voters(message);
        self.compare_tie_breaks(message);
        self.handle_challenge(now, message);
        self.take_in_by_mode(now, from, message, agrees);
    }

    /// Reports a member with another rule for ties, once. Both still find the same order.
    fn compare_tie_breaks(&mut self, message: &Message) {
        let theirs = message.standing.tie_break.rule();
        let differs = theirs != self.params.tie_break.rule();
        if self.members.note_difference(&message.sender, Shared::TieBreak, differs) && differs {
            self.notify(Event::TieBreakDiffers { node_id: message.sender, theirs });
        }
    }

    pub(super) fn handle_heartbeat(&mut self, now: Time, message: &Message, interval_us: u32) {
        self.members.note_report(&message.sender, Duration::from_micros(interval_us.into()));
        if message.standing.role == Role::Starting {
            self.declare_to(now, message);
        }
    }

    /// A starting node asks who leads, or a follower that misses the leader whether it is alive.
    /// Such a node may have no proof of that.
    pub(super) fn declare_to(&mut self, now: Time, question: &Message) {
        if self.holds_leadership() {
            self.replay.owe_echo(question);
            self.declare_soon(now);
        }
    }

    /// A leader that announces another role leads no more. A leader in a new life has yet to
    /// declare. A resignation names a successor, so its own handler takes it.
    pub(super) fn notice_fall(&mut self, now: Time, message: &Message) {
        let sender = message.sender;
        let resigns = matches!(message.body, Body::Resignation { .. } | Body::Farewell);
        let leads_on =
            message.standing.role == Role::Leader && self.members.awaited(&sender).is_some();
        if self.leader == Some(sender) && !leads_on && !resigns {
            self.notify(Event::LeaderResigned { leader: sender });
            self.lose_leader(now, sender);
            self.await_leader(now);
        }
    }

    pub(super) fn handle_farewell(&mut self, now: Time, message: &Message) {
        let sender = message.sender;
        self.handle_resignation(now, message, None);
        self.members.note_farewell(&sender);
        self.notify(Event::MemberLeft { node_id: sender });
        self.check_visible_candidates(now);
    }
}
