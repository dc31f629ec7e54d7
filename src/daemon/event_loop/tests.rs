//! Whole daemons in one process, turned by the test. A daemon that the test does not turn behaves
//! like a stopped process. Each test has its own process and loopback.

#[path = "../../../tests/common/mod.rs"]
#[expect(unreachable_pub, reason = "integration tests share it")]
mod common;

use std::cell::Cell;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::sleep;

use mio::Interest;
use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use super::reload::{Order, Reloads};
use super::*;
use crate::control_api::{Done, Readiness, RefusalKind, Response};
use crate::core::hook::{HookEvent, HookRun, Reason};
use crate::core::output::Output;
use crate::core::params::QuorumParams;
use crate::core::persist::PersistentState;
use crate::core::quorum::Voters;
use crate::core::status::Ineligible;
use crate::daemon::post_stop::{self, PostStopError};
use crate::daemon::store::{self, OnFailure, StoreError};
use crate::daemon::transport::Settings;
use crate::hooks::HookNode;
use crate::os::simulated::{self, Stage, Work};
use crate::types::{NodeId, Role, Term};
use crate::wire::message::{Body, Message};

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Short enough to wait for in a test, and long against a stall of the machine.
const HEARTBEAT: Duration = Duration::from_millis(100);
const LEASE: Duration = Duration::from_secs(2);

/// Runs `body` in a process with a network of its own, and with the right to mount.
fn alone(test: &str, body: impl FnOnce()) {
    run_alone(&format!("tests::{test}"), body);
}

