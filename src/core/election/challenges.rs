//! Challenges: asking an unproven node for a proof of liveness, and answering such a challenge.
//! `core/replay` decides what counts as a proof.

use std::time::Duration;

use super::{Election, State};
use crate::core::output::Event;
use crate::core::recent::Recent;
use crate::core::replay::{Encounter, Patience, ReplayProtection};
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{NodeId, Role};
use crate::wire::echo::{Echo, Echoes};
use crate::wire::message::{Body, Message};

impl Election {
    /// Whether the sender of `message` is known to be alive, so that the message is no replay.
    /// Always true without a key.
    pub fn is_proven(&self, now: Time, message: &Message) -> bool {
        !self.replay.was_held(now) && self.replay.is_proven(message, &self.members)
    }

    /// After a pause of the daemon longer than a member's patience, the received datagrams may be
    /// replays. Every node must prove again that it is alive.
    pub(super) fn doubt_after_pause(&mut self, now: Time) {
        if self.replay.was_held(now) {
            self.members.doubt_all();
            self.replay.forget_own(self.sent.newest);
        }
        self.expect_to_wake(now);
    }

    /// Notes when the next sweep is overdue. If this daemon wakes later, it was stopped.
    pub(super) fn expect_to_wake(&mut self, now: Time) {
        let sweep = self.timers.get(Timer::Sweep).unwrap_or(now);
        self.replay.expect_to_wake(sweep.max(now) + self.params.member_patience());
    }

    /// The use of keys has changed. A node that was believed without a key is not believed with
    /// one. Nor does anything count that an attacker may have forged until now.
    pub(super) fn begin_anew(&mut self) {
        let own = Recent::after(self.sent.newest);
        self.replay = ReplayProtection::new(self.life, &self.params, own);
        self.duplicates.forget_doubt();
        if self.params.demands_proof() {
            self.members.doubt_all();
            self.members.forget_forgeable();
            self.quorum.forget_census();
        }
    }

    /// Keeps the datagrams received while there is no leader, to echo them later. A mute node keeps
    /// none: if its hello had a proof, the others would not ask for one, and their question is
    /// their own proof.
    pub(super) fn overhear(&mut self, message: &Message) {
        if self.leader.is_none() && !self.exclusions.is_mute() {
            self.replay.overhear(message, &self.members);
        }
    }

    /// Receives a datagram of a node that may not be alive.
    pub(super) fn receive_unproven(&mut self, now: Time, message: &Message) {
        if self.members.has_heard(message) {
            self.outbox.ignored.stale += 1;
            return;
        }
        self.overhear(message);
        let encounter = self.replay.hear_unproven(now, message);
        match encounter {
            Encounter::Stale => return self.outbox.ignored.stale += 1,
            Encounter::Full => return self.outbox.ignored.table_full += 1,
            Encounter::Asked | Encounter::Due { .. } => self.outbox.ignored.unproven += 1,
        }
        if let Encounter::Due { report } = encounter {
            if report {
                self.notify(Event::NoProof { node_id: message.sender });
            }
            if message.sender == self.life.node_id {
                self.duplicates.begin_doubt(now, self.params.member_patience());
            }
            let wait = self.wait_to_challenge(message);
            self.challenge_soon(now, wait);
        }
        // Two nodes of which recorded later lives are replayed would never believe each other.
        if self.names_later_life(message) {
            self.answer_soon(now, message);
        }
    }

    fn challenge_soon(&mut self, now: Time, wait: Duration) {
        if !wait.is_zero() && self.timers.get(Timer::Challenge).is_some() {
            return;
        }
        let at = self.replay.next_challenge(now + wait, self.params.declaration_gap());
        if at <= now {
            self.challenge(now);
        } else {
            self.timers.set_no_later(Timer::Challenge, at);
        }
    }

