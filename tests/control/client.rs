//! The client and its commands, with daemons that are well, ill, dead, or something else.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lanelect::client::{ClientError, Target};
use lanelect::commands::{self, CommandError, Exit, Show};
use lanelect::control_api::{RESPONSE_MAX, RefusalKind, Request, Response, StatusReport};
use mio::net::UnixStream as NonBlocking;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Domain, SockAddr, Socket, Type};

use crate::daemon::{Background, home, leadership, report, transition};

/// A daemon that reads one request and answers it with these bytes.
fn fake(socket: &Path, answer: impl Into<Vec<u8>>) -> JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    let answer = answer.into();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = String::new();
        BufReader::new(&stream).read_line(&mut request).unwrap();
        // A client may hang up on an answer that it does not like.
        stream.write_all(&answer).ok();
    })
}

/// What the client makes of a daemon that answers `is-leader` so.
fn asked_fake(answer: impl Into<Vec<u8>>) -> Result<bool, ClientError> {
    let (_home, socket) = home();
    let daemon = fake(&socket, answer);
    let result = Target::at(&socket).is_leader();
    daemon.join().unwrap();
    result
}

/// How a command ends the process that has this error.
fn exit(error: ClientError) -> Exit {
    CommandError::from(error).exit()
}

fn printed(run: impl FnOnce(&mut Vec<u8>) -> Result<Exit, CommandError>) -> String {
    let mut out = Vec::new();
    assert_eq!(run(&mut out).unwrap(), Exit::Success);
    String::from_utf8(out).unwrap()
}

/// A pipe whose reader has hung up, or a full disk.
struct Broken(ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(self.0.into())
    }
}

