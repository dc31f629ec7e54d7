//! Which of a life's datagrams are recent.

use crate::types::Sequence;

/// The recent datagrams of a life: those sent since the last sweep but one. So they include what is
/// still in flight, and a life that is silent for longer has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Recent {
    from: Sequence,
    next: Sequence,
}

impl Recent {
    /// From `sequence` on, whenever that was sent.
    pub(crate) const fn since(sequence: Sequence) -> Self {
        Recent { from: sequence, next: sequence }
    }

    /// Only those after `newest`.
    pub(crate) const fn after(newest: Sequence) -> Self {
        Recent::since(Sequence(newest.0.saturating_add(1)))
    }

    /// Whether this datagram is recent.
    pub(crate) fn covers(self, sequence: Sequence) -> bool {
        sequence >= self.from
    }

    /// A sweep: `newest` is the newest datagram now.
    pub(crate) const fn move_on(&mut self, newest: Sequence) {
        self.from = self.next;
        self.next = Sequence(newest.0.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_datagrams_are_those_since_the_last_sweep_but_one() {
        let mut recent = Recent::since(Sequence(3));
        assert!(recent.covers(Sequence(3)) && !recent.covers(Sequence(2)));
        recent.move_on(Sequence(5));
        assert!(recent.covers(Sequence(3)), "one sweep ago");
        recent.move_on(Sequence(9));
        assert!(recent.covers(Sequence(6)) && !recent.covers(Sequence(5)));
        recent.move_on(Sequence(9));
        assert!(!recent.covers(Sequence(9)), "it has been silent for long");
    }
}
