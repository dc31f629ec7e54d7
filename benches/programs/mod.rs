//! The programs that are compared, all run and watched in the same way.

mod bell;
mod keepalived;
pub(crate) mod lanelect;
mod ucarp;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, iter, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::inside::Needs;
use crate::harness::patience::{now, pass, wait_for, wait_until};
use crate::harness::{Host, Lan};

pub(crate) use bell::Bell;

/// All of them; what cannot run here is left out by [`available`].
pub(crate) const PROGRAMS: [&dyn Program; 3] =
    [&lanelect::Lanelect, &keepalived::Keepalived, &ucarp::Ucarp];

/// The one that the others are compared with.
pub(crate) const YARDSTICK: &str = "keepalived";

/// Hosts in a group.
pub(crate) const HOSTS: usize = 3;

/// The longest a measurement may take, whatever the options.
const MEASUREMENT_LIMIT: Duration = Duration::from_secs(7200);

/// A program that has one of a group's hosts lead.
pub(crate) trait Program {
    /// As people call it.
    fn name(&self) -> &'static str;

    /// What it says of its version. The error says why it cannot run here.
    fn version(&self) -> Result<String, String>;

    /// Whether it can declare its leader so often.
    fn supports(&self, interval: Duration) -> bool;

    /// Between two declarations of its leader, if nobody sets it.
    fn default_interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// How long it takes by design to replace a leader that was cut off, in intervals: the mean
    /// over all moments within an interval.
    fn takeover(&self) -> f64;

    /// The command that runs it in the foreground, after writing what it reads.
    fn command(&self, seat: &Seat<'_>) -> Command;

    /// The host that leads, where all its hosts agree on it and nothing is under way.
    fn agreed_leader(&self, group: &Group<'_>) -> Option<usize>;

    /// The process that declares the leader, if it is not the one that was started.
    fn speaker(&self, _: &Host) -> Option<Pid> {
        None
    }

    /// Whether a leader can give up leadership without ending.
    fn can_yield(&self) -> bool {
        false
    }

    /// Makes a leader do so.
    fn yield_leadership(&self, leader: &Host) {
        panic!("{} on {} knows no such thing", self.name(), leader.name);
    }
}

/// What is held of a host.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Held {
    /// The process that declares the leader.
    Process,
    /// Everything.
    Host,
}

/// Where one instance of a program runs.
pub(crate) struct Seat<'a> {
    /// Its host.
    pub(crate) host: &'a Host,
    /// The best is 0.
    pub(crate) rank: usize,
    /// Between two declarations of the leader.
    pub(crate) interval: Duration,
    /// What its promotion script is to write to.
    pub(crate) bell: PathBuf,
    /// The addresses of the group's other hosts, if they are reached by unicast alone.
    pub(crate) peers: Vec<String>,
}

impl Seat<'_> {
    /// A promotion script as short as it can be: one process, which writes one line.
    pub(crate) fn script(&self) -> String {
        let (path, name) = (self.host.path("promoted"), &self.host.name);
        let text = format!("#!/bin/sh\necho {name} elected > {}\n", self.bell.display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes its config file; returns the path.
    pub(crate) fn configure(&self, text: &str) -> String {
        let path = self.host.path("bench.conf");
        fs::write(&path, text).unwrap();
        path
    }
}

/// How the hosts of a group reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Multicast,
    /// By unicast to each of the others.
    Peers,
}

/// A program on several hosts. Dropping it ends the program.
pub(crate) struct Group<'a> {
    /// Which program.
    pub(crate) program: &'a dyn Program,
    /// Where it runs, the best first.
    pub(crate) hosts: Vec<&'a Host>,
    /// Between two declarations of the leader.
    pub(crate) interval: Duration,
    /// Rings with every promotion.
    pub(crate) bell: Bell,
    carrier: Carrier,
    daemons: RefCell<Vec<Option<Child>>>,
}

impl<'a> Group<'a> {
    /// Starts the program on all hosts, which reach each other by multicast.
    pub(crate) fn start(
        program: &'a dyn Program,
        hosts: [&'a Host; HOSTS],
        interval: Duration,
    ) -> Group<'a> {
        Group::start_by(Carrier::Multicast, program, &hosts, interval)
    }

    /// Starts the program on all hosts.
    pub(crate) fn start_by(
        carrier: Carrier,
        program: &'a dyn Program,
        hosts: &[&'a Host],
        interval: Duration,
    ) -> Group<'a> {
        let bell = Bell::new(hosts[0].path("bell").into());
        let daemons = RefCell::new(hosts.iter().map(|_| None).collect());
        let hosts = hosts.to_vec();
        let group = Group { program, hosts, interval, bell, carrier, daemons };
        (0..group.hosts.len()).for_each(|host| group.spawn(host));
        group
    }

