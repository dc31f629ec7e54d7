//! The daemon's end of the control socket.
//!
//! The event loop gives the answers; this module does everything between it and the clients. The
//! event loop passes every event in [`ControlServer::owns`] to
//! [`handle_event`](ControlServer::handle_event). It drains
//! [`poll_request`](ControlServer::poll_request) and calls [`respond`](ControlServer::respond) for
//! each request. Then it calls [`handle_timeout`](ControlServer::handle_timeout), which lets new
//! clients in, and sleeps no longer than [`poll_timeout`](ControlServer::poll_timeout).
//!
//! Any process that can open the socket can try to disturb the election through it. Nothing here
//! blocks, and the constants below limit the memory, the number of clients and the work of one
//! wake.

mod access;
mod connection;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use mio::net::{UnixListener, UnixStream};
use mio::{Interest, Registry, Token};

pub use access::{Access, AccessError, GROUP_MEMBERS_MAX, Peer};

use crate::control_api::{
    Done, Grant, REQUEST_MAX, Refusal, RefusalKind, Request, Response, Transition,
};
use crate::os::socket_file::{BindError, Purpose, SocketFile};
use crate::time::Time;
use connection::{Connection, Received, encode};

/// Every user may connect: queries are open to all, and commands are checked by the peer's
/// credentials.
const SOCKET: Purpose = Purpose { name: "control socket", setting: "socket", mode: 0o666 };

/// Most clients at a time. One more replaces the client whose single exchange has lasted longest;
/// a client that may command is replaced last, and only by another one.
pub const MAX_CLIENTS: usize = 64;

/// Most watchers among them, those that hold included: they alone cannot lock out other clients.
pub const MAX_WATCHERS: usize = 32;

/// Watchers among them that only peers that may command can be: other users cannot lock out root.
pub const RESERVED_WATCHERS: usize = 8;

/// Most bytes that wait for a watcher; a watcher that is further behind is dropped.
pub const WATCH_QUEUE_MAX: usize = 64 * 1024;

/// Time limit from connecting to the last byte of the answer. Watchers and those that hold have
/// none.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections accepted in one wake. Fewer than the slots that watchers leave, and accepted after
/// the requests of the wake were answered: a client that sends its request at once is served before
/// new clients can replace it.
pub const ACCEPTS_PER_WAKE: usize = 16;

/// Pause in accepting after it failed, for example because file descriptors are short.
pub const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

const _: () = assert!(ACCEPTS_PER_WAKE <= MAX_CLIENTS - MAX_WATCHERS);

/// A connected client. An answer to a client that has hung up is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientId {
    slot: usize,
    serial: u64,
}

/// A request that the event loop owes an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    /// The client to answer.
    pub client: ClientId,
    /// The request. The client's right to it was checked.
    pub request: Request,
    /// The client's process, for logs.
    pub peer: Peer,
}

/// Listens on the control socket, and removes it when dropped.
#[derive(Debug)]
pub struct ControlServer {
    // Dropped before the listener, as SocketFile demands.
    file: SocketFile,
    listener: UnixListener,
    registry: Registry,
    first_token: Token,
    access: Access,
    /// Slots, at most [`MAX_CLIENTS`]; as many as were ever used at a time.
    clients: Vec<Option<Connection>>,
    connections: u64,
    requests: VecDeque<Incoming>,
    /// When to accept without an event: more clients are waiting, or a pause ends.
    accept_at: Option<Time>,
    /// Accepting failed, and clients have been waiting since. Logged once, until none waits.
    accept_failing: bool,
    /// The socket was removed, and could not be created again. Logged once.
    restore_failing: bool,
}

impl ControlServer {
    /// How many tokens it uses, from its first one on.
    pub const TOKENS: usize = 1 + MAX_CLIENTS;

