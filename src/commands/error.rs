//! Why a command failed.

use std::io;

use super::Exit;
use crate::client::ClientError;
use crate::control_api::{Refusal, RefusalKind};

/// Why a command failed. Displayed, it says what failed, why, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The answer could not be printed.
    #[error("cannot print the answer: {0}")]
    Output(#[from] io::Error),
}

impl CommandError {
    /// The exit status. An error is no answer, with one exception: the daemon rejects `yield`
    /// because the node does not lead, or leads by `static_role`.
    pub fn exit(&self) -> Exit {
        match self {
            CommandError::Client(ClientError::Refused(Refusal {
                kind: RefusalKind::NotLeader | RefusalKind::StaticRole,
                ..
            })) => Exit::NotLeader,
            _ => Exit::NoAnswer,
        }
    }
}
