//! Hosts made of network namespaces on one bridge of the kernel, each with a daemon.
//!
//! The switch of `tests/lan` forwards every frame by itself, to one host after the other: that is
//! too slow for a hundred of them that all speak at once.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lanelect::client::Target;
use lanelect::commands;
use nix::sched::{CloneFlags, setns};
use serde_json::Value;

use crate::harness::host::ip;
use crate::harness::inside::Inside;
use crate::harness::patience::now;

const LANELECT: &str = env!("CARGO_BIN_EXE_lanelect");

/// Below `/run`, where `ip` keeps the names of network namespaces.
const DIR: &str = "/run/crowd";

/// The address of the bridge; the hosts' are below.
pub(super) const BRIDGE_ADDRESS: [u8; 4] = [10, 77, 255, 254];

/// Hosts named `h0` and so on, with an `eth0` each.
pub(crate) struct Crowd {
    inside: Inside,
    daemons: Vec<Option<Child>>,
}

impl Crowd {
    /// So many hosts without daemons.
    pub(crate) fn new(inside: Inside, size: usize) -> Crowd {
        run(Command::new("mount").args(["-t", "tmpfs", "tmpfs", "/run"]));
        fs::create_dir(DIR).unwrap();
        let [a, b, c, d] = BRIDGE_ADDRESS;
        ip_batch(
            &[],
            &format!(
                "link add br0 type bridge mcast_snooping 0\n\
             link set br0 addrgenmode none up\n\
             addr add {a}.{b}.{c}.{d}/16 dev br0\n"
            ),
        );
        for host in 0..size {
            plug_in(host);
        }
        Crowd { inside, daemons: (0..size).map(|_| None).collect() }
    }

    /// How many hosts there are.
    pub(crate) fn size(&self) -> usize {
        self.daemons.len()
    }

    /// Starts the daemon on a host, with its default settings. Its hook tells of a promotion.
    pub(crate) fn start(&mut self, host: usize) {
        let hook =
            format!("[ $LANELECT_EVENT != elected ] || echo {host} >> {}", promotions_file());
        let log = File::options().create(true).append(true).open(file(host, "log")).unwrap();
        let mut command = Command::new(LANELECT);
        command.args(["run", "--node-id", &name(host), "--interface", "eth0", "--hook", &hook]);
        command.args(["--state-dir", &file(host, "state"), "--socket", &socket(host)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let namespace = File::open(format!("/run/netns/{}", name(host))).unwrap();
        let enter = || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            self.inside.verify_thread().expect("refusing to run outside");
            command.spawn().unwrap()
        };
        let child = thread::scope(|scope| scope.spawn(enter).join().unwrap());
        self.daemons[host] = Some(child);
    }

    /// Kills the daemon on a host; returns when.
    pub(crate) fn kill(&mut self, host: usize) -> Instant {
        let mut child = self.daemons[host].take().unwrap();
        child.kill().unwrap();
        let killed = now();
        child.wait().unwrap();
        killed
    }

    /// The host that leads, where all others whose daemon runs follow it.
    pub(crate) fn leader(&self) -> Option<usize> {
        let running = (0..self.size()).filter(|host| self.daemons[*host].is_some());
        let mut views = running.map(status);
        let led_by = |view: &Value| view["leader"]["node_id"].as_str().map(str::to_owned);
        let leader = led_by(&views.next()?)?;
        views.all(|view| led_by(&view).as_ref() == Some(&leader)).then(|| number(&leader))
    }

    /// How many promotions there were.
    pub(crate) fn promotions(&self) -> usize {
        fs::read_to_string(promotions_file()).map_or(0, |text| text.lines().count())
    }

    /// What a counter in the status of the daemons adds up to.
    pub(crate) fn count(&self, counter: &str) -> u64 {
        (0..self.size()).map(|host| status(host)["counters"][counter].as_u64().unwrap_or(0)).sum()
    }

    /// The processor time that all daemons have used.
    pub(crate) fn processor_time(&self) -> Duration {
        let nanos = |process: &String| -> u64 {
            let text = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap();
            text.split_whitespace().next().unwrap().parse().unwrap()
        };
        Duration::from_nanos(self.processes().iter().map(nanos).sum())
    }

    /// The memory of all daemons, where what several share counts once, in KiB.
    pub(crate) fn memory(&self) -> u64 {
        let kib = |process: &String| -> u64 {
            let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        self.processes().iter().map(kib).sum()
    }

    /// The daemons' processes, by their numbers in `/proc`.
    fn processes(&self) -> Vec<String> {
        let running = (0..self.size()).filter(|host| self.daemons[*host].is_some());
        running.map(|host| ip(&format!("netns pids {}", name(host))).trim().to_owned()).collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in self.daemons.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Makes a host and connects it to the bridge.
fn plug_in(host: usize) {
    let name = name(host);
    fs::create_dir(format!("{DIR}/{name}")).unwrap();
    ip_batch(
        &[],
        &format!(
            "netns add {name}\n\
         link add port{host} type veth peer name eth0 netns {name}\n\
         link set port{host} addrgenmode none master br0 up\n"
        ),
    );
    let (high, low) = (host / 250, host % 250 + 1);
    ip_batch(
        &["-n", &name],
        &format!(
            "link set lo up\n\
         link set eth0 addrgenmode none\n\
         addr add 10.77.{high}.{low}/16 dev eth0\n\
         link set eth0 up\n"
        ),
    );
}

/// Runs `ip` once for many commands.
fn ip_batch(options: &[&str], commands: &str) {
    let mut command = Command::new("ip");
    command.args(options).args(["-batch", "-"]).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "ip {options:?}: {commands}");
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?} failed");
}

/// What a host's status says; null while it does not answer.
fn status(host: usize) -> Value {
    let mut text = Vec::new();
    match commands::status(&Target::at(socket(host)), true, &mut text) {
        Ok(_) => serde_json::from_slice(&text).unwrap(),
        Err(_) => Value::Null,
    }
}

fn name(host: usize) -> String {
    format!("h{host}")
}

/// The host of this name.
fn number(name: &str) -> usize {
    name.trim_start_matches('h').parse().unwrap()
}

fn file(host: usize, file: &str) -> String {
    PathBuf::from(DIR).join(name(host)).join(file).display().to_string()
}

fn socket(host: usize) -> String {
    file(host, "sock")
}

/// Where the hooks note promotions, a line each.
fn promotions_file() -> String {
    format!("{DIR}/promotions")
}