    /// Waits until the group has one leader, at a uniformly random phase of its interval; returns
    /// the host.
    pub(crate) fn settled_leader(&self) -> usize {
        loop {
            let what = format!("{} has one leader", self.program.name());
            let leader = wait_for(&what, || self.program.agreed_leader(self));
            self.bell.silence();
            pass(self.interval.mul_f64(1.0 + fastrand::f64()));
            // A promotion meanwhile: the group was not settled after all.
            if self.bell.rings().is_empty() {
                return leader;
            }
        }
    }

    /// Cuts the leader off the wire; returns how long it took until the successor's script started.
    pub(crate) fn takeover(&self, lan: &Lan) -> Duration {
        let leader = self.hosts[self.settled_leader()];
        let cut = now();
        lan.cut(leader);
        let successor = self.bell.await_successor(&leader.name);
        lan.heal();
        successor.at - cut
    }

    /// Has the leader end in order; returns how long it took until the successor's script started.
    pub(crate) fn handover(&self) -> Duration {
        let leader = self.settled_leader();
        let told = now();
        self.terminate(leader);
        let successor = self.bell.await_successor(&self.hosts[leader].name);
        self.restart(leader);
        successor.at - told
    }

    /// Kills these processes of a host as one, by SIGKILL; returns when. None of them can react to
    /// the end of another.
    pub(crate) fn kill(&self, processes: &[Pid]) -> Instant {
        processes.iter().for_each(|process| kill(*process, Signal::SIGSTOP).unwrap());
        let killed = now();
        processes.iter().for_each(|process| kill(*process, Signal::SIGKILL).unwrap());
        killed
    }

    /// Holds what a host runs, by SIGSTOP.
    pub(crate) fn hold(&self, host: usize, held: Held) {
        self.send(host, held, Signal::SIGSTOP);
    }

    /// Ends a hold.
    pub(crate) fn release(&self, host: usize, held: Held) {
        self.send(host, held, Signal::SIGCONT);
    }

    fn send(&self, host: usize, held: Held, signal: Signal) {
        let processes = match held {
            Held::Process => vec![
                self.program
                    .speaker(self.hosts[host])
                    .unwrap_or_else(|| pid(self.daemons.borrow()[host].as_ref().unwrap())),
            ],
            Held::Host => self.hosts[host].processes(),
        };
        // A hook may have ended by now.
        for process in processes {
            let _ = kill(process, signal);
        }
    }

    /// Whether another host's promotion script has started since the last look.
    pub(crate) fn has_moved_from(&self, leader: usize) -> bool {
        let name = &self.hosts[leader].name;
        self.bell.rings().iter().any(|ring| ring.host != *name && ring.event == "elected")
    }

    /// Sends SIGTERM to the program on one host.
    pub(crate) fn terminate(&self, host: usize) {
        signal(self.daemons.borrow()[host].as_ref().unwrap(), Signal::SIGTERM);
    }

    /// Starts the program anew on a host where it was told to end.
    pub(crate) fn restart(&self, host: usize) {
        self.await_end(host);
        self.spawn(host);
    }

    fn spawn(&self, host: usize) {
        let seat = Seat {
            host: self.hosts[host],
            rank: host,
            interval: self.interval,
            bell: self.bell.path().to_owned(),
            peers: match self.carrier {
                Carrier::Multicast => Vec::new(),
                Carrier::Peers => self.others(host),
            },
        };
        let mut command = self.program.command(&seat);
        let log = File::create(seat.host.path("bench.log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = seat.host.run(|| command.spawn().unwrap());
        self.daemons.borrow_mut()[host] = Some(child);
    }

    /// The addresses of all hosts but this one.
    fn others(&self, host: usize) -> Vec<String> {
        let number = self.hosts[host].number;
        let others = self.hosts.iter().filter(|other| other.number != number);
        others.map(|other| other.address(0)).collect()
    }

    fn await_end(&self, host: usize) {
        let mut daemons = self.daemons.borrow_mut();
        let Some(child) = daemons[host].as_mut() else { return };
        let what = format!("{} on {} has ended", self.program.name(), self.hosts[host].name);
        wait_until(&what, || child.try_wait().unwrap().is_some());
        daemons[host] = None;
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            for host in &self.hosts {
                let log = fs::read_to_string(host.path("bench.log")).unwrap_or_default();
                println!("--- {} on {}\n{log}", self.program.name(), host.name);
            }
            return;
        }
        for child in self.daemons.borrow().iter().flatten() {
            signal(child, Signal::SIGTERM);
        }
        (0..self.hosts.len()).for_each(|host| self.await_end(host));
    }
}

/// What a measurement needs of its namespaces: keepalived can only be run by root.
pub(crate) fn needs() -> Needs {
    Needs { limit: MEASUREMENT_LIMIT, real_root: true, ..Needs::default() }
}

/// How often the leaders of the programs that are compared declare themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Each as it does by default.
    Default,
    /// All at this interval.
    Every(Duration),
    /// Each so often that it replaces a lost leader after this time, on average.
    Takeover(Duration),
}

