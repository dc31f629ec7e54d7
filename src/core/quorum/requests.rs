//! Which datagrams of this node asked one question.

use crate::types::Sequence;

/// The datagrams that asked one question: once or, in case it was lost, again. Of the numbers in
/// between, others may have been given to datagrams that nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Requests {
    first: Sequence,
    last: Sequence,
}

impl Requests {
    /// The question was asked by `request` alone.
    pub const fn from(request: Sequence) -> Self {
        Requests { first: request, last: request }
    }

    /// Takes in that `request` asks it again.
    pub const fn note_repeated(&mut self, request: Sequence) {
        self.last = request;
    }

    /// Whether the datagram `request` asked it.
    pub fn contain(&self, request: Sequence) -> bool {
        (self.first..=self.last).contains(&request)
    }
}
