//! A candidate's question to the voters, and the answers.

use std::collections::BTreeSet;

use super::asked::Requests;
use crate::time::Time;
use crate::types::{NodeId, Sequence};

/// The question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Question {
    /// "Would you vote for me?" It takes no term and asks for no promise, so a node that cannot win
    /// does not disturb the group.
    Support,
    /// "Vote for me."
    Vote,
}

/// One question, which is repeated in case a datagram was lost.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Poll {
    question: Question,
    /// When it was first asked. The promises in the answers count from here.
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

    /// The question.
    pub const fn question(&self) -> Question {
        self.question
    }

    /// When it was first asked.
    pub const fn asked(&self) -> Time {
        self.asked
    }

    /// Notes that `voter` granted, and returns how many have.
    pub fn note_granted(&mut self, voter: NodeId) -> usize {
        self.granted.insert(voter);
        self.granted.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn voter_counts_once_and_may_answer_each_request() {
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
