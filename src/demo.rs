//! `lanelect demo`: a whole election on one machine, with real daemons and nothing to set up.
//!
//! Five processes of this very binary elect a leader over multicast on the loopback. The demo kills
//! the leader, asks the next one to yield, brings the killed one back, and prints what the hooks
//! and the control sockets show. It succeeds only if all of it happened.
//!
//! One loop waits for everything. It reads the one file to which all hooks append, and asks the
//! daemons for their status once the hooks agree on a leader. It asks nothing before, because a
//! question wakes a daemon and so would disturb what the demo measures.
//!
//! Nothing outlives the demo: however it ends, it ends the daemons and removes their files. Only
//! SIGKILL leaves files behind, in the temporary directory; then the kernel ends the daemons. For
//! this, each daemon starts as a demo with `ORDER` set, which asks the kernel for a signal when
//! its parent dies. The request survives `exec`.

use std::env;
use std::fmt::Display;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};
use signal_hook_mio::v1_0::Signals;

use crate::client::Target;
use crate::commands;
use crate::os::clock;
use crate::os::notify::NOT_INHERITED;
use crate::time::Time;

const NAMES: [&str; 5] = ["alpha", "beta", "gamma", "delta", "epsilon"];

/// Between the leader's declarations.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(200);

/// Silence after which the leader counts as gone. Short, for a quick failover; longer than the
/// default for the interval, because a busy machine must not make a live leader silent.
const ALIVE_THRESHOLD: Duration = Duration::from_secs(1);

/// How long an election waits for the best candidate, which a busy machine may hold up as well.
const ELECTION_DURATION: Duration = Duration::from_millis(500);

/// Time limit for everything together.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Between looks at the hooks, and so how exact the printed times are.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Signals that end the demo in an orderly way.
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Set only for a process that must become a daemon: the demo's process id and the node's name.
const ORDER: &str = "LANELECT_DEMO_ORDER";

/// The file to which all hooks append `NODE EVENT REASON TERM`.
const HOOK_LOG: &str = "hooks.log";

/// Longest path of a Unix socket, in bytes.
const SOCKET_PATH_MAX: usize = 107;

/// How many lines at the end of a daemon's log are shown.
const LOG_LINES: usize = 8;

/// In a node's story: its daemon was killed.
const KILLED: &str = "(killed)";

/// Performs the demo on stdout. If not everything happened that belongs to it, reports on stderr
/// what was missing, and fails.
pub fn run() -> ExitCode {
    let result = match env::var(ORDER) {
        Ok(order) => become_daemon(&order),
        Err(_) => Demo::prepare().and_then(|mut demo| demo.perform()),
    };
    let Err(error) = result else { return ExitCode::SUCCESS };
    // If even stderr is gone, the exit status still tells.
    let _ = writeln!(io::stderr(), "lanelect demo: {error}");
    ExitCode::FAILURE
}

/// Something did not happen as it should.
fn failed(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

fn cannot<E: Display>(doing: impl Display) -> impl FnOnce(E) -> io::Error {
    move |error| failed(format!("cannot {doing}: {error}"))
}

/// One daemon, running or not.
#[derive(Debug, Default)]
struct Node {
    name: &'static str,
    /// The events that its hook ran for, and [`KILLED`], in order.
    story: Vec<String>,
    /// When the demo saw that its hook had run for `elected`, the last time.
    elected: Time,
    process: Option<Child>,
    /// Whether the demo asked the daemon to end.
    stopping: bool,
}

impl Node {
    /// Adds a run of the hook to the story. Returns whether the hook may run for `event` here:
    /// `started` comes only first in a life; `elected`, any number of `reaffirmed`, and `demoted`
    /// alternate.
    fn note_hook(&mut self, event: &str) -> bool {
        let allowed = match self.story.last().map(String::as_str) {
            None | Some(KILLED) => ["started", "elected"],
            Some("started" | "demoted") => ["elected"; 2],
            Some(_) => ["reaffirmed", "demoted"],
        };
        self.story.push(event.to_owned());
        allowed.contains(&event)
    }

    /// Whether its last hook made this node the leader; none if no hook has run in this life.
    fn leads(&self) -> Option<bool> {
        let last = self.story.last().filter(|event| *event != KILLED)?;
        Some(last == "elected" || last == "reaffirmed")
    }

    /// Ends the daemon by SIGKILL and waits until it is gone.
    fn kill(&mut self) -> io::Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        process.kill()?;
        process.wait().map(drop)
    }

    /// Asks the daemon to end, by SIGTERM.
    fn terminate(&mut self) -> io::Result<()> {
        self.stopping = true;
        let Some(process) = &self.process else { return Ok(()) };
        // Not yet waited for, so the id is still this process's own.
        let pid = i32::try_from(process.id()).map_err(io::Error::other)?;
        Ok(kill(Pid::from_raw(pid), Signal::SIGTERM)?)
    }
}

