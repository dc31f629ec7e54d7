//! Quorum mode: never two leaders, if clocks drift at most 1 % and the disk keeps what was synced.
//!
//! Two devices keep that promise on any network:
//!
//! * **A pledge** keeps leaderships apart in time. A voter that grants a vote, or acknowledges a
//!   declaration, promises to do neither for any other node for a while. A leader acts only within
//!   its [`Lease`]: the time that the pledges of a majority still cover for certain. Two majorities
//!   share a voter, and no voter's pledges overlap.
//! * **A ballot** keeps terms apart. A voter votes once in a term, and its vote is on disk before
//!   it is sent. So no term has two leaders, and the later of two leaderships has the higher term.
//!
//! The pieces here are pure and small. `core/election/quorum` combines them: what this node asks,
//! answers and does.

pub mod asked;
pub mod census;
pub mod lease;
pub mod poll;
pub mod voter;
pub mod voters;

pub use census::{Answer, Census};
pub use lease::Lease;
pub use poll::{Poll, Question};
pub use voter::Voter;
pub use voters::{Voters, VotersError};
