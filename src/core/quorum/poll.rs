//! A candidate's question to the voters, and who has said yes.

use std::collections::BTreeSet;

use super::requests::Requests;
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
    /// The datagrams that asked.
    pub requests: Requests,
    granted: BTreeSet<NodeId>,
}

impl Poll {
    /// `question`, asked for the first time at `now` by the datagram `request`.
    pub const fn new(question: Question, now: Time, request: Sequence) -> Self {
        Poll { question, asked: now, requests: Requests::from(request), granted: BTreeSet::new() }
    }

    /// What is asked for.
    pub const fn question(&self) -> Question {
        self.question
    }

    /// When it was first asked.
    pub const fn asked(&self) -> Time {
        self.asked
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
        poll.requests.note_repeated(Sequence(9));
        assert_eq!(poll.asked(), Time::from_millis(5));
        assert!(poll.requests.contain(Sequence(7)) && poll.requests.contain(Sequence(9)));
        assert!(!poll.requests.contain(Sequence(6)) && !poll.requests.contain(Sequence(10)));
        let id = |text: &str| text.parse().unwrap();
        assert_eq!(poll.note_granted(id("a")), 1);
        assert_eq!(poll.note_granted(id("a")), 1);
        assert_eq!(poll.note_granted(id("b")), 2);
    }
}
