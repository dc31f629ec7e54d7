//! The datagrams by which this node asked one question.

use crate::types::Sequence;

/// The datagrams of one question, which is repeated in case one was lost. The range may include
/// other datagrams, but no voter answers those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Requests {
    first: Sequence,
    last: Sequence,
}

impl Requests {
    /// The question, asked once.
    pub const fn from(request: Sequence) -> Self {
        Requests { first: request, last: request }
    }

    /// Notes that `request` repeats the question.
    pub const fn note_repeated(&mut self, request: Sequence) {
        self.last = request;
    }

    /// Whether the datagram `request` asked the question.
    pub fn contain(&self, request: Sequence) -> bool {
        (self.first..=self.last).contains(&request)
    }
}
