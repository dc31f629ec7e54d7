//! One client's connection: a request line in, then an answer out, or transitions until it hangs
//! up.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};
use serde::Serialize;

use super::access::Peer;
use super::{CLIENT_TIMEOUT, WATCH_QUEUE_MAX};
use crate::control_api::{CommandStarted, Done, REQUEST_MAX, Response};
use crate::time::Time;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its request line is not complete.
    Asking,
    /// The daemon has its request and owes the answer.
    Waiting,
    /// It is answered, and closes once the answer is sent.
    Answered,
    /// It receives transitions until it hangs up.
    Watching,
    /// It receives grants until it hangs up.
    Holding(Holder),
    /// It is over.
    Closed,
}

/// Longest line of a client that has started its command, in bytes.
const START_MAX: usize = 128;

/// A client that runs a command by grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    /// Whether it has received a grant.
    has_grant: bool,
    /// The process that lives as long as its command.
    process: i32,
}

/// The result of a client's event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// Nothing to act on.
    Nothing,
    /// A request line, without its line feed.
    Line(Vec<u8>),
    /// More than [`REQUEST_MAX`] bytes without a line feed.
    TooLong,
}

#[derive(Debug)]
pub(super) struct Connection {
    /// Counts connections: an answer never reaches a later client in the same slot.
    serial: u64,
    peer: Peer,
    /// Whether the peer had the right to command when it connected.
    may_command: bool,
    stream: UnixStream,
    stage: Stage,
    deadline: Time,
    input: Vec<u8>,
    output: VecDeque<u8>,
}

impl Connection {
    pub(super) fn new(
        serial: u64,
        peer: Peer,
        may_command: bool,
        stream: UnixStream,
        now: Time,
    ) -> Self {
        Connection {
            serial,
            peer,
            may_command,
            stream,
            stage: Stage::Asking,
            deadline: now + CLIENT_TIMEOUT,
            input: Vec::new(),
            output: VecDeque::new(),
        }
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// Reports the connection's events under `token`.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.stream, token, Interest::READABLE | Interest::WRITABLE)
    }

    pub(super) fn may_command(&self) -> bool {
        self.may_command
    }

    /// Whether it may be closed to make room for a new client that `may_command` or not.
    pub(super) fn gives_way_to(&self, may_command: bool) -> bool {
        !self.is_following() && (may_command || !self.may_command)
    }

    pub(super) fn is_watching(&self) -> bool {
        self.stage == Stage::Watching
    }

    pub(super) fn is_holding(&self) -> bool {
        matches!(self.stage, Stage::Holding(_))
    }

    /// The process that lives as long as the command that it may run by a grant; none without one.
    pub(super) fn runs(&self) -> Option<i32> {
        match self.stage {
            Stage::Holding(Holder { has_grant: true, process }) => Some(process),
            _ => None,
        }
    }

    /// The same process as soon as it waits for a grant.
    pub(super) fn may_run(&self) -> Option<i32> {
        match self.stage {
            Stage::Holding(Holder { process, .. }) => Some(process),
            _ => None,
        }
    }

    /// Whether it stays connected to receive one line after the other.
    pub(super) fn is_following(&self) -> bool {
        self.is_watching() || self.is_holding()
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.stage == Stage::Waiting
    }

    pub(super) fn is_closed(&self) -> bool {
        self.stage == Stage::Closed
    }

    /// When it is closed, unless its exchange is over by then. One that follows has no time limit.
    pub(super) fn deadline(&self) -> Option<Time> {
        (!self.is_following()).then_some(self.deadline)
    }

    /// Reads what the client sent, at most [`REQUEST_MAX`] bytes over the connection's life.
    pub(super) fn receive(&mut self) -> Received {
        match self.stage {
            Stage::Asking => self.receive_line(),
            Stage::Watching => {
                self.check_silence();
                Received::Nothing
            }
            Stage::Holding(holder) => {
                self.receive_start(holder);
                Received::Nothing
            }
            // Data after the request is ignored, and a half-closed peer can still read.
            Stage::Waiting | Stage::Answered | Stage::Closed => Received::Nothing,
        }
    }

    /// The daemon has the request.
    pub(super) fn wait(&mut self) {
        self.stage = Stage::Waiting;
    }