/// The daemons and their files. Dropping it ends the daemons and removes the files.
struct Demo {
    directory: PathBuf,
    group: String,
    multicast: SocketAddr,
    nodes: [Node; NAMES.len()],
    /// What the hooks write, and what of it has no end yet.
    hooks: File,
    unfinished: String,
    signals: Signals,
    start: Time,
}

impl Drop for Demo {
    fn drop(&mut self) {
        // If this fails, the kernel ends the daemons together with the demo; the files stay.
        self.nodes.iter_mut().for_each(|node| drop(node.kill()));
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Demo {
    fn prepare() -> io::Result<Demo> {
        let signals = Signals::new(SIGNALS.map(|signal| signal as i32));
        let signals = signals.map_err(cannot("handle signals"))?;
        let (start, group) = (clock::now(), format!("demo-{}", process::id()));
        let multicast = unused_multicast().map_err(cannot("find a free UDP port"))?;
        // With the time, because a demo that was killed may have left a directory of this id.
        let directory = env::temp_dir().join(format!("lanelect-{group}-{}", start.as_nanos()));
        let hooks = make(&directory).map_err(cannot(format!("make {}", directory.display())))?;
        let nodes = NAMES.map(|name| Node { name, ..Node::default() });
        let unfinished = String::new();
        Ok(Demo { directory, group, multicast, nodes, hooks, unfinished, signals, start })
    }

    fn perform(&mut self) -> io::Result<()> {
        let played = self.play();
        // The logs explain neither a signal nor a stdout that is closed.
        if played.as_ref().is_err_and(|error| error.kind() == ErrorKind::Other) {
            for name in NAMES {
                let tail = log_tail(&self.file(name, "log"));
                // The failure itself is reported all the same.
                let _ = write!(io::stderr(), "The last lines of {name}'s log:\n{tail}");
            }
        }
        played
    }

    fn play(&mut self) -> io::Result<()> {
        let (group, multicast) = (&self.group, self.multicast);
        let heartbeat = HEARTBEAT_INTERVAL.as_millis();
        print(&format!(
            "Group {group} at {multicast} on lo, a heartbeat every {heartbeat} ms\n\n"
        ))?;
        let begun =
            self.tell("demo", "starts five daemons on the loopback, which elect a leader")?;
        (0..NAMES.len()).try_for_each(|node| self.start(node))?;
        let (first, election) = self.await_leader("all", begun)?;

        let killed = NAMES[first];
        let what = format!("kills {killed} (kill -9): no farewell, only silence");
        let begun = self.tell("demo", what)?;
        self.nodes[first].kill().map_err(cannot(format!("kill {killed}")))?;
        // What its hooks wrote before belongs to the life that ended.
        self.read_hooks()?;
        self.nodes[first].story.push(KILLED.to_owned());
        let (second, takeover) = self.await_leader("others", begun)?;

        let name = NAMES[second];
        let what = format!("asks {name} to yield: its hook ends before the next begins");
        let begun = self.tell("demo", what)?;
        let target = Target::at(self.file(name, "sock"));
        let asked = commands::yield_leadership(&target, None, &mut io::sink());
        asked.map_err(cannot(format!("make {name} yield")))?;
        let (third, handover) = self.await_leader("others", begun)?;

        let leader = NAMES[third];
        let begun = self.tell("demo", format!("starts {killed} again"))?;
        self.start(first)?;
        let unmoved = |demo: &Demo| demo.nodes.iter().all(|node| node.elected < begun);
        let back = |demo: &Demo| demo.settled(Time::ZERO).filter(|_| unmoved(demo));
        self.until("the killed leader back as a follower", back)?;
        let what = format!("follows {leader}: no takeover without reason");
        let comeback = self.tell(killed, what)?.since(begun).as_millis();

        self.tell("demo", format!("stops them all (SIGTERM), {leader} last"))?;
        self.stop("the end of the followers", |name| name != leader)?;
        self.stop("the end of the leader, after its hook", |_| true)?;
        self.tell("all", "ended with status 0")?;

        let (silence, exact) = (ALIVE_THRESHOLD.as_millis(), POLL_INTERVAL.as_millis());
        let hooks = self.stories();
        print(&format!(
            "
election  {election:>5} ms  from the start of the daemons until the leader's hook ran
takeover  {takeover:>5} ms  from the kill until the next leader's hook ran
handover  {handover:>5} ms  from the request to yield until the next leader's hook ran
comeback  {comeback:>5} ms  from the restart until all report the same leader

Looked at every {exact} ms. A leader counts as gone {silence} ms after its last heartbeat.

Hooks, which alternate on every node:
{hooks}
All of it was seen to happen. Now on real hosts: lanelect run --help
"
        ))
    }

    fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.directory.join(name).with_extension(extension)
    }

    fn start(&mut self, node: usize) -> io::Result<()> {
        let name = NAMES[node];
        let process = self.spawn(name).map_err(cannot(format!("start {name}")))?;
        self.nodes[node].process = Some(process);
        Ok(())
    }

    /// Starts a daemon, from the main thread: it dies with the thread that started it.
    fn spawn(&self, name: &str) -> io::Result<Child> {
        fs::write(self.file(name, "toml"), config(name, &self.group, self.multicast))?;
        let log = File::options().create(true).append(true).open(self.file(name, "log"))?;
        let mut command = command(&env::current_exe()?, name);
        command.current_dir(&self.directory).stdout(log.try_clone()?).stderr(log).spawn()
    }

    /// Asks the daemons that `which` selects to end, and waits until they have, as followers.
    fn stop(&mut self, what: &str, which: impl Fn(&str) -> bool) -> io::Result<()> {
        self.nodes.iter_mut().filter(|node| which(node.name)).try_for_each(Node::terminate)?;
        let ended = |node: &Node| node.process.is_none() && node.leads() == Some(false);
        let done = |node: &Node| !which(node.name) || ended(node);
        self.until(what, |demo| demo.nodes.iter().all(done).then_some(()))
    }

    /// Waits until all running daemons agree on a leader that was elected after `begun`. Returns
    /// it, and after how many milliseconds its hook had run.
    fn await_leader(&mut self, who: &str, begun: Time) -> io::Result<(usize, u128)> {
        let what = "a leader whom all follow and whose hook ran";
        let leader = self.until(what, |demo| demo.settled(begun))?;
        let took = self.nodes[leader].elected.since(begun).as_millis();
        self.tell(who, format!("follow {}; that took {took} ms", NAMES[leader]))?;
        Ok((leader, took))
    }

    /// The leader that was elected after `since`, once the hooks and then the statuses of all
    /// running daemons agree on it.
    fn settled(&self, since: Time) -> Option<usize> {
        let leads = |node: &Node| node.leads() == Some(true) && node.elected > since;
        let leader = self.nodes.iter().position(leads)?;
        let name = NAMES[leader];
        let mut running = self.nodes.iter().filter(|node| node.process.is_some());
        let hooks_agree = running.clone().all(|node| node.leads() == Some(node.name == name));
        let settled = hooks_agree && running.all(|node| self.reports(node, name));
        settled.then_some(leader)
    }

    /// Whether the daemon reports this leader. One that hangs takes
    /// [`TIMEOUT`](crate::client::TIMEOUT) not to.
    fn reports(&self, node: &Node, leader: &str) -> bool {
        let status = Target::at(self.file(node.name, "sock")).status();
        let reported = status.ok().and_then(|report| report.leader);
        reported.is_some_and(|reported| reported.node_id.as_str() == leader)
    }

    /// Prints what happens until `found` finds what the demo waits for.
    #[expect(clippy::disallowed_methods, reason = "the demo has no event loop")]
    fn until<T>(&mut self, what: &str, found: impl Fn(&Demo) -> Option<T>) -> io::Result<T> {
        let deadline = self.start + TIME_LIMIT;
        loop {
            if let Some(Ok(signal)) = self.signals.pending().map(Signal::try_from).next() {
                let what = format!("stopped by {signal}; the daemons have ended and their files");
                return Err(io::Error::new(ErrorKind::Interrupted, what + " are removed"));
            }
            for Node { name, process, stopping, .. } in &mut self.nodes {
                let ended = process.as_mut().map_or(Ok(None), Child::try_wait);
                if let Some(status) = ended.map_err(cannot(format!("wait for {name}")))? {
                    *process = None;
                    if !*stopping || !status.success() {
                        let what = format!("the daemon of {name} ended with {status}");
                        return Err(failed(what + "; its log above says why"));
                    }
                }
            }
            // After the ends: what a hook wrote before its daemon ended is not missed.
            self.read_hooks()?;
            if let Some(found) = found(self) {
                return Ok(found);
            }
            if clock::now() > deadline {
                let (limit, seen) = (TIME_LIMIT.as_secs(), self.stories());
                return Err(failed(format!(
                    "{what} was not seen within {limit} s of the start. The daemons' logs above \
                     may say why; on a very busy machine, try again. The hooks so far:\n{seen}"
                )));
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Prints which hooks have run since the last time.
    fn read_hooks(&mut self) -> io::Result<()> {
        self.hooks.read_to_string(&mut self.unfinished)?;
        while let Some(end) = self.unfinished.find('\n') {
            let line: String = self.unfinished.drain(..=end).collect();
            self.hook_ran(line.trim_end())?;
        }
        Ok(())
    }

    fn hook_ran(&mut self, line: &str) -> io::Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        let node = NAMES.iter().position(|name| *name == words[0]);
        let (Some(node), &[name, event, reason, term]) = (node, &words[..]) else {
            return Err(failed(format!("not a line of the hooks: {line:?}")));
        };
        if !self.nodes[node].note_hook(event) {
            let story = self.nodes[node].story.join(", ");
            return Err(failed(format!("the hooks of {name} ran in the wrong order: {story}")));
        }
        if event == "elected" {
            let what = format!("leads, term {term}; hook: elected ({reason})");
            self.nodes[node].elected = self.tell(name, what)?;
        // Every daemon's first life begins with `started`.
        } else if self.nodes[node].story != ["started"] {
            self.tell(name, format!("hook: {event} ({reason}), term {term}"))?;
        }
        Ok(())
    }

    /// What the hooks of each node ran for, a line each.
    fn stories(&self) -> String {
        let line = |node: &Node| format!("  {:<8} {}\n", node.name, node.story.join(", "));
        self.nodes.iter().map(line).collect()
    }

    /// Prints what `who` does now, and returns when that is.
    fn tell(&self, who: &str, what: impl Display) -> io::Result<Time> {
        let now = clock::now();
        let millis = now.since(self.start).as_millis();
        print(&format!("{millis:>6} ms  {who:<8} {what}\n"))?;
        Ok(now)
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        io::Error::new(ErrorKind::BrokenPipe, format!("cannot write to stdout: {error}"))
    })
}

/// A group's address that no other demo uses, and a port that nobody uses.
///
/// The group's name keeps demos apart even if two get the same; this spares them each other's
/// datagrams.
fn unused_multicast() -> io::Result<SocketAddr> {
    let [_, _, high, low] = process::id().to_be_bytes();
    let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port();
    Ok(SocketAddr::from(([239, 255, high, low], port)))
}

/// The last lines of a daemon's log, indented.
fn log_tail(log: &Path) -> String {
    let log = fs::read(log).unwrap_or_else(|error| format!("no log: {error}").into_bytes());
    let log = String::from_utf8_lossy(&log);
    let hidden = log.lines().count().saturating_sub(LOG_LINES);
    log.lines().skip(hidden).map(|line| format!("  {line}\n")).collect()
}

/// Makes the directory with the hooks' log, and opens that.
fn make(directory: &Path) -> io::Result<File> {
    if directory.join("epsilon.sock").as_os_str().len() > SOCKET_PATH_MAX {
        return Err(failed("its path is too long for a socket; set TMPDIR to a shorter one"));
    }
    DirBuilder::new().mode(0o700).create(directory)?;
    let log = File::options().read(true).append(true).create(true).open(directory.join(HOOK_LOG));
    if log.is_err() {
        // Nothing is in it, and nothing else will remove it.
        let _ = fs::remove_dir(directory);
    }
    log
}

/// Paths are relative to the working directory of daemon and hooks, so nothing has to be quoted.
fn config(name: &str, group: &str, multicast: SocketAddr) -> String {
    format!(
        r#"# A daemon of `lanelect demo`.
group = "{group}"
node_id = "{name}"
interface = ["lo"]
multicast = "{multicast}"
heartbeat_interval = "{HEARTBEAT_INTERVAL:?}"
leader_alive_threshold = "{ALIVE_THRESHOLD:?}"
leader_election_duration = "{ELECTION_DURATION:?}"
state_dir = "{name}.state"
socket = "{name}.sock"
hook = "echo {name} $LANELECT_EVENT $LANELECT_REASON $LANELECT_TERM >>{HOOK_LOG}"
"#
    )
}

/// The demo started once more, to become the daemon `name`.
fn command(lanelect: &Path, name: &str) -> Command {
    let mut command = Command::new(lanelect);
    for variable in NOT_INHERITED {
        command.env_remove(variable);
    }
    command.arg("demo").env(ORDER, format!("{} {name}", process::id())).stdin(Stdio::null());
    // Ctrl-C on a terminal is for the demo, which then ends its daemons itself.
    command.process_group(0);
    command
}

/// Becomes the daemon that [`ORDER`] asks for. Returns only if that fails.
fn become_daemon(order: &str) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    let (demo, name) = order.split_once(' ').unwrap_or_default();
    // The demo may have died before the request was made.
    if getppid().to_string() != demo {
        return Err(failed("the demo that started this daemon has ended"));
    }
    let mut run = Command::new(env::current_exe()?);
    let error = run.args(["run", "--config", &format!("{name}.toml")]).env_remove(ORDER).exec();
    Err(cannot("run the daemon")(error))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::config::{ConfigSource, Overrides};

    #[test]
    fn a_daemon_reads_its_config_and_has_only_the_loopback() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("alpha.toml");
        let multicast = "239.255.0.1:7700".parse().unwrap();
        fs::write(&file, config("alpha", "demo-1", multicast)).unwrap();
        let source = ConfigSource { file: Some(file), overrides: Overrides::default() };
        let config = source.load().unwrap();
        assert_eq!(config.interfaces, ["lo"]);
        assert_eq!(config.group.as_str(), "demo-1");
        assert_eq!(config.node_id.as_str(), "alpha");
        assert_eq!(config.multicast_group(), Some(multicast));
        assert_eq!(config.election.heartbeat_interval, HEARTBEAT_INTERVAL);
        assert_eq!(config.election.leader_alive_threshold, ALIVE_THRESHOLD);
        assert_eq!(config.election.leader_election_duration, ELECTION_DURATION);
        assert_eq!(config.socket, Path::new("alpha.sock"));
    }

