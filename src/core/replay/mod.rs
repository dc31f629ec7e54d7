//! Replay protection: a recorded datagram that is sent again changes nothing.
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
//! A node believes a member as long as it hears it: the member's life and sequence numbers only
//! grow. Every other node is *unproven*: it is new, has restarted, or was silent. Its proof of
//! liveness is a datagram that echoes a recent one, of this node or of a member. So not every node
//! has to challenge every other. Followers echo their leader, so other followers believe them. A
//! node without a leader echoes the datagrams it received last, so nodes that start together prove
//! themselves to each other. One challenge serves all nodes that know the challenger.
//!
//! The datagrams of an unproven node are ignored. The leader challenges it at once. The followers
//! leave that to the leader for a while, and then to the first of them. A challenge that a node
//! hears counts like its own.
//!
//! Unless a key is required, a node demands no proof: an attacker who can repeat a datagram can
//! forge one. A node that prefers a key proves itself to those that require one.

mod unproven;

use std::time::Duration;

use crate::core::membership::Members;
use crate::core::params::Params;
use crate::core::recent::Recent;
use crate::time::Time;
use crate::types::{DatagramId, Life, Sequence};
use crate::wire::echo::{Echo, Echoes};
use crate::wire::message::Message;

use unproven::UnprovenNodes;
pub(crate) use unproven::{Encounter, Patience};

/// What this node needs to tell new datagrams from old ones, and to prove that it is alive.
#[derive(Debug, Clone, Hash)]
pub(crate) struct ReplayProtection {
    /// This node in this life.
    life: Life,
    /// Whether a node must prove that it is alive before its datagrams count.
    demands_proof: bool,
    /// Whether this node proves that it is alive.
    gives_proof: bool,
    /// Whether the datagram that is being received is an open one. It may be forged, under a number
    /// that its sender has not used yet. An echo of it would be a proof for ever.
    receiving_open: bool,
    unproven: UnprovenNodes,
    /// Which of its own datagrams are recent.
    own: Recent,
    /// The last datagrams of several nodes, the newest first; collected without a leader.
    overheard: Echoes,
    /// The challenges that this node has not answered.
    unanswered: Echoes,
    last_challenged: Option<Time>,
    last_answered: Option<Time>,
    /// When this daemon should wake at the latest. If it wakes later, it was stopped for a while.
    wakes_by: Option<Time>,
}

impl ReplayProtection {
    /// The protection of a node that has received no datagram. `own` has its own recent ones.
    pub(crate) fn new(life: Life, params: &Params, own: Recent) -> Self {
        ReplayProtection {
            life,
            demands_proof: params.demands_proof(),
            gives_proof: params.gives_proof(),
            receiving_open: false,
            unproven: UnprovenNodes::default(),
            own,
            overheard: Echoes::NONE,
            unanswered: Echoes::NONE,
            last_challenged: None,
            last_answered: None,
            wakes_by: None,
        }
    }

