//! Replay protection: a datagram that was recorded, and is sent again, changes nothing.
//!
//! ```text
//!   newcomer                         leader
//!      │ ── hello ───────────────────▶ │  unproven: the hello may be an old one
//!      │ ◀── challenge, echoes hello ─ │
//!      │   the leader is alive         │
//!      │ ── hello, echoes challenge ─▶ │  proven
//!      │ ◀── declaration ───────────── │
//! ```
//!
//! A member is believed as long as it goes on being heard: its life and its numbers only grow.
//! Every other node is *unproven*: it is new, restarted, or was away. It proves that it is alive by
//! a datagram that echoes a recent one: one of this node's own, or one of a member's. So not every
//! node has to ask every other. Followers echo their leader, which is how they come to know each
//! other. A node that has no leader echoes what it heard last, which is how nodes that start
//! together do. And one challenge serves all nodes that know the challenger.
//!
//! What an unproven node sends counts for nothing. The leader challenges it at once. The others
//! leave that to the leader for a while, and then to the first of them: a challenge that a node
//! hears is as good as its own.
//!
//! Without a key all of this is off: an attacker who could repeat a datagram could make one up.

mod recent;
mod unproven;

use std::time::Duration;

use crate::core::membership::Members;
use crate::time::Time;
use crate::types::{DatagramId, Life, Sequence};
use crate::wire::echo::{Echo, Echoes};
use crate::wire::message::Message;

pub(crate) use recent::Recent;
use unproven::UnprovenNodes;
pub(crate) use unproven::{Encounter, Patience};

/// What this node needs to know to tell new datagrams from old ones, and to prove that it is alive.
#[derive(Debug, Clone, Hash)]
pub(crate) struct ReplayProtection {
    /// This node in this life.
    life: Life,
    /// Whether datagrams are authenticated.
    is_on: bool,
    unproven: UnprovenNodes,
    /// Which of its own datagrams are recent.
    own: Recent,
    /// What it heard last of several nodes, the newest first, as long as it has no leader.
    overheard: Echoes,
    /// The challenges that it has not answered.
    unanswered: Echoes,
    last_challenged: Option<Time>,
    last_answered: Option<Time>,
}

impl ReplayProtection {
    /// Of a node that has heard no datagram. `own` says which of its own are recent.
    pub(crate) fn new(life: Life, is_on: bool, own: Recent) -> Self {
        ReplayProtection {
            life,
            is_on,
            unproven: UnprovenNodes::default(),
            own,
            overheard: Echoes::NONE,
            unanswered: Echoes::NONE,
            last_challenged: None,
            last_answered: None,
        }
    }

    /// Whether the sender of `message` has proven that it is alive, by this datagram or before.
    pub(crate) fn is_proven(&self, message: &Message, members: &Members) -> bool {
        if !self.is_on || members.knows(message.life()) {
            return true;
        }
        let is_proof = message.echoes.iter().any(|echo| {
            // Shortly before a later life began this one may have echoed what is still recent.
            self.is_recent(echo, members)
                && !self.may_precede_later_life(message.life(), echo, members)
        });
        is_proof && !self.unproven.has_heard(message)
    }

    fn is_recent(&self, echo: &Echo, members: &Members) -> bool {
        let DatagramId { incarnation, sequence } = echo.datagram;
        if echo.node_id == self.life.node_id {
            incarnation == self.life.incarnation && self.own.covers(sequence)
        } else {
            members.sent_lately(echo)
        }
    }

    /// Whether `life` may have echoed this before a later life began that is known: all but what
    /// this very node sent after it came to know that life.
    fn may_precede_later_life(&self, life: Life, echo: &Echo, members: &Members) -> bool {
        let own = (echo.node_id == self.life.node_id).then_some(echo.datagram.sequence);
        let met_at = members.later_life_met_at(life);
        met_at.is_some_and(|met_at| own.is_none_or(|own| own <= met_at))
    }