/// Hands every flushed text to the test.
struct Lines(Vec<u8>, mpsc::Sender<String>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = String::from_utf8(std::mem::take(&mut self.0)).unwrap();
        self.1.send(text).map_err(|_| ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn each_command_gets_its_answer() {
    let (_home, socket) = home();
    let daemon = Background::start(&socket);
    let target = Target::at(&socket);

    assert_eq!(
        printed(|out| commands::status(&target, false, out)),
        commands::render(&report(), &target)
    );
    daemon.has_answered(Request::Status);
    let json = printed(|out| commands::status(&target, true, out));
    daemon.has_answered(Request::Status);
    assert_eq!(json.lines().count(), 1);
    assert_eq!(serde_json::from_str::<StatusReport>(&json).unwrap(), report());

    assert_eq!(commands::is_leader(&target).unwrap(), Exit::Success);
    daemon.has_answered(Request::IsLeader);
    assert_eq!(commands::is_ready(&target).unwrap(), Exit::Success);
    daemon.has_answered(Request::IsReady);

    let yielded = printed(|out| commands::yield_leadership(&target, None, out));
    daemon.has_answered(Request::Yield { to: None });
    assert_eq!(yielded, "this node hands over its leadership\n");
    let to = "web2".parse().ok();
    let yielded = printed(|out| commands::yield_leadership(&target, to, out));
    daemon.has_answered(Request::Yield { to });
    assert_eq!(yielded, "this node hands over its leadership to web2\n");
    let yielded = printed(|out| commands::yield_failed(&target, out));
    daemon.has_answered(Request::YieldFailed);
    assert_eq!(yielded, "this node hands over its leadership\n");

    let on = printed(|out| commands::maintenance(&target, true, out));
    daemon.has_answered(Request::Maintenance { on: true });
    assert!(on.contains("maintenance is on"), "{on}");
    let off = printed(|out| commands::maintenance(&target, false, out));
    daemon.has_answered(Request::Maintenance { on: false });
    assert!(off.contains("maintenance is off"), "{off}");
}

#[test]
fn program_gets_typed_answers() {
    let (_home, socket) = home();
    let daemon = Background::start(&socket);
    let target = Target::at(&socket);

    assert_eq!(target.status().unwrap(), report());
    daemon.has_answered(Request::Status);
    assert!(target.is_leader().unwrap());
    daemon.has_answered(Request::IsLeader);

    let mut watch = target.watch().unwrap();
    daemon.has_answered(Request::Watch);
    for term in [8, 9] {
        daemon.broadcast(transition(term));
        assert_eq!(watch.next().unwrap().unwrap(), transition(term));
    }
    drop(daemon);
    let error = watch.next().unwrap().unwrap_err();
    assert!(matches!(error, ClientError::WatchEnded(_)), "{error}");
    assert!(watch.next().is_none());
}

#[test]
fn group_without_a_socket_of_its_own_is_found_in_run() {
    let target = Target::of_group(&"web".parse().unwrap());
    assert_eq!(target.socket(), Path::new("/run/lanelect/web.sock"));
}

#[test]
fn error_names_the_unit_of_the_group_and_no_unit_for_another_socket() {
    let asked = |target: Target| target.is_leader().unwrap_err().to_string();
    let error = asked(Target::of_group(&"no-such-group".parse().unwrap()));
    assert!(error.contains("`systemctl start lanelect@no-such-group`"), "{error}");
    let error = asked(Target::at("/no/such/directory/x.sock"));
    assert!(error.contains("start the daemon") && !error.contains("systemctl"), "{error}");
}

#[test]
fn program_learns_whether_to_try_again() {
    let refused = |kind: &str| {
        let refusal = serde_json::json!({ "kind": kind, "message": "no, because" });
        format!("{}\n", serde_json::json!({ "refused": refusal }))
    };
    for answer in [String::new(), refused("busy")] {
        assert!(asked_fake(answer.clone()).unwrap_err().is_unreachable(), "{answer}");
    }
    for answer in ["{\"applause\":3}\n".to_string(), refused("malformed")] {
        assert!(!asked_fake(answer.clone()).unwrap_err().is_unreachable(), "{answer}");
    }
    let missing = Target::at("/no/such/directory/x.sock").is_leader().unwrap_err();
    assert!(missing.is_unreachable(), "{missing}");
}

#[test]
fn a_node_that_does_not_lead_says_so_by_its_exit_status() {
    let (_home, socket) = home();
    let answer = serde_json::to_string(&Response::Leadership(leadership(false))).unwrap() + "\n";
    let daemon = fake(&socket, answer);
    assert_eq!(commands::is_leader(&Target::at(&socket)).unwrap(), Exit::NotLeader);
    daemon.join().unwrap();

    // There is nothing to give up, for either reason.
    for kind in ["not-leader", "static-role", "not-successor"] {
        let (exit, message) = refused_yield(kind);
        assert_eq!((exit, message.as_str()), (Exit::NotLeader, "no, because"), "{kind}");
    }
}

#[test]
fn leader_that_is_not_ready_exits_with_1_and_says_why() {
    for (answer, message) in [
        ("not-leader", None),
        ("hook-pending", Some("its hook has not succeeded for elected yet")),
        ("hook-failed", Some("its hook failed")),
    ] {
        let (_home, socket) = home();
        let daemon = fake(&socket, format!("{{\"readiness\":\"{answer}\"}}\n"));
        let outcome = commands::is_ready(&Target::at(&socket));
        daemon.join().unwrap();
        match (outcome, message) {
            (Ok(exit), None) => assert_eq!(exit, Exit::NotLeader),
            (Err(error), Some(message)) => {
                assert_eq!(error.exit(), Exit::NotLeader);
                assert!(error.to_string().contains(message), "{error}");
            }
            (outcome, _) => panic!("{answer}: {outcome:?}"),
        }
    }
}

#[test]
fn a_yield_that_is_not_permitted_is_no_answer() {
    for kind in ["not-permitted", "busy", "failed"] {
        assert_eq!(refused_yield(kind).0, Exit::NoAnswer, "{kind}");
    }
}

/// What `yield` makes of a refusal of this kind: how it ends, and what it says.
fn refused_yield(kind: &str) -> (Exit, String) {
    let (_home, socket) = home();
    let refusal = serde_json::json!({"kind": kind, "message": "no, because"});
    let daemon = fake(&socket, format!("{}\n", serde_json::json!({"refused": refusal})));
    let error =
        commands::yield_leadership(&Target::at(&socket), None, &mut Vec::new()).unwrap_err();
    daemon.join().unwrap();
    (error.exit(), error.to_string())
}

#[test]
fn yielding_twice_is_done_too() {
    let (_home, socket) = home();
    let daemon = fake(&socket, "{\"ok\":\"already-yielding\"}\n");
    let text = printed(|out| commands::yield_leadership(&Target::at(&socket), None, out));
    daemon.join().unwrap();
    assert_eq!(text, "this node is already handing over its leadership\n");
}

/// Starts a watch, and waits until transitions reach it.
fn watching(
    daemon: &Background,
    socket: &Path,
    json: bool,
) -> (JoinHandle<Result<Exit, CommandError>>, mpsc::Receiver<String>) {
    let (sender, lines) = mpsc::channel();
    let target = Target::at(socket);
    let watch = thread::spawn(move || {
        commands::watch(&target, json, &mut Lines(Vec::new(), sender), &null())
    });
    daemon.has_answered(Request::Watch);
    (watch, lines)
}

/// An output whose reader never hangs up.
fn null() -> File {
    File::options().write(true).open("/dev/null").unwrap()
}

fn next(lines: &mpsc::Receiver<String>) -> String {
    lines.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[test]
fn a_watch_prints_each_transition_at_once_and_ends_with_its_reader() {
    let (_home, socket) = home();
    let daemon = Background::start(&socket);
    let (watch, lines) = watching(&daemon, &socket, false);
    for term in [8, 9] {
        daemon.broadcast(transition(term));
        assert_eq!(next(&lines), commands::render_transition(&transition(term)));
    }
    drop(lines);
    daemon.broadcast(transition(10));
    assert_eq!(watch.join().unwrap().unwrap(), Exit::Success);
}

#[test]
fn a_watch_ends_with_its_reader_also_if_nothing_happens() {
    let (_home, socket) = home();
    let daemon = Background::start(&socket);
    let (reader, output) = io::pipe().unwrap();
    let target = Target::at(&socket);
    let watch = thread::spawn(move || {
        let mut out = output.try_clone().unwrap();
        commands::watch(&target, true, &mut out, &output)
    });
    daemon.has_answered(Request::Watch);
    daemon.broadcast(transition(8));
    let mut lines = BufReader::new(reader).lines();
    assert_eq!(lines.next().unwrap().unwrap(), serde_json::to_string(&transition(8)).unwrap());
    drop(lines);
    assert_eq!(watch.join().unwrap().unwrap(), Exit::Success);
}

#[test]
fn a_live_status_ends_with_its_reader_also_while_the_daemon_is_away() {
    let (_home, socket) = home();
    let daemon = Background::start(&socket);
    let (reader, output) = io::pipe().unwrap();
    let target = Target::at(&socket);
    let live = thread::spawn(move || {
        let mut out = output.try_clone().unwrap();
        commands::live(&target, Show::Json, &mut out, &output)
    });
    let mut lines = BufReader::new(reader).lines().map(Result::unwrap);
    assert_eq!(serde_json::from_str::<StatusReport>(&lines.next().unwrap()).unwrap(), report());
    drop(daemon);
    // It is told once.
    lines.find(|line| line.starts_with("{\"error\"")).unwrap();
    drop(lines);
    assert_eq!(live.join().unwrap().unwrap(), Exit::Success);
}

#[test]
fn a_watch_passes_json_lines_on_and_ends_with_the_daemon() {
    let (_home, socket) = home();
    let daemon = Background::start(&socket);
    let (watch, lines) = watching(&daemon, &socket, true);
    daemon.broadcast(transition(8));
    let line = next(&lines);
    assert_eq!(line, serde_json::to_string(&transition(8)).unwrap() + "\n");
    drop(daemon);
    let error = watch.join().unwrap().unwrap_err();
    assert!(matches!(error, CommandError::Client(ClientError::WatchEnded(_))), "{error}");
    assert_eq!(error.exit(), Exit::NoAnswer);
}

#[test]
fn a_watch_passes_on_json_that_is_newer_than_itself() {
    let (_home, socket) = home();
    let newer = "{\"role\":\"emperor\",\"since\":\"for ever\"}\n";
    let daemon = fake(&socket, format!("{{\"ok\":\"watching\"}}\n{newer}"));
    let mut out = Vec::new();
    let error = commands::watch(&Target::at(&socket), true, &mut out, &null()).unwrap_err();
    daemon.join().unwrap();
    assert!(matches!(error, CommandError::Client(ClientError::WatchEnded(_))), "{error}");
    assert_eq!(out, newer.as_bytes());
}

/// Has a terminal cleared, and its line turned around.
const ESCAPES: &str = "\u{1b}[2J\u{9b}2J\u{202e}";

#[test]
fn a_daemon_cannot_play_with_the_terminal_of_who_asks() {
    let mut told = report();
    told.state_failure = Some(ESCAPES.to_owned());
    let answer = serde_json::json!({ "status": told }).to_string() + "\n";
    for json in [false, true] {
        let (_home, socket) = home();
        let daemon = fake(&socket, answer.clone());
        let text = printed(|out| commands::status(&Target::at(&socket), json, out));
        daemon.join().unwrap();
        assert!(text.contains(r"\u001b[2J"), "{text:?}");
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text:?}");
        if json {
            assert_eq!(serde_json::from_str::<StatusReport>(&text).unwrap(), told);
        }
    }
}

#[test]
fn what_a_watched_daemon_says_reaches_no_terminal_unseen() {
    let (_home, socket) = home();
    let daemon = fake(&socket, format!("{{\"ok\":\"watching\"}}\n{ESCAPES}\n"));
    let mut out = Vec::new();
    commands::watch(&Target::at(&socket), true, &mut out, &null()).unwrap_err();
    daemon.join().unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "\\u001b[2J\\u009b2J\\u202e\n");
}

#[test]
fn a_refusal_reaches_no_terminal_unseen() {
    let (_home, socket) = home();
    let refusal = serde_json::json!({ "kind": "busy", "message": ESCAPES });
    let daemon = fake(&socket, serde_json::json!({ "refused": refusal }).to_string() + "\n");
    let asked = Command::new(env!("CARGO_BIN_EXE_lanelect"))
        .args(["is-leader", "--socket"])
        .arg(&socket)
        .output()
        .unwrap();
    daemon.join().unwrap();
    assert_eq!(String::from_utf8(asked.stderr).unwrap(), "\\u001b[2J\\u009b2J\\u202e\n");
}

#[test]
fn an_answer_with_fields_of_a_later_version_is_understood() {
    let (_home, socket) = home();
    let mut status = serde_json::json!({ "status": report() });
    status["status"]["weather"] = "fine".into();
    status["status"]["hook"]["mood"] = serde_json::json!([1, 2]);
    let daemon = fake(&socket, format!("{status}\n"));
    let text = printed(|out| commands::status(&Target::at(&socket), false, out));
    daemon.join().unwrap();
    assert_eq!(text, commands::render(&report(), &Target::at(&socket)));
}

#[test]
fn a_reader_that_hung_up_is_no_error_and_a_full_disk_is() {
    let (_home, socket) = home();
    let _daemon = Background::start(&socket);
    let target = Target::at(&socket);
    let pipe = commands::status(&target, false, &mut Broken(ErrorKind::BrokenPipe));
    assert_eq!(pipe.unwrap(), Exit::Success);
    let disk = commands::status(&target, true, &mut Broken(ErrorKind::StorageFull)).unwrap_err();
    assert!(matches!(disk, CommandError::Output(_)), "{disk}");
    assert_ne!(disk.exit(), Exit::Success);
}

#[test]
fn a_missing_socket_names_those_that_are_there() {
    let (home, socket) = home();
    let _blue = UnixListener::bind(home.path().join("blue.sock")).unwrap();
    fs::write(home.path().join("notes.txt"), "").unwrap();
    let error = Target::at(&socket).is_leader().unwrap_err();
    let text = error.to_string();
    assert_eq!(exit(error), Exit::NoAnswer);
    assert!(text.contains("start the daemon"), "{text}");
    assert!(text.ends_with(&format!("{}/blue.sock", home.path().display())), "{text}");
    assert!(!text.contains("notes.txt"), "{text}");

    let nowhere = Target::at("/no/such/directory/x.sock").is_leader().unwrap_err();
    assert!(matches!(nowhere, ClientError::Missing { ref others, .. } if others.is_empty()));
}

#[test]
fn a_dead_daemons_socket_is_told_from_a_file() {
    let (home, socket) = home();
    // Bound, and deaf even while a process that another test starts holds a copy of it.
    let bound = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    bound.bind(&SockAddr::unix(&socket).unwrap()).unwrap();
    let stale = Target::at(&socket).is_leader().unwrap_err();
    assert!(matches!(stale, ClientError::Stale(_)), "{stale}");

    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let no_socket = Target::at(&file).is_leader().unwrap_err();
    assert!(matches!(no_socket, ClientError::NotASocket(_)), "{no_socket}");

    let long = Target::at(PathBuf::from("x".repeat(200))).is_leader().unwrap_err();
    assert!(matches!(long, ClientError::Io { .. }), "{long}");
}

#[test]
fn a_daemon_that_hangs_up_is_told_from_a_silent_one() {
    for answer in ["", "{\"leader\":tr"] {
        let error = asked_fake(answer).unwrap_err();
        assert!(matches!(error, ClientError::HungUp(_)), "{error}");
        assert_eq!(exit(error), Exit::NoAnswer);
    }
}

#[test]
fn a_stopped_daemon_is_not_waited_for_without_end() {
    let (_home, socket) = home();
    let _never_accepts = UnixListener::bind(&socket).unwrap();
    let error = Target::at(&socket).is_leader().unwrap_err();
    assert!(matches!(error, ClientError::TimedOut(_)), "{error}");
    assert_eq!(exit(error), Exit::NoAnswer);
}

#[test]
fn a_stopped_daemon_with_a_full_queue_is_not_waited_for_without_end() {
    let (_home, socket) = home();
    let listener = UnixListener::bind(&socket).unwrap();
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
    let _first = UnixStream::connect(&socket).unwrap();
    let full = NonBlocking::connect(&socket).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::WouldBlock, "the queue is full");
    let error = Target::at(&socket).is_leader().unwrap_err();
    assert!(matches!(error, ClientError::TimedOut(_)), "{error}");
}

