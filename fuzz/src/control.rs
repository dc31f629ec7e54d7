//! Whatever clients send to the control socket, in whatever pieces and whenever they hang up: each
//! is answered once and for what it asked, or refused, or told nothing and hung up on in time.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use arbitrary::Arbitrary;
use lanelect::control_api::{
    Done, REQUEST_MAX, Refusal, RefusalKind, Request, Response, Transition,
};
use lanelect::daemon::control::{Access, CLIENT_TIMEOUT, ControlServer};
use lanelect::time::Time;
use lanelect::types::{Role, Term};
use mio::{Events, Poll, Token};
use tempfile::TempDir;

/// Clients at a time; a step that names another one concerns one of these.
const CLIENTS: usize = 3;

/// Far more turns of the event loop than any step takes.
const TURNS_MAX: usize = 64;

/// What a client does, or the world around it.
#[derive(Debug, Arbitrary)]
pub enum Step<'a> {
    /// Sends anything.
    Send { client: u8, bytes: &'a [u8] },
    /// Sends a request that is well formed, but for what was sent before it.
    Ask { client: u8, request: Asked },
    /// Has no more to say, and listens.
    HalfClose { client: u8 },
    /// Goes away; the next one in its place is another.
    HangUp { client: u8 },
    /// Time passes.
    Pass { ms: u16 },
    /// There is a transition to tell.
    Broadcast,
}

/// A request.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Asked {
    Status,
    IsLeader,
    Ping,
    Watch,
    Yield,
    YieldFailed,
    Maintain(bool),
}

/// Has the clients take the steps, and looks after each.
pub fn run(steps: Vec<Step>) {
    let mut scene = Scene::new();
    for step in steps {
        scene.take(&step);
        scene.settle();
        scene.clients.iter_mut().flatten().for_each(Client::check);
    }
    scene.end();
}

/// A daemon's end of the socket, and its clients.
struct Scene {
    server: ControlServer,
    poll: Poll,
    now: Time,
    /// Connected when they first do something.
    clients: [Option<Client>; CLIENTS],
    home: TempDir,
}

impl Scene {
    fn new() -> Self {
        let home = TempDir::new().expect("a directory");
        let poll = Poll::new().expect("a poll");
        let access = Access::resolve(None).expect("no group to look up");
        let path = home.path().join("control.sock");
        let server = ControlServer::bind(&path, access, poll.registry(), Token(5));
        let server = server.expect("a fresh socket");
        let now = Time::from_millis(1);
        Scene { server, poll, now, clients: [const { None }; CLIENTS], home }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Send { client, bytes } => self.client(*client).send(bytes),
            Step::Ask { client, request } => {
                let line = serde_json::to_vec(&request.request()).expect("a request is JSON");
                self.client(*client).send(&[&line[..], b"\n"].concat());
            }
            Step::HalfClose { client } => self.client(*client).half_close(),
            Step::HangUp { client } => self.clients[usize::from(*client) % CLIENTS] = None,
            Step::Pass { ms } => self.now += Duration::from_millis((*ms).into()),
            Step::Broadcast => self.server.broadcast(&transition()),
        }
    }

    fn client(&mut self, index: u8) -> &mut Client {
        let client = &mut self.clients[usize::from(index) % CLIENTS];
        client.get_or_insert_with(|| Client::connect(&self.server))
    }

    /// Turns until there is nothing to do. What the clients have done has happened.
    fn settle(&mut self) {
        for _ in 0..TURNS_MAX {
            if !self.turn() {
                return;
            }
        }
        panic!("the event loop spins");
    }

    /// One turn of the event loop; false where there was nothing to do.
    fn turn(&mut self) -> bool {
        let mut events = Events::with_capacity(16);
        self.poll.poll(&mut events, Some(Duration::ZERO)).expect("polling works");
        let due = self.server.poll_timeout().is_some_and(|at| at <= self.now);
        if due {
            self.server.handle_timeout(self.now);
        }
        for event in &events {
            self.server.handle_event(event.token(), self.now);
        }
        while let Some(incoming) = self.server.poll_request() {
            self.server.respond(incoming.client, &answer(incoming.request));
        }
        due || !events.is_empty()
    }

    /// Nobody but watchers is left after the time-out, and nothing once they have hung up.
    fn end(mut self) {
        self.now += CLIENT_TIMEOUT;
        self.settle();
        assert_eq!(self.server.poll_timeout(), None, "a client that is not dropped");
        self.clients = [const { None }; CLIENTS];
        self.settle();
        assert!(self.server.is_idle(), "a client that nobody is");
        drop(self.server);
        self.home.close().expect("the socket is removed");
    }
}