    /// Whether the sender of `message` has proven that it is alive, now or before.
    pub(crate) fn is_proven(&self, message: &Message, members: &Members) -> bool {
        if !self.demands_proof || members.knows(message.life()) {
            return true;
        }
        let is_proof = message.echoes.iter().any(|echo| {
            // An earlier life may have echoed a recent datagram just before the later one began.
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

    /// Whether `life` may have echoed this before a known later life began. Only a datagram of that
    /// later life, which an objection echoes, rules that out, or one that this node sent after it
    /// had heard the later life.
    fn may_precede_later_life(&self, life: Life, echo: &Echo, members: &Members) -> bool {
        if echo.node_id == life.node_id && echo.datagram.incarnation > life.incarnation {
            return false;
        }
        let own = (echo.node_id == self.life.node_id).then_some(echo.datagram.sequence);
        let known_at = members.later_life_known_at(life);
        known_at.is_some_and(|known_at| own.is_none_or(|own| own <= known_at))
    }

    /// Notes whether an open datagram is being received.
    pub(crate) const fn set_receiving_open(&mut self, is_open: bool) {
        self.receiving_open = is_open;
    }

    pub(crate) const fn is_receiving_open(&self) -> bool {
        self.receiving_open
    }

    /// Whether this node may echo the datagram that is being received.
    const fn may_echo(&self) -> bool {
        self.gives_proof && !self.receiving_open
    }

    /// Notes when this daemon should wake at the latest.
    pub(crate) fn expect_to_wake(&mut self, by: Time) {
        self.wakes_by = self.demands_proof.then_some(by);
    }

    /// Whether this daemon was stopped since the last call.
    pub(crate) fn was_held(&self, now: Time) -> bool {
        self.wakes_by.is_some_and(|by| by < now)
    }

    /// The datagrams of this node up to `newest` prove nothing any more.
    pub(crate) fn forget_own(&mut self, newest: Sequence) {
        self.own = Recent::after(newest);
    }

    /// Time has passed. `newest` is this node's newest datagram. Removes unproven nodes that have
    /// been silent for `patience`.
    pub(crate) fn sweep(&mut self, now: Time, newest: Sequence, patience: Duration) {
        self.own.move_on(newest);
        self.unproven.sweep(now, patience);
    }

    /// Keeps a datagram to echo while there is no leader. The echo proves that this node hears the
    /// sender.
    pub(crate) fn overhear(&mut self, message: &Message, members: &Members) {
        let may_live = || self.unproven.may_live(&message.sender);
        if self.may_echo() && (members.knows(message.life()) || may_live()) {
            self.overheard.put_first(message.echo());
        }
    }

    /// This life is a member from now on.
    pub(crate) fn note_member(&mut self, life: Life) {
        self.unproven.remove(life);
    }

    /// The sender of `message` has proven that it is alive. If it is still no member, the same
    /// datagram proves nothing again.
    pub(crate) fn note_proof(&mut self, now: Time, message: &Message, members: &Members) {
        if self.demands_proof && !members.knows(message.life()) {
            self.unproven.note_proof(now, message);
        }
    }

    /// Receives a datagram without a proof.
    pub(crate) fn hear_unproven(&mut self, now: Time, message: &Message) -> Encounter {
        self.unproven.hear(now, message)
    }

    /// Whether an unproven daemon was heard under this node's own id.
    pub(crate) fn hears_own_id(&self) -> bool {
        self.unproven.knows(&self.life.node_id)
    }

    /// The earliest time from `at` on for a challenge, `gap` after the last one.
    pub(crate) fn next_challenge(&self, at: Time, gap: Duration) -> Time {
        no_sooner(at, self.last_challenged, gap)
    }

    /// The earliest time from `at` on for an answer, `gap` after the last one.
    pub(crate) fn next_answer(&self, at: Time, gap: Duration) -> Time {
        no_sooner(at, self.last_answered, gap)
    }

    /// The nodes that a challenge now names, a daemon with this node's own id first. They count as
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

    /// The next datagram of this node must echo `message`.
    pub(crate) fn owe_echo(&mut self, message: &Message) {
        if self.may_echo() {
            self.unanswered.put_first(message.echo());
        }
    }

    /// Whether a challenge waits for its answer.
    pub(crate) fn owes_answer(&self) -> bool {
        !self.unanswered.is_empty()
    }

    pub(crate) const fn note_answering(&mut self, now: Time) {
        self.last_answered = Some(now);
    }

    /// The echoes of the next datagram: the challenges that wait for an answer, and `leader`, the
    /// leader's newest datagram. Without a leader, the datagrams received last.
    pub(crate) fn take_echoes(&mut self, has_leader: bool, leader: Option<Echo>) -> Echoes {
        if !self.gives_proof {
            return Echoes::NONE;
        }
        // If the leader has challenged, that echo is enough: it names the life that sent it.
        let mut echoes = std::mem::take(&mut self.unanswered);
        if !has_leader {
            self.overheard.iter().for_each(|echo| echoes.add_missing(*echo));
        } else if let Some(leader) = leader {
            echoes.add_missing(leader);
        }
        echoes
    }
}

/// `at`, or `gap` after `last` if that is later.
fn no_sooner(at: Time, last: Option<Time>, gap: Duration) -> Time {
    last.map_or(at, |last| at.max(last + gap))
}