    /// What this node sent up to `newest` proves nothing any more.
    pub(crate) fn forget_own(&mut self, newest: Sequence) {
        self.own = Recent::after(newest);
    }

    /// Time has passed. `newest` is what this node sent last. Forgets the unproven nodes that have
    /// been silent for `patience`.
    pub(crate) fn sweep(&mut self, now: Time, newest: Sequence, patience: Duration) {
        self.own.move_on(newest);
        self.unproven.sweep(now, patience);
    }

    /// Remembers what was heard, as long as there is no leader to echo, so that this node can show
    /// that it hears the sender.
    pub(crate) fn overhear(&mut self, message: &Message, members: &Members) {
        let may_live = || self.unproven.may_live(&message.sender);
        if self.is_on && (members.knows(message.life()) || may_live()) {
            self.overheard.put_first(message.echo());
        }
    }

    /// This life is a member from now on.
    pub(crate) fn note_member(&mut self, life: Life) {
        self.unproven.remove(life);
    }

    /// The sender of `message` has proven that it is alive. If it is no member all the same, this
    /// datagram proves nothing a second time.
    pub(crate) fn note_proof(&mut self, now: Time, message: &Message, members: &Members) {
        if self.is_on && !members.knows(message.life()) {
            self.unproven.note_proof(now, message);
        }
    }

    /// Receives a datagram that proves nothing.
    pub(crate) fn hear_unproven(&mut self, now: Time, message: &Message) -> Encounter {
        self.unproven.hear(now, message)
    }

    /// Whether an unproven daemon was heard under this node's own id.
    pub(crate) fn hears_own_id(&self) -> bool {
        self.unproven.knows(&self.life.node_id)
    }

    /// The earliest time from `at` on for a challenge, `gap` after the last one.
    pub(crate) fn next_challenge(&self, at: Time, gap: Duration) -> Time {
        self.last_challenged.map_or(at, |last| at.max(last + gap))
    }

    /// The earliest time from `at` on for an answer, `gap` after the last one.
    pub(crate) fn next_answer(&self, at: Time, gap: Duration) -> Time {
        self.last_answered.map_or(at, |last| at.max(last + gap))
    }

    /// The nodes that a challenge is for now, a daemon with this node's own id first. They count as
    /// challenged. None if none is due.
    pub(crate) fn challenge(&mut self, now: Time, patience: Patience) -> Option<Echoes> {
        let asked = self.unproven.ask(now, patience, self.life.node_id);
        if asked.is_empty() {
            return None;
        }
        self.last_challenged = Some(now);
        Some(asked)
    }

    /// Whether another challenge is due.
    pub(crate) fn is_challenge_due(&self, now: Time) -> bool {
        self.unproven.any_due(now)
    }

    /// Another node has challenged an unproven one.
    pub(crate) fn note_challenged(&mut self, now: Time, challenged: &Echo, patience: Patience) {
        self.unproven.note_asked(now, challenged, patience);
    }

    /// The next datagram of this node is to echo `message`.
    pub(crate) fn owe_echo(&mut self, message: &Message) {
        if self.is_on {
            self.unanswered.put_first(message.echo());
        }
    }

    /// Whether a challenge waits for its answer.
    pub(crate) fn owes_answer(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// This node answers now.
    pub(crate) const fn note_answering(&mut self, now: Time) {
        self.last_answered = Some(now);
    }

    /// What the next datagram echoes: the challenges that wait for an answer, and `leader`, the
    /// newest datagram of the leader; without a leader, what was overheard.
    pub(crate) fn take_echoes(&mut self, has_leader: bool, leader: Option<Echo>) -> Echoes {
        if !self.is_on {
            return Echoes::NONE;
        }
        // A challenge names the very life that sent it.
        let mut echoes = std::mem::take(&mut self.unanswered);
        if !has_leader {
            self.overheard.iter().for_each(|echo| echoes.add_missing(*echo));
        } else if let Some(leader) = leader {
            echoes.add_missing(leader);
        }
        echoes
    }
}
