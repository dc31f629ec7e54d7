//! The hook-runner as a process of its own, talked to over its socket as the daemon does.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

#[path = "common/waiting.rs"]
mod waiting;

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use lanelect::config::{Config, ConfigSource};
use lanelect::core::hook::{HookEvent, HookOutcome, HookRun, Reason};
use lanelect::hooks::group::KILL_GRACE;
use lanelect::hooks::protocol::{Request, RunReply, RunRequest};
use lanelect::hooks::runner::CLIENTS_MAX;
use lanelect::hooks::{
    Digest, Forced, HookFinished, HookNode, HookSettings, Hooks, Lane, Lanes, Task,
};
use lanelect::os::clock;
use lanelect::types::{Role, Term};
use mio::{Events, Poll, Token};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use tempfile::TempDir;
use waiting::until;

/// A hook-runner in a directory of its own; killed when dropped.
struct Runner {
    child: Child,
    dir: TempDir,
}

impl Runner {
    /// Runs `hook`, in which `$DIR` stands for the directory, and waits for its socket.
    fn start(hook: &str) -> Self {
        Runner::start_with(hook, Duration::from_secs(60))
    }

    fn start_with(hook: &str, timeout: Duration) -> Self {
        let dir = TempDir::new().unwrap();
        let child = command(&dir, hook, timeout).spawn().unwrap();
        let runner = Runner { child, dir };
        wait_for("the socket", || UnixStream::connect(runner.socket()).ok());
        runner
    }

    /// Runs `hook`, and `fence` beside it.
    fn start_with_fence(hook: &str, fence: &str) -> Self {
        let quorum = [("mode", "quorum".into()), ("voters", vec!["web1"].into())];
        Runner::start_besides(hook, &quorum, &[("fence", fence)])
    }

    /// Runs `hook`, and `check` with so much time beside it.
    fn start_with_check(hook: &str, check: &str, timeout: &str) -> Self {
        Runner::start_besides(hook, &[("check_timeout", timeout.into())], &[("check", check)])
    }

    /// Runs `hook`, with these keys besides, and these commands.
    fn start_besides(hook: &str, keys: &[(&str, toml::Value)], commands: &[(&str, &str)]) -> Self {
        let dir = TempDir::new().unwrap();
        let mut config = config(&dir, hook, Duration::from_secs(60));
        config.insert("hook_socket".to_owned(), text(&dir.path().join("hook.sock")).into());
        config.extend(keys.iter().map(|(key, value)| (key.to_string(), value.clone())));
        for (key, command) in commands {
            config.insert(key.to_string(), command.replace("$DIR", text(dir.path())).into());
        }
        let child = command_with(&dir, &config).spawn().unwrap();
        let runner = Runner { child, dir };
        wait_for("the socket", || UnixStream::connect(runner.socket()).ok());
        runner
    }

    /// Asks for the check.
    fn check(&self) -> Connection {
        let mut connection = self.connect();
        connection.ask(CHECK, "blue");
        connection
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("hook.sock")
    }

    fn connect(&self) -> Connection {
        Connection::to(&self.socket())
    }

    fn ask(&self, run: HookRun) -> Connection {
        let mut connection = self.connect();
        connection.send(run, "blue");
        connection
    }

    fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    fn wait(&mut self) -> ExitStatus {
        wait_for("the runner's exit", || self.child.try_wait().unwrap())
    }

    fn lines(&self, file: &str) -> Vec<String> {
        lines(&self.dir.path().join(file))
    }

    fn wait_for_log(&self, text: &str) {
        wait_for(text, || self.lines("stderr").iter().any(|l| l.contains(text)).then_some(()));
    }

