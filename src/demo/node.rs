//! One daemon of the demo: its process, and what can be seen of it from outside.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::Sender;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::launch::{self, CONFIG, LOG};
use super::story::{Chapter, HookLine, Story};
use super::{ALIVE_THRESHOLD, DemoError, ELECTION_DURATION, HEARTBEAT_INTERVAL};
use crate::client::{self, ClientError, Target};
use crate::control_api::{StatusReport, Transition};
use crate::core::hook::Reason;
use crate::os::clock;
use crate::time::Time;
use crate::types::{Role, Term};

/// Longest path of a Unix socket, in bytes.
pub(super) const SOCKET_PATH_MAX: usize = 107;

const SOCKET: &str = "control.sock";
const HOOK_LOG: &str = "hooks.log";

/// How much of the end of a log is read, in bytes, and how many lines of that are shown.
const LOG_TAIL: u64 = 8 * 1024;
const LOG_LINES: usize = 8;

/// A node's leadership.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reign {
    /// Who leads, as its index on the stage.
    pub(super) node: usize,
    /// Under which term.
    pub(super) term: Term,
    /// When the demo learnt of it.
    pub(super) at: Time,
}

/// What a daemon told its watchers: that it leads, and why.
pub(super) type Sighting = (Reign, Option<Reason>);

/// One daemon, running or not. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Node {
    /// Its node id.
    pub(super) name: &'static str,
    /// What its hooks saw.
    pub(super) story: Story,
    directory: PathBuf,
    target: Target,
    /// What the daemon last said of itself.
    said: Option<StatusReport>,
    process: Option<Child>,
    /// Whether it was asked to end, so that its end is no surprise.
    stopping: bool,
    watched: bool,
    hook_lines_read: usize,
}

impl Node {
    /// Prepares the daemon of `name` in its own directory within `parent`, ready to start.
    ///
    /// # Errors
    ///
    /// Where its files cannot be made, or its socket would not find room in `parent`.
    pub(super) fn prepare(
        name: &'static str,
        parent: &Path,
        group: &str,
        multicast: SocketAddr,
    ) -> Result<Node, DemoError> {
        let directory = parent.join(name);
        let socket = directory.join(SOCKET);
        if socket.as_os_str().as_bytes().len() > SOCKET_PATH_MAX {
            return Err(DemoError::PathTooLong(socket.display().to_string()));
        }
        DirBuilder::new()
            .create(&directory)
            .and_then(|()| fs::write(directory.join(CONFIG), config(name, group, multicast)))
            .and_then(|()| File::create(directory.join(HOOK_LOG)).map(drop))
            .map_err(DemoError::system(format!("make {name}'s files in {}", parent.display())))?;
        Ok(Node {
            name,
            story: Story::default(),
            directory,
            target: Target::at(socket),
            said: None,
            process: None,
            stopping: false,
            watched: false,
            hook_lines_read: 0,
        })
    }

    /// Starts the daemon, from the main thread: it dies with the thread that started it.
    pub(super) fn start(&mut self) -> io::Result<()> {
        self.process = Some(launch::spawn(&self.directory)?);
        (self.said, self.stopping, self.watched) = (None, false, false);
        Ok(())
    }

