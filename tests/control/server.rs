//! The daemon's end, with clients that behave badly.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

use lanelect::client::{ClientError, Target};
use lanelect::commands::{self, CommandError, Exit};
use lanelect::control_api::{REQUEST_MAX, RefusalKind, Request, Response};
use lanelect::daemon::control::{
    ACCEPT_PAUSE, ACCEPTS_PER_WAKE, CLIENT_TIMEOUT, ControlServer, MAX_CLIENTS, MAX_WATCHERS,
    RESERVED_WATCHERS,
};

use tempfile::TempDir;

use crate::daemon::{Background, Client, Daemon, FIRST_TOKEN, home, leadership, transition};

const IS_LEADER: &str = "{\"command\":\"is-leader\"}\n";
const STATUS: &str = "{\"command\":\"status\"}\n";
const WATCH: &str = "{\"command\":\"watch\"}\n";
const YIELD: &str = "{\"command\":\"yield\"}\n";

const LEADS: &str =
    "{\"leadership\":{\"node_id\":\"web1\",\"leads\":true,\"term\":7,\"leader\":\"web1\"}}\n";
const WATCHING: &str = "{\"ok\":\"watching\"}\n";

/// For the processes that some tests start of this very file: the socket they are to use.
const CHILD_SOCKET: &str = "LANELECT_TEST_SOCKET";

/// The kind of the one refusal that arrived before the daemon hung up.
#[track_caller]
fn refusal(client: &Client) -> RefusalKind {
    let (line, closed) = client.receive();
    assert!(closed, "still open after {line:?}");
    match serde_json::from_str(&line) {
        Ok(Response::Refused(refusal)) => refusal.kind,
        other => unreachable!("no refusal: {line:?}, {other:?}"),
    }
}

#[test]
fn a_request_is_answered_and_the_connection_closed() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let client = Client::asking(&socket, IS_LEADER);
    daemon.settle();
    assert_eq!(client.receive(), (LEADS.to_owned(), true));
    assert_eq!(daemon.requests[0].request, Request::IsLeader);
    assert_eq!(daemon.requests[0].peer.uid, nix::unistd::geteuid().as_raw());
    assert_eq!(daemon.requests[0].peer.pid, std::process::id() as i32);
    assert_eq!(daemon.server.poll_timeout(), None, "nothing is left of it");
}

#[test]
fn a_request_in_pieces_from_a_peer_that_shuts_its_end_is_answered() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let client = Client::connect(&socket);
    for piece in IS_LEADER.as_bytes().chunks(3) {
        daemon.settle();
        assert_eq!(client.receive(), (String::new(), false));
        client.send(piece);
    }
    client.half_close();
    daemon.settle();
    assert_eq!(client.receive(), (LEADS.to_owned(), true));
}

#[test]
fn half_a_line_and_then_nothing_is_closed_after_the_time_out() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let half = Client::asking(&socket, "{\"comma");
    let silent = Client::connect(&socket);
    let watcher = Client::asking(&socket, WATCH);
    daemon.settle();
    assert_eq!(daemon.server.poll_timeout(), Some(daemon.now + CLIENT_TIMEOUT));
    daemon.pass(CLIENT_TIMEOUT / 2);
    half.send(b"nd");
    daemon.settle();
    assert!(!half.receive().1 && !silent.receive().1, "it is not time yet");
    daemon.pass(CLIENT_TIMEOUT / 2);
    assert!(half.receive().1, "a byte now and then buys no time");
    assert!(silent.receive().1);
    assert_eq!(watcher.receive(), (WATCHING.to_owned(), false));
    assert_eq!(daemon.server.poll_timeout(), None, "a watcher has all the time");
}

#[test]
fn half_a_line_and_an_end_is_closed_at_once() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let half = Client::asking(&socket, IS_LEADER.trim_end());
    half.half_close();
    daemon.settle();
    assert_eq!(half.receive(), (String::new(), true));
    assert!(daemon.requests.is_empty(), "a line without its end is no request");
}

