//! Quorum mode: never two leaders, on clocks that drift at most 1 %, a disk that keeps what was
//! synced, and nothing else.
//!
//! Two devices keep that promise, and neither needs the network to be kind:
//!
//! * **A pledge** keeps leaderships apart in time. A voter that grants a vote, or acknowledges a
//!   declaration, promises for a while to do neither for anybody else. A leader acts only within
//!   its [`Lease`]: the time that a majority of pledges certainly still covers. Two majorities
//!   share a voter, and no voter's pledges overlap.
//! * **A ballot** keeps terms apart. A voter votes once in a term, and has that on disk before it
//!   says so; so no term has two leaders, and of two leaderships the later has the higher term.
//!
//! Here are the pieces, each pure and small; [`Election`](crate::core::Election) puts them
//! together.

pub mod census;
pub mod lease;
pub mod poll;
pub mod requests;
pub mod voter;
pub mod voters;

pub use census::{Answer, Census};
pub use lease::Lease;
pub use poll::{Poll, Question};
pub use voter::Voter;
pub use voters::{Voters, VotersError};