    fn wait_for_lines(&self, file: &str, count: usize) {
        wait_for(file, || (self.lines(file).len() >= count).then_some(()));
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        // It may have ended before; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run of the check.
const CHECK: Task = Task::Check { role: Role::Follower, term: Term(7) };

/// The hook-runner with a config file in `dir`, to listen there.
fn command(dir: &TempDir, hook: &str, timeout: Duration) -> Command {
    let mut config = config(dir, hook, timeout);
    config.insert("hook_socket".to_owned(), text(&dir.path().join("hook.sock")).into());
    command_with(dir, &config)
}

/// The hook-runner with `config`, its output in files in `dir`.
fn command_with(dir: &TempDir, config: &toml::Table) -> Command {
    let file = dir.path().join("lanelect.toml");
    fs::write(&file, config.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanelect"));
    command
        .args(["hook-runner", "--config", text(&file)])
        .env("LANELECT_LOG", "debug")
        .stdin(Stdio::null())
        .stdout(File::create(dir.path().join("stdout")).unwrap())
        .stderr(File::create(dir.path().join("stderr")).unwrap());
    command
}

/// The config of a hook-runner that is handed its socket.
fn config(dir: &TempDir, hook: &str, timeout: Duration) -> toml::Table {
    let timeout = format!("{}ms", timeout.as_millis());
    [
        ("group", "blue"),
        ("node_id", "web1"),
        ("hook", &hook.replace("$DIR", text(dir.path()))),
        ("hook_timeout", &timeout),
        // The hook-runner keeps nothing there: that disk may hang.
        ("state_dir", "/no/such/directory"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.into()))
    .collect()
}

/// A directory, and in it a socket as systemd opens one for a hook-runner.
fn activated() -> (TempDir, PathBuf, UnixListener) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("activated.sock");
    let listener = UnixListener::bind(&path).unwrap();
    (dir, path, listener)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What the runner's file holds now.
fn config_beside(socket: &Path) -> Config {
    let file = socket.with_file_name("lanelect.toml");
    ConfigSource { file: Some(file), ..ConfigSource::default() }.load().unwrap()
}

/// A daemon's end of a connection to the runner.
struct Connection {
    stream: UnixStream,
    /// What the daemon runs by.
    settings: Digest,
}

impl Connection {
    /// Of a daemon that runs by the runner's file.
    fn to(socket: &Path) -> Self {
        let settings = Digest::from(&config_beside(socket));
        Connection { stream: UnixStream::connect(socket).unwrap(), settings }
    }

    fn send(&mut self, run: HookRun, group: &str) {
        self.ask(Task::Hook(run), group);
    }

    fn ask(&mut self, task: Task, group: &str) {
        let (node, settings) = (node(group), self.settings);
        let orphan_grace = Duration::from_secs(60);
        let request = RunRequest { task, node, settings, orphan_grace };
        self.request(&Request::Run(Box::new(request)));
    }

    fn request(&mut self, request: &Request) {
        let line = serde_json::to_string(request).unwrap() + "\n";
        self.stream.write_all(line.as_bytes()).unwrap();
    }

    /// The next thing the runner says.
    fn reply(&mut self) -> RunReply {
        self.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut line = Vec::new();
        // Byte by byte, so that nothing of the next reply is lost.
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            self.stream.read_exact(&mut byte).unwrap();
            line.extend(byte);
        }
        serde_json::from_slice(&line).unwrap()
    }

    fn finished(mut self) -> HookFinished {
        assert_eq!(self.reply(), RunReply::Started);
        match self.reply() {
            RunReply::Finished(finished) => finished,
            other => panic!("not finished: {other:?}"),
        }
    }

    /// Whether the runner hung up on this connection without a word, within reason.
    fn is_hung_up(&mut self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        match self.stream.read(&mut [0]) {
            Ok(count) => count == 0,
            // It had not yet read what it was sent.
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn node(group: &str) -> HookNode {
    HookNode {
        node_id: "web1".parse().unwrap(),
        group: group.parse().unwrap(),
        interfaces: vec!["eth0".to_owned(), "eth1".to_owned()],
    }
}

fn hook_run(event: HookEvent, term: u64) -> HookRun {
    HookRun {
        event,
        reason: Reason::Election,
        role: Role::Leader,
        term: Term(term),
        leader: Some("web1".parse().unwrap()),
        leader_address: None,
        previous_leader: None,
    }
}

fn elected(term: u64) -> HookRun {
    hook_run(HookEvent::Elected, term)
}

fn demoted(term: u64) -> HookRun {
    hook_run(HookEvent::Demoted, term)
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Waits until `check` gives something.
fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    until(what, || {
        found = check();
        found.is_some()
    });
    found.unwrap()
}

/// Runs the daemon's end until what it asked for in this lane is over.
fn finish(hooks: &mut Hooks, poll: &mut Poll, lane: Lane) -> HookFinished {
    let mut events = Events::with_capacity(4);
    wait_for("the end of the run", || {
        if let Some(finished) = hooks.poll_finished(lane) {
            return Some(finished);
        }
        poll.poll(&mut events, Some(Duration::from_millis(10))).unwrap();
        if !events.is_empty() {
            for lane in Lane::ALL {
                hooks.handle_socket(lane, clock::now());
            }
        }
        hooks.handle_timeout(clock::now());
        None
    })
}

fn daemon(socket: PathBuf) -> (Hooks, Poll) {
    let poll = Poll::new().unwrap();
    let settings = HookSettings::from(&config_beside(&socket));
    let tokens = Lanes::of(|lane| Token(lane as usize));
    let hooks = Hooks::remote(&socket, settings, node("blue"), poll.registry(), tokens, None);
    (hooks.unwrap(), poll)
}

#[test]
fn the_daemon_has_its_hooks_run_one_after_the_other() {
    let runner = Runner::start(
        "echo $LANELECT_EVENT $LANELECT_TERM $LANELECT_NODE_ID $LANELECT_INTERFACE >> $DIR/runs; \
         exit $((LANELECT_TERM % 2))",
    );
    let (mut hooks, mut poll) = daemon(runner.socket());
    let mut expected = Vec::new();
    for term in 1..=20 {
        let run = if term % 2 == 1 { elected(term) } else { demoted(term) };
        hooks.start(Task::Hook(run), KILL_GRACE, clock::now());
        assert!(hooks.report().running);
        let finished = finish(&mut hooks, &mut poll, Lane::Hook);
        assert_eq!(finished.exit, Some(i32::from(term % 2 == 1)));
        assert_eq!(hooks.report().last_exit, finished.exit);
        expected.push(format!("{} {term} web1 eth0 eth1", run.event));
    }
    assert_eq!(runner.lines("runs"), expected);
}

#[test]
fn a_runner_that_dies_mid_run_has_lost_it_and_its_successor_serves_the_next() {
    let mut runner = Runner::start("echo $LANELECT_EVENT $$ >> $DIR/runs; exec sleep 100");
    let (mut hooks, mut poll) = daemon(runner.socket());
    hooks.start(Task::Hook(elected(1)), KILL_GRACE, clock::now());
    runner.wait_for_lines("runs", 1);
    // The hook is faster than the note of it that its runner's successor finds.
    wait_for_note(&runner.socket());
    runner.child.kill().unwrap();
    let finished = finish(&mut hooks, &mut poll, Lane::Hook);
    assert_eq!((finished.outcome, finished.exit), (HookOutcome::Lost, None));

    // Nobody ends the rest of the unit, as systemd would: its successor does, before the next run.
    runner.wait();
    let left = runner.lines("runs")[0].split(' ').next_back().unwrap().to_owned();
    assert!(is_alive(&left));

    // The socket that the dead one left is in the way of the next one, which replaces it.
    assert!(runner.socket().exists());
    let hook = format!("if kill -0 {left}; then exit 1; fi");
    runner.child = command(&runner.dir, &hook, Duration::from_secs(60)).spawn().unwrap();
    hooks.start(Task::Hook(hook_run(HookEvent::Started, 2)), KILL_GRACE, clock::now());
    assert_eq!(finish(&mut hooks, &mut poll, Lane::Hook).outcome, HookOutcome::Succeeded);
}

/// Waits for the note of the hook that the runner at `socket` runs.
fn wait_for_note(socket: &Path) {
    let note = socket.with_extension("sock.hook");
    wait_for("the note of the hook", || note.exists().then_some(()));
}

#[test]
fn a_dead_daemon_s_demote_hook_waits_for_no_hook_that_was_left_running() {
    let hook = "echo $LANELECT_EVENT $LANELECT_REASON $$ >> $DIR/runs; \
                if [ $LANELECT_EVENT = elected ]; then exec sleep 1000; fi";
    let runner = Runner::start(hook);
    let (mut dead, _) = daemon(runner.socket());
    dead.start(Task::Hook(elected(1)), KILL_GRACE, clock::now());
    runner.wait_for_lines("runs", 1);
    drop(dead);
    runner.wait_for_log("closed the connection");
    let (mut hooks, mut poll) = daemon(runner.socket());
    let crashed = HookRun { reason: Reason::Crashed, ..demoted(1) };
    hooks.start(Task::Hook(crashed), KILL_GRACE, clock::now());
    assert_eq!(finish(&mut hooks, &mut poll, Lane::Hook).outcome, HookOutcome::Succeeded);
    let runs = runner.lines("runs");
    assert!(runs[1].starts_with("demoted crashed "), "{runs:?}");
    let left = runs[0].split(' ').next_back().unwrap();
    assert!(!is_alive(left), "it runs beside the demote hook");
}

#[test]
fn the_runner_changes_its_commands_with_the_daemon_and_not_by_itself() {
    let runner = Runner::start("echo old >> $DIR/runs");
    let (mut hooks, mut poll) = daemon(runner.socket());
    let file = runner.dir.path().join("lanelect.toml");
    let before = fs::read_to_string(&file).unwrap();
    let mut run = |hooks: &mut Hooks, run| {
        hooks.start(Task::Hook(run), KILL_GRACE, clock::now());
        finish(hooks, &mut poll, Lane::Hook).outcome
    };
    assert_eq!(run(&mut hooks, elected(1)), HookOutcome::Succeeded);
    fs::write(&file, before.replace("echo old", "echo new")).unwrap();
    runner.signal(Signal::SIGHUP);
    assert_eq!(run(&mut hooks, demoted(1)), HookOutcome::Succeeded);
    assert_eq!(runner.lines("runs"), ["old", "old"], "it lets go as it took over");

    hooks.reconfigure(HookSettings::from(&config_beside(&runner.socket())), clock::now());
    assert_eq!(run(&mut hooks, elected(2)), HookOutcome::Succeeded);
    // The next change reaches the daemon alone.
    let command = Some("echo newest".to_owned());
    let others = HookSettings { command, ..HookSettings::from(&config_beside(&runner.socket())) };
    hooks.reconfigure(others, clock::now());
    assert_eq!(run(&mut hooks, demoted(2)), HookOutcome::Succeeded);
    assert_eq!(run(&mut hooks, elected(3)), HookOutcome::NotRun);
    assert_eq!(runner.lines("runs"), ["old", "old", "new", "new"]);
    fs::write(&file, "rubbish").unwrap();
    assert_eq!(run(&mut hooks, elected(4)), HookOutcome::NotRun);
    assert_eq!(run(&mut hooks, demoted(4)), HookOutcome::Succeeded);
    assert_eq!(runner.lines("runs").len(), 5);
}

#[test]
fn the_runner_says_whether_it_runs_by_the_daemons_settings() {
    let runner = Runner::start("true");
    let ask = |settings, group: &str| {
        let mut connection = runner.connect();
        connection.request(&Request::Agree { group: group.parse().unwrap(), settings });
        connection.reply()
    };
    let own = runner.connect().settings;
    assert_eq!(ask(own, "blue"), RunReply::Agreed);
    let settings = HookSettings::from(&config_beside(&runner.socket()));
    let other = Digest::new(&settings, "blue".parse().unwrap(), "web2".parse().unwrap());
    for (settings, group, reason) in
        [(other, "blue", "another configuration"), (own, "red", "group red")]
    {
        let RunReply::Refused(said) = ask(settings, group) else { panic!("{reason}: agreed") };
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn the_runner_serves_the_group_that_its_file_has_now() {
    let runner = Runner::start("exit 0");
    let file = runner.dir.path().join("lanelect.toml");
    let before = fs::read_to_string(&file).unwrap();
    let mut of_blue = runner.connect();
    fs::write(&file, before.replace("blue", "red")).unwrap();
    let mut of_red = runner.connect();
    of_red.send(elected(1), "red");
    assert_eq!(of_red.finished().outcome, HookOutcome::Succeeded);
    of_blue.send(demoted(1), "blue");
    let RunReply::Refused(said) = of_blue.reply() else { panic!("it was run") };
    assert!(said.contains("group blue"), "{said}");
}

#[test]
fn a_runner_whose_file_others_may_write_stays_and_refuses_until_that_is_mended() {
    let (dir, path, listener) = activated();
    let config = config(&dir, "exit 0", Duration::from_secs(60));
    let mut command = command_with(&dir, &config);
    let file = dir.path().join("lanelect.toml");
    fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
    let child = command.stdin(Stdio::from(OwnedFd::from(listener))).spawn().unwrap();
    let _runner = Runner { child, dir };
    for run in [elected(1), demoted(1)] {
        let mut connection = Connection::to(&path);
        connection.send(run, "blue");
        let RunReply::Refused(said) = connection.reply() else { panic!("it was run") };
        assert!(said.contains("chmod go-w"), "{said}");
    }
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let mut connection = Connection::to(&path);
    connection.send(elected(1), "blue");
    assert_eq!(connection.finished().outcome, HookOutcome::Succeeded);
}

#[test]
fn a_term_that_no_election_gets_to_reaches_no_command() {
    let runner = Runner::start("echo $LANELECT_TERM >> $DIR/terms");
    let refused = |run| {
        let reply = runner.ask(run).reply();
        assert!(matches!(&reply, RunReply::Refused(said) if said.contains("absurd")), "{reply:?}");
    };
    refused(elected(u64::MAX));
    assert_eq!(runner.ask(elected(7)).finished().outcome, HookOutcome::Succeeded);
    refused(elected(7 + (1 << 32) + 1));
    refused(demoted(u64::MAX));
    assert_eq!(runner.ask(elected(7 + (1 << 32))).finished().outcome, HookOutcome::Succeeded);
    assert_eq!(runner.lines("terms"), ["7", "4294967303"]);
}

#[test]
fn a_config_that_others_may_write_is_refused_with_what_mends_it() {
    let dir = TempDir::new().unwrap();
    let mut command = command(&dir, "true", Duration::from_secs(60));
    let file = dir.path().join("lanelect.toml");
    for mode in [0o664, 0o646] {
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        assert_eq!(command.status().unwrap().code(), Some(2));
        let said = fs::read_to_string(dir.path().join("stderr")).unwrap();
        assert!(said.contains("chmod go-w") && said.contains(text(&file)), "{said}");
    }
    if geteuid().is_root() {
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(65534), None).unwrap();
        assert_eq!(command.status().unwrap().code(), Some(2), "its owner may write it");
        let said = fs::read_to_string(dir.path().join("stderr")).unwrap();
        assert!(said.contains(&format!("run: chown root {}\n", text(&file))), "{said}");
    }
}

#[test]
fn what_a_client_sends_forges_no_line_of_the_log() {
    let runner = Runner::start("true");
    let mut connection = runner.connect();
    connection.stream.write_all(b"{\"a\\ninfo  hook for elected\\u001b[2J\":1}\n").unwrap();
    assert!(matches!(connection.reply(), RunReply::Refused(_)));
    runner.wait_for_log("disconnected a client");
    let said = fs::read_to_string(runner.dir.path().join("stderr")).unwrap();
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("info  hook for elected")), "{said}");
}

#[test]
fn the_daemon_cuts_a_hook_short() {
    let hook = "echo $LANELECT_EVENT $$ >> $DIR/runs; \
                if [ $LANELECT_EVENT = elected ]; then exec sleep 1000; fi";
    let runner = Runner::start(hook);
    let (mut hooks, mut poll) = daemon(runner.socket());
    hooks.start(Task::Hook(elected(1)), KILL_GRACE, clock::now());
    runner.wait_for_lines("runs", 1);
    hooks.cut_short(Lane::Hook, clock::now() + Duration::from_secs(60), clock::now());
    let finished = finish(&mut hooks, &mut poll, Lane::Hook);
    assert_eq!((finished.outcome, finished.exit), (HookOutcome::Failed, Some(128 + 15)));
    assert_eq!(finished.forced, Some(Forced::CutShort));
    let shell = runner.lines("runs")[0].split(' ').next_back().unwrap().to_owned();
    assert!(!is_alive(&shell));
    hooks.start(Task::Hook(demoted(2)), KILL_GRACE, clock::now());
    assert_eq!(finish(&mut hooks, &mut poll, Lane::Hook).outcome, HookOutcome::Succeeded);
}

#[test]
fn a_hook_that_is_cut_short_and_ignores_term_is_killed_when_it_is_due() {
    let hook = "trap '' TERM; echo $$ > $DIR/pid; while :; do sleep 0.1; done";
    let runner = Runner::start(hook);
    let mut connection = runner.ask(elected(1));
    runner.wait_for_lines("pid", 1);
    connection.request(&Request::CutShort(Duration::from_millis(300)));
    let finished = connection.finished();
    assert_eq!((finished.exit, finished.forced), (Some(137), Some(Forced::CutShort)));
    assert!(!is_alive(&runner.lines("pid")[0]));
}

#[test]
fn a_run_that_is_cut_short_before_its_turn_is_not_begun() {
    let runner = Runner::start(
        "echo $LANELECT_TERM >> $DIR/runs; while [ ! -e $DIR/go ]; do sleep 0.05; done",
    );
    let first = runner.ask(elected(1));
    runner.wait_for_lines("runs", 1);
    let mut second = runner.ask(demoted(2));
    second.request(&Request::CutShort(Duration::ZERO));
    let RunReply::Finished(finished) = second.reply() else { panic!("not finished") };
    assert_eq!(finished.outcome, HookOutcome::NotRun);
    File::create(runner.dir.path().join("go")).unwrap();
    assert_eq!(first.finished().outcome, HookOutcome::Succeeded);
    assert_eq!(runner.lines("runs"), ["1"]);
}

#[test]
fn the_fence_command_runs_beside_the_hook() {
    let fence =
        "echo $LANELECT_EVENT $LANELECT_REASON $LANELECT_TERM $LANELECT_NODE_ID >> $DIR/fenced";
    let runner = Runner::start_with_fence("echo begun >> $DIR/runs; exec sleep 1000", fence);
    let (mut hooks, mut poll) = daemon(runner.socket());
    hooks.start(Task::Hook(demoted(6)), KILL_GRACE, clock::now());
    runner.wait_for_lines("runs", 1);
    hooks.start(Task::Fence { term: Term(7) }, KILL_GRACE, clock::now());
    runner.wait_for_lines("fenced", 1);
    assert_eq!(runner.lines("fenced"), ["fence grace-overrun 7 web1"]);
    assert_eq!(hooks.poll_finished(Lane::Hook), None);
    hooks.cut_short(Lane::Hook, clock::now(), clock::now());
    assert_eq!(finish(&mut hooks, &mut poll, Lane::Hook).forced, Some(Forced::CutShort));
    // The daemon's next one finds its turn free.
    assert_eq!(finish(&mut hooks, &mut poll, Lane::Fence).exit, Some(0));
    hooks.start(Task::Fence { term: Term(8) }, KILL_GRACE, clock::now());
    assert_eq!(finish(&mut hooks, &mut poll, Lane::Fence).exit, Some(0));
    assert_eq!(runner.lines("fenced").len(), 2);
}

#[test]
fn without_a_fence_command_fencing_is_refused() {
    let runner = Runner::start("exit 0");
    let mut connection = runner.connect();
    connection.ask(Task::Fence { term: Term(7) }, "blue");
    let RunReply::Refused(reason) = connection.reply() else { panic!("not refused") };
    assert!(reason.contains("no fence"), "{reason}");
}

/// The process that `file` names.
fn pid_in(runner: &Runner, file: &str) -> String {
    runner.wait_for_lines(file, 1);
    runner.lines(file)[0].clone()
}

#[test]
fn the_check_runs_beside_the_hook_again_and_again() {
    let check = "echo $LANELECT_EVENT $LANELECT_ROLE $LANELECT_TERM $LANELECT_NODE_ID \
                 $LANELECT_GROUP >> $DIR/checks; exit $((LANELECT_TERM % 2))";
    let runner = Runner::start_with_check("echo begun >> $DIR/runs; exec sleep 1000", check, "60s");
    let (mut hooks, mut poll) = daemon(runner.socket());
    hooks.start(Task::Hook(elected(6)), KILL_GRACE, clock::now());
    runner.wait_for_lines("runs", 1);
    for (term, exit) in (7..=27).zip([1, 0].into_iter().cycle()) {
        hooks.start(Task::Check { role: Role::Leader, term: Term(term) }, KILL_GRACE, clock::now());
        assert!(hooks.is_running(Lane::Check));
        assert_eq!(finish(&mut hooks, &mut poll, Lane::Check).exit, Some(exit));
        assert!(!hooks.is_running(Lane::Check));
    }
    let told: Vec<_> = (7..=27).map(|term| format!("check leader {term} web1 blue")).collect();
    assert_eq!(runner.lines("checks"), told);
    assert_eq!(hooks.poll_finished(Lane::Hook), None, "the hook runs on");
}

#[test]
fn without_a_check_of_its_own_the_runner_refuses_one() {
    let runner = Runner::start("exit 0");
    let RunReply::Refused(reason) = runner.check().reply() else { panic!("not refused") };
    assert!(reason.contains("no check"), "{reason}");
}

#[test]
fn a_check_that_hangs_is_ended_with_its_process_group_and_has_failed() {
    let check = "sleep 1000 & echo $! > $DIR/child; echo $$ > $DIR/pid; wait";
    let runner = Runner::start_with_check("exit 0", check, "3s");
    let finished = runner.check().finished();
    assert_eq!((finished.outcome, finished.forced), (HookOutcome::Failed, Some(Forced::Overran)));
    for file in ["pid", "child"] {
        assert!(!is_alive(&pid_in(&runner, file)), "{file}");
    }
}

#[test]
fn a_check_begins_when_the_one_before_is_gone() {
    let check = "echo begun >> $DIR/checks; while [ ! -e $DIR/go ]; do sleep 0.05; done; \
                 echo ended >> $DIR/checks";
    let runner = Runner::start_with_check("exit 0", check, "60s");
    let first = runner.check();
    runner.wait_for_lines("checks", 1);
    let second = runner.check();
    File::create(runner.dir.path().join("go")).unwrap();
    assert_eq!(first.finished().outcome, HookOutcome::Succeeded);
    assert_eq!(second.finished().outcome, HookOutcome::Succeeded);
    assert_eq!(runner.lines("checks"), ["begun", "ended", "begun", "ended"]);
}

#[test]
fn a_check_is_ended_when_its_daemon_hangs_up_cuts_it_short_or_the_runner_stops() {
    let check = "echo $$ > $DIR/new; mv $DIR/new $DIR/pid; exec sleep 1000";
    let mut runner = Runner::start_with_check("exit 0", check, "60s");
    let running = |runner: &Runner| {
        let connection = runner.check();
        let pid = pid_in(runner, "pid");
        fs::remove_file(runner.dir.path().join("pid")).unwrap();
        (connection, pid)
    };
    let is_gone = |pid: &str| wait_for("its end", || (!is_alive(pid)).then_some(()));

    let (connection, pid) = running(&runner);
    drop(connection);
    is_gone(&pid);

    let (mut connection, pid) = running(&runner);
    connection.request(&Request::CutShort(Duration::ZERO));
    assert_eq!(connection.finished().forced, Some(Forced::CutShort));
    assert!(!is_alive(&pid));

    let (connection, pid) = running(&runner);
    runner.terminate();
    assert_eq!(connection.finished().forced, Some(Forced::CutShort));
    assert!(runner.wait().success());
    assert!(!is_alive(&pid));
}

#[test]
fn checks_leave_the_log_alone() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir, "exit 0", Duration::from_secs(60));
    config.insert("hook_socket".to_owned(), text(&dir.path().join("hook.sock")).into());
    config.insert("check".to_owned(), "echo chatter; echo chatter >&2; exit 1".into());
    let child = command_with(&dir, &config).env("LANELECT_LOG", "info").spawn().unwrap();
    let runner = Runner { child, dir };
    wait_for("the socket", || UnixStream::connect(runner.socket()).ok());
    runner.ask(elected(1)).finished();
    for _ in 0..10 {
        assert_eq!(runner.check().finished().exit, Some(1));
    }
    runner.ask(demoted(1)).finished();
    runner.wait_for_log("hook for demoted");
    let log = runner.lines("stderr");
    let [read, ready, elected, demoted] = &log[..] else { panic!("{log:?}") };
    assert!(read.contains("has read its config file"), "{read}");
    assert!(ready.contains("is ready"), "{ready}");
    assert!(elected.contains("hook for elected"), "{elected}");
    assert!(demoted.contains("hook for demoted"), "{demoted}");
}

#[test]
fn a_message_out_of_turn_is_refused() {
    let runner = Runner::start("echo ran >> $DIR/runs");
    let mut early = runner.connect();
    early.request(&Request::CutShort(Duration::ZERO));
    assert!(matches!(early.reply(), RunReply::Refused(_)));
    assert!(runner.lines("runs").is_empty());
}

#[test]
fn the_time_limit_holds_for_the_whole_process_group() {
    let hook = "sh -c 'trap \"\" TERM; echo $$ > $DIR/pid; exec sleep 100' & wait";
    let runner = Runner::start_with(hook, Duration::from_secs(3));
    let finished = runner.ask(elected(1)).finished();
    assert_eq!(finished.forced, Some(Forced::Overran));
    assert_eq!((finished.outcome, finished.exit), (HookOutcome::Failed, Some(128 + 15)));
    assert!(!is_alive(&runner.lines("pid")[0]));
}

#[test]
fn a_daemon_that_hangs_up_does_not_stop_its_hook() {
    let runner = Runner::start(
        "echo begun $LANELECT_TERM >> $DIR/runs; \
         while [ ! -e $DIR/go ]; do sleep 0.05; done; echo ended $LANELECT_TERM >> $DIR/runs",
    );
    drop({
        let connection = runner.ask(elected(1));
        runner.wait_for_lines("runs", 1);
        connection
    });
    runner.wait_for_log("continues");
    File::create(runner.dir.path().join("go")).unwrap();
    runner.wait_for_lines("runs", 2);
    assert_eq!(runner.lines("runs"), ["begun 1", "ended 1"]);
}

#[test]
fn a_hook_whose_daemon_hung_up_is_ended_in_the_time_that_the_next_request_gives_it() {
    let runner = Runner::start(
        "echo $LANELECT_EVENT $$ >> $DIR/runs; [ $LANELECT_EVENT = elected ] || exit 0; \
         trap '' TERM; while :; do sleep 0.1; done",
    );
    drop({
        let connection = runner.ask(elected(1));
        runner.wait_for_lines("runs", 1);
        connection
    });
    runner.wait_for_log("closed the connection");
    let mut successor = runner.connect();
    let orphan_grace = Duration::from_millis(300);
    let task = Task::Hook(demoted(2));
    let (node, settings) = (node("blue"), successor.settings);
    let request = RunRequest { task, node, settings, orphan_grace };
    successor.request(&Request::Run(Box::new(request)));
    let asked = clock::now();
    assert_eq!(successor.finished().outcome, HookOutcome::Succeeded);
    // KILL would come 5 seconds after TERM otherwise.
    assert!(clock::now().since(asked) < Duration::from_secs(4));
    let left = runner.lines("runs")[0].split(' ').next_back().unwrap().to_owned();
    assert!(!is_alive(&left));
}

/// A thread of it waits in the kernel, so its connections stay open.
#[test]
fn hook_of_a_dead_daemon_that_cannot_end_is_ended_like_that_of_one_that_has() {
    let runner = Runner::start(
        "echo $LANELECT_EVENT $$ >> $DIR/runs; [ $LANELECT_EVENT = elected ] || exit 0; \
         trap '' TERM; while :; do sleep 0.1; done",
    );
    let _runs = runner.ask(elected(1));
    runner.wait_for_lines("runs", 1);
    let _waits = runner.ask(elected(2));
    runner.wait_for_log("term 2) is requested");
    let mut post_stop = runner.connect();
    let task = Task::Hook(HookRun { reason: Reason::Crashed, ..demoted(2) });
    let (node, settings) = (node("blue"), post_stop.settings);
    let orphan_grace = Duration::from_millis(300);
    post_stop.request(&Request::Run(Box::new(RunRequest { task, node, settings, orphan_grace })));
    let asked = clock::now();
    assert_eq!(post_stop.finished().outcome, HookOutcome::Succeeded);
    // KILL would come 5 seconds after TERM otherwise.
    assert!(clock::now().since(asked) < Duration::from_secs(4));
    let events: Vec<_> = runner.lines("runs").iter().map(|line| line[..7].to_owned()).collect();
    assert_eq!(events, ["elected", "demoted"]);
}

#[test]
fn a_run_that_has_not_begun_is_taken_back_by_hanging_up() {
    let runner = Runner::start(
        "echo $LANELECT_TERM >> $DIR/runs; while [ ! -e $DIR/go ]; do sleep 0.05; done",
    );
    let first = runner.ask(elected(1));
    runner.wait_for_lines("runs", 1);
    let second = runner.ask(demoted(2));
    runner.wait_for_log("hook for demoted (election, term 2) is requested");
    drop(second);
    let third = runner.ask(demoted(3));
    File::create(runner.dir.path().join("go")).unwrap();
    first.finished();
    third.finished();
    assert_eq!(runner.lines("runs"), ["1", "3"]);
}

#[test]
fn a_run_says_that_it_starts_when_its_turn_comes() {
    let runner = Runner::start(
        "echo $LANELECT_TERM >> $DIR/runs; while [ ! -e $DIR/go ]; do sleep 0.05; done",
    );
    let first = runner.ask(elected(1));
    runner.wait_for_lines("runs", 1);
    let mut second = runner.ask(demoted(2));
    runner.wait_for_log("hook for demoted (election, term 2) is requested");
    second.stream.set_nonblocking(true).unwrap();
    assert_eq!(second.stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    second.stream.set_nonblocking(false).unwrap();
    File::create(runner.dir.path().join("go")).unwrap();
    first.finished();
    second.finished();
}

#[test]
fn a_run_that_was_taken_back_while_the_runner_hung_is_not_run() {
    let runner = Runner::start("echo $LANELECT_TERM >> $DIR/runs");
    let pid = Pid::from_raw(runner.child.id() as i32);
    kill(pid, Signal::SIGSTOP).unwrap();
    let taken_back = runner.ask(elected(1));
    // As the daemon does it: the runner can no longer tell it anything.
    taken_back.stream.shutdown(std::net::Shutdown::Read).unwrap();
    kill(pid, Signal::SIGCONT).unwrap();
    runner.ask(elected(3)).finished();
    assert_eq!(runner.lines("runs"), ["3"]);
    drop(taken_back);
}

#[test]
fn on_term_the_running_hook_is_waited_for() {
    let mut runner = Runner::start(
        "echo begun >> $DIR/runs; while [ ! -e $DIR/go ]; do sleep 0.05; done; \
         echo ended >> $DIR/runs; exit 3",
    );
    let running = runner.ask(elected(1));
    runner.wait_for_lines("runs", 1);
    let mut waiting = runner.ask(demoted(2));
    runner.wait_for_log("hook for demoted (election, term 2) is requested");
    runner.terminate();
    wait_for("the end of listening", || (!runner.socket().exists()).then_some(()));
    assert!(runner.child.try_wait().unwrap().is_none());
    File::create(runner.dir.path().join("go")).unwrap();
    assert_eq!(running.finished().exit, Some(3));
    assert!(waiting.is_hung_up());
    assert!(runner.wait().success());
    assert_eq!(runner.lines("runs"), ["begun", "ended"]);
}

#[test]
fn what_systemd_told_the_runner_alone_is_not_told_to_the_hook() {
    let dir = TempDir::new().unwrap();
    let private = [
        ("NOTIFY_SOCKET", "/nonexistent"),
        ("WATCHDOG_USEC", "1"),
        ("WATCHDOG_PID", "1"),
        ("LISTEN_FDS", "1"),
        ("LISTEN_PID", "1"),
        ("LISTEN_FDNAMES", "x"),
        ("LISTEN_PIDFDID", "1"),
        ("FDSTORE", "1"),
    ];
    let child = command(&dir, "env > $DIR/env", Duration::from_secs(60))
        .envs(private)
        .env("JOURNAL_STREAM", "1:2")
        .env("KEPT", "yes")
        .spawn()
        .unwrap();
    let runner = Runner { child, dir };
    wait_for("the socket", || UnixStream::connect(runner.socket()).ok());
    runner.ask(elected(1)).finished();
    let variables = runner.lines("env");
    for (name, _) in private {
        assert!(!variables.iter().any(|line| line.starts_with(&format!("{name}="))), "{name}");
    }
    for kept in ["KEPT=yes", "JOURNAL_STREAM=1:2", "LANELECT_EVENT=elected"] {
        assert!(variables.iter().any(|line| line == kept), "{kept}");
    }
    assert!(variables.iter().any(|line| line.starts_with("PATH=")));
}

#[test]
fn what_a_hook_prints_goes_to_the_runners_stderr() {
    let runner = Runner::start("echo from-stdout; echo from-stderr >&2");
    runner.ask(elected(1)).finished();
    let stderr = runner.lines("stderr");
    for text in ["from-stdout", "from-stderr"] {
        assert!(stderr.iter().any(|line| line == text), "{text}: {stderr:?}");
    }
    assert!(!runner.lines("stdout").iter().any(|line| line.contains("from-")));
}

#[test]
fn another_groups_daemon_is_refused() {
    let runner = Runner::start("echo ran >> $DIR/runs");
    let mut connection = runner.connect();
    connection.send(elected(1), "green");
    let RunReply::Refused(reason) = connection.reply() else { panic!("not refused") };
    assert!(reason.contains("green") && reason.contains("blue"), "{reason}");
    assert!(runner.lines("runs").is_empty());
}

#[test]
fn rubbish_is_refused_and_does_no_harm() {
    let runner = Runner::start("echo ran >> $DIR/runs");
    let endless = vec![b'x'; 100_000];
    for rubbish in [&b"reboot\n"[..], b"\n", b"{}\n{}\n", &[0xff, b'\n'], &endless] {
        let mut connection = runner.connect();
        // The runner may hang up before it was sent all of it.
        let _ = connection.stream.write_all(rubbish);
        assert!(matches!(connection.reply(), RunReply::Refused(_)), "{rubbish:.20?}");
    }
    assert_eq!(runner.ask(elected(1)).finished().outcome, HookOutcome::Succeeded);
    assert_eq!(runner.lines("runs"), ["ran"]);
}

#[test]
fn silent_clients_make_room_in_the_end() {
    let runner = Runner::start("exit 0");
    let mut silent: Vec<_> = (0..CLIENTS_MAX).map(|_| runner.connect()).collect();
    let patient = runner.ask(elected(1));
    assert_eq!(patient.finished().outcome, HookOutcome::Succeeded);
    let first = &mut silent[0].stream;
    first.set_nonblocking(true).unwrap();
    assert_eq!(first.read(&mut [0]).unwrap(), 0, "nobody takes a place before one is free");
    first.set_nonblocking(false).unwrap();
    for connection in &mut silent {
        assert!(connection.is_hung_up());
    }
}

#[test]
fn a_socket_that_systemd_opened_is_taken_from_standard_input() {
    let (dir, path, listener) = activated();
    let config = config(&dir, "exit 0", Duration::from_secs(60));
    let mut command = command_with(&dir, &config);
    // A daemon may have connected before the runner is started.
    let mut early = Connection::to(&path);
    early.send(elected(1), "blue");
    let child =
        command.stdin(Stdio::from(OwnedFd::from(listener.try_clone().unwrap()))).spawn().unwrap();
    let mut runner = Runner { child, dir };
    assert_eq!(early.finished().outcome, HookOutcome::Succeeded);

    let mut later = Connection::to(&path);
    later.send(demoted(2), "blue");
    assert_eq!(later.finished().outcome, HookOutcome::Succeeded);
    runner.terminate();
    assert!(runner.wait().success());
    assert!(path.exists(), "systemd's socket is not the runner's to remove");
}

#[test]
fn notes_of_a_killed_runner_are_found_by_the_next_one_on_the_same_socket() {
    let (dir, path, listener) = activated();
    let start = |dir: &TempDir, hook| {
        let config = config(dir, hook, Duration::from_secs(60));
        let socket = OwnedFd::from(listener.try_clone().unwrap());
        command_with(dir, &config).stdin(Stdio::from(socket)).spawn().unwrap()
    };
    let old = "echo $LANELECT_EVENT $$ >> $DIR/runs; [ $LANELECT_EVENT = demoted ] || sleep 100";
    let child = start(&dir, old);
    let mut runner = Runner { child, dir };
    let mut connection = Connection::to(&path);
    connection.send(elected(1), "blue");
    runner.wait_for_lines("runs", 1);
    wait_for_note(&path);
    runner.child.kill().unwrap();
    runner.wait();
    let left = runner.lines("runs")[0].split(' ').next_back().unwrap().to_owned();
    assert!(is_alive(&left));

    // It ends what was left before it is asked to run anything.
    runner.child = start(&runner.dir, "echo new >> $DIR/runs");
    wait_for("the end of the hook", || (!is_alive(&left)).then_some(()));
    let mut connection = Connection::to(&path);
    connection.send(demoted(1), "blue");
    assert_eq!(connection.finished().outcome, HookOutcome::Succeeded);
    assert!(runner.lines("runs")[1].starts_with("demoted "), "another hook released");
}

#[test]
fn a_runner_that_starts_again_beside_a_broken_file_has_what_took_over_release() {
    let (dir, path, listener) = activated();
    let config = config(&dir, "echo $LANELECT_EVENT >> $DIR/runs", Duration::from_secs(60));
    let mut command = command_with(&dir, &config);
    let mut start = || {
        let socket = OwnedFd::from(listener.try_clone().unwrap());
        command.stdin(Stdio::from(socket)).spawn().unwrap()
    };
    let child = start();
    let mut runner = Runner { child, dir };
    let mut connection = Connection::to(&path);
    let settings = connection.settings;
    connection.send(elected(1), "blue");
    assert_eq!(connection.finished().outcome, HookOutcome::Succeeded);
    runner.child.kill().unwrap();
    runner.wait();
    fs::write(runner.dir.path().join("lanelect.toml"), "rubbish").unwrap();

    runner.child = start();
    let ask = |run| {
        let stream = UnixStream::connect(&path).unwrap();
        let mut connection = Connection { stream, settings };
        connection.send(run, "blue");
        connection
    };
    assert_eq!(ask(demoted(1)).finished().outcome, HookOutcome::Succeeded);
    for run in [elected(2), hook_run(HookEvent::Started, 2)] {
        assert!(matches!(ask(run).reply(), RunReply::Refused(_)), "{run:?}");
    }
    assert_eq!(runner.lines("runs"), ["elected", "demoted"]);
}

#[test]
fn a_socket_without_a_path_is_rejected() {
    use std::os::linux::net::SocketAddrExt;

    let dir = TempDir::new().unwrap();
    let name = dir.path().as_os_str().as_encoded_bytes();
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
    let socket = OwnedFd::from(UnixListener::bind_addr(&address).unwrap());
    let config = config(&dir, "exit 0", Duration::from_secs(60));
    let child = command_with(&dir, &config).stdin(Stdio::from(socket)).spawn().unwrap();
    let mut runner = Runner { child, dir };
    assert_eq!(runner.wait().code(), Some(1));
    assert!(runner.lines("stderr").iter().any(|line| line.contains("has no path")));
}

#[test]
fn without_a_socket_the_runner_says_what_is_missing() {
    let dir = TempDir::new().unwrap();
    let config = config(&dir, "exit 0", Duration::from_secs(60));
    let child = command_with(&dir, &config).spawn().unwrap();
    let mut runner = Runner { child, dir };
    assert_eq!(runner.wait().code(), Some(1));
    assert!(runner.lines("stderr").iter().any(|line| line.contains("set hook_socket")));
}

/// The processes whose parent is `pid`.
fn children(pid: &str) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// `unshare` that makes what it runs process 1 of a container; none where that is forbidden here.
fn container() -> Option<Command> {
    let command = || {
        let mut command = Command::new("unshare");
        command.args(["-Urpmf", "--mount-proc", "--kill-child"]);
        command
    };
    match command().arg("true").output() {
        Ok(output) if output.status.success() => Some(command()),
        _ => None,
    }
}

#[test]
fn as_process_1_of_a_container_it_reaps_orphans_and_counts_none_as_living() {
    let Some(mut container) = container() else {
        return eprintln!("skipped: no process namespaces here");
    };
    let dir = TempDir::new().unwrap();
    // Of term 1 an orphan stays behind for a while; that of term 2 has to be ended.
    let hook = "if [ $LANELECT_TERM = 1 ]; then sh -c 'sleep 0.3 & exit 0'; exit 0; fi; \
                sh -c 'sleep 100 & exit 0'; echo >> $DIR/runs; exec sleep 100";
    let runner = command(&dir, hook, Duration::from_secs(3));
    container.arg(runner.get_program()).args(runner.get_args());
    container.env("LANELECT_LOG", "debug").stdin(Stdio::null());
    container.stderr(File::create(dir.path().join("stderr")).unwrap());
    let child = container.spawn().unwrap();
    let runner = Runner { child, dir };
    wait_for("the socket", || UnixStream::connect(runner.socket()).ok());
    let process_1 = children(&runner.child.id().to_string()).remove(0);

    runner.ask(elected(1)).finished();
    wait_for("the orphan's end", || children(&process_1).is_empty().then_some(()));

    let finished = runner.ask(demoted(2)).finished();
    assert_eq!((finished.exit, finished.forced), (Some(128 + 15), Some(Forced::Overran)));
    assert_eq!(runner.lines("runs").len(), 1);
    let log = runner.lines("stderr");
    assert!(!log.iter().any(|line| line.contains("sending SIGKILL")), "{log:?}");
    assert!(children(&process_1).is_empty());
}