#[test]
fn garbage_is_refused() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    for garbage in [
        &b"\n"[..],
        b"\0\xff\xfe\n",
        b"status\n",
        b"{}\n",
        b"{\"command\":\"dance\"}\n",
        b"{\"command\":\"maintenance\"}\n",
        b"{\"command\":\"maintenance\",\"on\":true,\"for\":5}\n",
        b"{\"command\":\"status\"} {\"command\":\"status\"}\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let client = Client::connect(&socket);
        client.send(garbage);
        daemon.settle();
        assert_eq!(refusal(&client), RefusalKind::Malformed, "{garbage:?}");
    }
    assert!(daemon.requests.is_empty());
}

#[test]
fn a_line_may_be_as_long_as_the_bound_and_no_longer() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let padded = |length: usize| format!("{}{IS_LEADER}", " ".repeat(length - IS_LEADER.len()));
    let longest = Client::asking(&socket, &padded(REQUEST_MAX));
    let too_long = Client::asking(&socket, &padded(REQUEST_MAX + 1));
    daemon.settle();
    assert_eq!(longest.receive(), (LEADS.to_owned(), true));
    assert_eq!(refusal(&too_long), RefusalKind::Malformed);
}

#[test]
fn a_huge_line_is_refused_without_reading_it() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let huge = vec![b'x'; 16 << 20];
    let client = Client::connect(&socket);
    let sent = client.send(&huge);
    assert!(sent > REQUEST_MAX);
    daemon.settle();
    assert_eq!(refusal(&client), RefusalKind::Malformed);
    assert_eq!(client.send(&huge), 0, "nobody reads the rest");
}

#[test]
fn a_thousand_clients_are_all_answered_though_more_come_than_fit() {
    const AT_ONCE: usize = 100;
    const { assert!(AT_ONCE > MAX_CLIENTS) };
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    for _ in 0..10 {
        let clients: Vec<Client> =
            (0..AT_ONCE).map(|_| Client::asking(&socket, IS_LEADER)).collect();
        daemon.settle();
        for client in &clients {
            assert_eq!(client.receive(), (LEADS.to_owned(), true));
        }
    }
    assert_eq!(daemon.requests.len(), 1000);
}

#[test]
fn idle_clients_make_room_for_newcomers_the_oldest_first() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let watcher = Client::asking(&socket, WATCH);
    daemon.settle();
    let idle: Vec<Client> = (0..MAX_CLIENTS + 10).map(|_| Client::connect(&socket)).collect();
    let honest = Client::asking(&socket, IS_LEADER);
    daemon.settle();
    assert_eq!(honest.receive(), (LEADS.to_owned(), true));
    let (evicted, kept) = idle.split_at(12);
    for client in evicted {
        assert_eq!(refusal(client), RefusalKind::Busy);
    }
    assert!(kept.iter().all(|client| !client.receive().1));
    assert_eq!(watcher.receive(), (WATCHING.to_owned(), false), "a watcher keeps its place");
}

#[test]
fn watchers_cannot_shut_the_others_out() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let watchers: Vec<Client> = (0..MAX_WATCHERS).map(|_| Client::asking(&socket, WATCH)).collect();
    daemon.settle();
    assert!(watchers.iter().all(|client| client.receive() == (WATCHING.to_owned(), false)));
    let one_more = Client::asking(&socket, WATCH);
    let honest = Client::asking(&socket, STATUS);
    daemon.settle();
    assert_eq!(refusal(&one_more), RefusalKind::Busy);
    assert!(honest.receive().0.starts_with("{\"status\":{\"version\":"));
    drop(watchers);
    let next = Client::asking(&socket, WATCH);
    daemon.settle();
    assert_eq!(next.receive(), (WATCHING.to_owned(), false), "their places are free again");
}