    /// How long this node leaves the challenge of an unproven sender to others. It challenges a
    /// daemon with its own id at once, because its own vote does not count before the answer. A
    /// leader also challenges at once, because a starting node has to believe it before it may lead
    /// itself. A former life that does not start is unproven to every node, so each waits for a
    /// random time.
    fn wait_to_challenge(&mut self, unproven: &Message) -> Duration {
        let slot = self.params.candidacy_slot();
        let is_former = self.members.later_life_known_at(unproven.life()).is_some();
        let starts = unproven.standing.role == Role::Starting;
        match self.state {
            _ if unproven.sender == self.life.node_id => Duration::ZERO,
            State::Leading | State::HandingOver { .. } if starts || !is_former => Duration::ZERO,
            _ if is_former => self.chance.up_to(self.params.heartbeat_interval),
            State::Starting { .. } => self.chance.up_to(self.params.introduction_time()),
            State::Following if self.leader.is_some() => slot + self.chance.up_to(slot),
            _ => self.chance.up_to(slot),
        }
    }

    /// Challenges the unproven nodes that are due.
    pub(super) fn challenge(&mut self, now: Time) {
        if !self.may_send() {
            return;
        }
        let patience = Patience::of(&self.params);
        let Some(asked) = self.replay.challenge(now, patience) else { return };
        if asked.iter().any(|echo| echo.node_id == self.life.node_id) {
            self.duplicates.limit_doubt(now + patience.least);
        }
        self.transmit(Body::Challenge, asked);
        if self.replay.is_challenge_due(now) {
            self.timers.set(Timer::Challenge, now + patience.least);
        }
    }

    /// If `challenge` is one: another node challenges nodes, so this one need not.
    pub(super) fn handle_challenge(&mut self, now: Time, challenge: &Message) {
        if challenge.body != Body::Challenge {
            return;
        }
        let patience = Patience::of(&self.params);
        if challenge.echoes.iter().any(|echo| self.life == echo.life())
            || self.names_later_life(challenge)
        {
            self.answer_soon(now, challenge);
        }
        for echo in challenge.echoes.iter().filter(|echo| self.life != echo.life()) {
            self.replay.note_challenged(now, echo, patience);
            if echo.node_id == self.life.node_id {
                self.duplicates.limit_doubt(now + patience.least);
            }
        }
    }

    /// Whether `message` challenges a later life of this node. That one was recorded before this
    /// host lost its state and its clock was set back.
    fn names_later_life(&self, message: &Message) -> bool {
        let is_later = |echo: &Echo| {
            echo.node_id == self.life.node_id && echo.datagram.incarnation > self.life.incarnation
        };
        message.body == Body::Challenge && message.echoes.iter().any(is_later)
    }

    /// Nodes that start together wait, so that one datagram answers many challenges.
    fn answer_soon(&mut self, now: Time, challenge: &Message) {
        self.replay.owe_echo(challenge);
        let both_start = self.state.is_starting() && challenge.standing.role == Role::Starting;
        let most = if both_start { self.params.introduction_time() } else { Duration::ZERO };
        let wait = self.chance.up_to(most);
        let at = self.replay.next_answer(now + wait, self.params.declaration_gap());
        if at <= now {
            self.answer_challenge(now);
        } else {
            self.timers.set_no_later(Timer::Answer, at);
        }
    }

    /// Sends what this node would send next anyway, unless it has sent since the challenge.
    pub(super) fn answer_challenge(&mut self, now: Time) {
        if !self.replay.owes_answer() {
            return;
        }
        self.replay.note_answering(now);
        if self.holds_leadership() {
            return self.declare_soon(now);
        }
        if self.state == State::Standing {
            self.propose(now);
        }
        if self.replay.owes_answer() {
            self.send_heartbeat(now);
        }
    }

    /// What the next datagram echoes, which goes to `addressee` alone or to all. One to a single
    /// node cannot answer the challenges of others.
    pub(super) fn take_echoes(&mut self, addressee: Option<NodeId>) -> Echoes {
        let newest = |node_id: NodeId| {
            Some(Echo { node_id, datagram: self.members.newest_sealed(&node_id)? })
        };
        match addressee {
            Some(to) if self.params.gives_proof() => newest(to).into_iter().collect(),
            Some(_) => Echoes::NONE,
            None => self.replay.take_echoes(self.leader.is_some(), self.leader.and_then(newest)),
        }
    }

    /// Removes expired entries of the replay protection.
    pub(super) fn sweep_replay_protection(&mut self, now: Time) {
        self.replay.sweep(now, self.sent.newest, self.params.member_patience() * 2);
        if !self.replay.hears_own_id() {
            self.duplicates.limit_doubt(now + Patience::of(&self.params).least);
        }
    }
}
