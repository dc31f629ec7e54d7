//! An event loop around a [`ControlServer`], with a clock that only the test moves.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lanelect::control_api::{
    ConfigReport, Counters, Done, HookReport, Leadership, Readiness, Request, Response,
    StatusReport, Transition,
};
use lanelect::core::hook::Reason;
use lanelect::core::params::Mode;
use lanelect::daemon::EVENTS_PER_TURN;
use lanelect::daemon::control::{Access, ControlServer, Incoming};
use lanelect::time::Time;
use lanelect::types::{Role, Term};
use mio::{Events, Poll, Token};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tempfile::TempDir;

/// Not 0, so that an offset that is forgotten shows.
pub(crate) const FIRST_TOKEN: Token = Token(5);

/// A directory that every user may enter, and a socket path in it.
pub(crate) fn home() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    let socket = home.path().join("default.sock");
    (home, socket)
}

/// Notes every request, and answers it.
pub(crate) struct Daemon {
    pub(crate) server: ControlServer,
    pub(crate) now: Time,
    pub(crate) requests: Vec<Incoming>,
    /// Whether requests are answered at once, or never.
    pub(crate) answering: bool,
    /// Whether a status is longer than a socket's buffer.
    pub(crate) long_status: bool,
    poll: Poll,
}

impl Daemon {
    pub(crate) fn start(socket: &Path) -> Self {
        let poll = Poll::new().unwrap();
        let access = Access::resolve(None).unwrap();
        let server = ControlServer::bind(socket, access, poll.registry(), FIRST_TOKEN).unwrap();
        Daemon {
            server,
            now: Time::from_millis(1000),
            requests: Vec::new(),
            answering: true,
            long_status: false,
            poll,
        }
    }

    /// One turn of the event loop; false where there was nothing to do.
    pub(crate) fn turn(&mut self, patience: Duration) -> bool {
        let due = self.server.poll_timeout().is_some_and(|at| at <= self.now);
        let patience = if due { Duration::ZERO } else { patience };
        // As many as the daemon takes: no client's event waits for a later turn, in which more are
        // accepted. A process that another test is just starting holds copies of closed
        // connections, and these have events, too.
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        self.poll.poll(&mut events, Some(patience)).unwrap();
        for event in &events {
            assert!(self.server.owns(event.token()));
            self.server.handle_event(event.token(), self.now);
        }
        while let Some(incoming) = self.server.poll_request() {
            self.requests.push(incoming);
            if !self.answering {
                continue;
            }
            let mut response = answer(incoming.request);
            if let (Response::Status(report), true) = (&mut response, self.long_status) {
                report.version = "x".repeat(1 << 20);
            }
            self.server.respond(incoming.client, &response);
        }
        self.server.handle_timeout(self.now);
        due || !events.is_empty()
    }

    /// Turns until there is nothing to do. What clients in this thread have done has happened.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.turn(Duration::ZERO) {
                return;
            }
        }
        unreachable!("the event loop spins");
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.settle();
    }
}

fn answer(request: Request) -> Response {
    match request {
        Request::Status => Response::Status(Box::new(report())),
        Request::IsLeader => Response::Leadership(leadership(true)),
        Request::IsReady => Response::Readiness(Readiness::Ready),
        Request::Ping => Response::Pinged { answers_within_ms: 500 },
        Request::Watch => Response::Ok(Done::Watching),
        Request::Hold => Response::Ok(Done::Holding),
        Request::Yield { .. } | Request::YieldFailed => Response::Ok(Done::Yielding),
        Request::Maintenance { on: true } => Response::Ok(Done::MaintenanceOn),
        Request::Maintenance { on: false } => Response::Ok(Done::MaintenanceOff),
    }
}

/// What a node says that leads in term 7, or follows nobody.
pub(crate) fn leadership(leads: bool) -> Leadership {
    let node_id = "web1".parse().unwrap();
    Leadership { node_id, leads, term: Term(7), leader: leads.then_some(node_id) }
}

