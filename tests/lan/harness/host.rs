//! One host: a network namespace, its cables, and the daemon that runs on it.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use lanelect::client::Target;
use lanelect::commands;
use nix::libc::O_NONBLOCK;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo, sethostname};
use serde_json::Value;

use super::carrier::Carrier;
use super::forge::GROUP;
use super::inside::Inside;
use super::journal::{self, Fault, Journal};
use super::patience::{wait_for, wait_until};
use super::stuck::{self, Stuck};
use super::switch::Switch;
use super::usage::GIVE_BACK;

const LANELECT: &str = env!("CARGO_BIN_EXE_lanelect");

/// What every daemon runs with, unless a test says otherwise. The threshold is wider than the
/// derived one, and who starts listens for longer, so that a loaded machine's stalls are no
/// silence.
const SETTINGS: &str = "\
    heartbeat_interval = \"100ms\"\n\
    leader_alive_threshold = \"2s\"\n\
    membership_sample_interval = \"500ms\"\n";

/// Variables by which a service manager or a user would change how a daemon behaves.
const FOREIGN_VARIABLES: [&str; 7] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "JOURNAL_STREAM",
    "RUNTIME_DIRECTORY",
    "RUST_LOG",
    "SERVICE_RESULT",
    "MAINPID",
];

/// The binary, which goes by nothing of this process's surroundings.
fn lanelect() -> Command {
    let mut command = Command::new(LANELECT);
    for variable in FOREIGN_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// A log that is full and not read.
pub(crate) struct UnreadLog(File);

impl UnreadLog {
    /// Reads all that is in it.
    pub(crate) fn read(mut self) -> String {
        let mut log = Vec::new();
        // It ends where there is nothing more, but is not closed.
        let _ = self.0.read_to_end(&mut log);
        String::from_utf8(log).unwrap()
    }
}

/// What `lanelect status --json` prints for the daemon at this socket; null while it cannot be
/// reached. The question is asked without a process of its own, because the tests ask it all the
/// time.
pub(crate) fn status_at(socket: impl Into<PathBuf>) -> Value {
    let mut text = Vec::new();
    match commands::status(&Target::at(socket), true, &mut text) {
        Ok(_) => serde_json::from_slice(&text).unwrap(),
        Err(_) => Value::Null,
    }
}

/// Makes a named pipe that is full, and stays so until it is read.
pub(crate) fn full_pipe(path: &Path) -> File {
    mkfifo(path, Mode::S_IRWXU).unwrap();
    let mut options = OpenOptions::new();
    let mut pipe = options.read(true).write(true).custom_flags(O_NONBLOCK).open(path).unwrap();
    while pipe.write(b"x").is_ok() {}
    pipe
}

fn free_hooks(host: &str, journal: &Journal, stuck: &Stuck) {
    if stuck.release() > 0 {
        journal.note(host, "freed");
    }
}

/// A host named `hN`, with an interface `ethK` on each network K.
pub(crate) struct Host {
    /// N, from 1.
    pub(crate) number: usize,
    /// `hN`, also the hostname and the node id.
    pub(crate) name: String,
    /// How many hosts the scenario has.
    of: usize,
    pub(super) dir: PathBuf,
    networks: Rc<[Switch]>,
    pub(super) journal: Journal,
    inside: Rc<Inside>,
    /// What daemons of this host are started with besides the usual.
    variables: RefCell<Vec<(&'static str, PathBuf)>>,
    daemon: RefCell<Option<Child>>,
    last_status: RefCell<Value>,
}

impl Host {
    /// Makes the namespace of one of so many hosts, and plugs it into every network. Its files go
    /// into a directory of its name in `dir`.
    pub(crate) fn new(
        (number, of): (usize, usize),
        dir: &Path,
        networks: Rc<[Switch]>,
        journal: Journal,
        inside: Rc<Inside>,
    ) -> Host {
        let name = format!("h{number}");
        let dir = dir.join(&name);
        fs::create_dir(&dir).unwrap();
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        let host = Host {
            number,
            name,
            of,
            dir,
            networks,
            journal,
            inside,
            variables: RefCell::default(),
            daemon: RefCell::default(),
            last_status: RefCell::default(),
        };
        for network in 0..host.networks.len() {
            host.recreate_interface(network);
        }
        host
    }

    // The daemon.

    /// Starts the daemon with these config lines besides, or instead of, the usual ones.
    pub(crate) fn start(&self, lines: &str) {
        self.configure(lines);
        self.restart();
    }

    /// Writes the config file that [`Host::start`] would start with.
    pub(crate) fn configure(&self, lines: &str) {
        self.write_config(&self.config(lines));
    }

    /// Writes the config file as it is given.
    pub(crate) fn write_config(&self, text: &str) {
        fs::write(self.dir.join("config.toml"), text).unwrap();
    }

    /// The config file of [`Host::configure`].
    pub(crate) fn config(&self, lines: &str) -> String {
        let interfaces: Vec<_> = (0..self.networks.len()).map(|n| format!("eth{n}")).collect();
        let mut config: toml::Table = SETTINGS.parse().unwrap();
        config.insert("node_id".into(), self.name.clone().into());
        config.insert("interface".into(), interfaces.into());
        config.insert("state_dir".into(), self.path("state").into());
        config.insert("socket".into(), self.path("control.sock").into());
        config.insert("hook".into(), self.journal.hook(&self.name).into());
        let lines: toml::Table = lines.parse().unwrap();
        if Carrier::chosen() != Carrier::Multicast {
            config.insert("peers".into(), self.all_as_peers().into());
        }
        if Carrier::chosen() == Carrier::Peers {
            config.insert("multicast".into(), "none".into());
        }
        config.extend(lines);
        if config.get("multicast").is_some_and(|multicast| multicast.as_str() == Some("none")) {
            config.remove("interface");
        }
        if config.get("peers").is_some_and(|peers| peers.as_array().is_some_and(Vec::is_empty)) {
            config.remove("peers");
        }
        config.to_string()
    }

    /// Every host of the scenario, by all its addresses. A lone one has a second host listed that
    /// is not there: a list of itself alone would be none.
    fn all_as_peers(&self) -> Vec<String> {
        let networks = 0..self.networks.len();
        let addresses = |host| networks.clone().map(move |network| address(network, host));
        (1..=self.of.max(2)).flat_map(addresses).collect()
    }

    /// Starts the daemon with the config file as it is, after stopping it where it runs.
    pub(crate) fn restart(&self) {
        if self.is_running() {
            assert_eq!(self.stop(), Some(0), "{} did not stop in order", self.name);
        }
        self.journal.note(&self.name, "boot");
        *self.daemon.borrow_mut() = Some(self.spawn_daemon());
    }

    /// Whether a daemon was started and its end not yet collected.
    pub(crate) fn is_running(&self) -> bool {
        self.daemon.borrow().is_some()
    }

    /// Whether its daemon has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        let mut daemon = self.daemon.borrow_mut();
        daemon.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Sends SIGTERM and returns the exit status.
    pub(crate) fn stop(&self) -> Option<i32> {
        self.terminate();
        self.exit_status()
    }

    /// Ends the daemon without warning.
    pub(crate) fn crash(&self) {
        self.signal(Signal::SIGKILL);
        self.exit_status();
        self.journal.note(&self.name, "crash");
    }

    /// Kills a daemon of which a thread waits in the kernel, and so does not end.
    pub(crate) fn crash_without_end(&self) {
        self.signal(Signal::SIGKILL);
        self.journal.note(&self.name, "crash");
        let stat = format!("/proc/{}/stat", self.started_pid().unwrap());
        wait_until("its first thread has ended", || {
            fs::read_to_string(&stat).unwrap().contains(") Z ")
        });
    }

    /// Has the daemon stop, and does not wait for its hook; returns the exit status.
    pub(crate) fn stop_impatiently(&self) -> Option<i32> {
        self.signal(Signal::SIGINT);
        wait_until(&format!("{}'s hook runs for demoted", self.name), || {
            let hook = self.status()["hook"].take();
            hook["last_event"] == "demoted" && hook["running"] == true
        });
        self.signal(Signal::SIGINT);
        let status = self.exit_status();
        self.journal.note(&self.name, "crash");
        status
    }

    /// Waits until the daemon has ended; returns its exit status, none where a signal ended it.
    pub(crate) fn exit_status(&self) -> Option<i32> {
        let status = wait_for(&format!("{}'s daemon ends", self.name), || {
            self.daemon.borrow_mut().as_mut().unwrap().try_wait().unwrap()
        });
        *self.daemon.borrow_mut() = None;
        status.code()
    }

    /// Stops the daemon's process where it stands; it does not notice.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets the paused process go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Makes the daemon read its config file again.
    pub(crate) fn reload(&self) {
        self.signal(Signal::SIGHUP);
    }

    /// The daemon's log, with all that it has said by now, which a thread of it writes; empty where
    /// it is an [`UnreadLog`].
    pub(crate) fn log(&self) -> String {
        wait_until("the log is written", || self.has_ended() || !self.is_writing_log());
        self.written_log()
    }

    fn written_log(&self) -> String {
        let log = self.dir.join("log");
        if log.is_file() { fs::read_to_string(log).unwrap_or_default() } else { String::new() }
    }

    /// Makes the log of the daemon that starts next a pipe that is full.
    pub(crate) fn stop_reading_log(&self) -> UnreadLog {
        UnreadLog(full_pipe(&self.dir.join("log")))
    }

    // What the daemon says.

    /// What the test saw last of this host, for people.
    pub(crate) fn report(&self) -> String {
        let status = self.last_status.borrow();
        format!("--- {}: last status seen\n{status}\n--- log\n{}", self.name, self.written_log())
    }

    /// What `lanelect status --json` prints; null while the daemon cannot be reached. Panics where
    /// it died.
    pub(crate) fn status(&self) -> Value {
        self.assert_alive();
        let status = status_at(self.path("control.sock"));
        self.last_status.replace(status.clone());
        status
    }

    /// The status' role; empty while the daemon cannot be reached.
    pub(crate) fn role(&self) -> String {
        self.status()["role"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether the status shows the role leader.
    pub(crate) fn leads(&self) -> bool {
        self.role() == "leader"
    }

    /// Whether the status shows `other` as the leader.
    pub(crate) fn follows(&self, other: &Host) -> bool {
        let status = self.status();
        status["role"] == "follower" && status["leader"]["node_id"] == other.name.as_str()
    }

    /// How many votes it counts, its own among them: of a voter in quorum mode.
    pub(crate) fn counted_votes(&self) -> usize {
        self.status()["quorum"]["counting"].as_array().map_or(0, Vec::len)
    }

    /// What is wrong with what carries its datagrams: with its first interface, or with the first
    /// of its peers that has a problem. Empty where nothing is.
    pub(crate) fn carrier_problem(&self) -> String {
        let status = self.status();
        let problem = |carrier: &Value| carrier["problem"].as_str().map(str::to_owned);
        let problem = match Carrier::chosen() {
            Carrier::Peers => status["peers"].as_array().unwrap().iter().find_map(problem),
            _ => problem(&status["interfaces"][0]),
        };
        problem.unwrap_or_default()
    }

    /// Whether it says of all that carries its datagrams that it is not up, and why.
    pub(crate) fn has_no_carrier(&self) -> bool {
        let status = self.status();
        let is_down = |carrier: &Value| carrier["up"] == false && carrier["problem"].is_string();
        match Carrier::chosen() {
            Carrier::Peers => {
                let peers = status["peers"].as_array().unwrap();
                let mut others = peers.iter().filter(|peer| peer["is_self"] == false);
                peers.len() > 1 && others.all(is_down)
            }
            _ => status["interfaces"][0]["name"] == "eth0" && is_down(&status["interfaces"][0]),
        }
    }

    /// Where somebody sends what is for every other host.
    pub(crate) fn others_at(&self) -> Vec<SocketAddr> {
        let carrier = Carrier::chosen();
        let group = (carrier != Carrier::Peers).then_some(SocketAddr::from(GROUP));
        let by_group = |host: &usize| group.is_some() && carrier.delivers_multicast_to(*host);
        let alone = (1..=self.of).filter(|host| *host != self.number && !by_group(host));
        let alone = alone.map(|host| SocketAddr::new(address(0, host).parse().unwrap(), GROUP.1));
        group.into_iter().chain(alone).collect()
    }

    /// Why the node does not stand; empty where it does.
    pub(crate) fn ineligible_reason(&self) -> String {
        self.status()["ineligible_reason"].as_str().unwrap_or_default().to_owned()
    }

    /// One member as this host's status shows it; null where it does not.
    pub(crate) fn member(&self, other: &Host) -> Value {
        let mut status = self.status();
        let members = status["members"].as_array_mut().map(std::mem::take).unwrap_or_default();
        members.into_iter().find(|m| m["node_id"] == other.name.as_str()).unwrap_or_default()
    }

    /// The exit status of a client command, such as `["maintenance", "on"]`.
    pub(crate) fn command(&self, words: &[&str]) -> Option<i32> {
        self.ask(words).status.code()
    }

    /// Starts `lanelect watch --json`.
    pub(crate) fn watch(&self) -> Watch {
        let path = self.dir.join("watch");
        let mut command = Command::new(LANELECT);
        command.args(["watch", "--json", "--socket"]).arg(self.path("control.sock"));
        command.stdin(Stdio::null()).stdout(File::create(&path).unwrap());
        Watch { child: command.spawn().unwrap(), path }
    }

    /// Starts `lanelect hook-runner` with the config file as it is, and waits until it listens on
    /// `hook.sock`.
    pub(crate) fn start_hook_runner(&self) -> HookRunner {
        let log = File::create(self.dir.join("hook-runner.log")).unwrap();
        let mut command = Command::new(LANELECT);
        command.args(["hook-runner", "--config"]).arg(self.dir.join("config.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let runner = HookRunner { child: command.spawn().unwrap() };
        wait_until("the hook-runner listens", || {
            UnixStream::connect(self.dir.join("hook.sock")).is_ok()
        });
        runner
    }

    // Its hooks.

    /// The usual hook, which notes what it is told in the journal.
    pub(crate) fn journal_hook(&self) -> String {
        self.journal.hook(&self.name)
    }

    /// The hook starts so far, as `event reason`.
    pub(crate) fn hooks(&self) -> Vec<String> {
        self.journal.starts(&self.name)
    }

    /// The term of the last hook start.
    pub(crate) fn hook_term(&self) -> u64 {
        self.journal.last_term(&self.name)
    }

    /// Makes each hook from now on last so long.
    pub(crate) fn slow_hooks(&self, seconds: &str) {
        fs::write(self.dir.join("hook-seconds"), seconds).unwrap();
    }

    /// Makes the hook for one event last so long from now on.
    pub(crate) fn slow_hook_on(&self, event: &str, seconds: &str) {
        self.journal.slow_hook_on(&self.name, event, seconds);
    }

    /// Makes the hook fail for one event from now on.
    pub(crate) fn fail_hook_on(&self, event: &str) {
        self.journal.fail_hook_on(&self.name, event);
    }

    /// Gives its hooks a fault from now on, or none.
    pub(crate) fn set_hook_fault(&self, fault: Option<Fault>) {
        self.journal.set_fault(&self.name, fault);
    }

    /// Makes a file on which hooks get stuck; none where that is not possible here.
    pub(crate) fn make_stuck_file(&self) -> Option<Stuck> {
        Stuck::mount_in(&self.dir)
    }

    /// Lets go of hooks that are stuck.
    pub(crate) fn free_hooks(&self, stuck: &Stuck) {
        free_hooks(&self.name, &self.journal, stuck);
    }

    /// Lets go of them again and again until what this returns is dropped.
    pub(crate) fn keep_freeing_hooks(&self, stuck: &Arc<Stuck>, every: Duration) -> Sender<()> {
        let (name, journal, stuck) = (self.name.clone(), self.journal.clone(), Arc::clone(stuck));
        let (until, dropped) = mpsc::channel();
        thread::spawn(move || {
            while dropped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                free_hooks(&name, &journal, &stuck);
            }
        });
        until
    }

    /// Whether no hook runs and the last one fits the role.
    pub(crate) fn hooks_match_role(&self) -> bool {
        let status = self.status();
        let leads = journal::leads(&self.journal.entries(), &self.name);
        status["hook"]["running"] == false && leads == (status["role"] == "leader")
    }

    // Its disk.

    /// Puts the daemon's state on a file system of 64 KiB.
    pub(crate) fn use_tiny_disk(&self) {
        fs::create_dir(self.path("state")).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "none", &self.path("state")]);
        assert!(mount.status().unwrap().success());
    }

    /// Leaves no room on the tiny disk.
    pub(crate) fn fill_disk(&self) {
        let error = fs::write(self.path("state/filler"), vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }

    /// Makes room on it again.
    pub(crate) fn free_disk(&self) {
        fs::remove_file(self.path("state/filler")).unwrap();
    }

    /// Puts the state where nothing answers.
    pub(crate) fn hang_disk(&self) {
        fs::rename(self.path("state"), self.path("state-kept")).unwrap();
        symlink(self.path(stuck::FILE), self.path("state")).unwrap();
    }

    /// Has it answer again.
    pub(crate) fn revive_disk(&self) {
        fs::remove_file(self.path("state")).unwrap();
        fs::rename(self.path("state-kept"), self.path("state")).unwrap();
    }

    /// Leaves a state that no daemon wrote.
    pub(crate) fn damage_state(&self) {
        fs::write(self.path("state/default.state"), "version = 1\nterm = 7\n").unwrap();
    }

    // Its cables.

    /// `10.77.0.N` on network 0, `10.78.0.N` on network 1.
    pub(crate) fn address(&self, network: usize) -> String {
        address(network, self.number)
    }

    /// Takes `eth0` down, as an administrator would.
    pub(crate) fn link_down(&self) {
        ip(&format!("-n {} link set eth0 down", self.name));
    }

    /// Brings `eth0` up again.
    pub(crate) fn link_up(&self) {
        ip(&format!("-n {} link set eth0 up", self.name));
    }

    /// Pulls the cable of `eth0`: the carrier goes, the interface stays up.
    pub(crate) fn unplug(&self) {
        ip(&format!("link set {} down", self.port(0)));
    }

    /// Puts the cable back.
    pub(crate) fn replug(&self) {
        ip(&format!("link set {} up", self.port(0)));
    }

    /// Deletes the interface on a network.
    pub(crate) fn delete_interface(&self, network: usize) {
        ip(&format!("-n {} link del eth{network}", self.name));
    }

    /// Makes the interface on a network, with its addresses, and plugs it in.
    pub(crate) fn recreate_interface(&self, network: usize) {
        let (name, port, eth) = (&self.name, self.port(network), format!("eth{network}"));
        ip(&format!("link add {port} type veth peer name {eth} netns {name}"));
        // No addresses that the kernel makes up: they would be tentative for seconds.
        ip(&format!("link set {port} addrgenmode none up"));
        ip(&format!("-n {name} link set {eth} addrgenmode none"));
        ip(&format!("-n {name} addr add {}/24 dev {eth}", self.address(network)));
        for address in
            [format!("fd{}::{}/64", 77 + network, self.number), format!("fe80::{}/64", self.number)]
        {
            // Not where the machine has no IPv6.
            let _ = try_ip(&format!("-n {name} addr add {address} dev {eth} nodad"));
        }
        // A host whose interface is up is to hear the others at once.
        self.networks[network].plug(self.number, &port);
        ip(&format!("-n {name} link set {eth} up"));
        // Until the kernel has seen to it, an interface that is up loses what it is given.
        for end in [format!("link show {port}"), format!("-n {name} link show {eth}")] {
            wait_until("the cable carries", || ip(&format!("-br {end}")).contains(" UP "));
        }
    }

    /// Replaces the IPv4 address of `eth0`.
    pub(crate) fn change_address(&self, address: &str) {
        ip(&format!("-n {} addr del {}/24 dev eth0", self.name, self.address(0)));
        ip(&format!("-n {} addr add {address}/24 dev eth0", self.name));
    }

    /// Whether the host has IPv6 addresses.
    pub(crate) fn has_ipv6(&self) -> bool {
        try_ip(&format!("-n {} -6 addr show dev eth0", self.name))
            .is_ok_and(|text| !text.is_empty())
    }

    /// Runs `work` on this host: in its network namespace, under its hostname.
    pub(crate) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.name)).unwrap();
        let (inside, name) = (&*self.inside, self.name.as_str());
        let enter = || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            inside.verify_thread().expect("refusing to run outside");
            unshare(CloneFlags::CLONE_NEWUTS).unwrap();
            sethostname(name).unwrap();
            work()
        };
        thread::scope(|scope| scope.spawn(enter).join().unwrap())
    }

    // Helpers.

    fn spawn_daemon(&self) -> Child {
        let log = OpenOptions::new().create(true).append(true).open(self.dir.join("log")).unwrap();
        let mut command = lanelect();
        command.args(["run", "--config"]).arg(self.dir.join("config.toml"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.env(GIVE_BACK.0, GIVE_BACK.1).envs(self.variables.borrow().iter().cloned());
        self.run(|| command.spawn().unwrap())
    }

    /// `lanelect post-stop`, as its unit runs it after the daemon's end; returns its exit status
    /// and log.
    pub(crate) fn post_stop(&self) -> (Option<i32>, String) {
        let mut post_stop = self.begin_post_stop();
        let status = post_stop.child.wait().unwrap();
        (status.code(), post_stop.log())
    }

    /// The same, while the test goes on.
    pub(crate) fn begin_post_stop(&self) -> PostStop {
        let config = self.path("config.toml");
        let arguments = ["post-stop", "--config", &config];
        let log = self.dir.join("post-stop.log");
        let mut command = lanelect();
        // Into a file: a hook that outlives it would keep a pipe open.
        command.args(arguments).stdin(Stdio::null()).stderr(File::create(&log).unwrap());
        PostStop { child: self.run(|| command.spawn().unwrap()), log }
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        self.client(words).output().unwrap()
    }

    /// A command to the daemon.
    pub(crate) fn client(&self, words: &[&str]) -> Command {
        let mut command = Command::new(LANELECT);
        command.args(words).arg("--socket").arg(self.path("control.sock")).stdin(Stdio::null());
        command
    }

    fn assert_alive(&self) {
        let mut daemon = self.daemon.borrow_mut();
        let child = daemon.as_mut().unwrap_or_else(|| panic!("{} runs no daemon", self.name));
        if let Some(status) = child.try_wait().unwrap() {
            panic!("{}'s daemon ended by itself: {status}", self.name);
        }
    }

    fn signal(&self, signal: Signal) {
        kill(self.daemon_pid(), signal).unwrap();
    }

    /// The daemon's process, which must be alive.
    pub(super) fn daemon_pid(&self) -> Pid {
        self.assert_alive();
        self.started_pid().unwrap()
    }

    /// The daemon's process, which may have ended.
    pub(super) fn started_pid(&self) -> Option<Pid> {
        let daemon = self.daemon.borrow();
        daemon.as_ref().map(|daemon| Pid::from_raw(daemon.id().try_into().unwrap()))
    }

    /// Sets a variable for daemons that start from now on.
    pub(super) fn set_variable(&self, name: &'static str, value: &Path) {
        self.variables.borrow_mut().push((name, value.to_owned()));
    }

    /// A file in the host's directory.
    pub(crate) fn path(&self, file: &str) -> String {
        self.dir.join(file).display().to_string()
    }

    /// The far end of the cable on a network.
    pub(crate) fn port(&self, network: usize) -> String {
        format!("n{network}p{}", self.number)
    }
}

fn address(network: usize, number: usize) -> String {
    format!("10.{}.0.{number}", 77 + network)
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A running `lanelect watch --json`.
pub(crate) struct Watch {
    child: Child,
    path: PathBuf,
}

impl Watch {
    /// The transitions so far.
    pub(crate) fn transitions(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.path).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `lanelect post-stop` that may still run.
pub(crate) struct PostStop {
    child: Child,
    log: PathBuf,
}

impl PostStop {
    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Its exit status, once it has ended.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }
}

/// A running `lanelect hook-runner`.
pub(crate) struct HookRunner {
    child: Child,
}

impl Drop for HookRunner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `ip` with these words.
#[track_caller]
pub(crate) fn ip(words: &str) -> String {
    try_ip(words).unwrap_or_else(|error| panic!("ip {words}: {error}"))
}

fn try_ip(words: &str) -> Result<String, String> {
    let mut command = Command::new("ip");
    let output = command.args(words.split_whitespace()).stdin(Stdio::null()).output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
