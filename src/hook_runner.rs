//! `lanelect hook-runner`: the privileged half of the hooks.
//!
//! The daemon needs no privileges, its hooks often do. This process has them, talks to no network,
//! and runs three commands only: hook, fence and check of its own configuration. The daemon's requests say
//! when they run and fill in the variables of their environment, as checked types.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

use log::Level;
use mio::net::UnixStream;
use mio::{Events, Interest, Poll, Token};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;

use crate::config::{ConfigError, ConfigSource};
use crate::daemon::clock;
use crate::daemon::hooks::group::KILL_GRACE;
use crate::daemon::hooks::listener::{ListenError, Listener};
use crate::daemon::hooks::protocol::{self, Connection, LineError, LineReader};
use crate::daemon::hooks::protocol::{Request, RunReply, RunRequest};
use crate::daemon::hooks::{HookFinished, HookProcess, HookSettings, Lane, Lanes};
use crate::daemon::store;
use crate::time::Time;
use crate::types::GroupName;

/// Most connections at a time: the daemon's three, one for each lane, those that a restarted daemon opens
/// while its predecessor's still run, and its `post-stop`. More wait to be accepted.
pub const CLIENTS_MAX: usize = 8;

/// How long a client may take to send its request.
pub const REQUEST_WAIT: Duration = Duration::from_secs(5);

/// Pause after an accept that failed for lack of resources.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

const LISTENER: Token = Token(0);
const SIGNALS: Token = Token(1);
const FIRST_CLIENT: usize = 2;

/// Why the hook-runner could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum HookRunnerError {
    /// The configuration does not hold, or may be somebody else's.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It has no socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The event loop failed.
    #[error("the hook-runner's event loop failed: {0}")]
    EventLoop(#[from] io::Error),
}

impl HookRunnerError {
    /// Whether the configuration has to be mended first.
    pub const fn is_config(&self) -> bool {
        matches!(self, HookRunnerError::Config(_))
    }
}

/// Serves requests until SIGTERM or SIGINT, then waits for the hook that runs, within its limits. HUP has
/// it read its commands again.
///
/// # Errors
///
/// Where the configuration does not hold, it cannot listen, or the event loop fails.
pub fn run(source: ConfigSource) -> Result<(), HookRunnerError> {
    HookRunner::new(source)?.serve()
}

struct HookRunner {
    source: ConfigSource,
    group: GroupName,
    poll: Poll,
    signals: Signals,
    /// None once it stops.
    listener: Option<Listener>,
    /// When connections may be waiting to be accepted; none where there are none.
    accept_at: Option<Time>,
    process: HookProcess,
    queues: Lanes<Queue>,
    clients: Vec<Client>,
    next_token: usize,
}

/// Runs in one lane, one after the other.
#[derive(Default)]
struct Queue {
    /// The connection that the end of the running one is told to.
    asker: Option<Token>,
    /// Requests whose turn has not come, oldest first.
    waiting: VecDeque<(Token, Box<RunRequest>)>,
}

struct Client {
    token: Token,
    stream: UnixStream,
    line: LineReader,
    /// Until when its request must be there; none once it is.
    request_due: Option<Time>,
}

impl HookRunner {
    fn new(source: ConfigSource) -> Result<Self, HookRunnerError> {
        let config = source.load_trusted()?;
        let now = clock::now();
        let poll = Poll::new()?;
        let mut signals = Signals::new([SIGCHLD, SIGHUP, SIGTERM, SIGINT])?;
        poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
        let mut listener = Listener::open(config.hook_socket.as_deref())?;
        poll.registry().register(&mut listener.socket, LISTENER, Interest::READABLE)?;
        if config.hook.is_none() {
            log::warn!("no hook is configured: every run succeeds without doing anything");
        }
        log::info!("hook-runner for group {} is ready", config.group);
        let record = store::path_in(&config.state_dir, config.group, "hook");
        Ok(HookRunner {
            source,
            group: config.group,
            poll,
            signals,
            listener: Some(listener),
            accept_at: Some(now),
            process: HookProcess::new(HookSettings::from(&config), record, now),
            queues: Lanes::default(),
            clients: Vec::new(),
            next_token: FIRST_CLIENT,
        })
    }

    fn serve(mut self) -> Result<(), HookRunnerError> {
        let mut events = Events::with_capacity(16);
        loop {
            let now = clock::now();
            self.handle_timeout(now);
            self.drive(now);
            let is_busy = Lane::ALL.into_iter().any(|lane| self.process.is_running(lane));
            if self.listener.is_none() && !is_busy {
                log::info!("hook-runner stopped");
                return Ok(());
            }
            let timeout = self.next_timeout().map(|time| time.since(clock::now()));
            match self.poll.poll(&mut events, timeout) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            let now = clock::now();
            for event in &events {
                match event.token() {
                    SIGNALS => self.handle_signals(now),
                    LISTENER => self.accept_at = self.listener.as_ref().map(|_| now),
                    token => self.handle_client(token, now),
                }
            }
        }
    }

