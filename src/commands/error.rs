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
    /// This node leads, but its hook has not taken over yet.
    #[error("this node leads, but is not ready: its hook has not succeeded for elected yet")]
    HookPending,
    /// This node leads, but its hook could not take over.
    #[error(
        "this node leads, but is not ready: its hook failed; `lanelect status{options}` shows the run"
    )]
    HookFailed {
        /// What reaches the daemon.
        options: String,
    },
    /// No group was named, and this host has several.
    #[error("this host has daemons of several groups: {0}; name one with --group")]
    Ambiguous(String),
    /// What the command waited for did not happen.
    #[error("{0}")]
    Incomplete(String),
    /// The answer could not be printed.
    #[error("cannot print the answer: {0}")]
    Output(#[from] io::Error),
}

impl CommandError {
    /// The exit status. An error is no answer, with three exceptions: the daemon rejects `yield`
    /// because the node does not lead, leads by `static_role`, or cannot hand over to the named
    /// node; a leader is not ready; or a change is not complete.
    pub fn exit(&self) -> Exit {
        match self {
            CommandError::Client(ClientError::Refused(Refusal {
                kind: RefusalKind::NotLeader | RefusalKind::StaticRole | RefusalKind::NotSuccessor,
                ..
            }))
            | CommandError::HookPending
            | CommandError::HookFailed { .. } => Exit::NotLeader,
            CommandError::Incomplete(_) => Exit::Incomplete,
            _ => Exit::NoAnswer,
        }
    }
}