/// What a client has sent, and got for it.
struct Client {
    stream: UnixStream,
    sent: Vec<u8>,
    received: Vec<u8>,
    is_closed: bool,
}

impl Client {
    fn connect(server: &ControlServer) -> Self {
        let stream = UnixStream::connect(server.path()).expect("the daemon listens");
        stream.set_nonblocking(true).expect("a socket can be non-blocking");
        Client { stream, sent: Vec::new(), received: Vec::new(), is_closed: false }
    }

    fn send(&mut self, bytes: &[u8]) {
        if let Ok(count) = (&self.stream).write(bytes) {
            self.sent.extend(&bytes[..count]);
        }
    }

    fn half_close(&mut self) {
        // Fails where the daemon has hung up.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// What arrived is what its request is answered with, and nothing before it is one.
    fn check(&mut self) {
        self.receive();
        let mut lines = self.received.split_inclusive(|byte| *byte == b'\n');
        let Some(request) = self.request() else {
            assert_eq!(lines.next(), None, "an answer to half a request");
            return;
        };
        let first: Response = read(lines.next().expect("an answer"));
        match request {
            Ok(request) => assert_eq!(first, answer(request)),
            Err(NoRequest) => {
                let is_malformed = |refusal: &Refusal| refusal.kind == RefusalKind::Malformed;
                assert!(matches!(&first, Response::Refused(refusal) if is_malformed(refusal)));
            }
        }
        if first == Response::Ok(Done::Watching) {
            lines.for_each(|line| assert_eq!(read::<Transition>(line), transition()));
        } else {
            assert!(self.is_closed && lines.next().is_none(), "more than an answer");
        }
    }

    fn receive(&mut self) {
        self.is_closed = match (&self.stream).read_to_end(&mut self.received) {
            Ok(_) => true,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
    }

    /// What it asks for with its first line; none where that is not complete.
    fn request(&self) -> Option<Result<Request, NoRequest>> {
        let bound = self.sent.len().min(REQUEST_MAX);
        match self.sent[..bound].iter().position(|byte| *byte == b'\n') {
            Some(end) => Some(serde_json::from_slice(&self.sent[..end]).map_err(|_| NoRequest)),
            None => (bound == REQUEST_MAX).then_some(Err(NoRequest)),
        }
    }
}

/// A line that is too long, or means nothing.
struct NoRequest;

impl Asked {
    const fn request(self) -> Request {
        match self {
            Asked::Status => Request::Status,
            Asked::IsLeader => Request::IsLeader,
            Asked::Ping => Request::Ping,
            Asked::Watch => Request::Watch,
            Asked::Yield => Request::Yield { to: None },
            Asked::YieldFailed => Request::YieldFailed,
            Asked::Maintain(on) => Request::Maintenance { on },
        }
    }
}

/// An answer that tells what was asked.
fn answer(request: Request) -> Response {
    match request {
        Request::Watch => Response::Ok(Done::Watching),
        other => {
            let message = format!("{other:?}");
            Response::Refused(Refusal { kind: RefusalKind::Failed, message })
        }
    }
}

fn transition() -> Transition {
    Transition {
        time_ms: 1_700_000_000_000,
        role: Role::Leader,
        previous_role: Role::Candidate,
        term: Term(7),
        leader: "web1".parse().ok(),
        previous_leader: None,
        reason: None,
    }
}

fn read<T: serde::de::DeserializeOwned>(line: &[u8]) -> T {
    serde_json::from_slice(line).expect("a line is JSON")
}