/// A node that leads, alone.
pub(crate) fn report() -> StatusReport {
    StatusReport {
        version: "0.1.0".to_owned(),
        group: "default".parse().unwrap(),
        node_id: "web1".parse().unwrap(),
        role: Role::Leader,
        ready: true,
        eligible: true,
        ineligible_reason: None,
        ineligible_reasons: Vec::new(),
        handing_over: None,
        holdoff_ms: None,
        term: Term(7),
        leader: None,
        previous_leader: None,
        mode: Mode::Available,
        quorum: None,
        since_ms: 83_211,
        uptime_ms: 90_022,
        members: Vec::new(),
        multicast: None,
        peers: Vec::new(),
        round_trip_max_us: None,
        interfaces: Vec::new(),
        hook: HookReport::default(),
        fence: None,
        check: None,
        check_leader: None,
        key_mode: None,
        key_fingerprint: None,
        state_failure: None,
        duplicate: None,
        rejected_from: Vec::new(),
        config: ConfigReport::default(),
        counters: Counters::default(),
    }
}

pub(crate) fn transition(term: u64) -> Transition {
    Transition {
        time_ms: 1_773_481_267_212,
        role: Role::Leader,
        previous_role: Role::Candidate,
        term: Term(term),
        leader: "web1".parse().ok(),
        previous_leader: "web0".parse().ok(),
        reason: Some(Reason::Election),
    }
}

/// A client without manners: says what it likes, reads when it likes, never waits.
pub(crate) struct Client(UnixStream);

impl Client {
    pub(crate) fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_nonblocking(true).unwrap();
        Client(stream)
    }

    pub(crate) fn asking(socket: &Path, line: &str) -> Self {
        let client = Client::connect(socket);
        client.send(line.as_bytes());
        client
    }

    /// Sends what the socket takes, and says how much.
    pub(crate) fn send(&self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            match (&self.0).write(rest) {
                Ok(n) => sent += n,
                Err(error) => {
                    assert_ne!(error.kind(), ErrorKind::Interrupted);
                    break;
                }
            }
        }
        sent
    }

    /// Everything that has arrived, and whether the daemon has hung up.
    pub(crate) fn receive(&self) -> (String, bool) {
        let mut bytes = Vec::new();
        let closed = match (&self.0).read_to_end(&mut bytes) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        (String::from_utf8(bytes).unwrap(), closed)
    }

    /// Everything that a daemon in another thread sends until it hangs up.
    pub(crate) fn wait_for_answer(&self) -> String {
        self.0.set_nonblocking(false).unwrap();
        self.receive().0
    }

    /// Whether the daemon has not hung up. Reads nothing.
    pub(crate) fn is_connected(&self) -> bool {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLOUT)];
        poll(&mut fds, PollTimeout::ZERO).unwrap();
        !fds[0].revents().unwrap().contains(PollFlags::POLLHUP)
    }

    pub(crate) fn half_close(&self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }
}

impl Drop for Client {
    /// A process that another test is just starting holds copies of all files until it executes:
    /// closing alone would not hang up before that.
    fn drop(&mut self) {
        // Fails where the daemon has hung up.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// A [`Daemon`] in a thread of its own, for clients that block. Stops when dropped.
pub(crate) struct Background {
    stop: Arc<AtomicBool>,
    transitions: mpsc::Sender<Transition>,
    requests: mpsc::Receiver<Request>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start(socket: &Path) -> Self {
        let mut daemon = Daemon::start(socket);
        let stop = Arc::new(AtomicBool::new(false));
        let (transitions, to_broadcast) = mpsc::channel();
        let (answered, requests) = mpsc::channel();
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                daemon.turn(Duration::from_millis(5));
                for incoming in daemon.requests.drain(..) {
                    answered.send(incoming.request).ok();
                }
                for transition in to_broadcast.try_iter() {
                    daemon.server.broadcast(&transition);
                }
            }
        });
        Background { stop, transitions, requests, thread: Some(thread) }
    }

    pub(crate) fn broadcast(&self, transition: Transition) {
        self.transitions.send(transition).unwrap();
    }

    /// Waits until this was asked and answered.
    pub(crate) fn has_answered(&self, request: Request) {
        assert_eq!(self.requests.recv_timeout(Duration::from_secs(60)).unwrap(), request);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