#[test]
fn words_of_another_version_are_told_as_such() {
    for answer in [
        &b"{\"applause\":3}\n"[..],
        b"{\"ok\":\"watching\"}\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\xff\xfe\n",
        b"\n",
    ] {
        let error = asked_fake(answer).unwrap_err();
        assert!(matches!(error, ClientError::Incomprehensible { .. }), "{error}");
        assert!(error.to_string().contains("restart the daemon"), "{error}");
        assert_eq!(exit(error), Exit::NoAnswer);
    }
    let error = asked_fake("{\"status\":{\"version\":\"9.9.9\"}}\n").unwrap_err();
    assert!(error.to_string().contains("(lanelect 9.9.9)"), "{error}");
}

#[test]
fn an_answer_without_end_is_not_read_without_end() {
    let error = asked_fake(vec![b'x'; RESPONSE_MAX + 1]).unwrap_err();
    assert!(matches!(error, ClientError::Incomprehensible { .. }), "{error}");
    assert!(error.to_string().contains("longer than"), "{error}");
}

#[test]
fn a_refusal_is_passed_on_in_the_daemons_words() {
    let busy = "{\"refused\":{\"kind\":\"busy\",\"message\":\"try again\",\"after\":5}}\n";
    let error = asked_fake(busy).unwrap_err();
    assert_eq!(error.to_string(), "try again");
    assert!(matches!(error, ClientError::Refused(ref r) if r.kind == RefusalKind::Busy));
    assert_eq!(exit(error), Exit::NoAnswer);
}

