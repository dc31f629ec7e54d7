//! `lanelect hook-runner`: the privileged half of the hooks.
//!
//! The daemon needs no privileges, but its hooks often do. This process has them. It does not use
//! the network, and runs four commands only: hook, fence and checks of its own configuration. The
//! daemon's requests say when they run, and give the variables of their environment as checked
//! types.

use std::io::{self, ErrorKind};
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;

use crate::config::{ConfigError, ConfigSource};
use crate::hooks::HookServer;
use crate::hooks::listener::{ListenError, Listener};
use crate::os::notify::Notifier;
use crate::os::{clock, polling};
use crate::time::Time;

/// Most connections at a time: the daemon's four, one for each lane, those of a restarted daemon
/// whose predecessor's runs continue, and its `post-stop`. More wait to be accepted.
pub const CLIENTS_MAX: usize = 10;

/// Pause after an accept that failed for lack of resources.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

const LISTENER: Token = Token(0);
const SIGNALS: Token = Token(1);
const FIRST_CLIENT: Token = Token(2);

/// Why the hook-runner could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum HookRunnerError {
    /// The configuration is invalid, or another user may have written it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It has no socket.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The event loop failed.
    #[error("cannot run the event loop of the hook-runner: {0}")]
    EventLoop(#[from] io::Error),
}

impl HookRunnerError {
    /// Whether the administrator must correct the configuration first.
    pub fn is_config(&self) -> bool {
        matches!(self, HookRunnerError::Config(error) if !error.is_passing())
    }
}

/// Serves requests until SIGTERM or SIGINT, then waits for the hook that runs, within its limits.
/// It reads its commands again if its daemon has others.
///
/// # Errors
///
/// If it cannot listen, or the event loop fails. An invalid configuration is an error only if it
/// must name the socket.
pub fn run(source: ConfigSource) -> Result<(), HookRunnerError> {
    HookRunner::new(source)?.serve()
}

struct HookRunner {
    poll: Poll,
    signals: Signals,
    /// None once it stops.
    listener: Option<Listener>,
    /// When connections may be waiting to be accepted; none if there are none.
    accept_at: Option<Time>,
    server: HookServer,
    notifier: Notifier,
}

impl HookRunner {
    fn new(source: ConfigSource) -> Result<Self, HookRunnerError> {
        let now = clock::now();
        let poll = Poll::new()?;
        // Before anything else: no signal may end a hook-runner that is about to serve.
        let mut signals = Signals::new([SIGCHLD, SIGHUP, SIGTERM, SIGINT])?;
        poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
        let mut listener = match Listener::inherited()? {
            Some(listener) => listener,
            None => Listener::bind(source.load_trusted()?.hook_socket.as_deref())?,
        };
        poll.registry().register(&mut listener.socket, LISTENER, Interest::READABLE)?;
        let server = HookServer::by_file(source, &listener.path()?, FIRST_CLIENT, now);
        log::info!("the hook-runner is ready");
        let mut notifier = Notifier::from_environment();
        notifier.ready();
        let listener = Some(listener);
        Ok(HookRunner { poll, signals, listener, accept_at: Some(now), server, notifier })
    }

    fn serve(mut self) -> Result<(), HookRunnerError> {
        let mut events = Events::with_capacity(16);
        loop {
            self.handle_timeout(clock::now());
            if self.listener.is_none() && !self.server.process.is_busy() {
                log::info!("the hook-runner has stopped");
                return Ok(());
            }
            let timeout = self.next_timeout().map(|time| time.since(clock::now()));
            polling::wait(&mut self.poll, &mut events, timeout)?;
            let now = clock::now();
            for event in &events {
                match event.token() {
                    SIGNALS => self.handle_signals(now),
                    LISTENER => self.accept_at = self.listener.as_ref().map(|_| now),
                    token => self.server.handle_client(token, now),
                }
            }
        }
    }

    fn handle_signals(&mut self, now: Time) {
        let mut is_stop = false;
        for signal in self.signals.pending() {
            match signal {
                SIGCHLD => self.server.handle_child_signal(now),
                // The daemon's next question makes the server read the file.
                SIGHUP => {}
                _ => is_stop = true,
            }
        }
        if is_stop {
            self.stop(now);
        }
    }

    /// Accepts no more connections, and waits for the hook that runs.
    fn stop(&mut self, now: Time) {
        let Some(mut listener) = self.listener.take() else { return };
        log::info!("the hook-runner stops");
        self.accept_at = None;
        self.server.stop(now);
        self.notifier.stopping();
        self.notifier.extend_stop(now + self.server.longest_run(), now);
        // An inherited socket stays open on standard input, and would stay registered.
        if let Err(error) = self.poll.registry().deregister(&mut listener.socket) {
            log::warn!("cannot stop watching the listening socket: {error}");
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.server.handle_timeout(now);
        self.notifier.handle_timeout(now);
        if self.accept_at.is_some_and(|at| now >= at) {
            self.accept_clients(now);
        }
    }

    /// Accepts until none is waiting or the limit is reached. The poll reports new connections only
    /// once, so `accept_at` notes that some may be left.
    fn accept_clients(&mut self, now: Time) {
        while self.server.clients() < CLIENTS_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.socket.accept() {
                Ok((stream, _)) => {
                    if let Err(error) = self.server.accept(stream, self.poll.registry(), now) {
                        log::warn!("cannot serve a connection: {error}");
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.accept_at = None;
                    return;
                }
                Err(error) => {
                    log::warn!("cannot accept a connection: {error}; retrying");
                    self.accept_at = Some(now + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn next_timeout(&self) -> Option<Time> {
        let accept_at = self.accept_at.filter(|_| self.server.clients() < CLIENTS_MAX);
        let deadlines = [self.server.poll_timeout(), accept_at, self.notifier.poll_timeout()];
        deadlines.into_iter().flatten().min()
    }
}
