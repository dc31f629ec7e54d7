//! The other voters' answers to a voter without its state.

use std::collections::BTreeMap;

use super::asked::Requests;
use crate::core::persist::Enrolment;
use crate::types::{NodeId, Sequence};

/// Another voter's answer about its own state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Answer {
    /// How far that state holds its votes.
    pub enrolment: Enrolment,
    /// Whether the datagram's term is the highest that it knows, and it has forgotten no vote. It
    /// does not testify while a pledge that the asking voter may have forgotten can still be in
    /// force.
    pub testifies: bool,
}

/// The answers to the inquiries of one life, the newest of each voter. Only answers count, because
/// other datagrams may have been sent before the inquiry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Census {
    /// The datagrams that asked.
    pub requests: Requests,
    answers: BTreeMap<NodeId, Answer>,
}

impl Census {
    /// A census that begins with the datagram `inquiry`.
    pub const fn new(inquiry: Sequence) -> Self {
        Census { requests: Requests::from(inquiry), answers: BTreeMap::new() }
    }

    /// Notes the answer of `voter`.
    pub fn note(&mut self, voter: NodeId, answer: Answer) {
        self.answers.insert(voter, answer);
    }

    /// The newest answer of `voter`.
    pub fn answer(&self, voter: &NodeId) -> Option<Answer> {
        self.answers.get(voter).copied()
    }

    /// How many voters testify.
    pub fn testimonies(&self) -> usize {
        self.answers.values().filter(|answer| answer.testifies).count()
    }

    /// Whether each of `voters` has answered with an enrolment that `fits`.
    pub fn all(
        &self,
        mut voters: impl Iterator<Item = NodeId>,
        fits: impl Fn(Enrolment) -> bool,
    ) -> bool {
        voters.all(|voter| self.answers.get(&voter).is_some_and(|answer| fits(answer.enrolment)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    const NOTHING: Answer = Answer { enrolment: Enrolment::None, testifies: false };
    const TESTIMONY: Answer = Answer { enrolment: Enrolment::Founding, testifies: true };

    #[test]
    fn the_newest_answer_of_each_voter_counts() {
        let mut census = Census::new(Sequence(3));
        let both = || [id("a"), id("b")].into_iter();
        assert!(!census.all(both(), |_| true));
        census.note(id("a"), NOTHING);
        census.note(id("b"), TESTIMONY);
        assert!(census.all(both(), |_| true));
        assert!(!census.all(both(), |enrolment| enrolment == Enrolment::None));
        assert_eq!(census.testimonies(), 1);
        census.note(id("a"), TESTIMONY);
        census.note(id("a"), TESTIMONY);
        assert_eq!(census.testimonies(), 2);
    }

    #[test]
    fn answers_to_each_inquiry_count() {
        let mut census = Census::new(Sequence(3));
        census.requests.note_repeated(Sequence(5));
        assert!(census.requests.contain(Sequence(3)) && census.requests.contain(Sequence(5)));
        assert!(!census.requests.contain(Sequence(2)) && !census.requests.contain(Sequence(6)));
    }
}
