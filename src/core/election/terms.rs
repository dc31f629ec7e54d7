//! Terms: what moves them, which of them this node has to be above, and which no group has got to.

use super::{Election, State, at_least_a_millisecond};
use crate::core::hook::{HookEvent, Reason};
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::Term;
use crate::wire::message::Message;

/// Up to here any term is taken, by a node that is new or was away. No group has so many
/// leaderships: at one a second it would take 136 years.
const IN_REASON: u64 = 1 << 32;

/// A higher one is taken only if it is not further above the highest known one than this. At 50,000
/// datagrams a second, which is more than a node judges, the last term is 178 years away.
const STEP: u64 = 1 << 16;

/// The terms that a node knows of.
///
/// Invariants:
/// * `known` never shrinks, and no datagram shows one that is not on disk.
/// * A leader does not learn of higher terms: until it has resigned, `known` is that of its reign,
///   or in available mode the next one, which it takes once that is on disk.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Terms {
    /// The highest one that this node has taken in.
    pub(super) known: Term,
    /// The one that the leader which this node follows, or is, declared last, or will declare
    /// first; of the last leader where there is none. It may be lower than the highest known one.
    pub(super) reign: Term,
    /// The highest one that this node heard of while it led, and does not lead in (available mode).
    pub(super) heard: Term,
    /// A leader in a lower term than this has missed a leadership that has ended, and hears of it
    /// from this node (available mode).
    conceded: Term,
    /// When this node last took a higher term while it led.
    last_reaffirmed: Option<Time>,
}

impl Terms {
    /// Of a node whose earlier life knew of `known`.
    pub(super) fn restored(known: Term) -> Self {
        let none = Term::default();
        Terms { known, reign: none, heard: none, conceded: none, last_reaffirmed: None }
    }
}

impl Election {
    /// Takes a term above every known one, for a reign of this node.
    pub(super) fn take_next_term(&mut self) {
        self.terms.known = self.terms.known.next();
        self.persist();
    }

    /// Whether the term that this node knows is on disk.
    pub(super) fn term_is_kept(&self) -> bool {
        self.disk.written().term >= self.terms.known
    }

    /// The winner, which leads in `term`, has to get past both terms, also where this node restarts
    /// before it has: its hook ran before the scripts of this node let go.
    pub(super) fn concede(&mut self, term: Term) {
        self.terms.known = self.terms.known.max(term);
        self.take_next_term();
        self.note_ended(self.terms.known);
    }

    /// Takes in a term that another node knows. A leader keeps it for the time after its
    /// leadership.
    pub(super) fn learn_term(&mut self, term: Term) {
        if matches!(self.state, State::Leading | State::HandingOver { .. }) {
            if !self.in_quorum_mode() {
                self.terms.heard = self.terms.heard.max(term);
            }
        } else if term > self.terms.known {
            self.terms.known = term;
            self.persist();
        }
    }

    /// A leadership in `reign` has ended that this node knew: the next leader has to be above it.
    pub(super) fn note_ended(&mut self, reign: Term) {
        if !self.in_quorum_mode() {
            self.terms.conceded = self.terms.conceded.max(reign);
        }
    }

    /// The leader that this node follows declares in the term `reign`. It may be another one than
    /// before, or have lost its disk, and has to be above the term that was followed before.
    pub(super) fn learn_reign(&mut self, reign: Term) {
        self.note_ended(self.terms.reign);
        self.terms.reign = reign;
    }

    /// The term that the leader has yet to get past.
    pub(super) fn concession(&self) -> Option<Term> {
        let is_behind = self.leader.is_some() && self.terms.reign < self.terms.conceded;
        is_behind.then_some(self.terms.conceded)
    }

    /// This leader has to get above the reign `term` of another one: now, or where it took a higher
    /// term less than an interval ago, when that is over.
    pub(super) fn outdo(&mut self, now: Time, term: Term) {
        self.learn_term(term);
        self.reaffirm_when_due(now);
    }

    fn reaffirm_when_due(&mut self, now: Time) {
        let interval = self.params.heartbeat_interval;
        match self.terms.last_reaffirmed.filter(|last| now.since(*last) < interval) {
            None => self.reaffirm(now),
            Some(last) => self.timers.set(Timer::Reaffirm, last + interval),
        }
    }

    /// The disk is done, or other intervals count: what this leader waits for may be due by now.
    pub(super) fn go_on_reaffirming(&mut self, now: Time) {
        if self.timers.get(Timer::Reaffirm).is_some() {
            self.reaffirm_when_due(now);
        }
    }

    /// Leads on, in a term above every one that it heard of, once its last one is on disk.
    pub(super) fn reaffirm(&mut self, now: Time) {
        if !self.term_is_kept() {
            let interval = at_least_a_millisecond(self.params.heartbeat_interval);
            return self.timers.set_no_later(Timer::Reaffirm, now + interval);
        }
        self.timers.clear(Timer::Reaffirm);
        self.terms.last_reaffirmed = Some(now);
        self.terms.known = self.terms.known.max(self.terms.heard);
        self.take_next_term();
        self.outbox.cause = Some(Reason::Conflict);
        self.hooks.announce(HookEvent::Reaffirmed, Reason::Conflict);
        self.open_reign(now);
    }

    /// Whether `message` announces a term that no group has got to.
    pub(super) fn is_far_ahead(&self, message: &Message) -> bool {
        let known = self.terms.known.max(self.terms.heard);
        let most = known.0.saturating_add(STEP).max(IN_REASON);
        message.highest_term() > Term(most)
    }

    /// Takes nothing from `message` but its number, so that it means nothing later either.
    pub(super) fn refuse_term(&mut self, message: &Message) {
        self.outbox.ignored.absurd_term += 1;
        if self.members.knows(message.life()) {
            self.members.note_heard(&message.sender, message.sequence);
        }
    }
}
