//! Asks a running daemon, over its control socket.
//!
//! A program that has to know who leads asks the daemon of its host:
//!
//! ```no_run
//! use lanelect::client::{ClientError, Target};
//!
//! fn main() -> Result<(), ClientError> {
//!     let daemon = Target::at("/run/lanelect/web.sock");
//!     if daemon.is_leader()? {
//!         println!("this host leads");
//!     }
//!     let status = daemon.status()?;
//!     println!("{} members, term {}", status.members.len(), status.term);
//!
//!     // Waits for each transition.
//!     for transition in daemon.watch()? {
//!         let transition = transition?;
//!         println!("{} in term {}", transition.role, transition.term);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! What the daemon answered was true when it answered. A program that must never act beside
//! another leader runs in quorum mode, and passes the term along as a fencing token.
//!
//! `examples/follow.rs` follows a daemon that may stop and start again.

mod error;

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use socket2::{Domain, SockAddr, Socket, Type};

pub use error::ClientError;

use crate::control_api::{
    DEFAULT_GROUP, Done, RESPONSE_MAX, Readiness, Request, Response, StatusReport, Transition,
    default_socket, group_of_socket,
};
use crate::types::GroupName;

/// Longest wait for the daemon to accept a connection, and then for each piece of its answer.
pub const TIMEOUT: Duration = Duration::from_secs(5);

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

    /// The daemon of this group, at its default socket `/run/lanelect/GROUP.sock`.
    pub fn of_group(group: &GroupName) -> Self {
        Target::at(default_socket(group))
    }

    /// The socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What a command needs to reach this daemon: nothing, ` --group NAME` or ` --socket PATH`.
    pub fn options(&self) -> String {
        match group_of_socket(&self.socket) {
            Some(group) if group.as_str() == DEFAULT_GROUP => String::new(),
            Some(group) => format!(" --group {}", quoted(group.as_str())),
            None => format!(" --socket {}", quoted(&self.socket.to_string_lossy())),
        }
    }

    /// Who leads, since when, and who the members are. Waits for at most [`TIMEOUT`] at a time.
    ///
    /// # Errors
    ///
    /// [`ClientError`] where there is no answer.
    pub fn status(&self) -> Result<StatusReport, ClientError> {
        match self.ask(Request::Status)? {
            Response::Status(report) => Ok(*report),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Whether this daemon's node leads. In quorum mode: whether its lease held when the daemon
    /// answered. Waits for at most [`TIMEOUT`] at a time.
    ///
    /// # Errors
    ///
    /// [`ClientError`] where there is no answer.
    pub fn is_leader(&self) -> Result<bool, ClientError> {
        match self.ask(Request::IsLeader)? {
            Response::Leadership(leadership) => Ok(leadership.leads),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Whether this daemon's node leads and its hook has taken over, and if not, why. Waits for at
    /// most [`TIMEOUT`] at a time.
    ///
    /// # Errors
    ///
    /// [`ClientError`] where there is no answer.
    pub fn readiness(&self) -> Result<Readiness, ClientError> {
        match self.ask(Request::IsReady)? {
            Response::Readiness(readiness) => Ok(readiness),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Every transition from now on. Ask for the [`status`](Self::status) afterwards, to know what
    /// they start from.
    ///
    /// # Errors
    ///
    /// [`ClientError`] where the daemon does not take the watch up.
    pub fn watch(&self) -> Result<Watch, ClientError> {
        let mut conversation = Conversation::open(self, Request::Watch)?;
        match conversation.response()? {
            Response::Ok(Done::Watching) => {}
            other => return Err(self.unexpected(&other)),
        }
        let unlimited = conversation.stream.get_ref().set_read_timeout(None);
        unlimited.map_err(|error| ClientError::exchange(&self.socket, error))?;
        Ok(Watch { conversation, is_over: false })
    }

    /// The connection on which the daemon sends its grants, and what it has sent already.
    #[cfg(feature = "daemon")]
    pub(crate) fn hold(&self) -> Result<(UnixStream, Vec<u8>), ClientError> {
        let mut conversation = Conversation::open(self, Request::Hold)?;
        match conversation.response()? {
            Response::Ok(Done::Holding) => {}
            other => return Err(self.unexpected(&other)),
        }
        let read = conversation.stream.buffer().to_vec();
        Ok((conversation.stream.into_inner(), read))
    }

    /// One request and its answer.
    pub(crate) fn ask(&self, request: Request) -> Result<Response, ClientError> {
        Conversation::open(self, request)?.response()
    }

    /// The daemon answered another question.
    pub(crate) fn unexpected(&self, response: &Response) -> ClientError {
        let response = serde_json::to_string(response).unwrap_or_default();
        let what = format!("it answers another request: {response}");
        ClientError::incomprehensible(&self.socket, "", what)
    }
}

/// The transitions of a daemon's node, as they happen. Each call of `next` waits for one, however
/// long that takes. The last item is the error that ended the watch: [`ClientError::WatchEnded`]
/// where the daemon stopped, or where its lines were not read fast enough.
#[derive(Debug)]
pub struct Watch {
    conversation: Conversation,
    is_over: bool,
}

impl Watch {
    /// The next transition.
    pub(crate) fn next_transition(&mut self) -> Result<Transition, ClientError> {
        let line = self.next_line()?;
        self.conversation.parse(&line)
    }

    /// The next transition as the daemon sent it, with its line feed.
    pub(crate) fn next_line(&mut self) -> Result<String, ClientError> {
        let line = self.conversation.line()?;
        line.ok_or_else(|| ClientError::WatchEnded(self.conversation.socket.clone()))
    }

    /// Whether the next transition may be here already, so that the connection does not show it.
    #[cfg(feature = "daemon")]
    pub(crate) fn has_read_ahead(&self) -> bool {
        !self.conversation.stream.buffer().is_empty()
    }

    #[cfg(feature = "daemon")]
    pub(crate) fn connection(&self) -> &UnixStream {
        self.conversation.stream.get_ref()
    }
}

impl Iterator for Watch {
    type Item = Result<Transition, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.next_transition();
        self.is_over = next.is_err();
        Some(next)
    }
}

/// A connection to a daemon that has been sent its request.
#[derive(Debug)]
struct Conversation {
    socket: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Conversation {
    fn open(target: &Target, request: Request) -> Result<Self, ClientError> {
        let io_error = |error| ClientError::exchange(&target.socket, error);
        let mut stream = connect(&target.socket)
            .map_err(|error| ClientError::connecting(&target.socket, error))?;
        let mut line = serde_json::to_vec(&request).map_err(io::Error::from).map_err(io_error)?;
        line.push(b'\n');
        match stream.write_all(&line) {
            // A daemon that closed the connection may have sent the reason.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            sent => sent.map_err(io_error)?,
        }
        Ok(Conversation { socket: target.socket.clone(), stream: BufReader::new(stream) })
    }

    /// The answer, unless it is a refusal.
    fn response(&mut self) -> Result<Response, ClientError> {
        let line = self.line()?.ok_or_else(|| ClientError::HungUp(self.socket.clone()))?;
        match self.parse(&line)? {
            Response::Refused(refusal) => Err(ClientError::Refused(refusal)),
            response => Ok(response),
        }
    }

    /// The next line, with its line feed; `None` after the daemon closed the connection.
    fn line(&mut self) -> Result<Option<String>, ClientError> {
        let socket = &self.socket;
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
            .map_err(|error| ClientError::incomprehensible(&self.socket, line, error))
    }
}

/// The text as one word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-@:+,=%".contains(c);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Connects within [`TIMEOUT`], which then limits each read and write: the write time-out of a Unix
/// socket also limits `connect`.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let address = SockAddr::unix(socket)?;
    let stream = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.connect(&address)?;
    Ok(stream.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_reach_the_same_daemon() {
        let options = |socket: &str| Target::at(socket).options();
        assert_eq!(options("/run/lanelect/default.sock"), "");
        assert_eq!(options("/run/lanelect/web.sock"), " --group web");
        assert_eq!(options("/run/lanelect/a b.sock"), " --socket '/run/lanelect/a b.sock'");
        assert_eq!(options("/tmp/it's.sock"), r" --socket '/tmp/it'\''s.sock'");
        assert_eq!(options("/tmp/web.sock"), " --socket /tmp/web.sock");
    }
}
