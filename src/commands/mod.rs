//! The commands that query a running daemon, or change something there.
//!
//! Each command waits for the daemon's answer, prints it to the writer that it gets, and returns
//! how the process should exit. A [`CommandError`] says why there is no answer, and what to do.

mod check;
mod error;
mod live;
mod local;
mod reader;
mod status;
mod transition;
mod wait;

use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;

pub use self::check::{State, check};
pub use self::error::CommandError;
pub use self::live::{Show, live};
pub use self::local::{default_target, only, overview, targets};
use self::reader::Reader;
pub use self::status::render;
pub use self::transition::render_transition;
pub use self::wait::{await_maintenance, await_successor};
use crate::client::Target;
use crate::control_api::{Done, Readiness, Request, Response};
use crate::printable::printable;
use crate::types::NodeId;

/// How a client command ends the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or yes.
    Success = 0,
    /// No: this node does not lead, is not ready, or has no leadership that it could give up.
    NotLeader = 1,
    /// There is no answer.
    NoAnswer = 3,
    /// What a command waited for did not happen in time, or cannot happen.
    Incomplete = 4,
}

/// `lanelect status`: who leads, since when, and how fresh each member is; with `json`, the
/// [`StatusReport`](crate::control_api::StatusReport) as one line.
///
/// # Errors
///
/// [`CommandError`] where there is no answer or it cannot be printed.
pub fn status(target: &Target, json: bool, out: &mut impl Write) -> Result<Exit, CommandError> {
    let report = target.status()?;
    let text = match json {
        true => serde_json::to_string(&report).map_err(io::Error::from)? + "\n",
        false => render(&report, target),
    };
    finish(out, &text)
}

/// `lanelect is-leader`: prints nothing, the exit status is the answer.
///
/// # Errors
///
/// [`CommandError`] where there is no answer.
pub fn is_leader(target: &Target) -> Result<Exit, CommandError> {
    Ok(if target.is_leader()? { Exit::Success } else { Exit::NotLeader })
}

/// `lanelect is-leader --ready`: as [`is_leader`], and this node's hook must have taken over.
///
/// # Errors
///
/// [`CommandError`] where there is no answer, or where this node leads and is not ready.
pub fn is_ready(target: &Target) -> Result<Exit, CommandError> {
    match target.readiness()? {
        Readiness::Ready => Ok(Exit::Success),
        Readiness::NotLeader => Ok(Exit::NotLeader),
        Readiness::HookPending => Err(CommandError::HookPending),
        Readiness::HookFailed => Err(CommandError::HookFailed { options: target.options() }),
    }
}

/// `lanelect watch`: one line per transition until the process is interrupted, the reader of `out`
/// hangs up, or the daemon does; with `json`, each
/// [`Transition`](crate::control_api::Transition) as the daemon sent it. `output` is what `out`
/// writes to: its reader may hang up while there is nothing to write.
///
/// # Errors
///
/// [`CommandError`] where there is no answer, the daemon ends the watch, or a line cannot be
/// printed.
pub fn watch(
    target: &Target,
    json: bool,
    out: &mut impl Write,
    output: &impl AsFd,
) -> Result<Exit, CommandError> {
    let reader = Reader::of(output)?;
    let mut watch = target.watch()?;
    loop {
        if !watch.has_read_ahead() && !reader.waits_for(watch.connection())? {
            return Ok(Exit::Success);
        }
        let text = match json {
            true => watch.next_line()?,
            false => render_transition(&watch.next_transition()?),
        };
        if print(out, &text)?.is_break() {
            return Ok(Exit::Success);
        }
    }
}

/// `lanelect yield`: the leader gives its leadership up, to the member `to` if that is named.
///
/// # Errors
///
/// [`CommandError`] where it does not, also because it does not lead, leads by `static_role`, or
/// `to` cannot take over.
pub fn yield_leadership(
    target: &Target,
    to: Option<NodeId>,
    out: &mut impl Write,
) -> Result<Exit, CommandError> {
    let receiver = to.map_or(String::new(), |to| format!(" to {to}"));
    hand_over(target, Request::Yield { to }, &receiver, out)
}

/// `lanelect yield --failed`: the leader gives its leadership up, because its service has failed.
///
/// # Errors
///
/// [`CommandError`] where it does not, also because it does not lead, or leads by `static_role`.
pub fn yield_failed(target: &Target, out: &mut impl Write) -> Result<Exit, CommandError> {
    hand_over(target, Request::YieldFailed, "", out)
}

fn hand_over(
    target: &Target,
    request: Request,
    receiver: &str,
    out: &mut impl Write,
) -> Result<Exit, CommandError> {
    let doing = match target.ask(request)? {
        Response::Ok(Done::Yielding) => "hands over",
        Response::Ok(Done::AlreadyYielding) => "is already handing over",
        other => return Err(target.unexpected(&other).into()),
    };
    finish(out, &format!("this node {doing} its leadership{receiver}\n"))
}

/// `lanelect maintenance on|off`: takes the node out of service, or back in.
///
/// # Errors
///
/// [`CommandError`] where that was not done.
pub fn maintenance(target: &Target, on: bool, out: &mut impl Write) -> Result<Exit, CommandError> {
    let text = match target.ask(Request::Maintenance { on })? {
        Response::Ok(Done::MaintenanceOn) if on => format!(
            "maintenance is on: this node is not eligible to lead until \
             `lanelect maintenance off{}`\n",
            target.options()
        ),
        Response::Ok(Done::MaintenanceOff) if !on => {
            "maintenance is off: this node takes part in elections\n".to_owned()
        }
        other => return Err(target.unexpected(&other).into()),
    };
    finish(out, &text)
}

/// Prints the whole answer of a command.
fn finish(out: &mut impl Write, text: &str) -> Result<Exit, CommandError> {
    print(out, text).map(|_| Exit::Success)
}

/// Prints at once, and nothing that a terminal would act on. Breaks where the reader has hung up,
/// which is no error.
fn print(out: &mut impl Write, text: &str) -> Result<ControlFlow<()>, CommandError> {
    print_raw(out, &printable(text))
}

/// The same, with all that is in the text: it must be printable, but for what moves the cursor.
fn print_raw(out: &mut impl Write, text: &str) -> Result<ControlFlow<()>, CommandError> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error.into()),
    }
}

/// Statuses for tests.
#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::status::tests::follower;
}
