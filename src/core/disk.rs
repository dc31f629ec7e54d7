//! What must outlive the daemon: what was asked to be kept, and what is known to be on disk.

use std::hash::Hash;
use std::hash::Hasher;

use crate::core::persist::PersistentState;

/// A node's disk, as far as the node was told.
///
/// Writes take their time and overtake each other, so every state that is asked to be kept has a
/// revision of its own.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    written: PersistentState,
    /// What it was asked for last.
    asked: Option<PersistentState>,
}

impl Disk {
    /// A disk that holds what an earlier life left there.
    pub(crate) const fn holding(written: PersistentState) -> Self {
        Disk { written, asked: None }
    }

    /// What is on disk.
    pub(crate) const fn written(&self) -> &PersistentState {
        &self.written
    }

    /// Takes in what has to be kept from now on. Returns what to ask for; nothing where the same
    /// was asked for last.
    pub(crate) fn ask_for(&mut self, state: PersistentState) -> Option<PersistentState> {
        let revision = self.asked.unwrap_or(self.written).revision + 1;
        if self.asked.is_some_and(|last| last.says_the_same_as(&state)) {
            return None;
        }
        self.asked = Some(PersistentState { revision, ..state });
        self.asked
    }

    /// Takes in that `state` is on disk.
    pub(crate) const fn note_written(&mut self, state: PersistentState) {
        self.written = state;
    }

    /// Whether nothing waits for the disk. Before the end of a write is told, what is there may be
    /// replaced by what was asked for in between. So it is not enough that the last state says the
    /// same as the one that is known to be there.
    pub(crate) fn has_all(&self) -> bool {
        self.asked == Some(self.written)
    }
}

/// By what the states say, which is not all that counts: see [`Disk::has_all`].
impl Hash for Disk {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.written, self.asked, self.has_all()).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Term;

    fn state(term: u64) -> PersistentState {
        PersistentState { term: Term(term), ..PersistentState::default() }
    }

    #[test]
    fn what_was_asked_for_last_is_not_asked_for_again() {
        let mut disk = Disk::holding(state(0));
        assert!(disk.ask_for(state(1)).is_some());
        assert!(disk.ask_for(state(1)).is_none());
        assert!(disk.ask_for(state(2)).is_some());
    }

    #[test]
    fn a_disk_that_is_about_to_be_overwritten_has_not_got_all() {
        let mut disk = Disk::holding(state(0));
        let first = disk.ask_for(state(1)).unwrap();
        disk.ask_for(state(2)).unwrap();
        let third = disk.ask_for(state(1)).unwrap();
        disk.note_written(first);
        assert!(!disk.has_all(), "the second may be written just now");
        disk.note_written(third);
        assert!(disk.has_all());
    }
}