/// A program at one of its settings.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    /// Which program.
    pub(crate) program: &'static dyn Program,
    /// Between two declarations of its leader.
    pub(crate) interval: Duration,
}

impl Contender {
    pub(crate) fn new(program: &'static dyn Program, pace: Pace) -> Self {
        let interval = match pace {
            Pace::Default => program.default_interval(),
            Pace::Every(interval) => interval,
            Pace::Takeover(takeover) => in_millis(takeover.div_f64(program.takeover())),
        };
        Contender { program, interval }
    }

    /// Starts it on these hosts.
    pub(crate) fn start<'a>(&self, hosts: [&'a Host; HOSTS]) -> Group<'a> {
        Group::start(self.program, hosts, self.interval)
    }
}

/// Starts programs in groups that do not hear each other.
pub(crate) fn start_apart<'a>(
    lan: &Lan,
    hosts: &[&'a Host],
    contenders: &[Contender],
) -> Vec<Group<'a>> {
    let seats: Vec<_> = hosts.chunks_exact(HOSTS).collect();
    lan.partition(&seats);
    let start =
        |(contender, hosts): (&Contender, &[&'a Host])| contender.start(hosts.try_into().unwrap());
    let groups: Vec<_> = contenders.iter().zip(seats).map(start).collect();
    assert_eq!(groups.len(), contenders.len(), "there are too few hosts");
    groups
}

/// What people would write into a config file.
fn in_millis(duration: Duration) -> Duration {
    Duration::from_millis(duration.as_millis() as u64)
}

/// The programs that can run here at this pace; says of the others why they cannot.
pub(crate) fn available(pace: Pace) -> Vec<Contender> {
    let cores = thread::available_parallelism().unwrap();
    let load = fs::read_to_string("/proc/loadavg").unwrap();
    println!("  {cores} cores, load {}", load.split(' ').next().unwrap());
    let mut found = Vec::new();
    for program in PROGRAMS {
        let name = program.name();
        let contender = Contender::new(program, pace);
        let interval = contender.interval;
        match program.version() {
            _ if !program.supports(interval) => {
                println!("  no {name}: no interval of {interval:?}")
            }
            Ok(version) => {
                println!("  {version}, every {interval:?}");
                found.push(contender);
            }
            Err(reason) => println!("  no {name}: {reason}"),
        }
    }
    found
}

/// Where an executable is, also where only root's search path has it.
fn find(executable: &str) -> Result<PathBuf, String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs = env::split_paths(&path).chain(iter::once("/usr/sbin".into()));
    let mut candidates = dirs.map(|dir| dir.join(executable));
    candidates
        .find(|path| path.is_file())
        .ok_or_else(|| format!("not installed; `apt-get install {executable}` would"))
}

/// The first line with text that a program prints when it is called so.
fn first_line(executable: &Path, argument: impl AsRef<OsStr>) -> String {
    let output = Command::new(executable).arg(argument).stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// The only host that sends anything within a little more than two intervals, and does so at least
/// twice: the leader, in programs whose followers are silent.
pub(crate) fn sole_speaker(group: &Group<'_>) -> Option<usize> {
    let frames = || group.hosts.iter().map(|host| sent(host).0).collect::<Vec<_>>();
    let before = frames();
    pass(group.interval.mul_f64(2.2));
    let after = frames();
    let mut speakers = (0..before.len()).filter(|&host| after[host] > before[host]);
    let leader = speakers.next().filter(|&host| after[host] >= before[host] + 2)?;
    speakers.next().is_none().then_some(leader)
}

/// Frames and bytes that have left a host.
pub(crate) fn sent(host: &Host) -> (u64, u64) {
    let table = host.run(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap());
    let line = table.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    let columns: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    (columns[9], columns[8])
}

fn signal(child: &Child, signal: Signal) {
    kill(pid(child), signal).unwrap();
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().try_into().unwrap())
}
