//! Terms that no group has got to.
//!
//! A broken member that announces one is refused, or there would soon be no higher one to take.

use super::Election;
use crate::types::Term;
use crate::wire::message::Message;

/// Up to here any term is taken, by a node that is new or was away. No group has so many
/// leaderships: at one a second it would take 136 years.
const IN_REASON: u64 = 1 << 32;

/// A higher one is taken only if it is not further above the highest known one than this. At 50,000
/// datagrams a second, which is more than a node judges, the last term is 178 years away.
const STEP: u64 = 1 << 16;

impl Election {
    /// Whether `message` announces a term that no group has got to.
    pub(super) fn is_far_ahead(&self, message: &Message) -> bool {
        let known = self.term.max(self.heard_term);
        let most = known.0.saturating_add(STEP).max(IN_REASON);
        message.highest_term() > Term(most)
    }

    /// Takes nothing from `message` but its number, so that it means nothing later either.
    pub(super) fn refuse_term(&mut self, message: &Message) {
        self.ignored.absurd_term += 1;
        if self.members.knows(message.life()) {
            self.members.note_heard(&message.sender, message.sequence);
        }
    }
}