    /// Ends the daemon by SIGKILL and waits until it is gone.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        process.kill()?;
        process.wait().map(drop)
    }

    /// Asks the daemon to end, by SIGTERM.
    pub(super) fn terminate(&mut self) -> io::Result<()> {
        self.stopping = true;
        let Some(process) = &self.process else { return Ok(()) };
        // Not yet waited for, so the id is still this process's own.
        let pid = i32::try_from(process.id()).map_err(io::Error::other)?;
        Ok(kill(Pid::from_raw(pid), Signal::SIGTERM)?)
    }

    /// Whether there is a process.
    pub(super) const fn is_running(&self) -> bool {
        self.process.is_some()
    }

    /// Takes note where the daemon has ended.
    ///
    /// # Errors
    ///
    /// Where it ended unasked, or not well.
    pub(super) fn poll_end(&mut self) -> Result<(), DemoError> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let doing = format!("wait for {}", self.name);
        let Some(status) = process.try_wait().map_err(DemoError::system(doing))? else {
            return Ok(());
        };
        self.process = None;
        if self.stopping && status.success() {
            return Ok(());
        }
        Err(DemoError::DaemonEnded { node: self.name, status })
    }

    /// What the daemon says of itself; none where it does not answer (yet). A daemon that hangs
    /// takes [`client::TIMEOUT`] not to.
    pub(super) fn status(&mut self) -> Option<&StatusReport> {
        let mut answer = Vec::new();
        client::status(&self.target, true, &mut answer).ok()?;
        self.said = serde_json::from_slice(&answer).ok();
        self.said.as_ref()
    }

    /// What it last said, for people.
    pub(super) fn last_words(&self) -> String {
        let name = self.name;
        match &self.said {
            _ if !self.is_running() => format!("{name} has ended"),
            None => format!("{name} never answered"),
            Some(said) => match &said.leader {
                None => format!("{name} was {} without a leader", said.role),
                Some(leader) => format!("{name} was {} under {}", said.role, leader.node_id),
            },
        }
    }

    /// From now on, what makes this node the leader goes to `sightings`. Does nothing the second
    /// time. The thread behind it ends with the daemon.
    pub(super) fn watch(&mut self, node: usize, sightings: &Sender<Sighting>) {
        if self.watched {
            return;
        }
        self.watched = true;
        let (target, sightings) = (self.target.clone(), sightings.clone());
        thread::spawn(move || {
            let mut lines = Lines { node, sightings, text: Vec::new() };
            // It ends where the daemon does; should it end otherwise, the statuses still tell.
            let _ = client::watch(&target, true, &mut lines);
        });
    }

    /// Asks the daemon to give its leadership up.
    pub(super) fn yield_leadership(&self) -> Result<(), ClientError> {
        client::yield_leadership(&self.target, &mut io::sink()).map(drop)
    }

    /// The hooks' runs since the last time, which are now part of the story.
    ///
    /// # Errors
    ///
    /// Where their log cannot be read or holds something else.
    pub(super) fn poll_hooks(&mut self) -> io::Result<Vec<HookLine>> {
        let log = fs::read_to_string(self.directory.join(HOOK_LOG))?;
        // A line without its end is still being written.
        let lines = log.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let runs = lines
            .skip(self.hook_lines_read)
            .map(|line| HookLine::parse(line).ok_or_else(|| garbled(line)))
            .collect::<io::Result<Vec<HookLine>>>()?;
        self.hook_lines_read += runs.len();
        runs.iter().for_each(|run| self.story.push(Chapter::Hook(run.event)));
        Ok(runs)
    }

    /// The last lines that the daemon printed.
    pub(super) fn log_tail(&self) -> io::Result<String> {
        let mut log = File::open(self.directory.join(LOG))?;
        let length = log.metadata()?.len();
        log.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL)))?;
        let mut end = Vec::new();
        log.take(LOG_TAIL).read_to_end(&mut end)?;
        let end = String::from_utf8_lossy(&end);
        let lines: Vec<&str> = end.lines().collect();
        let shown = lines.iter().skip(lines.len().saturating_sub(LOG_LINES));
        Ok(shown.map(|line| format!("  {line}\n")).collect())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Should it fail, the kernel ends the daemon together with the demo.
        let _ = self.kill();
    }
}