    /// Sends the answer, and closes once it is sent, unless more lines follow.
    pub(super) fn answer(&mut self, response: &Response) {
        self.stage = match response {
            Response::Ok(Done::Watching) => Stage::Watching,
            Response::Ok(Done::Holding) => {
                Stage::Holding(Holder { has_grant: false, process: self.peer.pid })
            }
            _ => Stage::Answered,
        };
        match encode(response) {
            Some(line) => {
                self.output.extend(line);
                self.flush();
            }
            None => self.stage = Stage::Closed,
        }
        // No event reports again what came with the request, such as the end of file.
        if self.is_following() {
            self.receive();
        }
    }

    /// Makes room for another client: sends an error, unless an answer is partly sent already.
    pub(super) fn evict(mut self, busy: &Response) {
        if self.output.is_empty() {
            self.answer(busy);
        }
    }

    /// Sends one more line to a client that follows, or closes the connection if too many bytes
    /// wait already.
    pub(super) fn push(&mut self, line: &[u8]) {
        if self.output.len() + line.len() > WATCH_QUEUE_MAX {
            log::info!("control: disconnected {}: it does not read", self.peer);
            self.stage = Stage::Closed;
            return;
        }
        self.output.extend(line);
        self.flush();
    }

    /// Sends a grant, or its end, to a client that holds.
    pub(super) fn grant(&mut self, line: &[u8], is_grant: bool) {
        if let Stage::Holding(holder) = &mut self.stage {
            holder.has_grant |= is_grant;
        }
        self.push(line);
    }

    /// Sends as much of the queue as the socket accepts.
    pub(super) fn flush(&mut self) {
        match self.try_flush() {
            Ok(()) if self.stage == Stage::Answered => self.stage = Stage::Closed,
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => {
                log::debug!("control: {} disconnected before its answer: {error}", self.peer);
                self.stage = Stage::Closed;
            }
        }
    }

    fn receive_line(&mut self) -> Received {
        let room = REQUEST_MAX.saturating_sub(self.input.len());
        let read = (&self.stream).take(room as u64).read_to_end(&mut self.input);
        if let Some(end) = self.input.iter().position(|&byte| byte == b'\n') {
            self.input.truncate(end);
            return Received::Line(std::mem::take(&mut self.input));
        }
        match read {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Received::Nothing,
            Ok(_) if self.input.len() >= REQUEST_MAX => Received::TooLong,
            _ => {
                self.stage = Stage::Closed;
                Received::Nothing
            }
        }
    }

    /// A client that holds says once which process guards its command. Anything else ends the hold.
    fn receive_start(&mut self, holder: Holder) {
        let room = START_MAX.saturating_sub(self.input.len());
        let read = (&self.stream).take(room as u64).read_to_end(&mut self.input);
        if !read.is_err_and(|error| is_transient(&error)) {
            self.stage = Stage::Closed;
            return;
        }
        let Some(line) = self.input.strip_suffix(b"\n") else { return };
        match serde_json::from_slice(line) {
            Ok(CommandStarted { pid, guard }) => {
                let process = if pid == self.peer.pid { guard } else { holder.process };
                self.stage = Stage::Holding(Holder { process, ..holder });
                self.input.clear();
            }
            Err(_) => self.stage = Stage::Closed,
        }
    }

    /// A watcher must send nothing after its request: its end of file, or any byte that is not read
    /// with the request, ends the watch.
    fn check_silence(&mut self) {
        match (&self.stream).read(&mut [0]) {
            Err(error) if is_transient(&error) => {}
            _ => self.stage = Stage::Closed,
        }
    }

    fn try_flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match (&self.stream).write(self.output.as_slices().0) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Connection {
    /// Hangs up. A hook's child may hold a copy of the descriptor until its exec, so closing it
    /// alone would keep the client waiting.
    fn drop(&mut self) {
        // Fails only if the client has hung up.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// One line of JSON with its line feed.
pub(super) fn encode(message: &impl Serialize) -> Option<Vec<u8>> {
    match serde_json::to_vec(message) {
        Ok(mut line) => {
            line.push(b'\n');
            Some(line)
        }
        Err(error) => {
            log::error!("control: cannot encode an answer: {error}");
            None
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
