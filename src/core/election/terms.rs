//! The terms that a node knows, and those that no group has got to.

use super::{Election, State};
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
/// Invariant: `known` never shrinks, and no datagram shows a term that is not on disk.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Terms {
    /// The highest one that this node has taken in.
    pub(super) known: Term,
    /// The one that the leader which this node follows, or is, declared last, or will declare
    /// first; of the last leader where there is none. It may be lower than the highest known one.
    pub(super) current: Term,
}

impl Terms {
    /// Of a node whose earlier life knew of `known`.
    pub(super) fn restored(known: Term) -> Self {
        Terms { known, current: Term::default() }
    }
}

impl Election {
    /// Takes a term above every known one, for a leadership of this node.
    pub(super) fn take_next_term(&mut self) {
        self.terms.known = self.terms.known.next();
        self.persist();
    }

    /// Whether the term that this node knows is on disk.
    pub(super) fn term_is_kept(&self) -> bool {
        self.disk.written().term >= self.terms.known
    }

    /// Takes in a term that another node knows. A leader keeps it for the time after its
    /// leadership.
    pub(super) fn learn_term(&mut self, term: Term) {
        if matches!(self.state, State::Leading | State::HandingOver { .. }) {
            self.note_term_while_leading(term);
        } else if term > self.terms.known {
            self.terms.known = term;
            self.persist();
        }
    }

    /// Whether `message` announces a term that no group has got to.
    pub(super) fn is_far_ahead(&self, message: &Message) -> bool {
        let known = self.terms.known.max(self.conflicts.heard);
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