#[test]
fn a_watcher_gets_every_transition_until_it_hangs_up_or_speaks() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    daemon.server.broadcast(&transition(1));
    let watchers = [(); 3].map(|()| Client::asking(&socket, WATCH));
    daemon.settle();
    daemon.server.broadcast(&transition(2));
    daemon.server.broadcast(&transition(3));
    let [watcher, quitter, talker] = &watchers;
    let (lines, closed) = watcher.receive();
    assert!(!closed);
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some(WATCHING.trim_end()));
    for term in [2, 3] {
        let told: lanelect::control_api::Transition =
            serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(told, transition(term));
    }
    assert_eq!(lines.next(), None);

    let hasty = Client::asking(&socket, WATCH);
    hasty.half_close();
    quitter.half_close();
    talker.send(b"\n");
    daemon.settle();
    assert!(quitter.receive().1);
    assert!(talker.receive().1);
    assert!(hasty.receive().1, "its end came with its request");
    assert!(!watcher.receive().1);
}

#[test]
fn a_watcher_that_does_not_read_is_dropped_and_the_others_miss_nothing() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let sleeper = Client::asking(&socket, WATCH);
    let reader = Client::asking(&socket, WATCH);
    daemon.settle();
    let mut read = reader.receive().0.lines().count();
    let mut told = 0;
    while told < 100_000 && sleeper.is_connected() {
        told += 1;
        daemon.server.broadcast(&transition(told));
        read += reader.receive().0.lines().count();
    }
    assert!(told < 100_000, "the sleeper is never dropped");
    assert!(told > 100, "a short nap is forgiven");
    assert_eq!(read as u64, 1 + told);
    assert!(!reader.receive().1);
}

#[test]
fn a_slow_reader_gets_its_whole_answer() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    daemon.long_status = true;
    let client = Client::asking(&socket, STATUS);
    daemon.settle();
    let mut text = String::new();
    let mut pieces = 0;
    for _ in 0..10_000 {
        let (piece, closed) = client.receive();
        pieces += usize::from(!piece.is_empty());
        text.push_str(&piece);
        if closed {
            break;
        }
        daemon.settle();
    }
    assert!(pieces > 1, "the answer fits the socket's buffer: the test shows nothing");
    assert!(matches!(serde_json::from_str(&text), Ok(Response::Status(_))), "{}", text.len());
}

#[test]
fn a_client_that_does_not_read_its_answer_is_closed_after_the_time_out() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    daemon.long_status = true;
    let client = Client::asking(&socket, STATUS);
    daemon.settle();
    assert!(client.is_connected());
    daemon.pass(CLIENT_TIMEOUT);
    assert!(!client.is_connected());
}

#[test]
fn an_answer_to_a_client_that_has_gone_reaches_nobody_else() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    daemon.answering = false;
    let late = Client::asking(&socket, IS_LEADER);
    daemon.settle();
    daemon.pass(CLIENT_TIMEOUT);
    assert_eq!(late.receive(), (String::new(), true));
    let next = Client::asking(&socket, STATUS);
    daemon.settle();
    let [for_late, for_next] = [0, 1].map(|n| daemon.requests[n].client);
    daemon.server.respond(for_late, &Response::Leadership(leadership(true)));
    assert_eq!(next.receive(), (String::new(), false));
    daemon.server.respond(for_next, &Response::Leadership(leadership(false)));
    daemon.server.respond(for_next, &Response::Leadership(leadership(true)));
    let (answer, is_over) = next.receive();
    assert!(answer.contains("\"leads\":false") && is_over, "{answer}");
}

#[test]
fn events_for_others_are_not_taken() {
    let (_home, socket) = home();
    let daemon = Daemon::start(&socket);
    let token = |n: usize| mio::Token(FIRST_TOKEN.0 + n);
    assert!(!daemon.server.owns(mio::Token(FIRST_TOKEN.0 - 1)));
    assert!(daemon.server.owns(token(0)));
    assert!(daemon.server.owns(token(ControlServer::TOKENS - 1)));
    assert!(!daemon.server.owns(token(ControlServer::TOKENS)));
}

#[test]
fn the_socket_goes_when_the_daemon_does() {
    let (_home, socket) = home();
    let daemon = Daemon::start(&socket);
    assert_eq!(daemon.server.path(), socket);
    drop(daemon);
    assert!(!socket.exists());
}

