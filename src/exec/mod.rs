//! `lanelect exec`: runs a command while this node leads and its hook has succeeded.
//!
//! The daemon sends grants over its control socket, each with the time until which the command may
//! run without another one. When the daemon ends the grant, hangs up, or sends no other one in
//! time, the command's process group gets SIGTERM, and SIGKILL when its time to stop is over. The
//! daemon starts the hook for `demoted`, and resigns, only when the command has ended. So no other
//! node leads beside it, except in available mode: there, other nodes wait only for a leader that
//! they hear.
//!
//! Nothing of this may depend on one process. If the daemon hangs or is killed, the supervisor,
//! which is this process, ends the command. If the supervisor hangs or is killed, the guard does: a
//! second process, and the first of the command's process group. Both go by the clock that the
//! daemon uses. If both hang, so does the rest of the host, or somebody stopped the processes one
//! by one.
//!
//! `supervisor` is the event loop, `link` the connection to the daemon, `job` the command with its
//! process group, `guard` the second process.

mod guard;
mod job;
mod link;
mod supervisor;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::process::ExitStatus;

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub use self::guard::{GUARD, guard};
use self::supervisor::Supervisor;
use crate::client::{ClientError, Target};
use crate::printable::printable;

/// Added to the number of a signal that ended a command, as shells do.
const BY_SIGNAL: i32 = 128;

/// What to run, and by which daemon.
#[derive(Debug)]
pub struct Settings {
    /// The daemon.
    pub target: Target,
    /// The program and its arguments; not empty.
    pub command: Vec<OsString>,
    /// Whether to wait for the next leadership, and run the command again, when one is lost.
    pub restarts: bool,
}

/// Why the command was not run, or is not supervised.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The daemon cannot be reached, refuses, or has hung up before the command was started.
    #[error(transparent)]
    Daemon(#[from] ClientError),
    /// The program cannot be started.
    #[error("cannot run {program}: {source}")]
    Program {
        /// The program.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// The process that guards the command cannot be started, so the command was not.
    #[error("cannot guard the command, so it was not started: {0}")]
    Guard(#[source] io::Error),
    /// The command cannot be waited for.
    #[error("cannot supervise the command: {0}")]
    Wait(#[from] io::Error),
}

impl ExecError {
    /// The exit status: 3 without a daemon, 127 or 126 as shells do, and 1.
    pub fn status(&self) -> u8 {
        match self {
            ExecError::Daemon(_) => 3,
            ExecError::Program { source, .. } if source.kind() == ErrorKind::NotFound => 127,
            ExecError::Program { .. } => 126,
            ExecError::Guard(_) | ExecError::Wait(_) => 1,
        }
    }
}

/// Runs the command, once or in each leadership. Returns the exit status of its last run: its own,
/// or 128 and the signal that ended it. A signal that ends the wait for a leadership counts
/// likewise.
///
/// # Errors
///
/// [`ExecError`] if the command was not started, or cannot be waited for.
pub fn run(settings: Settings) -> Result<u8, ExecError> {
    Supervisor::new(settings)?.run()
}

/// How a process ended, as one number.
fn code(status: ExitStatus) -> i32 {
    let by_signal = || BY_SIGNAL + status.signal().unwrap_or_default();
    status.code().unwrap_or_else(by_signal)
}

/// One line for people, unless stderr is a pipe that is full: nothing may wait for its reader. The
/// output belongs to the command.
fn say(text: &str) {
    let mut stderr = io::stderr();
    let mut ready = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    let is_ready = poll(&mut ready, PollTimeout::ZERO).is_ok_and(|count| count > 0);
    if is_ready {
        // Where even stderr is gone, the command's end still tells.
        let _ = stderr.write_all(format!("lanelect exec: {}\n", printable(text)).as_bytes());
    }
}