    /// Listens at `path`, making its directory if it is missing and replacing a dead daemon's
    /// socket. Events come under [`Self::TOKENS`] tokens from `first_token` on.
    ///
    /// # Errors
    ///
    /// [`BindError`] if the path is in use or a call fails.
    pub fn bind(
        path: &Path,
        access: Access,
        registry: &Registry,
        first_token: Token,
    ) -> Result<Self, BindError> {
        let (file, listener) = listen(path, registry, first_token)?;
        Ok(ControlServer {
            file,
            listener,
            registry: registry.try_clone().map_err(BindError::io(SOCKET, "register", path))?,
            first_token,
            access,
            clients: Vec::new(),
            connections: 0,
            requests: VecDeque::new(),
            accept_at: None,
            accept_failing: false,
            restore_failing: false,
        })
    }

    /// Listens again if the socket was removed, and returns whether it did. Connected clients stay
    /// connected.
    pub fn restore(&mut self) -> bool {
        if !self.file.is_gone() {
            return false;
        }
        match listen(self.path(), &self.registry, self.first_token) {
            Ok((file, listener)) => {
                // Fails only if it is not registered.
                let _ = self.registry.deregister(&mut self.listener);
                self.file = file;
                self.listener = listener;
                self.restore_failing = false;
                let path = self.path().display();
                log::warn!("the control socket {path} was removed; created it again");
                true
            }
            Err(error) => {
                if !std::mem::replace(&mut self.restore_failing, true) {
                    log::error!(
                        "the control socket was removed, and clients cannot connect: {error}"
                    );
                }
                false
            }
        }
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Whether events under this token belong here.
    pub fn owns(&self, token: Token) -> bool {
        self.place(token).is_some()
    }

    /// Whether there is nothing to do until the next event: no client is connected or waiting, and
    /// no request is left.
    pub fn is_idle(&self) -> bool {
        self.accept_at.is_none()
            && self.requests.is_empty()
            && self.clients.iter().all(Option::is_none)
    }

    /// Replaces the rights to command, after a reload.
    pub fn set_access(&mut self, access: Access) {
        self.access = access;
    }

    /// A socket is ready, or may be: spurious wakes are harmless, and so are tokens of other
    /// modules.
    pub fn handle_event(&mut self, token: Token, now: Time) {
        match self.place(token) {
            Some(0) => self.accept_at = Some(now),
            Some(place) => self.serve(place - 1),
            None => {}
        }
    }

    /// Accepts new clients, and disconnects those that are late, if that is due. A new client may
    /// replace an old one, so the requests that have arrived are to be answered before.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.accept_at.is_some_and(|at| at <= now) {
            self.accept(now);
        }
        for client in &mut self.clients {
            if let Some(late) = client.take_if(|c| c.deadline().is_some_and(|at| at <= now)) {
                log::debug!(
                    "control: disconnected {}: timed out after {CLIENT_TIMEOUT:?}",
                    late.peer()
                );
            }
        }
    }

    /// The next request to answer. Drain it after the events of a wake.
    pub fn poll_request(&mut self) -> Option<Incoming> {
        self.requests.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), if nothing else happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        let deadlines = self.clients.iter().flatten().filter_map(Connection::deadline);
        deadlines.chain(self.accept_at).min()
    }

    /// Answers a request. A client answered with [`Done::Watching`] is a watcher from then on, and
    /// one answered with [`Done::Holding`] holds; for any other the answer ends the connection.
    /// Only the first answer counts.
    pub fn respond(&mut self, client: ClientId, response: &Response) {
        let is_watch = matches!(response, Response::Ok(Done::Watching | Done::Holding));
        let others = self.followers();
        let Some(entry) = self.clients.get_mut(client.slot) else { return };
        let is_owed = |c: &&mut Connection| c.serial() == client.serial && c.is_waiting();
        if let Some(connection) = entry.as_mut().filter(is_owed) {
            let has_room = !is_watch || others < watchers_max(connection.may_command());
            let refusal = (!has_room).then(too_many_watchers);
            connection.answer(refusal.as_ref().unwrap_or(response));
        }
        entry.take_if(|c| c.is_closed());
    }

    /// Sends to every watcher. A watcher that is too far behind with reading is dropped.
    pub fn broadcast(&mut self, transition: &Transition) {
        let Some(line) = encode(transition) else { return };
        for entry in &mut self.clients {
            if let Some(watcher) = entry.as_mut().filter(|c| c.is_watching()) {
                watcher.push(&line);
            }
            entry.take_if(|c| c.is_closed());
        }
    }

    /// Sends the grant, or its end, to every client that holds.
    pub fn grant(&mut self, grant: Option<&Grant>) {
        let Some(line) = encode(&grant) else { return };
        for entry in &mut self.clients {
            if let Some(holder) = entry.as_mut().filter(|c| c.is_holding()) {
                holder.grant(&line, grant.is_some());
            }
            entry.take_if(|c| c.is_closed());
        }
    }

    /// Whether any client holds, with a grant or without.
    pub fn has_holders(&self) -> bool {
        self.clients.iter().flatten().any(Connection::is_holding)
    }

    /// Whether any client waits for its first grant.
    pub fn has_newcomer(&self) -> bool {
        self.clients.iter().flatten().any(|c| c.is_holding() && c.runs().is_none())
    }

    /// The clients that have a grant, and whose commands may still run: for each, the process that
    /// lives as long as the command.
    pub fn holders(&self) -> impl Iterator<Item = i32> {
        self.clients.iter().flatten().filter_map(Connection::runs)
    }

    /// The same processes for the clients that the next grant goes to.
    pub fn next_holders(&self) -> impl Iterator<Item = i32> {
        self.clients.iter().flatten().filter_map(Connection::may_run)
    }

    /// Disconnects the clients that have a grant.
    pub fn drop_holders(&mut self) {
        for entry in &mut self.clients {
            entry.take_if(|c| c.runs().is_some());
        }
    }

    /// 0 for the listener, one more than its slot for a client.
    fn place(&self, token: Token) -> Option<usize> {
        token.0.checked_sub(self.first_token.0).filter(|&place| place < Self::TOKENS)
    }

    fn followers(&self) -> usize {
        self.clients.iter().flatten().filter(|c| c.is_following()).count()
    }

    fn accept(&mut self, now: Time) {
        for _ in 0..ACCEPTS_PER_WAKE {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream, now),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.accept_failing = false;
                    self.accept_at = None;
                    return;
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => {
                    self.pause_accepting(&error, now);
                    return;
                }
            }
        }
        self.accept_at = Some(now);
    }

    /// The listener stays ready, so no event will come: a timer resumes accepting.
    fn pause_accepting(&mut self, error: &io::Error, now: Time) {
        self.accept_at = Some(now + ACCEPT_PAUSE);
        if !std::mem::replace(&mut self.accept_failing, true) {
            log::warn!("control: cannot accept connections: {error}; clients have to wait");
        }
    }

    fn admit(&mut self, stream: UnixStream, now: Time) {
        let admitted = Peer::of(&stream).map_err(io::Error::from).and_then(|peer| {
            let may_command = self.access.may_command(peer);
            let connection = Connection::new(self.connections + 1, peer, may_command, stream, now);
            self.seat(connection)
        });
        match admitted {
            Ok(()) => self.connections += 1,
            Err(error) => log::warn!("control: cannot serve a client: {error}"),
        }
    }

    /// Gives a new client a slot, or refuses it if there is none.
    fn seat(&mut self, mut connection: Connection) -> io::Result<()> {
        let Some(slot) = self.free_slot(connection.may_command()) else {
            connection.evict(&busy());
            return Ok(());
        };
        connection.register(&self.registry, Token(self.first_token.0 + 1 + slot))?;
        if let Some(entry) = self.clients.get_mut(slot) {
            *entry = Some(connection);
        }
        Ok(())
    }

    /// A slot for a new client, if necessary that of the oldest client that is no watcher. Clients
    /// that may not command give way first, and others only to a client that `may_command`.
    fn free_slot(&mut self, may_command: bool) -> Option<usize> {
        if let Some(free) = self.clients.iter().position(Option::is_none) {
            return Some(free);
        }
        if self.clients.len() < MAX_CLIENTS {
            self.clients.push(None);
            return Some(self.clients.len() - 1);
        }
        let (slot, oldest) = self
            .clients
            .iter_mut()
            .enumerate()
            .filter(|(_, entry)| entry.as_ref().is_some_and(|c| c.gives_way_to(may_command)))
            .min_by_key(|(_, entry)| entry.as_ref().map(|c| (c.may_command(), c.serial())))?;
        if let Some(connection) = oldest.take() {
            log::debug!("control: disconnected {}: too many clients", connection.peer());
            connection.evict(&busy());
        }
        Some(slot)
    }

    fn serve(&mut self, slot: usize) {
        let Some(entry) = self.clients.get_mut(slot) else { return };
        let Some(connection) = entry else { return };
        connection.flush();
        let checked = match connection.receive() {
            Received::Nothing => None,
            Received::Line(line) => Some(check(&line, connection.peer(), &self.access)),
            Received::TooLong => Some(Err(too_long())),
        };
        match checked {
            Some(Ok(request)) => {
                connection.wait();
                let client = ClientId { slot, serial: connection.serial() };
                self.requests.push_back(Incoming { client, request, peer: connection.peer() });
            }
            Some(Err(refusal)) => {
                log::debug!(
                    "control: rejected a request of {}: {}",
                    connection.peer(),
                    refusal.message
                );
                connection.answer(&Response::Refused(refusal));
            }
            None => {}
        }
        entry.take_if(|c| c.is_closed());
    }
}

