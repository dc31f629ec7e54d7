//! The terms that a node knows, and absurdly high terms, which no group can have reached.

use super::Election;
use crate::types::Term;
use crate::wire::message::Message;

/// Any term up to this is believed, even by a node that knows only low ones. No group has so many
/// leaderships: at one a second they take 136 years.
const IN_REASON: u64 = 1 << 32;

/// A higher term is believed only up to this far above the highest known one. At 50,000 datagrams a
/// second, which is more than a node handles, the last term is 178 years away.
const STEP: u64 = 1 << 16;

/// The terms that a node knows.
///
/// Invariant: `known` never shrinks, and no datagram carries a term that is not on disk.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Terms {
    /// The highest known term.
    pub(super) known: Term,
    /// The term of the leader that this node follows or is: the last one it declared, or the first
    /// one it will declare. Without a leader, that of the last one. It may be below the highest
    /// known term.
    pub(super) current: Term,
    /// The term that this node took last, if no other node knows of it: this one may still lead in
    /// it.
    untold: Option<Term>,
}

impl Terms {
    /// The terms of a node whose earlier life knew `known`.
    pub(super) fn restored(known: Term) -> Self {
        Terms { known, current: Term::default(), untold: None }
    }

    /// Whether this node took the highest known term, and no other node knows of it.
    pub(super) fn is_untold(&self) -> bool {
        self.untold == Some(self.known)
    }
}

/// Whether `term` is absurdly high for a node that knows of `known`.
pub(super) fn is_absurd(term: Term, known: Term) -> bool {
    term.0 > known.0.saturating_add(STEP).max(IN_REASON)
}

impl Election {
    /// Takes a term above every known one, for a leadership of this node.
    pub(super) fn take_next_term(&mut self) {
        self.terms.known = self.terms.known.next();
        self.persist();
    }

    /// Takes a term for a leadership of this node, unless it has taken one that no node knows of.
    pub(super) fn take_untold_term(&mut self) {
        if !self.terms.is_untold() {
            self.take_next_term();
            self.terms.untold = Some(self.terms.known);
        }
    }

    /// Another node knows of `told`, and may lead in it.
    pub(super) fn note_told_term(&mut self, told: Term) {
        self.terms.untold = self.terms.untold.filter(|untold| *untold > told);
    }

    /// Whether the term that this node knows is on disk.
    pub(super) fn term_is_kept(&self) -> bool {
        self.disk.written().term >= self.terms.known
    }

    /// Learns a term that another node knows. A leader keeps it until its leadership ends.
    pub(super) fn learn_term(&mut self, term: Term) {
        if self.state.is_in_office() {
            return self.note_term_while_leading(term);
        }
        self.note_told_term(term);
        if term > self.terms.known {
            self.terms.known = term;
            self.persist();
        }
    }

    /// Ignores `message`, but notes its number, so that it is ignored later, too.
    pub(super) fn refuse_term(&mut self, message: &Message) {
        self.outbox.ignored.absurd_term += 1;
        if self.members.knows(message.life()) {
            self.members.note_heard(&message.sender, message.sequence);
            self.note_if_open(message);
        }
    }
}
