//! The persistent state: what was requested, and what is known to be on disk.

use std::hash::Hash;
use std::hash::Hasher;

use crate::core::persist::{Enrolment, PersistentState};

/// The disk, as far as this node knows.
///
/// Writes take time and may overtake each other, so every requested state has its own revision.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    written: PersistentState,
    /// The last requested state.
    asked: Option<PersistentState>,
}

impl Disk {
    /// A disk with the state of an earlier life.
    pub(crate) const fn holding(written: PersistentState) -> Self {
        Disk { written, asked: None }
    }

    /// What is on disk.
    pub(crate) const fn written(&self) -> &PersistentState {
        &self.written
    }

    /// Whether this voter is enrolled, on disk: its state holds every vote that it may have given.
    pub(crate) fn is_enrolled(&self) -> bool {
        self.written.enrolment == Enrolment::Enrolled
    }

    /// Notes the state to keep. Returns the state to write, or none if the last request was the
    /// same.
    pub(crate) fn ask_for(&mut self, state: PersistentState) -> Option<PersistentState> {
        let revision = self.asked.unwrap_or(self.written).revision + 1;
        if self.asked.is_some_and(|last| last.says_the_same_as(&state)) {
            return None;
        }
        self.asked = Some(PersistentState { revision, ..state });
        self.asked
    }

    /// Notes that `state` is on disk.
    pub(crate) const fn note_written(&mut self, state: PersistentState) {
        self.written = state;
    }

    /// Whether nothing waits for the disk. It is not enough that the last request equals the known
    /// state: a request in between may have replaced that, and its write may not be
    /// reported yet.
    pub(crate) fn has_all(&self) -> bool {
        self.asked == Some(self.written)
    }
}

/// The hash ignores the revisions, but not [`Disk::has_all`], which depends on them.
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
    fn same_state_is_requested_once() {
        let mut disk = Disk::holding(state(0));
        assert!(disk.ask_for(state(1)).is_some());
        assert!(disk.ask_for(state(1)).is_none());
        assert!(disk.ask_for(state(2)).is_some());
    }

    #[test]
    fn disk_with_a_pending_write_has_not_all() {
        let mut disk = Disk::holding(state(0));
        let first = disk.ask_for(state(1)).unwrap();
        disk.ask_for(state(2)).unwrap();
        let third = disk.ask_for(state(1)).unwrap();
        disk.note_written(first);
        assert!(!disk.has_all(), "the second may be on its way to the disk");
        disk.note_written(third);
        assert!(disk.has_all());
    }
}