#[test]
fn the_daemons_own_user_may_command() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let client = Client::asking(&socket, YIELD);
    daemon.settle();
    assert_eq!(client.receive(), ("{\"ok\":\"yielding\"}\n".to_owned(), true));
}

/// Runs one of this file's ignored tests in a process of its own, by way of `wrapper`.
fn run_child(mut wrapper: Command, test: &str, socket: &Path) {
    let child = wrapper
        .args(["--exact", "--ignored", "--nocapture", &format!("server::{test}")])
        .env(CHILD_SOCKET, socket)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{child:?}");
}

#[test]
#[ignore = "a helper process of a_foreign_user_may_query_but_not_command"]
fn foreign_user() {
    let Some(socket) = env::var_os(CHILD_SOCKET) else { return };
    let target = Target::at(socket);
    assert_eq!(commands::is_leader(&target).unwrap(), Exit::Success);
    for error in [
        commands::yield_leadership(&target, None, &mut Vec::new()).unwrap_err(),
        commands::maintenance(&target, true, &mut Vec::new()).unwrap_err(),
    ] {
        assert_eq!(error.exit(), Exit::NoAnswer);
        let CommandError::Client(ClientError::Refused(refusal)) = error else {
            unreachable!("{error}")
        };
        assert_eq!(refusal.kind, RefusalKind::NotPermitted);
    }
}

#[test]
fn a_foreign_user_may_query_but_not_command() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can become a foreign user");
        return;
    }
    let (home, socket) = home();
    let _daemon = Background::start(&socket);
    run_child(as_foreign_user(&home), "foreign_user", &socket);
}

/// This very program, to be run by a foreign user.
fn as_foreign_user(home: &TempDir) -> Command {
    // The build directory may be closed to that user. Not fs::copy: a test that forks meanwhile
    // would hold the copy open for writing, and so keep it from being run.
    let program = home.path().join("program");
    let copy = Command::new("cp").arg(env::current_exe().unwrap()).arg(&program).status();
    assert!(copy.unwrap().success());
    let mut wrapper = Command::new(program);
    wrapper.uid(65_534).gid(65_534);
    wrapper
}

#[test]
#[ignore = "a helper process of foreign_users_cannot_lock_out_root"]
fn foreign_users() {
    let Some(socket) = env::var_os(CHILD_SOCKET) else { return };
    let (socket, target) = (Path::new(&socket), Target::at(&socket));
    let watches: Vec<_> = std::iter::from_fn(|| target.watch().ok()).collect();
    println!("{} watches", watches.len());
    for _ in 0..1000 {
        let flood: Vec<_> = (0..MAX_CLIENTS).map(|_| Client::connect(socket)).collect();
        drop(flood);
    }
    let idle: Vec<_> = (0..2 * MAX_CLIENTS).map(|_| Client::connect(socket)).collect();
    println!("all is taken");
    // Until the parent has seen enough.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    drop((watches, idle));
}

#[test]
fn foreign_users_cannot_lock_out_root() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can become a foreign user");
        return;
    }
    let (home, socket) = home();
    let _daemon = Background::start(&socket);
    let early = Client::connect(&socket);
    let mut child = as_foreign_user(&home)
        .args(["--exact", "--ignored", "--nocapture", "server::foreign_users"])
        .env(CHILD_SOCKET, &socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<String> = lines.by_ref().take_while(|line| line != "all is taken").collect();
    let watches = MAX_WATCHERS - RESERVED_WATCHERS;
    assert!(said.contains(&format!("{watches} watches")), "{said:?}");

    let target = Target::at(&socket);
    let watches: Vec<_> = (0..RESERVED_WATCHERS).map(|_| target.watch().unwrap()).collect();
    assert!(target.watch().is_err(), "there is a bound for root too");
    assert!(target.status().is_ok());
    assert!(early.is_connected(), "a foreign user has taken its place");
    early.send(IS_LEADER.as_bytes());
    assert_eq!(early.wait_for_answer(), LEADS);
    drop((child.stdin.take(), watches));
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
}

