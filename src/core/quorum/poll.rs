//! A candidate's question to the voters, and who has said yes.

use std::collections::BTreeSet;

use crate::time::Time;
use crate::types::{NodeId, Sequence};

/// What a candidate asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// "Would you vote for me?" Costs nobody anything: no term is taken and nothing is promised, so
    /// that a node which cannot win disturbs nobody.
    Support,
    /// "Vote for me."
    Vote,
}

/// One question, asked once or, in case it was lost, again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Poll {
    question: Question,
    /// When it was first asked. What the answers promise counts from here at the latest.
    asked: Time,
    /// The numbers of the first and the last datagram that asked.
    requests: (Sequence, Sequence),
    granted: BTreeSet<NodeId>,
}

impl Poll {
    /// `question`, asked for the first time at `now` by the datagram `request`.
    pub const fn new(question: Question, now: Time, request: Sequence) -> Self {
        Poll { question, asked: now, requests: (request, request), granted: BTreeSet::new() }
    }

    /// What is asked for.
    pub const fn question(&self) -> Question {
        self.question
    }

    /// When it was first asked.
    pub const fn asked(&self) -> Time {
        self.asked
    }

    /// Takes in that it is asked again.
    pub const fn note_repeated(&mut self, request: Sequence) {
        self.requests.1 = request;
    }

    /// Whether the datagram `request` asked this. Of the numbers between the first and the last,
    /// others may have been given to datagrams that nobody answers.
    pub fn was_asked_by(&self, request: Sequence) -> bool {
        (self.requests.0..=self.requests.1).contains(&request)
    }

    /// Takes in that `voter` said yes, and returns how many have.
    pub fn note_granted(&mut self, voter: NodeId) -> usize {
        self.granted.insert(voter);
        self.granted.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voter_counts_once_and_every_asking_counts() {
        let mut poll = Poll::new(Question::Vote, Time::from_millis(5), Sequence(7));
        poll.note_repeated(Sequence(9));
        assert_eq!(poll.asked(), Time::from_millis(5));
        assert!(poll.was_asked_by(Sequence(7)) && poll.was_asked_by(Sequence(9)));
        assert!(!poll.was_asked_by(Sequence(6)) && !poll.was_asked_by(Sequence(10)));
        let id = |text: &str| text.parse().unwrap();
        assert_eq!(poll.note_granted(id("a")), 1);
        assert_eq!(poll.note_granted(id("a")), 1);
        assert_eq!(poll.note_granted(id("b")), 2);
    }
}
