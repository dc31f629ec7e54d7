//! One host: a system manager, and the election that runs on it.

use std::cell::RefCell;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::rc::Rc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::cgroup::Cgroup;
use super::trial::{BOOT, SITE, SYSTEM_MANAGER};
use crate::harness::host::{ip, status_at};
use crate::harness::journal::{self, Journal};
use crate::harness::{wait_for, wait_until};

/// The election's name on every host, and so its units' instance.
pub(crate) const ELECTION: &str = "lan0";

/// The unit of the daemon.
pub(crate) const DAEMON: &str = "lanelect@lan0.service";

/// The unit that runs the hooks.
pub(crate) const HOOK_RUNNER: &str = "lanelect-hook@lan0.service";

/// What the system manager is told.
const OPTIONS: [&str; 4] =
    ["--system", "--unit=multi-user.target", "--show-status=no", "--log-target=journal"];

/// Units that would set up what belongs to the machine, or wait for it.
const MASKED: [&str; 16] = [
    "dev-hugepages.mount",
    "kmod-static-nodes.service",
    "modprobe@.service",
    "proc-sys-fs-binfmt_misc.automount",
    "sys-fs-fuse-connections.mount",
    "sys-kernel-config.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "systemd-binfmt.service",
    "systemd-logind.service",
    "systemd-modules-load.service",
    "systemd-random-seed.service",
    "systemd-sysctl.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udevd.service",
];

/// A host named `hN`, with the interface `lan0`, up or without power.
pub(crate) struct Host {
    /// N, from 1.
    pub(crate) number: usize,
    /// `hN`, also the hostname and the node id.
    pub(crate) name: String,
    dir: PathBuf,
    cgroup: Rc<Cgroup>,
    journal: Journal,
    power: RefCell<Option<Power>>,
}

/// A running system manager.
struct Power {
    /// Ends with PID 1.
    boot: Child,
    /// PID 1, as it is known outside.
    manager: Pid,
}

impl Host {
    /// Makes the host's files, network and control group. It has no power yet.
    pub(crate) fn new(number: usize, cgroup: Rc<Cgroup>, journal: Journal) -> Host {
        let name = format!("h{number}");
        let dir = Path::new(SITE).join(&name);
        for part in ["upper/etc", "work", "units", "root"] {
            fs::create_dir_all(dir.join(part)).unwrap();
        }
        for unit in MASKED {
            symlink("/dev/null", dir.join("units").join(unit)).unwrap();
        }
        fs::write(dir.join("upper/etc/hostname"), format!("{name}\n")).unwrap();
        let machine_id = format!("{:032x}\n", (1_u128 << 96) + number as u128);
        fs::write(dir.join("upper/etc/machine-id"), machine_id).unwrap();
        ip(&format!("netns add {name}"));
        ip(&format!("link add p{number} type veth peer name lan0 netns {name}"));
        ip(&format!("link set p{number} addrgenmode none up"));
        ip(&format!("-n {name} link set lo up"));
        ip(&format!("-n {name} link set lan0 addrgenmode none"));
        ip(&format!("-n {name} addr add 10.77.0.{number}/24 dev lan0"));
        ip(&format!("-n {name} link set lan0 up"));
        Host { number, name, dir, cgroup, journal, power: RefCell::default() }
    }

    // The host.

    /// Gives it power and returns at once.
    pub(crate) fn power_on(&self) {
        assert!(!self.has_power());
        let pid = self.dir.join("pid");
        let _ = fs::remove_file(&pid);
        self.cgroup.create(&self.name);
        let console = File::create(self.dir.join("console")).unwrap();
        let mut boot = Command::new("sh");
        boot.args([BOOT, &self.name, SITE, SYSTEM_MANAGER]).args(OPTIONS).stdin(Stdio::null());
        let boot = boot.stdout(console.try_clone().unwrap()).stderr(console).spawn().unwrap();
        let manager = wait_for(&format!("{} has a PID 1", self.name), || {
            fs::read_to_string(&pid).ok()?.trim().parse().ok()
        });
        *self.power.borrow_mut() = Some(Power { boot, manager: Pid::from_raw(manager) });
    }

    /// Waits until it has started whatever it starts at boot.
    pub(crate) fn wait_until_up(&self) {
        wait_until(&format!("{} is up", self.name), || {
            let state = self.output(&["systemctl", "is-system-running"]).stdout;
            ["running\n", "degraded\n"].iter().any(|up| up.as_bytes() == state)
        });
    }

    /// Takes its power away: everything on it ends at once.
    pub(crate) fn cut_power(&self) {
        self.journal.note(&self.name, "crash");
        kill(self.manager(), Signal::SIGKILL).unwrap();
        self.wait_until_off();
    }

    /// Shuts it down in order.
    pub(crate) fn shut_down(&self) {
        self.systemctl("poweroff");
        self.wait_until_off();
    }

    /// Waits until it is off, whoever has turned it off.
    pub(crate) fn wait_until_off(&self) {
        let Power { mut boot, .. } = self.power.take().expect("a host with power");
        wait_until(&format!("{} is off", self.name), || boot.try_wait().unwrap().is_some());
        self.cgroup.remove(&self.name);
    }

    /// Whether it is up, or boots.
    pub(crate) fn has_power(&self) -> bool {
        self.power.borrow().is_some()
    }