/// The same for a test of another module below this one.
pub(super) fn run_alone(test: &str, body: impl FnOnce()) {
    let test = format!("daemon::event_loop::{test}");
    let mut wrapper = vec!["-Urnmpf", "--mount-proc", "--kill-child"];
    // The shell is process 1. Process 1 reaps every orphan. If that were this process, one daemon
    // would take the hooks of the other one in it for orphans.
    wrapper.extend(["sh", "-c", r#""$@"; exit $?"#, "sh"]);
    common::run_inside(&test, &wrapper, || {
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        body();
    });
}

/// What a daemon is started with.
struct Plan {
    name: &'static str,
    voters: &'static [&'static str],
    grace: Duration,
    /// `$LOG` stands for a file of the node's.
    hook: &'static str,
    fence: Option<&'static str>,
    candidate: bool,
}

impl Plan {
    fn of(name: &'static str, voters: &'static [&'static str]) -> Self {
        let hook = "echo $LANELECT_EVENT $LANELECT_REASON >> $LOG";
        Plan { name, voters, grace: Duration::from_secs(30), hook, fence: None, candidate: true }
    }

    fn config(&self, dir: &Path) -> Config {
        let file = dir.join("lanelect.toml");
        let text = format!(
            "node_id = \"{}\"\ninterface = [\"lo\"]\nmulticast = \"239.255.0.9:7709\"\n\
             heartbeat_interval = \"{}ms\"\nleader_alive_threshold = \"{}ms\"\n\
             state_dir = '{dir}/state'\nsocket = '{dir}/control.sock'\nhook = '{}'\n",
            self.name,
            HEARTBEAT.as_millis(),
            LEASE.as_millis(),
            self.in_dir(self.hook, dir),
            dir = dir.display(),
        );
        fs::write(&file, text).unwrap();
        let source = ConfigSource { file: Some(file), ..ConfigSource::default() };
        let mut config = source.load().unwrap();
        config.election.candidate = self.candidate;
        config.fence = self.fence.map(|fence| self.in_dir(fence, dir));
        if !self.voters.is_empty() {
            let voters = Voters::new(self.voters.iter().map(|name| id(name))).unwrap();
            config.election.quorum = Some(QuorumParams { voters, demote_grace: self.grace });
        }
        config
    }

    fn in_dir(&self, command: &str, dir: &Path) -> String {
        command.replace("$LOG", dir.join("log").to_str().unwrap())
    }
}

fn id(name: &str) -> NodeId {
    name.parse().unwrap()
}

/// A daemon, and its directory.
struct Node {
    daemon: Daemon,
    events: Events,
    dir: TempDir,
    /// Event through which a held disk or directory wakes the event loop.
    waker: Option<mio::net::UnixStream>,
}

impl Node {
    fn start(plan: &Plan) -> Self {
        Node::start_in(plan, TempDir::new().unwrap()).unwrap()
    }

    fn start_in(plan: &Plan, dir: TempDir) -> Result<Self, RunError> {
        Node::start_by(plan.config(dir.path()), dir)
    }

    fn start_by(config: Config, dir: TempDir) -> Result<Self, RunError> {
        let mut daemon = Daemon::new(ConfigSource::default(), config, None)?;
        daemon.rescan();
        let events = Events::with_capacity(EVENTS_PER_TURN);
        Ok(Node { daemon, events, dir, waker: None })
    }

    fn turn(&mut self) {
        self.daemon.sleep(&mut self.events).unwrap();
        self.daemon.turn(&self.events);
    }

    fn turn_until(&mut self, what: &str, mut done: impl FnMut(&mut Node) -> bool) {
        let end = clock::now() + PATIENCE;
        while !done(self) {
            assert!(clock::now() < end, "waited in vain: {what}");
            self.turn();
        }
    }

    fn lead(&mut self) {
        self.turn_until("it leads and has said so", |node| {
            node.daemon.election.is_leader()
                && node.hooks().iter().any(|run| run.starts_with("elected"))
        });
    }

    /// Has a hook take over that waits for a hook-runner. Returns the socket of the latter.
    fn ask_for_hook_that_waits(&mut self, now: Time) -> PathBuf {
        let socket = self.dir.path().join("hook-runner.sock");
        let config = Config { hook_socket: Some(socket.clone()), ..self.daemon.config.clone() };
        let node_id = config.node_id;
        let interfaces = self.daemon.hooks.interfaces().to_vec();
        let host = HookNode { node_id, group: config.group, interfaces };
        let registry = self.daemon.poll.registry();
        self.daemon.hooks = Hooks::configured(&config, host, registry, HOOKS, None, now).unwrap();
        let run = HookRun {
            event: HookEvent::Elected,
            reason: Reason::Election,
            role: Role::Leader,
            term: self.daemon.election.term(),
            leader: Some(node_id),
            leader_address: None,
            previous_leader: None,
        };
        self.daemon.start_hook(now, run);
        socket
    }

    /// Stops until the lease has expired, even if answers wait that would extend it.
    fn hold_beyond_lease(&self) {
        let longest = clock::now() + LEASE;
        assert!(self.daemon.election.lease_end().unwrap() <= longest);
        pass_until("the lease is over", || clock::now() >= longest);
    }

    /// Replaces the disk by one whose writes end at the test's command.
    fn hold_disk(&mut self, on_failure: OnFailure) -> Disk {
        let ((begin, begun), (answers, to_answer)) = (mpsc::channel(), mpsc::channel());
        let save = move |state: &PersistentState| {
            // The test may be over.
            let _ = begin.send(*state);
            to_answer.recv().unwrap_or(Ok(()))
        };
        self.settle_disk();
        let wake = self.waker();
        self.daemon.writer = Writer::start(save, wake, on_failure, None).unwrap();
        Disk { begun, answers }
    }

    /// Makes each reading of the configuration wait for the test's command.
    fn hold_directory(&mut self) -> Sender<()> {
        let (answer, answers) = mpsc::channel();
        let load = move |order: Order| {
            // The test may be over.
            let _ = answers.recv();
            order.carry_out()
        };
        self.daemon.reloads = Reloads::start(load, self.waker()).unwrap();
        answer
    }

    /// What wakes the event loop.
    fn waker(&mut self) -> impl Fn() + Send + 'static {
        let (far, mut near) = mio::net::UnixStream::pair().unwrap();
        self.daemon.poll.registry().register(&mut near, THREADS, Interest::READABLE).unwrap();
        self.waker = Some(near);
        move || {
            // The test may be over.
            let _ = (&far).write_all(&[0]);
        }
    }

    /// Completes everything that was requested of the disk, without any other turn of the loop.
    fn settle_disk(&mut self) {
        while self.daemon.writer.insist(clock::now()).is_some() {
            self.daemon.finish_saving();
            self.daemon.note_settled();
            self.daemon.carry_out();
        }
    }

    fn ask(&self, request: &str) -> Client {
        let mut stream = UnixStream::connect(self.dir.path().join("control.sock")).unwrap();
        writeln!(stream, "{request}").unwrap();
        stream.set_nonblocking(true).unwrap();
        Client { stream, text: Vec::new() }
    }

    fn answer(&mut self, request: &str) -> Response {
        let mut client = self.ask(request);
        self.turn_until(request, |_| client.line().is_some());
        client.response()
    }

    /// Dies without any message, as of SIGKILL, and lets `post-stop` clean up. Returns its outcome
    /// and the number of resignations.
    fn die(self) -> (Result<(), PostStopError>, usize, TempDir) {
        let mut listener = Listener::new(&self);
        let Node { daemon, dir, .. } = self;
        let file = Some(dir.path().join("lanelect.toml"));
        let outcome = post_stop_after(daemon, &ConfigSource { file, ..ConfigSource::default() });
        let heard = listener.heard();
        let resigns = |message: &&Message| matches!(message.body, Body::Resignation { .. });
        (outcome, heard.iter().filter(resigns).count(), dir)
    }

    /// What the hooks wrote, a line each.
    fn hooks(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn state_file(&self) -> PathBuf {
        self.dir.path().join("state/default.state")
    }
}

/// The test's end of a disk.
struct Disk {
    begun: Receiver<PersistentState>,
    answers: Sender<Result<(), StoreError>>,
}

/// A connection to the control socket.
struct Client {
    stream: UnixStream,
    text: Vec<u8>,
}

impl Client {
    /// The first line, once it is complete.
    fn line(&mut self) -> Option<&str> {
        match self.stream.read_to_end(&mut self.text) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            _ => {}
        }
        let end = self.text.iter().position(|&byte| byte == b'\n')?;
        Some(std::str::from_utf8(&self.text[..end]).unwrap())
    }

    fn response(&mut self) -> Response {
        serde_json::from_str(self.line().unwrap()).unwrap()
    }

    fn lines(&mut self) -> Vec<serde_json::Value> {
        self.line();
        let text = std::str::from_utf8(&self.text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Listens to the group.
struct Listener {
    transport: Transport,
    poll: Poll,
    codec: Codec,
}

impl Listener {
    fn new(node: &Node) -> Self {
        let config = &node.daemon.config;
        let poll = Poll::new().unwrap();
        let settings = Settings::of(config, None);
        let mut transport = Transport::new(poll.registry(), Token(0), settings).unwrap();
        transport.rescan(clock::now(), false).unwrap();
        Listener { transport, poll, codec: Codec::new(config.group, None) }
    }

    /// What was sent since the last call.
    fn heard(&mut self) -> Vec<Message> {
        let mut events = Events::with_capacity(8);
        self.poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
        for event in &events {
            self.transport.handle_event(event.token());
        }
        let mut messages = Vec::new();
        while let Some(received) = self.transport.receive() {
            let decoded = self.codec.decode(received.source, received.datagram.unwrap());
            messages.push(decoded.unwrap().message);
        }
        messages
    }

    fn heard_as_leader(&mut self) -> usize {
        let heard = self.heard();
        heard.iter().filter(|message| message.standing.role == Role::Leader).count()
    }
}

/// Lets time pass, within limits, until `check` holds.
#[expect(clippy::disallowed_methods, reason = "a test waits for what runs beside it")]
fn pass_until(what: &str, mut check: impl FnMut() -> bool) {
    let end = clock::now() + PATIENCE;
    while !check() {
        assert!(clock::now() < end, "waited in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Turns several daemons until `done`.
fn turn_all_until(what: &str, nodes: &mut [Node], mut done: impl FnMut(&mut [Node]) -> bool) {
    let end = clock::now() + PATIENCE;
    while !done(nodes) {
        assert!(clock::now() < end, "waited in vain: {what}");
        for node in &mut *nodes {
            match node.daemon.poll.poll(&mut node.events, Some(Duration::from_millis(2))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled.unwrap(),
            }
            for event in node.events.iter() {
                node.daemon.transport.handle_event(event.token());
            }
            node.daemon.turn(&node.events);
        }
    }
}

/// Two voters. The first one leads, because the second one may not.
fn two(first: Plan) -> [Node; 2] {
    let witness = Plan { candidate: false, ..Plan::of("b", first.voters) };
    let mut nodes = [Node::start(&first), Node::start(&witness)];
    turn_all_until("a leads", &mut nodes, |nodes| {
        nodes[0].daemon.election.is_leader()
            && nodes[0].hooks().iter().any(|run| run.starts_with("elected"))
            && nodes[1].daemon.election.leader() == Some(id("a"))
    });
    nodes
}

const LONE: &[&str] = &["a"];
const PAIR: &[&str] = &["a", "b"];

#[test]
fn a_leader_that_was_stopped_shows_nothing_of_a_lease_that_is_over() {
    alone("a_leader_that_was_stopped_shows_nothing_of_a_lease_that_is_over", || {
        // The other voter is silent, so there is no new lease before the answers.
        let [mut node, silent] = two(Plan::of("a", PAIR));
        let mut listener = Listener::new(&node);
        let mut watcher = node.ask(r#"{"command":"watch"}"#);
        node.turn_until("it watches", |_| watcher.line().is_some());
        let mut clients =
            [node.ask(r#"{"command":"is-leader"}"#), node.ask(r#"{"command":"status"}"#)];
        node.hold_beyond_lease();
        listener.heard();

        node.turn_until("all are answered", |_| clients.iter_mut().all(|c| c.line().is_some()));
        let [is_leader, status] = &mut clients;
        let Response::Leadership(leadership) = is_leader.response() else { panic!("no answer") };
        assert!(!leadership.leads);
        let Response::Status(status) = status.response() else { panic!("no status") };
        // It may stand for election again by now.
        assert_ne!(status.role, Role::Leader);
        let told = watcher.lines();
        assert_eq!(told[1]["role"], "follower", "{told:?}");
        assert_eq!(told[1]["reason"], "lease-lost");
        assert_eq!(listener.heard_as_leader(), 0);

        // A new lease is a new leadership.
        let mut nodes = [node, silent];
        turn_all_until("it leads again", &mut nodes, |nodes| nodes[0].hooks().len() >= 4);
        let hooks = nodes[0].hooks();
        assert_eq!(hooks[1..4], ["elected election", "demoted lease-lost", "elected election"]);
    });
}

#[test]
fn what_was_asked_for_under_a_lease_does_not_leave_after_it() {
    alone("what_was_asked_for_under_a_lease_does_not_leave_after_it", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        node.lead();
        let mut listener = Listener::new(&node);
        // Stopped after the election requests a declaration and before the daemon sends it.
        pass_until("a declaration is due", || {
            let due = node.daemon.election.poll_timeout().unwrap().at;
            due <= clock::now()
        });
        node.daemon.election.handle_timeout(clock::now());
        let mut outputs = Vec::new();
        while let Some(output) = node.daemon.election.poll_output() {
            outputs.push(output);
        }
        let declaration = outputs.iter().find_map(|output| match output {
            Output::Transmit(message) => Some(*message),
            _ => None,
        });
        let declaration = declaration.unwrap();
        assert!(matches!(declaration.body, Body::Declaration { .. }));
        node.daemon.transmit(&declaration);
        pass_until("it is heard", || listener.heard_as_leader() == 1);

        assert!(node.daemon.leadership().leads);
        node.hold_beyond_lease();
        assert!(!node.daemon.leadership().leads);
        let sent = node.daemon.transport.sent();
        node.daemon.transmit(&declaration);
        assert_eq!((node.daemon.transport.sent(), listener.heard().len()), (sent, 0));
    });
}

#[test]
fn a_hook_that_was_to_take_over_under_a_lease_is_not_begun_after_it() {
    alone("a_hook_that_was_to_take_over_under_a_lease_is_not_begun_after_it", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        let disk = node.hold_disk(OnFailure::Wait);
        let mut kept = PersistentState::default();
        node.turn_until("it has voted for itself", |_| {
            if let Ok(state) = disk.begun.try_recv() {
                kept = state;
                if state.ballot.is_none() {
                    disk.answers.send(Ok(())).unwrap();
                }
            }
            kept.ballot.is_some()
        });
        node.turn_until("its hooks are free", |node| node.hooks() == ["started startup"]);
        node.turn_until("its hooks are idle", |node| !node.daemon.hooks.report().running);
        let mut watcher = node.ask(r#"{"command":"watch"}"#);
        node.turn_until("it watches", |_| watcher.line().is_some());
        // The vote is on disk; the daemon is stopped before it acts on it.
        node.daemon.election.handle_persisted(clock::now(), kept);
        assert!(node.daemon.election.is_leader());
        let mut listener = Listener::new(&node);
        node.hold_beyond_lease();
        node.daemon.carry_out();
        let mut heard = Vec::new();
        pass_until("the vote request is heard", || {
            heard.extend(listener.heard());
            heard.iter().any(|message| matches!(message.body, Body::VoteRequest { .. }))
        });
        assert!(heard.iter().all(|message| message.standing.role != Role::Leader), "{heard:?}");
        assert!(!node.daemon.hooks.report().running);
        let told = watcher.lines();
        assert!(told.iter().all(|transition| transition["role"] != "leader"), "{told:?}");

        disk.answers.send(Ok(())).unwrap();
        drop(disk);
        node.turn_until("it is elected after all", |node| node.hooks().len() == 2);
        assert_eq!(node.hooks(), ["started startup", "elected election"]);
    });
}

/// The hook-runner could not be reached while the lease held.
#[test]
fn a_hook_that_waits_for_the_hook_runner_does_not_take_over_after_the_lease() {
    alone("a_hook_that_waits_for_the_hook_runner_does_not_take_over_after_the_lease", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        node.lead();
        let socket = node.ask_for_hook_that_waits(clock::now());
        assert!(node.daemon.hooks.waits_to_take_over());

        let runner = UnixListener::bind(&socket).unwrap();
        runner.set_nonblocking(true).unwrap();
        node.hold_beyond_lease();
        node.daemon.try_hooks_again();
        assert_eq!(runner.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(!node.daemon.hooks.is_running(Lane::Hook));
    });
}

#[test]
fn a_daemon_wakes_when_a_hook_is_to_be_tried_again() {
    alone("a_daemon_wakes_when_a_hook_is_to_be_tried_again", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        node.lead();
        // Before anything else that it waits for.
        node.ask_for_hook_that_waits(Time::ZERO);
        assert!(node.daemon.hooks.poll_timeout().is_some());
        assert_eq!(node.daemon.next_deadline(), node.daemon.hooks.poll_timeout());
    });
}

/// It waits for its checks to end. Before, it answered that it had done what it ignored.
#[test]
fn a_daemon_that_has_handed_over_refuses_what_it_cannot_do() {
    alone("a_daemon_that_has_handed_over_refuses_what_it_cannot_do", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        node.lead();
        node.daemon.stop();
        node.turn_until("it has stopped", |node| node.daemon.stopped.is_some());
        for request in [r#"{"command":"maintenance","on":true}"#, r#"{"command":"ping"}"#] {
            let response = node.answer(request);
            let Response::Refused(refusal) = response else { panic!("{response:?}") };
            assert_eq!(refusal.kind, RefusalKind::Failed, "{request}");
            assert!(refusal.message.contains("stopping"), "{request}: {}", refusal.message);
        }
    });
}

#[test]
fn a_daemon_is_not_woken_by_its_own_datagrams() {
    alone("a_daemon_is_not_woken_by_its_own_datagrams", || {
        let mut node = Node::start(&Plan::of("a", &[]));
        let mut listener = Listener::new(&node);
        node.lead();
        let mut said = None;
        node.turn_until("it declares", |_| {
            said =
                listener.heard().into_iter().find(|message| message.standing.role == Role::Leader);
            said.is_some()
        });
        node.daemon.transmit(&said.unwrap());
        pass_until("others hear it", || listener.heard_as_leader() == 1);
        node.daemon.poll.poll(&mut node.events, Some(Duration::ZERO)).unwrap();
        for event in node.events.iter() {
            node.daemon.transport.handle_event(event.token());
        }
        assert_eq!(node.daemon.transport.receive(), None);
    });
}

#[test]
fn a_slow_disk_delays_no_declaration() {
    alone("a_slow_disk_delays_no_declaration", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        node.lead();
        let disk = node.hold_disk(OnFailure::Wait);
        let (mut listener, mut declared) = (Listener::new(&node), 0);
        let term = node.daemon.election.term();
        let state = PersistentState { term, ..PersistentState::default() };
        node.daemon.writer.save(state, clock::now());
        node.turn_until("it declares on and on", |_| {
            declared += listener.heard_as_leader();
            declared >= 40
        });
        assert!(node.daemon.writer.insist(clock::now()).is_some(), "the disk is still at it");
        assert!(node.daemon.election.is_leader());
        assert_eq!(node.hooks().len(), 2, "it never stopped leading");
        drop(disk);
    });
}

#[test]
fn a_slow_directory_delays_no_declaration() {
    alone("a_slow_directory_delays_no_declaration", || {
        let mut node = Node::start(&Plan::of("a", &[]));
        node.lead();
        let directory = node.hold_directory();
        let (mut listener, mut declared) = (Listener::new(&node), 0);
        let hook = node.daemon.config.hook.clone().unwrap();
        for priority in [7, 8] {
            let file = node.dir.path().join("new.toml");
            fs::write(&file, format!("priority = {priority}\nhook = '{hook}'\n")).unwrap();
            node.daemon.source = ConfigSource { file: Some(file), ..ConfigSource::default() };
            node.daemon.reload();
        }
        let priority = |node: &Node| node.daemon.election.params().priority.0;
        let before = priority(&node);
        node.turn_until("it declares on and on", |_| {
            declared += listener.heard_as_leader();
            declared >= 20
        });
        assert_eq!(priority(&node), before, "nothing was read yet");
        // Once for all requests in the meantime.
        directory.send(()).unwrap();
        directory.send(()).unwrap();
        node.turn_until("it was reloaded", |node| priority(node) == 8);
        node.turn_until("the second reload is over", |node| !node.daemon.reloads.is_reading());
        assert_eq!(node.hooks().len(), 2, "it never stopped leading");
    });
}

#[test]
fn a_settled_group_saves_nothing() {
    alone("a_settled_group_saves_nothing", || {
        let mut nodes = two(Plan::of("a", PAIR));
        let mut listener = Listener::new(&nodes[0]);
        let saves = |nodes: &mut [Node]| {
            [0, 1].map(|n| {
                assert_eq!(nodes[n].daemon.writer.insist(clock::now()), None);
                nodes[n].daemon.writer.saves()
            })
        };
        turn_all_until("the first pledge is kept", &mut nodes, |nodes| {
            nodes.iter_mut().all(|node| node.daemon.writer.insist(clock::now()).is_none())
                && listener.heard_as_leader() > 0
        });
        let before = saves(&mut nodes);
        let mut declared = 0;
        turn_all_until("it declares on and on", &mut nodes, |_| {
            declared += listener.heard_as_leader();
            declared >= 30
        });
        assert_eq!(saves(&mut nodes), before);
        assert!(before.iter().all(|saves| *saves > 0), "{before:?}");
    });
}

#[test]
fn maintenance_is_answered_once_it_is_on_disk_and_keeps_nobody_else_waiting() {
    alone("maintenance_is_answered_once_it_is_on_disk_and_keeps_nobody_else_waiting", || {
        let mut node = Node::start(&Plan::of("a", &[]));
        node.lead();
        let disk = node.hold_disk(OnFailure::GoOn);
        let mut on = node.ask(r#"{"command":"maintenance","on":true}"#);
        node.turn_until("the disk is at it", |_| disk.begun.try_recv().is_ok());
        let Response::Status(status) = node.answer(r#"{"command":"status"}"#) else {
            panic!("no status")
        };
        assert_eq!(status.ineligible_reason, Some(Ineligible::Maintenance));
        assert_eq!(on.line(), None);
        disk.answers.send(Ok(())).unwrap();
        node.turn_until("it is answered", |_| on.line().is_some());
        assert_eq!(on.response(), Response::Ok(Done::MaintenanceOn));
        // State that is on disk already is confirmed at once.
        let again = node.answer(r#"{"command":"maintenance","on":true}"#);
        assert_eq!(again, Response::Ok(Done::MaintenanceOn));
    });
}

#[test]
fn maintenance_that_the_disk_never_answers_is_refused_in_time() {
    alone("maintenance_that_the_disk_never_answers_is_refused_in_time", || {
        let mut node = Node::start(&Plan::of("a", &[]));
        node.lead();
        let disk = node.hold_disk(OnFailure::GoOn);
        let Response::Refused(refusal) = node.answer(r#"{"command":"maintenance","on":true}"#)
        else {
            panic!("not refused")
        };
        assert_eq!(refusal.kind, RefusalKind::Failed);
        assert!(refusal.message.contains("does not respond"), "{}", refusal.message);
        drop(disk);
    });
}

#[test]
fn a_lost_lease_cuts_a_slow_elected_hook_short_and_lets_the_demote_hook_run() {
    alone("a_lost_lease_cuts_a_slow_elected_hook_short_and_lets_the_demote_hook_run", || {
        let hook = "echo $LANELECT_EVENT $LANELECT_REASON >> $LOG; \
                    if [ $LANELECT_EVENT = elected ]; then exec sleep 1000; fi";
        let [mut node, silent] = two(Plan { hook, ..Plan::of("a", PAIR) });
        node.turn_until("it has let go", |node| {
            node.hooks().last().is_some_and(|run| run == "demoted lease-lost")
                && !node.daemon.hooks.report().running
        });
        assert_eq!(node.daemon.fences, 0);
        drop(silent);
    });
}

#[test]
fn a_demote_hook_that_overruns_its_grace_is_fenced() {
    alone("a_demote_hook_that_overruns_its_grace_is_fenced", || {
        let hook = "echo $LANELECT_EVENT $LANELECT_REASON >> $LOG; \
                    if [ $LANELECT_EVENT = demoted ]; then exec sleep 1000; fi";
        let fence = "echo $LANELECT_EVENT $LANELECT_REASON $LANELECT_TERM >> $LOG";
        let grace = Duration::from_secs(2);
        let [mut node, silent] =
            two(Plan { hook, fence: Some(fence), grace, ..Plan::of("a", PAIR) });
        let term = node.daemon.election.term();
        let fenced = format!("fence grace-overrun {term}");
        node.turn_until("the fence ran", |node| node.hooks().last() == Some(&fenced));
        assert!(node.daemon.hooks.report().running, "beside the hook that hangs");
        let hooks = node.hooks();
        assert_eq!(hooks[hooks.len() - 2], "demoted lease-lost");
        assert_eq!(node.daemon.fences, 1);
        drop(silent);
    });
}

/// A directory whose state is on a file system of 16 KiB.
fn tiny() -> TempDir {
    let dir = TempDir::new().unwrap();
    let state = dir.path().join("state");
    fs::create_dir(&state).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=16k", "none"]).arg(&state);
    assert!(mount.status().unwrap().success());
    dir
}

/// Leaves no room in a [`tiny`] directory.
fn fill(dir: &Path) -> PathBuf {
    let filler = dir.join("state/filler");
    let error = fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    filler
}

#[test]
fn in_quorum_mode_nothing_starts_on_a_disk_that_cannot_be_written() {
    alone("in_quorum_mode_nothing_starts_on_a_disk_that_cannot_be_written", || {
        let refusal = |dir: TempDir| {
            let error = Node::start_in(&Plan::of("a", LONE), dir).err().unwrap();
            assert!(!error.is_config());
            error.to_string()
        };
        let full = tiny();
        fill(full.path());
        let text = refusal(full);
        assert!(text.contains("free some space"), "{text}");
        assert!(text.contains("save its votes and promises"), "{text}");

        let read_only = tiny();
        let mut remount = Command::new("mount");
        // Only the mount and not the file system, whose options contain user ids as the host
        // numbers them.
        remount.args(["-o", "remount,bind,ro"]).arg(read_only.path().join("state"));
        assert!(remount.status().unwrap().success());
        let text = refusal(read_only);
        assert!(text.contains("writable file system"), "{text}");

        let damaged = TempDir::new().unwrap();
        fs::create_dir(damaged.path().join("state")).unwrap();
        fs::write(damaged.path().join("state/default.state"), "version = 1\n").unwrap();
        let text = refusal(damaged);
        assert!(text.contains("is damaged"), "{text}");
    });
}

#[test]
fn a_voter_whose_disk_is_full_does_not_stand_until_there_is_room() {
    alone("a_voter_whose_disk_is_full_does_not_stand_until_there_is_room", || {
        let mut node = Node::start_in(&Plan::of("a", LONE), tiny()).unwrap();
        node.settle_disk();
        // The note of a hook that runs needs space, too.
        pass_until("the hook has ended", || {
            node.daemon.hooks.handle_child_signal(clock::now());
            node.daemon.report_finished_hooks();
            !node.daemon.hooks.report().running
        });
        let filler = fill(node.dir.path());
        node.turn_until("the disk refused", |node| node.daemon.writer.failure().is_some());
        let retry = node.daemon.writer.poll_timeout().unwrap() + store::RETRY_PAUSE;
        node.turn_until("it was tried again", |_| clock::now() > retry);
        assert!(!node.daemon.election.is_leader());
        assert!(node.daemon.writer.failure().unwrap().contains("free some space"));
        assert_eq!(node.hooks(), ["started startup"]);
        fs::remove_file(filler).unwrap();
        node.lead();
        assert_eq!(node.daemon.writer.failure(), None);
    });
}

#[test]
fn in_quorum_mode_maintenance_is_refused_while_the_disk_is_full_and_saved_once_it_is_not() {
    let test =
        "in_quorum_mode_maintenance_is_refused_while_the_disk_is_full_and_saved_once_it_is_not";
    alone(test, || {
        let mut node = Node::start_in(&Plan::of("a", LONE), tiny()).unwrap();
        node.lead();
        node.turn_until("its hooks are idle", |node| !node.daemon.hooks.report().running);
        node.settle_disk();
        let filler = fill(node.dir.path());
        let Response::Refused(refusal) = node.answer(r#"{"command":"maintenance","on":true}"#)
        else {
            panic!("not refused")
        };
        assert!(refusal.message.contains("free some space"), "{}", refusal.message);
        fs::remove_file(filler).unwrap();
        node.turn_until("it is saved", |node| node.daemon.writer.failure().is_none());
        assert!(fs::read_to_string(node.state_file()).unwrap().contains("maintenance = true"));
    });
}

#[test]
fn a_state_directory_that_was_deleted_is_written_anew_with_all_that_was_promised() {
    alone("a_state_directory_that_was_deleted_is_written_anew_with_all_that_was_promised", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        node.lead();
        fs::remove_dir_all(node.dir.path().join("state")).unwrap();
        node.hold_beyond_lease();
        node.turn_until("another leadership is on disk", |node| {
            node.daemon.election.is_leader() && node.state_file().exists()
        });
        let text = fs::read_to_string(node.state_file()).unwrap();
        let term = node.daemon.election.term();
        assert!(text.contains("enrolment = \"enrolled\""), "{text}");
        assert!(text.contains(&format!("[ballot]\nterm = {term}\n")), "{text}");
        assert!(term >= Term(2));
    });
}

#[test]
fn a_daemon_that_stops_saves_what_the_disk_did_not_take_before() {
    alone("a_daemon_that_stops_saves_what_the_disk_did_not_take_before", || {
        let mut node = Node::start(&Plan::of("a", &[]));
        node.lead();
        let disk = node.hold_disk(OnFailure::GoOn);
        let mut on = node.ask(r#"{"command":"maintenance","on":true}"#);
        node.turn_until("the disk is at it", |_| disk.begun.try_recv().is_ok());
        node.daemon.stop();
        node.turn_until("it is over", |node| node.daemon.stopped.is_some());
        assert_eq!(on.line(), None);
        disk.answers.send(Ok(())).unwrap();
        node.daemon.finish_saving();
        assert_eq!(on.response(), Response::Ok(Done::MaintenanceOn));
        assert_eq!(node.daemon.writer.insist(clock::now()), None);
    });
}

#[test]
fn a_demote_hook_that_ended_in_time_is_not_fenced_for_being_noticed_late() {
    alone("a_demote_hook_that_ended_in_time_is_not_fenced_for_being_noticed_late", || {
        // The hook for demoted ends when the test writes to the fifo.
        let hook = "echo $LANELECT_EVENT $LANELECT_REASON $$ >> $LOG; \
                    if [ $LANELECT_EVENT = demoted ]; then read go < $LOG.fifo; fi";
        let fence = "echo fenced >> $LOG";
        let grace = Duration::from_secs(3);
        let [mut node, silent] =
            two(Plan { hook, fence: Some(fence), grace, ..Plan::of("a", PAIR) });
        let fifo = node.dir.path().join("log.fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let mut shell = None;
        node.turn_until("its demote hook runs", |node| {
            let hooks = node.hooks();
            shell = hooks
                .last()
                .and_then(|run| run.strip_prefix("demoted lease-lost "))
                .map(String::from);
            shell.is_some()
        });
        // Stopped until the hook has ended and the grace is over.
        fs::write(&fifo, "go\n").unwrap();
        pass_until("the hook has ended", || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", shell.as_ref().unwrap()));
            stat.unwrap().contains(") Z ")
        });
        let end = clock::now() + grace * 2;
        pass_until("the grace is over", || clock::now() > end);
        node.turn_until("its end is noticed", |node| !node.daemon.hooks.report().running);
        node.turn();
        assert_eq!(node.daemon.fences, 0);
        drop(silent);
    });
}

#[test]
fn a_reload_leaves_alone_what_takes_a_restart() {
    alone("a_reload_leaves_alone_what_takes_a_restart", || {
        let mut node = Node::start(&Plan::of("a", &["a"]));
        let file = node.dir.path().join("new.toml");
        fs::write(
            &file,
            "node_id = \"b\"\nmode = \"quorum\"\nvoters = [\"a\", \"b\", \"c\"]\npriority = 7\n\
             socket = \"/nowhere\"\nhook = \"true\"\n",
        )
        .unwrap();
        node.daemon.source = ConfigSource { file: Some(file), ..ConfigSource::default() };
        let before = node.daemon.config.clone();
        node.daemon.reload();
        node.turn_until("it was reloaded", |node| node.daemon.election.params().priority.0 == 7);
        let (params, config) = (node.daemon.election.params(), &node.daemon.config);
        assert_eq!(params, &config.election);
        assert_eq!(before.changes_needing_restart(config), [""; 0]);
        let told = node.daemon.status().config;
        assert_eq!(told.reload_failure, None);
        for key in ["node_id", "voters", "socket"] {
            assert!(told.restart_needed.iter().any(|needed| needed == key), "{told:?}");
        }
        assert!(!told.restart_needed.iter().any(|needed| needed == "priority"), "{told:?}");
    });
}

#[test]
fn status_shows_a_refused_reload_until_one_succeeds() {
    alone("status_shows_a_refused_reload_until_one_succeeds", || {
        let mut node = Node::start(&Plan::of("a", &["a"]));
        let file = node.dir.path().join("new.toml");
        node.daemon.source = ConfigSource { file: Some(file.clone()), ..ConfigSource::default() };
        let before = node.daemon.config.clone();
        assert_eq!(node.daemon.status().config.reload_failure, None);
        for (text, words) in [
            ("priorty = 7\n", ":1: priorty: unknown key; did you mean priority?"),
            ("priority = 7\nkey_file = \"/nowhere\"\n", "cannot read key_file /nowhere"),
            ("priority = 7\nsocket_group = \"no-such\"\n", "this host has no such group"),
        ] {
            fs::write(&file, text).unwrap();
            node.daemon.reload();
            node.turn_until("it was refused", |node| {
                let failure = node.daemon.status().config.reload_failure;
                failure.is_some_and(|failure| failure.contains(words))
            });
            assert_eq!(node.daemon.config, before, "{text}");
        }
        fs::write(&file, "check_fall = 7\n").unwrap();
        node.daemon.reload();
        node.turn_until("it was reloaded", |node| node.daemon.config.check_thresholds.fall == 7);
        assert_eq!(node.daemon.status().config.reload_failure, None);
    });
}

/// Notes whether a file was locked when the clock was first read.
struct FirstReading {
    lock: PathBuf,
    was_locked: Cell<Option<bool>>,
}

impl Stage for FirstReading {
    fn now(&self) -> Time {
        let file = fs::File::open(&self.lock);
        let is_locked =
            || file.is_ok_and(|it| Flock::lock(it, FlockArg::LockSharedNonblock).is_err());
        self.was_locked.set(self.was_locked.get().or_else(|| Some(is_locked())));
        Time::from_millis(1_000_000)
    }

    fn may_stop(&self) {}

    fn wall_ms(&self) -> u64 {
        1_800_000_000_000
    }

    fn draw(&self) -> u64 {
        1
    }

    fn sleep(&self, _: Option<Time>) {}

    fn poll_signal(&self) -> Option<i32> {
        None
    }

    fn adopt(&self, _: &'static str, _: Work) {}
}

/// Until it holds the lock, an earlier daemon may still give promises that this one must keep.
#[test]
fn daemon_that_starts_reads_the_clock_after_it_has_locked_its_state() {
    alone("daemon_that_starts_reads_the_clock_after_it_has_locked_its_state", || {
        let dir = TempDir::new().unwrap();
        let config = Plan::of("a", LONE).config(dir.path());
        let lock = dir.path().join("state/default.lock");
        let stage = Rc::new(FirstReading { lock, was_locked: Cell::new(None) });
        simulated::enter(Rc::clone(&stage) as Rc<dyn Stage>);
        drop(Daemon::new(ConfigSource::default(), config, None).unwrap());
        assert_eq!(stage.was_locked.get(), Some(true));
    });
}

#[test]
fn post_stop_resigns_in_quorum_mode_only_where_the_hooks_have_let_go_and_else_fences() {
    let test = "post_stop_resigns_in_quorum_mode_only_where_the_hooks_have_let_go_and_else_fences";
    alone(test, || {
        let hangs =
            "[ $LANELECT_EVENT != demoted ] || exec sleep 100; echo $LANELECT_EVENT >> $LOG";
        let fails = "echo $LANELECT_EVENT >> $LOG; [ $LANELECT_EVENT != demoted ]";
        let lets_go = "echo $LANELECT_EVENT >> $LOG";
        // Fails the first time.
        let fence = Some("echo fenced >> $LOG; [ $(grep -c fenced $LOG) = 2 ]");
        // The disk is no longer busy some time after the grace.
        let fails_at_first = "[ $LANELECT_EVENT != demoted ] || grep fenced $LOG || exit 1; \
                              echo $LANELECT_EVENT >> $LOG";
        let fails_longer = Some("echo fenced >> $LOG; [ $(grep -c fenced $LOG) = 4 ]");
        let grace = Duration::from_secs(1);
        for (hook, fence, is_resigned_for, last) in [
            (fails_at_first, fails_longer, true, "fenced\ndemoted\n"),
            (hangs, fence, true, "fenced\nfenced\n"),
            (fails, fence, true, "fenced\n"),
            (fails, None, false, "demoted\n"),
            (lets_go, fence, true, "demoted\n"),
        ] {
            let mut node = Node::start(&Plan { grace, hook, fence, ..Plan::of("a", LONE) });
            node.lead();
            let (outcome, resignations, dir) = node.die();
            assert_eq!(resignations > 0, is_resigned_for, "{outcome:?}");
            assert_eq!(outcome.is_ok(), is_resigned_for, "{outcome:?}");
            let ran = fs::read_to_string(dir.path().join("log")).unwrap();
            assert!(ran.ends_with(last), "{ran:?}");
        }
    });
}

#[test]
fn post_stop_runs_the_demote_hook_once_even_if_no_grace_is_left() {
    alone("post_stop_runs_the_demote_hook_once_even_if_no_grace_is_left", || {
        let slow = "[ $LANELECT_EVENT != demoted ] || sleep 1; echo $LANELECT_EVENT >> $LOG";
        let fails = "echo $LANELECT_EVENT >> $LOG; [ $LANELECT_EVENT != demoted ]";
        // It waits for the hook, which runs beside it.
        let fence = Some("until grep -q demoted $LOG; do sleep 0.1; done; echo fenced >> $LOG");
        for (hook, fence, is_released, ran) in [
            (slow, None, true, "demoted\n"),
            (fails, None, false, "demoted\n"),
            (fails, fence, true, "demoted\nfenced\n"),
        ] {
            let grace = Duration::ZERO;
            let mut node = Node::start(&Plan { grace, hook, fence, ..Plan::of("a", LONE) });
            node.lead();
            let (outcome, _, dir) = node.die();
            assert_eq!(outcome.is_ok(), is_released, "{outcome:?}");
            let log = fs::read_to_string(dir.path().join("log")).unwrap();
            assert_eq!(log, format!("started\nelected\n{ran}"));
        }
    });
}

#[test]
fn post_stop_resigns_in_available_mode_and_reports_a_demote_hook_that_failed() {
    alone("post_stop_resigns_in_available_mode_and_reports_a_demote_hook_that_failed", || {
        let fails = "echo $LANELECT_EVENT >> $LOG; [ $LANELECT_EVENT != demoted ]";
        let mut node = Node::start(&Plan { hook: fails, ..Plan::of("a", &[]) });
        node.lead();
        let (outcome, resignations, dir) = node.die();
        assert!(matches!(outcome, Err(PostStopError::NotDemoted)), "{outcome:?}");
        assert_eq!(resignations, 1);
        assert!(!dir.path().join("control.crash-plan").exists());
    });
}

/// An outdated plan may resign beside a hook that has begun to take over since.
#[test]
fn crash_plan_that_cannot_be_replaced_is_carried_out_no_more() {
    alone("crash_plan_that_cannot_be_replaced_is_carried_out_no_more", || {
        // Neither can be removed by a daemon: a directory that is not empty, and a mount point.
        for obstacle in ["mkdir -p $0.tmp/obstacle", "mount --bind $0 $0"] {
            let mut node = Node::start(&Plan::of("a", LONE));
            node.lead();
            let plan = node.dir.path().join("control.crash-plan");
            let mut command = Command::new("sh");
            assert!(command.args(["-c", obstacle]).arg(&plan).status().unwrap().success());
            node.daemon.keep_crash_plan();
            let hooks = node.hooks();
            let (outcome, resignations, dir) = node.die();
            assert!(outcome.is_ok(), "{outcome:?}");
            assert_eq!(resignations, 0, "{obstacle}");
            let log = fs::read_to_string(dir.path().join("log")).unwrap();
            assert_eq!(log.lines().collect::<Vec<_>>(), hooks, "{obstacle}");
            // For the removal of the directory.
            let _ = Command::new("umount").arg(&plan).status();
        }
    });
}

#[test]
fn crash_plan_that_could_not_be_written_is_written_at_the_next_rescan() {
    alone("crash_plan_that_could_not_be_written_is_written_at_the_next_rescan", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        node.lead();
        let plan = node.dir.path().join("control.crash-plan");
        let obstacle = node.dir.path().join("control.crash-plan.tmp");
        fs::create_dir(&obstacle).unwrap();
        node.daemon.keep_crash_plan();
        node.daemon.rescan();
        assert!(!plan.exists(), "the obstacle is still there");
        fs::remove_dir(&obstacle).unwrap();
        node.daemon.rescan();
        assert!(plan.exists());
        assert!(!node.daemon.plan.has_failed());
    });
}

/// A command that has begun must not be unknown to `post-stop`.
#[test]
fn crash_plan_names_a_holder_before_it_has_a_grant() {
    alone("crash_plan_names_a_holder_before_it_has_a_grant", || {
        let mut node = Node::start(&Plan::of("a", LONE));
        node.lead();
        node.turn_until("commands may begin", |node| node.daemon.readiness() == Readiness::Ready);
        let mut client = node.ask(r#"{"command":"hold"}"#);
        while !node.daemon.control.has_holders() {
            node.daemon.sleep(&mut node.events).unwrap();
            node.daemon.serve_clients(&node.events);
        }
        node.daemon.renew_grants();
        assert_eq!(client.lines().len(), 2, "an answer and a grant");
        let kept = fs::read_to_string(node.dir.path().join("control.crash-plan")).unwrap();
        assert!(kept.contains(&format!(r#""holders":[{}]"#, std::process::id())), "{kept}");
    });
}

/// A wait of the kernel then ends with EINTR, also without a handler of any signal.
#[test]
fn post_stop_that_is_stopped_and_continued_still_waits_for_commands() {
    alone("post_stop_that_is_stopped_and_continued_still_waits_for_commands", || {
        let hook = "echo $LANELECT_EVENT >> $LOG";
        let mut node = Node::start(&Plan { hook, ..Plan::of("a", LONE) });
        node.lead();
        let dir = node.dir.path().to_owned();
        let run = |script: &str| {
            let mut shell = Command::new("sh");
            let output = shell.args(["-c", script]).current_dir(&dir).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        // Each is left to process 1, which reaps it.
        let command = run("(sleep 1; echo command ends >> log) > out 2>&1 & echo $!");
        let holders = format!(r#""holders":[{}]"#, command.trim());
        let plan = dir.join("control.crash-plan");
        let kept = fs::read_to_string(&plan).unwrap();
        fs::write(&plan, kept.replacen(r#""holders":[]"#, &holders, 1)).unwrap();
        run(&format!(
            "(for i in 1 2 3; do sleep 0.2; kill -STOP {0}; sleep 0.02; kill -CONT {0}; done) \
              > out 2>&1 &",
            std::process::id()
        ));
        let (outcome, _, dir) = node.die();
        assert!(outcome.is_ok(), "{outcome:?}");
        let ran = fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(ran, "started\nelected\ncommand ends\ndemoted\n");
    });
}

/// Another node may lead after the grace that began while the daemon was alive.
#[test]
fn post_stop_fences_at_the_end_of_a_grace_that_has_begun() {
    alone("post_stop_fences_at_the_end_of_a_grace_that_has_begun", || {
        let hook = "echo $LANELECT_EVENT >> $LOG; [ $LANELECT_EVENT != demoted ]";
        let fence = Some("sleep 1; echo fenced >> $LOG");
        let grace = Duration::from_secs(20);
        let mut node = Node::start(&Plan { grace, hook, fence, ..Plan::of("a", LONE) });
        node.lead();
        let Node { daemon, dir, .. } = node;
        let file = dir.path().join("lanelect.toml");
        use_up_grace(dir.path());
        let source = ConfigSource { file: Some(file), ..ConfigSource::default() };
        post_stop_after(daemon, &source).unwrap();
        let ran = fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(ran, "started\nelected\ndemoted\nfenced\n");
    });
}

#[test]
fn a_reload_that_replaces_the_hook_of_a_leader_has_the_old_one_let_go_first() {
    alone("a_reload_that_replaces_the_hook_of_a_leader_has_the_old_one_let_go_first", || {
        let mut node =
            Node::start(&Plan { hook: "echo old $LANELECT_EVENT >> $LOG", ..Plan::of("a", &[]) });
        node.turn_until("it leads", |node| node.hooks() == ["old started", "old elected"]);
        let dir = node.dir.path().to_owned();
        let left = || fs::read_to_string(dir.join("control.crash-plan")).unwrap_or_default();
        let config = fs::read_to_string(dir.join("lanelect.toml")).unwrap();
        let file = dir.join("new.toml");
        fs::write(&file, config.replace("echo old", "echo new")).unwrap();
        node.daemon.source = ConfigSource { file: Some(file), ..ConfigSource::default() };
        node.daemon.reload();
        node.turn_until("the old hook has let go", |node| {
            let plans = left();
            assert!(plans.is_empty() || plans.contains("echo old") || node.hooks().len() > 2);
            node.hooks().len() >= 3
        });
        node.turn_until("the new one took over", |node| node.hooks().len() == 4);
        let hooks = node.hooks();
        assert_eq!(hooks, ["old started", "old elected", "old demoted", "new elected"]);
        assert!(left().contains("echo new"), "{}", left());
    });
}

#[test]
fn post_stop_leaves_the_demote_hook_half_of_the_grace_with_and_without_a_hook_runner() {
    let test = "post_stop_leaves_the_demote_hook_half_of_the_grace_with_and_without_a_hook_runner";
    alone(test, || {
        // Each lets go some time after TERM.
        let slow = "echo $LANELECT_EVENT >> $LOG; [ $LANELECT_EVENT = elected ] || exit 0; \
                    trap \"sleep 7; echo let go >> $LOG; exit\" TERM; while :; do sleep 0.1; done";
        let quick = "echo $LANELECT_EVENT >> $LOG; [ $LANELECT_EVENT = elected ] || exit 0; \
                     trap \"sleep 1; echo let go >> $LOG; exit\" TERM; while :; do sleep 0.1; done";
        let (short, long) = (Duration::from_secs(3), Duration::from_secs(30));
        let short = (short, false, slow, "elected\ndemoted\n");
        let used_up = (long, true, quick, "elected\ndemoted\n");
        let long = (long, false, slow, "elected\nlet go\ndemoted\n");
        let none = (Duration::ZERO, false, quick, "elected\ndemoted\n");
        for (has_runner, (grace, is_used_up, hook, ran_last)) in [
            (false, used_up),
            (true, used_up),
            (false, short),
            (true, short),
            (true, long),
            (false, none),
            (true, none),
        ] {
            let plan = Plan { hook, grace, ..Plan::of("a", LONE) };
            let dir = TempDir::new().unwrap();
            let mut config = plan.config(dir.path());
            let file = dir.path().join("lanelect.toml");
            if has_runner {
                let path = dir.path().join("hook.sock");
                let text = fs::read_to_string(&file).unwrap();
                fs::write(&file, format!("{text}hook_socket = '{}'\n", path.display())).unwrap();
                config.hook_socket = Some(path);
            }
            let source = ConfigSource { file: Some(file), ..ConfigSource::default() };
            if has_runner {
                let source = source.clone();
                // Runs for as long as this process does.
                std::thread::spawn(move || crate::hooks::runner::run(source));
            }
            let mut node = Node::start_by(config, dir).unwrap();
            node.lead();
            let Node { daemon, dir, .. } = node;
            if is_used_up {
                use_up_grace(dir.path());
            }
            let outcome = post_stop_after(daemon, &source);
            let ran = fs::read_to_string(dir.path().join("log")).unwrap();
            assert!(outcome.is_ok(), "runner: {has_runner} {outcome:?} {ran:?}");
            assert!(ran.ends_with(ran_last), "runner: {has_runner}, {grace:?}: {ran:?}");
        }
    });
}

#[test]
fn post_stop_refuses_beside_a_daemon_whose_state_directory_was_removed() {
    alone("post_stop_refuses_beside_a_daemon_whose_state_directory_was_removed", || {
        let mut node = Node::start(&Plan::of("a", &[]));
        node.lead();
        node.settle_disk();
        let before = node.hooks();
        fs::remove_dir_all(node.dir.path().join("state")).unwrap();
        let file = Some(node.dir.path().join("lanelect.toml"));
        let outcome = post_stop::run(&ConfigSource { file, ..ConfigSource::default() });
        assert!(matches!(outcome, Err(PostStopError::Running(_))), "{outcome:?}");
        assert_eq!(node.hooks(), before);
    });
}

#[test]
fn a_reload_after_the_stop_starts_no_check() {
    alone("a_reload_after_the_stop_starts_no_check", || {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("lanelect.toml");
        drop(Plan::of("a", &[]).config(dir.path()));
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text + "check = 'exit 0'\n").unwrap();
        let source = ConfigSource { file: Some(file), ..ConfigSource::default() };
        let mut node = Node::start_by(source.load().unwrap(), dir).unwrap();
        node.daemon.source = source;
        node.lead();
        node.turn_until("the check waits", |node| node.daemon.checks.poll_timeout().is_some());
        node.daemon.stop();
        node.turn_until("it has stopped", |node| node.daemon.stopped.is_some());
        node.daemon.reload();
        node.turn_until("the file is read", |node| !node.daemon.reloads.is_reading());
        assert_eq!(node.daemon.config_report.reload_failure, None);
        assert_eq!(node.daemon.checks.poll_timeout(), None);
    });
}

/// A hung `exec` cannot end its command before the time that was granted, and the time to stop.
#[test]
fn demoted_waits_for_a_command_that_hangs_also_if_a_refresh_runs_before_it() {
    alone("demoted_waits_for_a_command_that_hangs_also_if_a_refresh_runs_before_it", || {
        let hook = "echo $LANELECT_EVENT >> $LOG; [ $LANELECT_EVENT != reaffirmed ] || sleep 0.3";
        let grace = Duration::from_secs(2);
        let dir = TempDir::new().unwrap();
        let mut config = Plan { grace, hook, ..Plan::of("a", LONE) }.config(dir.path());
        config.election.refresh_interval = Some(Duration::from_secs(60));
        let mut node = Node::start_by(config, dir).unwrap();
        node.turn_until("commands may begin", |node| node.daemon.readiness() == Readiness::Ready);
        let mut client = node.ask(r#"{"command":"hold"}"#);
        node.turn_until("it has a grant", |_| client.lines().len() >= 2);
        node.daemon.election.handle_address_lost(clock::now());
        node.turn_until("the refresh runs", |node| node.hooks().ends_with(&["reaffirmed".into()]));
        node.answer(r#"{"command":"yield"}"#);
        let grants = client.lines();
        let until = grants.iter().filter_map(|line| line["until_ns"].as_u64()).max().unwrap();
        let dead_by = Time::from_nanos(until) + grace / 2;
        node.turn_until("demoted begins", |node| node.hooks().ends_with(&["demoted".into()]));
        let now = clock::now();
        assert!(now >= dead_by, "{:?} before the command is dead for certain", dead_by.since(now));
    });
}

/// Has the crash plan say that the grace was over when the daemon died.
fn use_up_grace(dir: &Path) {
    let plan = dir.join("control.crash-plan");
    let kept = fs::read_to_string(&plan).unwrap();
    let over = kept.replacen(r#""grace_end":null"#, r#""grace_end":1"#, 1);
    assert_ne!(kept, over);
    fs::write(&plan, over).unwrap();
}

/// Drops `daemon` without any message, as SIGKILL does, and lets `post-stop` clean up after it.
fn post_stop_after(daemon: Daemon, source: &ConfigSource) -> Result<(), PostStopError> {
    drop(daemon);
    let mut outcome = post_stop::run(source);
    // Its other thread may hold the lock a little longer. Its process is this one, which lives.
    pass_until("the daemon is gone", || {
        let runs = matches!(outcome, Err(PostStopError::Running(_)));
        if runs {
            outcome = post_stop::run(source);
        }
        !runs
    });
    outcome
}
