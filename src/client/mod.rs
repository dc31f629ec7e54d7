//! The commands that ask a running daemon, or tell it something, over its control socket.
//!
//! Each blocks until it is answered, prints to the writer it is given, and returns how the process
//! should exit. What stands in the way of an answer is a [`ClientError`], which tells people what
//! to do about it.

mod error;
mod status;
mod transition;

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::de::DeserializeOwned;
use socket2::{Domain, SockAddr, Socket, Type};

pub use error::ClientError;
pub use status::render;
pub use transition::render_transition;

use crate::control_api::{Done, RESPONSE_MAX, Request, Response, StatusReport};
use crate::printable::printable;

/// Longest wait for the daemon to accept a connection, and then for each piece of its answer.
pub const TIMEOUT: Duration = Duration::from_secs(5);

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

/// Which daemon to talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    socket: PathBuf,
}

impl Target {
    /// The daemon that listens on this socket.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Target { socket: socket.into() }
    }

    /// The socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The daemon answered another question.
    fn unexpected(&self, response: &Response) -> ClientError {
        let what = format!("it answers another question: {response:?}");
        ClientError::incomprehensible(&self.socket, "", what)
    }
}

/// `lanelect status`: who leads, since when, and how fresh each member is; with `json`, the
/// [`StatusReport`] as one line.
///
/// # Errors
///
/// [`ClientError`] where there is no answer or it cannot be printed.
pub fn status(target: &Target, json: bool, out: &mut impl Write) -> Result<Exit, ClientError> {
    let report = match ask(target, Request::Status)? {
        Response::Status(report) => report,
        other => return Err(target.unexpected(&other)),
    };
    let text = if json { to_line(&report)? } else { render(&report) };
    finish(out, &text)
}

/// `lanelect is-leader`: prints nothing, the exit status is the answer.
///
/// # Errors
///
/// [`ClientError`] where there is no answer.
pub fn is_leader(target: &Target) -> Result<Exit, ClientError> {
    match ask(target, Request::IsLeader)? {
        Response::Leader(true) => Ok(Exit::Success),
        Response::Leader(false) => Ok(Exit::NotLeader),
        other => Err(target.unexpected(&other)),
    }
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
    let mut conversation = Conversation::open(target, Request::Watch)?;
    match conversation.response()? {
        Response::Ok(Done::Watching) => {}
        other => return Err(target.unexpected(&other)),
    }
    conversation.wait_without_limit()?;
    while let Some(line) = conversation.line()? {
        let text = if json { line } else { render_transition(&conversation.parse(&line)?) };
        if print(out, &text)?.is_break() {
            return Ok(Exit::Success);
        }
    }
    Err(ClientError::WatchEnded(target.socket.clone()))
}

/// `lanelect yield`: the leader gives its leadership up.
///
/// # Errors
///
/// [`ClientError`] where it does not, also because it does not lead, or leads by `static_role`.
pub fn yield_leadership(target: &Target, out: &mut impl Write) -> Result<Exit, ClientError> {
    let text = match ask(target, Request::Yield)? {
        Response::Ok(Done::Yielding) => "the leadership is being handed over\n",
        Response::Ok(Done::AlreadyYielding) => "the node is yielding already\n",
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
    let text = match ask(target, Request::Maintenance { on })? {
        Response::Ok(Done::MaintenanceOn) if on => {
            "maintenance is on: the node stays out of elections until \
             `lanelect maintenance off`\n"
        }
        Response::Ok(Done::MaintenanceOff) if !on => {
            "maintenance is off: the node takes part in elections\n"
        }
        other => return Err(target.unexpected(&other)),
    };
    finish(out, text)
}

/// One request and its answer.
fn ask(target: &Target, request: Request) -> Result<Response, ClientError> {
    Conversation::open(target, request)?.response()
}

/// A connection to a daemon that has been sent its request.
struct Conversation<'a> {
    target: &'a Target,
    stream: BufReader<UnixStream>,
}

impl<'a> Conversation<'a> {
    fn open(target: &'a Target, request: Request) -> Result<Self, ClientError> {
        let io_error = |error| ClientError::exchange(&target.socket, error);
        let mut stream = connect(&target.socket)
            .map_err(|error| ClientError::connecting(&target.socket, error))?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(io_error)?;
        stream.set_write_timeout(Some(TIMEOUT)).map_err(io_error)?;
        let mut line = serde_json::to_vec(&request).map_err(io::Error::from).map_err(io_error)?;
        line.push(b'\n');
        match stream.write_all(&line) {
            // A daemon that hung up may have said why.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            sent => sent.map_err(io_error)?,
        }
        Ok(Conversation { target, stream: BufReader::new(stream) })
    }

    /// The answer, unless it is a refusal.
    fn response(&mut self) -> Result<Response, ClientError> {
        let socket = &self.target.socket;
        let line = self.line()?.ok_or_else(|| ClientError::HungUp(socket.clone()))?;
        match self.parse(&line)? {
            Response::Refused(refusal) => Err(ClientError::Refused(refusal)),
            response => Ok(response),
        }
    }

    /// The next line, with its line feed; none once the daemon has hung up.
    fn line(&mut self) -> Result<Option<String>, ClientError> {
        let socket = &self.target.socket;
        let mut line = Vec::new();
        let read = (&mut self.stream).take(RESPONSE_MAX as u64).read_until(b'\n', &mut line);
        read.map_err(|error| ClientError::exchange(socket, error))?;
        match line.last() {
            None => Ok(None),
            Some(b'\n') => String::from_utf8(line)
                .map(Some)
                .map_err(|error| ClientError::incomprehensible(socket, "", error)),
            Some(_) if line.len() >= RESPONSE_MAX => {
                let what = format!("it is longer than {RESPONSE_MAX} bytes");
                Err(ClientError::incomprehensible(socket, "", what))
            }
            Some(_) => Err(ClientError::HungUp(socket.clone())),
        }
    }

    fn parse<T: DeserializeOwned>(&self, line: &str) -> Result<T, ClientError> {
        serde_json::from_str(line)
            .map_err(|error| ClientError::incomprehensible(&self.target.socket, line, error))
    }

    fn wait_without_limit(&self) -> Result<(), ClientError> {
        self.stream
            .get_ref()
            .set_read_timeout(None)
            .map_err(|error| ClientError::exchange(&self.target.socket, error))
    }
}

/// Connects within [`TIMEOUT`]: a Unix socket's connecting is bounded by its write time-out.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let address = SockAddr::unix(socket)?;
    let stream = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.connect(&address)?;
    Ok(stream.into())
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
