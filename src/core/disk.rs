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
    /// The first revision of this life since which each one has the promises of the last one.
    promised: u64,
}

impl Disk {
    /// A disk with the state of an earlier life.
    pub(crate) const fn holding(written: PersistentState) -> Self {
        Disk { written, asked: None, promised: written.revision + 1 }
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
        if !self.asked.is_some_and(|last| last.promises_the_same_as(&state)) {
            self.promised = revision;
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

    /// Whether this voter's promises are on disk, and no write under way replaces them. The rest of
    /// the state may wait: a disk that fails or hangs costs no leader that has its pledge.
    pub(crate) const fn has_promises(&self) -> bool {
        self.written.revision >= self.promised
    }
}

/// The hash ignores the revisions, but not what depends on them.
impl Hash for Disk {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.written, self.asked, self.has_all(), self.has_promises()).hash(hasher);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::persist::Pledge;
    use crate::types::{Incarnation, Life, Term};

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

    #[test]
    fn promises_are_on_disk_though_the_rest_waits() {
        let mut disk = Disk::holding(state(0));
        assert!(!disk.has_promises(), "this life has written nothing");
        let first = disk.ask_for(state(1)).unwrap();
        disk.note_written(first);
        disk.ask_for(PersistentState { maintenance: true, ..state(2) }).unwrap();
        assert!(disk.has_promises() && !disk.has_all());
    }

    #[test]
    fn promises_that_a_pending_write_may_replace_are_not_on_disk() {
        let mut disk = Disk::holding(state(0));
        let first = disk.ask_for(state(1)).unwrap();
        let to = Life { node_id: "a".parse().unwrap(), incarnation: Incarnation(1) };
        let pledge = Some(Pledge::new(to, Term(1), Duration::from_secs(1)));
        disk.ask_for(PersistentState { pledge, ..state(1) }).unwrap();
        let third = disk.ask_for(state(1)).unwrap();
        disk.note_written(first);
        assert!(!disk.has_promises(), "the second may be on its way to the disk");
        disk.note_written(third);
        assert!(disk.has_promises());
    }
}
