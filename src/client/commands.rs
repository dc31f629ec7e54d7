//! The commands that ask a running daemon, or tell it something.
//!
//! Each blocks until it is answered, prints to the writer it is given, and returns how the process
//! should exit. What stands in the way of an answer is a [`ClientError`], which tells people what
//! to do about it.

use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;

use super::{ClientError, Target, render, render_transition};
use crate::control_api::{Done, Request, Response, StatusReport};
use crate::printable::printable;

/// How a client command ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or yes.
    Success = 0,
    /// No: this node does not lead, or has no leadership that it could give up.
    NotLeader = 1,
    /// There is no answer.
    NoAnswer = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// `lanelect status`: who leads, since when, and how fresh each member is; with `json`, the
/// [`StatusReport`] as one line.
///
/// # Errors
///
/// [`ClientError`] where there is no answer or it cannot be printed.
pub fn status(target: &Target, json: bool, out: &mut impl Write) -> Result<Exit, ClientError> {
    let report = target.status()?;
    let text = if json { to_line(&report)? } else { render(&report) };
    finish(out, &text)
}

/// `lanelect is-leader`: prints nothing, the exit status is the answer.
///
/// # Errors
///
/// [`ClientError`] where there is no answer.
pub fn is_leader(target: &Target) -> Result<Exit, ClientError> {
    Ok(if target.is_leader()? { Exit::Success } else { Exit::NotLeader })
}

/// `lanelect watch`: one line per transition until the process is interrupted, the reader of `out`
/// hangs up, or the daemon does; with `json`, each
/// [`Transition`](crate::control_api::Transition) as the daemon sent it.
///
/// # Errors
///
/// [`ClientError`] where there is no answer, the daemon ends the watch, or a line cannot be
/// printed.
pub fn watch(target: &Target, json: bool, out: &mut impl Write) -> Result<Exit, ClientError> {
    let mut watch = target.watch()?;
    loop {
        let line = watch.next_line()?;
        let text = if json { line } else { render_transition(&watch.conversation.parse(&line)?) };
        if print(out, &text)?.is_break() {
            return Ok(Exit::Success);
        }
    }
}

/// `lanelect yield`: the leader gives its leadership up.
///
/// # Errors
///
/// [`ClientError`] where it does not, also because it does not lead, or leads by `static_role`.
pub fn yield_leadership(target: &Target, out: &mut impl Write) -> Result<Exit, ClientError> {
    let text = match target.ask(Request::Yield)? {
        Response::Ok(Done::Yielding) => "this node hands over its leadership\n",
        Response::Ok(Done::AlreadyYielding) => "this node is already handing over its leadership\n",
        other => return Err(target.unexpected(&other)),
    };
    finish(out, text)
}

/// `lanelect maintenance on|off`: takes the node out of service, or back in.
///
/// # Errors
///
/// [`ClientError`] where that was not done.
pub fn maintenance(target: &Target, on: bool, out: &mut impl Write) -> Result<Exit, ClientError> {
    let text = match target.ask(Request::Maintenance { on })? {
        Response::Ok(Done::MaintenanceOn) if on => {
            "maintenance is on: this node is not eligible to lead until \
             `lanelect maintenance off`\n"
        }
        Response::Ok(Done::MaintenanceOff) if !on => {
            "maintenance is off: this node takes part in elections\n"
        }
        other => return Err(target.unexpected(&other)),
    };
    finish(out, text)
}

fn to_line(report: &StatusReport) -> Result<String, ClientError> {
    let json = serde_json::to_string(report).map_err(io::Error::from)?;
    Ok(json + "\n")
}

/// Prints the whole answer of a command.
fn finish(out: &mut impl Write, text: &str) -> Result<Exit, ClientError> {
    print(out, text).map(|_| Exit::Success)
}

/// Prints at once, and nothing that a terminal would act on. Breaks where the reader has hung up,
/// which is no error.
fn print(out: &mut impl Write, text: &str) -> Result<ControlFlow<()>, ClientError> {
    match out.write_all(printable(text).as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error.into()),
    }
}