    /// Runs a command on it, and returns how it ended and what it said.
    pub(crate) fn output(&self, command: &[&str]) -> Output {
        let target = self.manager().to_string();
        let mut enter = Command::new("nsenter");
        enter.args(["--all", "--target", &target, "--"]).args(command);
        enter.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        enter.stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a shell script on it that must succeed, and returns what it printed.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> String {
        let output = self.output(&["sh", "-c", script]);
        assert!(output.status.success(), "{}: {script}: {output:?}", self.name);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `systemctl` with these words, which must succeed.
    #[track_caller]
    pub(crate) fn systemctl(&self, words: &str) {
        self.run(&format!("systemctl {words}"));
    }

    /// A property of a unit.
    pub(crate) fn show(&self, unit: &str, property: &str) -> String {
        let shown = self.run(&format!("systemctl show --value --property={property} {unit}"));
        shown.trim().to_owned()
    }

    /// Where the host's file is found from outside, while it has power.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.manager()))
    }

    // The election on it.

    /// Makes the user that the daemon runs as, and writes the config file with these lines besides,
    /// or instead of, the usual ones.
    pub(crate) fn install(&self, lines: &str) {
        self.run("systemd-sysusers && mkdir -p /etc/lanelect");
        self.configure(lines);
    }

    /// Writes the config file anew.
    pub(crate) fn configure(&self, lines: &str) {
        let mut config = toml::Table::new();
        config.insert("group".into(), ELECTION.into());
        config.insert("node_id".into(), self.name.clone().into());
        config.insert("interface".into(), vec!["lan0"].into());
        config.insert("hook".into(), self.hook().into());
        // Wider than the derived one, so that a loaded machine's stalls are no silence.
        config.insert("leader_alive_threshold".into(), "5s".into());
        config.extend(lines.parse::<toml::Table>().unwrap());
        let path = self.file(&format!("/etc/lanelect/{ELECTION}.toml"));
        fs::write(path, config.to_string()).unwrap();
    }

    /// The usual hook, which notes what it is told in the journal.
    pub(crate) fn hook(&self) -> String {
        self.journal.hook(&self.name)
    }

    /// Starts the daemon, now and whenever the host boots.
    pub(crate) fn enable(&self) {
        self.systemctl(&format!("enable --quiet --now {DAEMON}"));
    }

    /// Whether the daemon's unit is installed.
    pub(crate) fn has_daemon(&self) -> bool {
        self.show(DAEMON, "LoadState") == "loaded"
    }

    /// The daemon's process, as the host knows it.
    pub(crate) fn daemon(&self) -> u32 {
        self.show(DAEMON, "MainPID").parse().unwrap()
    }

    /// Gives the daemon no more memory than it has, as the daemon's own user may do. A limit of its
    /// address space would leave it what is reserved for its threads, and one of 0 bytes is none.
    pub(crate) fn exhaust_memory(&self) {
        let user = "setpriv --reuid=lanelect --regid=lanelect --clear-groups";
        self.run(&format!("{user} prlimit --pid={} --data=1:", self.daemon()));
    }

    /// Sends a signal to the daemon's process alone.
    pub(crate) fn signal(&self, signal: &str) {
        self.systemctl(&format!("kill --kill-who=main --signal={signal} {DAEMON}"));
    }

    /// What `lanelect status --json` prints; null while the daemon cannot be reached.
    pub(crate) fn status(&self) -> Value {
        if !self.has_power() {
            return Value::Null;
        }
        status_at(self.file(&format!("/run/lanelect/{ELECTION}.sock")))
    }

    /// Whether it leads, no hook runs, and the last one fits that.
    pub(crate) fn leads(&self) -> bool {
        self.is_settled_as(&self.status(), "leader")
    }

    /// Whether it follows `other`, no hook runs, and the last one fits that.
    pub(crate) fn follows(&self, other: &Host) -> bool {
        let status = self.status();
        let leader = &status["leader"]["node_id"];
        *leader == other.name.as_str() && self.is_settled_as(&status, "follower")
    }

    /// The hook starts so far, as `event reason`.
    pub(crate) fn hooks(&self) -> Vec<String> {
        self.journal.starts(&self.name)
    }

    /// Makes the hook for one event last so long from now on.
    pub(crate) fn slow_hook_on(&self, event: &str, seconds: &str) {
        self.journal.slow_hook_on(&self.name, event, seconds);
    }

    /// Makes the hook fail for one event from now on.
    pub(crate) fn fail_hook_on(&self, event: &str) {
        self.journal.fail_hook_on(&self.name, event);
    }

    /// What the host's journal has of the election's units since boot, for people.
    pub(crate) fn report(&self) -> String {
        let console = fs::read_to_string(self.dir.join("console")).unwrap_or_default();
        let mut log = String::from("no power\n");
        if self.has_power() {
            let journalctl = "journalctl --boot --no-pager --output=short-monotonic \
                --unit='lanelect*' --unit=init.scope";
            log = String::from_utf8_lossy(&self.output(&["sh", "-c", journalctl]).stdout).into();
        }
        format!("--- {}: console\n{console}--- {}: log\n{log}", self.name, self.name)
    }

    // Helpers.

    fn is_settled_as(&self, status: &Value, role: &str) -> bool {
        let leads = journal::leads(&self.journal.entries(), &self.name);
        status["role"] == role && status["hook"]["running"] == false && leads == (role == "leader")
    }

    fn manager(&self) -> Pid {
        let power = self.power.borrow();
        power.as_ref().unwrap_or_else(|| panic!("{} has no power", self.name)).manager
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(Power { mut boot, manager }) = self.power.take() {
            let _ = kill(manager, Signal::SIGKILL);
            let _ = boot.wait();
        }
    }
}