#[test]
#[ignore = "a helper process of without_file_descriptors_clients_wait_and_the_daemon_does_not_spin"]
fn few_file_descriptors() {
    let Some(socket) = env::var_os(CHILD_SOCKET) else { return };
    log::set_logger(&Counter).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let socket = Path::new(&socket);
    let mut daemon = Daemon::start(socket);
    let mut idle: Vec<Client> = (0..40).map(|_| Client::connect(socket)).collect();
    daemon.settle();
    assert_eq!(daemon.server.poll_timeout(), Some(daemon.now + ACCEPT_PAUSE));
    let last = idle.pop().unwrap();
    last.send(IS_LEADER.as_bytes());
    daemon.settle();
    assert_eq!(last.receive(), (String::new(), false), "it waits in the listener's queue");
    assert_eq!(WARNINGS.load(Ordering::Relaxed), 1);
    // As each place that becomes free is taken at once, the shortage lasts, and is old news.
    for _ in 0..3 {
        drop(idle.remove(0));
        daemon.settle();
        daemon.pass(ACCEPT_PAUSE);
        assert_eq!(last.receive(), (String::new(), false));
    }
    assert_eq!(WARNINGS.load(Ordering::Relaxed), 1);
    drop(idle);
    daemon.pass(ACCEPT_PAUSE);
    assert_eq!(last.receive(), (LEADS.to_owned(), true));
    // The next shortage is news.
    let _idle: Vec<Client> = (0..39).map(|_| Client::connect(socket)).collect();
    daemon.settle();
    assert_eq!(WARNINGS.load(Ordering::Relaxed), 2);
}

/// How many warnings were logged.
static WARNINGS: AtomicUsize = AtomicUsize::new(0);

/// Counts warnings.
struct Counter;

impl log::Log for Counter {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        WARNINGS.fetch_add(usize::from(record.level() <= log::Level::Warn), Ordering::Relaxed);
    }

    fn flush(&self) {}
}

#[test]
fn without_file_descriptors_clients_wait_and_the_daemon_does_not_spin() {
    let (_home, socket) = home();
    let mut wrapper = Command::new("sh");
    let limit = "ulimit -n 64 && exec \"$0\" \"$@\"";
    wrapper.args(["-c", limit]).arg(env::current_exe().unwrap());
    run_child(wrapper, "few_file_descriptors", &socket);
}

#[test]
#[ignore = "a helper process of the_umask_closes_no_socket_and_is_kept_for_all_else"]
fn strict_umask() {
    let Some(socket) = env::var_os(CHILD_SOCKET) else { return };
    let socket = Path::new(&socket);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
    let _daemon = Daemon::start(socket);
    assert_eq!(mode(socket), 0o666);
    let file = socket.with_extension("file");
    fs::write(&file, "").unwrap();
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn the_umask_closes_no_socket_and_is_kept_for_all_else() {
    let (_home, socket) = home();
    let mut wrapper = Command::new("sh");
    wrapper.args(["-c", "umask 077 && exec \"$0\" \"$@\""]).arg(env::current_exe().unwrap());
    run_child(wrapper, "strict_umask", &socket);
}

#[test]
fn client_that_asks_at_once_is_answered_however_many_others_come() {
    let (_home, socket) = home();
    let mut daemon = Daemon::start(&socket);
    let watches = MAX_WATCHERS - RESERVED_WATCHERS;
    let _watchers: Vec<_> = (0..watches).map(|_| Client::asking(&socket, WATCH)).collect();
    daemon.settle();
    let flood = |count: usize| -> Vec<_> { (0..count).map(|_| Client::connect(&socket)).collect() };
    let _silent = flood(MAX_CLIENTS - watches);
    daemon.settle();
    for place in 0..2 * ACCEPTS_PER_WAKE {
        let _before = flood(place);
        let client = Client::asking(&socket, IS_LEADER);
        let _after = flood(4 * ACCEPTS_PER_WAKE);
        daemon.settle();
        assert_eq!(client.receive(), (LEADS.to_owned(), true), "behind {place}");
    }
}