    #[test]
    fn a_daemon_does_not_inherit_what_the_service_manager_set_for_the_demo() {
        let command = command(Path::new("lanelect"), "alpha");
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "FDSTORE"] {
            assert!(command.get_envs().any(|set| set == (OsStr::new(name), None)), "{name}");
        }
    }

    /// The node after these events, and whether each was allowed.
    fn play(events: &[&str]) -> (Node, bool) {
        let mut node = Node::default();
        let mut allowed = true;
        for event in events {
            if *event == KILLED {
                node.story.push(KILLED.to_owned());
            } else {
                allowed &= node.note_hook(event);
            }
        }
        (node, allowed)
    }

    #[test]
    fn hooks_alternate_and_a_killed_daemon_begins_anew() {
        for good in [
            &[][..],
            &["started"],
            &["elected"],
            &["started", "elected", "demoted", "elected", "reaffirmed", "reaffirmed", "demoted"],
            &["elected", KILLED, "started"],
            &["elected", KILLED, "elected", "demoted"],
        ] {
            assert!(play(good).1, "{good:?}");
        }
        for bad in [
            &["crowned"][..],
            &["demoted"],
            &["reaffirmed"],
            &["started", "started"],
            &["started", "demoted"],
            &["elected", "elected"],
            &["elected", "started"],
            &["elected", "demoted", "demoted"],
            &["elected", "demoted", "started"],
            &["elected", "demoted", "reaffirmed"],
            &["elected", "reaffirmed", "elected"],
            &["elected", KILLED, "demoted"],
            &["elected", KILLED, "started", "started"],
        ] {
            assert!(!play(bad).1, "{bad:?}");
        }
    }

    #[test]
    fn the_last_hook_tells_which_side_the_host_is_on() {
        for (events, leads) in [
            (&[][..], None),
            (&["elected"], Some(true)),
            (&["elected", "reaffirmed"], Some(true)),
            (&["elected", "demoted"], Some(false)),
            (&["started"], Some(false)),
            (&["elected", KILLED], None),
        ] {
            assert_eq!(play(events).0.leads(), leads, "{events:?}");
        }
    }

    #[test]
    fn a_log_shows_its_last_lines() {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("alpha.log");
        fs::write(&log, (0..5000).map(|n| format!("line {n}\n")).collect::<String>()).unwrap();
        let tail = log_tail(&log);
        assert_eq!(tail.lines().count(), LOG_LINES);
        assert!(tail.ends_with("  line 4999\n"), "{tail}");
        assert!(log_tail(&home.path().join("gone")).starts_with("  no log: "));
    }
}