/// A listener at `path` that reports under `token`.
fn listen(
    path: &Path,
    registry: &Registry,
    token: Token,
) -> Result<(SocketFile, UnixListener), BindError> {
    let (file, mut listener) = SocketFile::bind(SOCKET, path)?;
    let registered = registry.register(&mut listener, token, Interest::READABLE);
    registered.map_err(BindError::io(SOCKET, "register", path))?;
    Ok((file, listener))
}

/// Reads a request line and checks the right to it.
fn check(line: &[u8], peer: Peer, access: &Access) -> Result<Request, Refusal> {
    let request: Request = serde_json::from_slice(line).map_err(|error| malformed(&error))?;
    if request.is_command() && !access.may_command(peer) {
        return Err(access.refusal(peer));
    }
    Ok(request)
}

/// Errors that concern one connection only: the next one may well be accepted.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}

/// Most watchers in all when one more is admitted that may command, or may only query.
const fn watchers_max(may_command: bool) -> usize {
    if may_command { MAX_WATCHERS } else { MAX_WATCHERS - RESERVED_WATCHERS }
}

fn malformed(error: &serde_json::Error) -> Refusal {
    // The error may quote what the client sent.
    let error = error.to_string();
    let (version, error) = (env!("CARGO_PKG_VERSION"), error.escape_debug());
    let message = format!("lanelect {version} does not understand the request: {error}");
    Refusal::new(RefusalKind::Malformed, message)
}

fn too_long() -> Refusal {
    let message = format!(
        "the request is longer than {REQUEST_MAX} bytes; use the client of the same version"
    );
    Refusal::new(RefusalKind::Malformed, message)
}

fn busy() -> Response {
    let message = format!("the daemon already serves {MAX_CLIENTS} clients; try again");
    Response::Refused(Refusal::new(RefusalKind::Busy, message))
}

fn too_many_watchers() -> Response {
    let message = "the daemon has no room for another watcher or exec; stop one of them, or watch \
                   as root or as a member of socket_group, for whom some places are reserved";
    Response::Refused(Refusal::new(RefusalKind::Busy, message))
}