    fn handle_signals(&mut self, now: Time) {
        let mut is_stop = false;
        for signal in self.signals.pending() {
            match signal {
                SIGCHLD => self.process.handle_child_signal(now),
                SIGHUP => self.reload(),
                _ => is_stop = true,
            }
        }
        if is_stop {
            self.stop(now);
        }
    }

    /// Takes the commands and their limits as they are in the file now, from the next run on; a bad file
    /// changes nothing.
    fn reload(&mut self) {
        match self.source.load_trusted() {
            Ok(config) => {
                self.process.reconfigure(HookSettings::from(&config));
                log::info!("configuration reloaded");
            }
            Err(error) => log::error!("{error}\nthe configuration from before stays in force"),
        }
    }

    /// Takes no more requests; those whose turn has not come are not run. A check is of no more use.
    fn stop(&mut self, now: Time) {
        let Some(mut listener) = self.listener.take() else { return };
        log::info!("hook-runner stops");
        self.accept_at = None;
        self.process.cut_short(Lane::Check, now + KILL_GRACE, now);
        // An inherited socket stays open on standard input, and would stay watched.
        if let Err(error) = self.poll.registry().deregister(&mut listener.socket) {
            log::warn!("the listening socket is still watched: {error}");
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.process.handle_timeout(now);
        self.clients.retain(|client| {
            let is_late = client.request_due.is_some_and(|due| now >= due);
            if is_late {
                log::warn!("a client that sent no request in {REQUEST_WAIT:?} is dropped");
            }
            !is_late
        });
        if self.accept_at.is_some_and(|at| now >= at) {
            self.accept_clients(now);
        }
    }

    /// Accepts until none is waiting or no place is free. The poll tells of new connections only
    /// once, so `accept_at` remembers that some may be left.
    fn accept_clients(&mut self, now: Time) {
        while self.clients.len() < CLIENTS_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.socket.accept() {
                Ok((stream, _)) => self.add_client(stream, now),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.accept_at = None;
                    return;
                }
                Err(error) => {
                    log::warn!("a connection could not be accepted: {error}");
                    self.accept_at = Some(now + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn add_client(&mut self, mut stream: UnixStream, now: Time) {
        let token = Token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1).max(FIRST_CLIENT);
        match self.poll.registry().register(&mut stream, token, Interest::READABLE) {
            Ok(()) => self.clients.push(Client {
                token,
                stream,
                line: LineReader::default(),
                request_due: Some(now + REQUEST_WAIT),
            }),
            Err(error) => log::warn!("a connection could not be watched: {error}"),
        }
    }

    /// A client sent something or hung up.
    fn handle_client(&mut self, token: Token, now: Time) {
        let Some(client) = self.clients.iter_mut().find(|client| client.token == token) else {
            return;
        };
        match client.receive() {
            // What it sent last is moot: nobody is left to be told.
            Ok((Connection::Closed, _)) => self.handle_hangup(token, now),
            Ok((Connection::Open, requests)) => {
                for request in requests {
                    self.handle_request(token, request, now);
                }
            }
            Err(error) => {
                log::warn!("a client is dropped: it {error}");
                self.answer(token, &RunReply::Refused(format!("the daemon {error}")));
                self.handle_hangup(token, now);
            }
        }
    }

    fn handle_request(&mut self, token: Token, request: Request, now: Time) {
        if let Some(refusal) = self.objection_to(&request) {
            log::warn!("a request is refused: {refusal}");
            return self.answer(token, &RunReply::Refused(refusal));
        }
        match request {
            Request::Run(request) => {
                let lane = request.task.lane();
                let level = if lane == Lane::Fence { Level::Warn } else { Level::Debug };
                log::log!(level, "{} is asked for", request.task);
                let follows_a_death = request.follows_a_death();
                self.queues[lane].waiting.push_back((token, request));
                if follows_a_death {
                    self.make_way(now);
                }
            }
            Request::CutShort(kill_after) => self.cut_short(token, now + kill_after, now),
        }
    }

    /// Why a request is none for this hook-runner.
    fn objection_to(&self, request: &Request) -> Option<String> {
        let Request::Run(request) = request else { return None };
        let RunRequest { task, node } = &**request;
        if node.group != self.group {
            return Some(format!(
                "the daemon is of group {}, this hook-runner of group {}; hook_socket must differ from \
                 group to group",
                node.group, self.group
            ));
        }
        let lane = task.lane();
        let is_missing = lane != Lane::Hook && !self.process.has_command(lane);
        is_missing.then(|| format!("no {lane} is configured for this hook-runner"))
    }

    /// The daemon died: the hook that it left running keeps the demote hook waiting no longer than one
    /// that overran its limit.
    fn make_way(&mut self, now: Time) {
        if self.queues.hook.asker.is_none() && self.process.is_running(Lane::Hook) {
            self.process.cut_short(Lane::Hook, now + KILL_GRACE, now);
        }
    }

    /// Ends what this client asked for, or takes it back where its turn has not come. The fence command
    /// is never cut short.
    fn cut_short(&mut self, token: Token, by: Time, now: Time) {
        for lane in [Lane::Hook, Lane::Check] {
            if self.queues[lane].asker == Some(token) {
                self.process.cut_short(lane, by, now);
            } else if self.queues[lane].take_back(token) {
                self.answer(token, &RunReply::Finished(HookFinished::not_run(Duration::ZERO)));
            }
        }
    }

    /// Takes back what the client asked for where it has not begun; else lets it run on, but for a check.
    fn handle_hangup(&mut self, token: Token, now: Time) {
        self.clients.retain(|client| client.token != token);
        for lane in Lane::ALL {
            self.queues[lane].take_back(token);
            let was_asker = self.queues[lane].asker.take_if(|asker| *asker == token).is_some();
            match lane {
                Lane::Hook | Lane::Fence if was_asker => {
                    log::warn!("the daemon hung up while its {lane} runs; the {lane} runs on");
                }
                Lane::Check if was_asker => {
                    self.process.cut_short(Lane::Check, now + KILL_GRACE, now);
                }
                Lane::Hook | Lane::Fence | Lane::Check => {}
            }
        }
    }

    /// Tells in each lane how the run ended, and starts the next, until they take their time or none is
    /// left.
    fn drive(&mut self, now: Time) {
        while Lane::ALL.into_iter().any(|lane| self.drive_lane(lane, now)) {}
    }

    /// Returns whether there may be more to do.
    fn drive_lane(&mut self, lane: Lane, now: Time) -> bool {
        if let Some(finished) = self.process.poll_finished(lane)
            && let Some(token) = self.queues[lane].asker.take()
        {
            self.answer(token, &RunReply::Finished(finished));
        }
        if self.process.is_running(lane) || self.listener.is_none() {
            return false;
        }
        let Some((token, request)) = self.queues[lane].waiting.pop_front() else { return false };
        if self.announce(token, now) {
            self.queues[lane].asker = Some(token);
            self.process.start(&request.task, &request.node, now);
        }
        true
    }

    /// Tells the client that its run starts. One that cannot be told has taken its run back.
    fn announce(&mut self, token: Token, now: Time) -> bool {
        let Some(client) = self.clients.iter().find(|client| client.token == token) else {
            return false;
        };
        match protocol::send(&client.stream, &RunReply::Started) {
            Ok(()) => true,
            Err(error) => {
                log::info!("a run whose daemon is gone is not started: {error}");
                self.handle_hangup(token, now);
                false
            }
        }
    }

    /// Answers and hangs up.
    fn answer(&mut self, token: Token, reply: &RunReply) {
        let Some(index) = self.clients.iter().position(|client| client.token == token) else {
            return;
        };
        let client = self.clients.swap_remove(index);
        if let Err(error) = protocol::send(&client.stream, reply) {
            log::warn!("the daemon could not be told how its request ended: {error}");
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        let accept_at = self.accept_at.filter(|_| self.clients.len() < CLIENTS_MAX);
        let request_due = self.clients.iter().filter_map(|client| client.request_due).min();
        [self.process.poll_timeout(), accept_at, request_due].into_iter().flatten().min()
    }
}

impl Queue {
    /// Removes what the client asked for from the queue; returns whether it was there.
    fn take_back(&mut self, token: Token) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(asker, _)| *asker != token);
        self.waiting.len() < before
    }
}

impl Client {
    /// Reads on. The first request asks for a run, and those after it may only cut that short.
    fn receive(&mut self) -> Result<(Connection, Vec<Request>), LineError> {
        let connection = self.line.read(&mut self.stream)?;
        let mut requests = Vec::new();
        while let Some(request) = self.line.poll_message()? {
            let asks_for_run = !matches!(request, Request::CutShort(_));
            if asks_for_run != self.request_due.take().is_some() {
                return Err(LineError::OutOfTurn);
            }
            requests.push(request);
        }
        Ok((connection, requests))
    }
}