/// Takes what `client::watch` prints, and passes it on.
struct Lines {
    node: usize,
    sightings: Sender<Sighting>,
    text: Vec<u8>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Comes after every line.
    fn flush(&mut self) -> io::Result<()> {
        let Transition { role, term, reason, .. } = serde_json::from_slice(&self.text)?;
        self.text.clear();
        if role != Role::Leader {
            return Ok(());
        }
        let reign = Reign { node: self.node, term, at: clock::now() };
        self.sightings.send((reign, reason)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

fn garbled(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a line of the hook: {line:?}"))
}

/// Paths are relative to the daemon's directory, which is its working directory and its hooks', so
/// that nothing has to be quoted.
fn config(name: &str, group: &str, multicast: SocketAddr) -> String {
    let [heartbeat, threshold, election] =
        [HEARTBEAT_INTERVAL, ALIVE_THRESHOLD, ELECTION_DURATION].map(|time| time.as_millis());
    format!(
        r#"# A daemon of `lanelect demo`.
group = "{group}"
node_id = "{name}"
interface = ["lo"]
multicast = "{multicast}"
heartbeat_interval = "{heartbeat}ms"
leader_alive_threshold = "{threshold}ms"
leader_election_duration = "{election}ms"
state_dir = "state"
socket = "{SOCKET}"
hook = '''echo "$LANELECT_EVENT $LANELECT_REASON $LANELECT_TERM" >>{HOOK_LOG}'''
"#
    )
}

#[cfg(test)]
mod tests {
    use crate::config::{ConfigSource, Overrides};
    use crate::core::hook::HookEvent;

    use super::*;

    fn node(parent: &Path) -> Node {
        Node::prepare("alpha", parent, "demo-1", "239.255.0.1:7700".parse().unwrap()).unwrap()
    }

    #[test]
    fn the_daemon_reads_its_config_and_has_only_the_loopback() {
        let home = tempfile::tempdir().unwrap();
        let node = node(home.path());
        let source = ConfigSource {
            file: Some(node.directory.join(CONFIG)),
            overrides: Overrides::default(),
        };
        let config = source.load().unwrap();
        assert_eq!(config.interfaces, ["lo"]);
        assert_eq!(config.group.as_str(), "demo-1");
        assert_eq!(config.node_id.as_str(), "alpha");
        assert_eq!(config.multicast.to_string(), "239.255.0.1:7700");
        assert_eq!(config.election.heartbeat_interval, HEARTBEAT_INTERVAL);
        assert_eq!(config.election.leader_alive_threshold, ALIVE_THRESHOLD);
        assert_eq!(config.election.leader_election_duration, ELECTION_DURATION);
        assert_eq!(node.directory.join(config.socket), node.target.socket());
    }

    #[test]
    fn hooks_are_read_once_each_and_only_when_written_whole() {
        let home = tempfile::tempdir().unwrap();
        let mut node = node(home.path());
        let log = node.directory.join(HOOK_LOG);
        assert_eq!(node.poll_hooks().unwrap(), []);
        fs::write(&log, "started startup 0\nelected elec").unwrap();
        assert_eq!(node.poll_hooks().unwrap().len(), 1);
        assert_eq!(node.story.leads(), Some(false));
        fs::write(&log, "started startup 0\nelected election 1\n").unwrap();
        let runs = node.poll_hooks().unwrap();
        assert_eq!(runs.iter().map(|run| run.event).collect::<Vec<_>>(), [HookEvent::Elected]);
        assert_eq!(node.story.leads(), Some(true));
        fs::write(&log, "started startup 0\nelected election 1\nnonsense\n").unwrap();
        assert!(node.poll_hooks().is_err());
    }

    #[test]
    fn a_log_shows_its_last_lines() {
        let home = tempfile::tempdir().unwrap();
        let node = node(home.path());
        let long: String = (0..5000).map(|n| format!("line {n}\n")).collect();
        fs::write(node.directory.join(LOG), long).unwrap();
        let tail = node.log_tail().unwrap();
        assert_eq!(tail.lines().count(), LOG_LINES);
        assert!(tail.ends_with("  line 4999\n"), "{tail}");
    }

    #[test]
    fn a_path_that_leaves_no_room_for_the_socket_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let parent = home.path().join("x".repeat(SOCKET_PATH_MAX));
        let multicast = "239.255.0.1:7700".parse().unwrap();
        let error = Node::prepare("alpha", &parent, "demo-1", multicast).unwrap_err();
        assert!(matches!(error, DemoError::PathTooLong(_)), "{error}");
    }
}
