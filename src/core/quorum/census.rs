//! What the other voters have answered to one without a memory.

use std::collections::BTreeMap;

use crate::types::{NodeId, Sequence};

/// What another voter says about its own memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It has none either.
    Nothing,
    /// It has none, and has seen that nobody has: the group is new.
    Founding,
    /// It has one, and may not speak yet: a pledge that the one who asks has forgotten could still be
    /// in force.
    Remembers,
    /// It has one, and the datagram's term is the highest that it knows.
    Testifies,
}

/// The answers to the inquiries of one life, each voter's newest. Only answers count, because an
/// answer was given after the question: other datagrams may be from before, however late they come.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Census {
    /// The numbers of the first and the last inquiry.
    inquiries: (Sequence, Sequence),
    answers: BTreeMap<NodeId, Answer>,
}

impl Census {
    /// Begins with the datagram `inquiry`.
    pub const fn new(inquiry: Sequence) -> Self {
        Census { inquiries: (inquiry, inquiry), answers: BTreeMap::new() }
    }

    /// Takes in that it is asked again.
    pub const fn note_repeated(&mut self, inquiry: Sequence) {
        self.inquiries.1 = inquiry;
    }

    /// Whether the datagram `request` was one of its inquiries. Of the numbers in between, others may
    /// have been given to datagrams that nobody answers.
    pub fn was_asked_by(&self, request: Sequence) -> bool {
        (self.inquiries.0..=self.inquiries.1).contains(&request)
    }

    /// Takes in what `voter` answered.
    pub fn note(&mut self, voter: NodeId, answer: Answer) {
        self.answers.insert(voter, answer);
    }

    /// What `voter` answered last.
    pub fn answer(&self, voter: &NodeId) -> Option<Answer> {
        self.answers.get(voter).copied()
    }

    /// How many voters testify.
    pub fn testimonies(&self) -> usize {
        self.answers.values().filter(|answer| **answer == Answer::Testifies).count()
    }

    /// Whether each of `voters` has answered in a way that `fits`.
    pub fn all(
        &self,
        mut voters: impl Iterator<Item = NodeId>,
        fits: impl Fn(Answer) -> bool,
    ) -> bool {
        voters.all(|voter| self.answers.get(&voter).is_some_and(|answer| fits(*answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    #[test]
    fn the_newest_answer_of_each_voter_counts() {
        let mut census = Census::new(Sequence(3));
        let both = || [id("a"), id("b")].into_iter();
        assert!(!census.all(both(), |_| true));
        census.note(id("a"), Answer::Nothing);
        census.note(id("b"), Answer::Testifies);
        assert!(census.all(both(), |_| true));
        assert!(!census.all(both(), |answer| answer == Answer::Nothing));
        assert_eq!(census.testimonies(), 1);
        census.note(id("a"), Answer::Testifies);
        census.note(id("a"), Answer::Testifies);
        assert_eq!(census.testimonies(), 2);
    }

    #[test]
    fn every_inquiry_of_it_may_be_answered() {
        let mut census = Census::new(Sequence(3));
        census.note_repeated(Sequence(5));
        assert!(census.was_asked_by(Sequence(3)) && census.was_asked_by(Sequence(5)));
        assert!(!census.was_asked_by(Sequence(2)) && !census.was_asked_by(Sequence(6)));
    }
}