#[test]
fn a_watch_that_is_interrupted_was_successful() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let (_home, socket) = home();
        let daemon = Background::start(&socket);
        let mut watch = Command::new(env!("CARGO_BIN_EXE_lanelect"))
            .args(["watch", "--socket"])
            .arg(&socket)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        daemon.has_answered(Request::Watch);
        daemon.broadcast(transition(8));
        let mut line = String::new();
        BufReader::new(watch.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, commands::render_transition(&transition(8)));
        kill(Pid::from_raw(watch.id() as i32), signal).unwrap();
        let status = watch.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{signal}: {status}");
    }
}

/// The daemon sends the next grant only when a part of this one is over.
#[test]
fn command_begins_by_a_grant_that_arrives_with_the_answer() {
    let (home, socket) = home();
    let grant = serde_json::json!({
        "node_id": "web1", "group": "default", "term": 7, "until_ns": u64::MAX / 2,
        "stop_within_ms": 5000,
    });
    let listener = UnixListener::bind(&socket).unwrap();
    let daemon = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        reader.read_line(&mut String::new()).unwrap();
        stream.write_all(format!("{{\"ok\":\"holding\"}}\n{grant}\n").as_bytes()).unwrap();
        // Until the client hangs up.
        io::copy(&mut reader, &mut io::sink()).unwrap();
    });
    let mut exec = Command::new("timeout");
    exec.args(["30", env!("CARGO_BIN_EXE_lanelect"), "exec", "--restart", "--socket"]);
    exec.arg(&socket).args(["--", "sh", "-c", "exit 7"]).stdin(Stdio::null());
    assert_eq!(exec.status().unwrap().code(), Some(7), "it did not begin");
    daemon.join().unwrap();
    drop(home);
}
