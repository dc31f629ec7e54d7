//! Terms that are too far above this node's for any group to have got there.
//!
//! A broken member that tells one is refused, or nobody could take a higher term for long. But a node
//! that was away while the others were led astray finds itself alone: where more than half of those whom it
//! hears for a while tell such terms, it is the one that is behind.

use std::collections::BTreeMap;

use super::{Election, State};
use crate::core::membership::MEMBERS_MAX;
use crate::core::output::Event;
use crate::time::Time;
use crate::types::{NodeId, Term};
use crate::wire::message::Message;

/// A term that is further above the highest known one than this comes from a broken node: no group
/// has so many reigns. It would leave no higher one to take for long.
const JUMP_MAX: u64 = 1 << 32;

/// By more than this the term rises once between two looks at the members, or a broken member that goes from
/// one term to the highest that is in reason, and on, would soon be at the last.
const LEAP: u64 = 1 << 16;

/// No term above this is taken from anybody, however many tell it.
const TERM_MAX: u64 = 1 << 63;

/// What was told of such terms since the last look at the members.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct FarTerms {
    /// Whose datagrams were refused, not of more nodes than fit into the table of members, and the terms.
    told: BTreeMap<NodeId, Term>,
    /// Whether the term has risen by more than [`LEAP`].
    leapt: bool,
}

impl Election {
    /// Whether `message` tells a term that is beyond reason.
    pub(super) fn is_far_ahead(&self, message: &Message) -> bool {
        let most = if self.far_terms.leapt { LEAP } else { JUMP_MAX };
        message.highest_term().0.saturating_sub(self.term.0) > most
    }

    /// Takes in what others have made of the term, which was `before`.
    pub(super) const fn note_rise(&mut self, before: Term) {
        self.far_terms.leapt |= self.term.0.saturating_sub(before.0) > LEAP;
    }

    /// Takes nothing from `message` but that its sender tells such a term.
    pub(super) fn refuse_term(&mut self, message: &Message) {
        self.ignored.absurd_term += 1;
        let has_room = self.far_terms.told.len() < MEMBERS_MAX;
        if message.highest_term().0 <= TERM_MAX && message.sender != self.node_id && has_room {
            self.far_terms.told.insert(message.sender, message.highest_term());
        }
        if self.members.knows(message.life()) {
            self.members.note_heard(&message.sender, message.sequence);
        }
    }

    /// Takes the lowest of the terms that were refused since the last sweep, where most members tell such
    /// ones.
    pub(super) fn catch_up(&mut self, now: Time) {
        let ahead = std::mem::take(&mut self.far_terms).told;
        let is_ahead = |id: &NodeId| ahead.contains_key(id);
        let beside = self
            .members
            .iter(now)
            .filter(|(id, _, state)| state.is_visible() && !is_ahead(id))
            .count();
        let Some(term) = ahead.values().min().copied().filter(|_| ahead.len() > beside) else {
            return;
        };
        let before = self.term;
        if self.state == State::Leading && !self.in_quorum_mode() {
            self.reaffirm(now, term);
        } else {
            self.learn_term(term);
        }
        self.note_rise(before);
        if self.term != before {
            self.notify(Event::CaughtUp { from: before, to: term });
        }
    }
}
