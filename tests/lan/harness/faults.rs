//! What goes wrong on a host whose daemon runs: its disk, its descriptors, its firewall, its clock.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::host::{Host, ip};
use super::tap::Tap;

/// Where the sources of the libraries are that change how a program runs.
const LIBRARIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lan/harness");

/// More than any daemon is given here.
const PLENTY: &str = "1024";

impl Host {
    // Its disk.

    /// Turns the state directory read-only, as a file system with errors does.
    pub(crate) fn make_disk_read_only(&self) {
        let state = self.path("state");
        run("mount", &["--bind", &state, &state]);
        run("mount", &["-o", "remount,ro,bind", &state]);
    }

    /// Makes it writable again.
    pub(crate) fn make_disk_writable(&self) {
        run("mount", &["-o", "remount,rw,bind", &self.path("state")]);
    }

    /// Removes the state directory.
    pub(crate) fn remove_state(&self) {
        fs::remove_dir_all(self.path("state")).unwrap();
    }

    /// Gives it a copy of another host's state, as a host that is cloned from its image has it.
    pub(crate) fn copy_state_of(&self, other: &Host) {
        run("cp", &["-r", &other.path("state"), &self.path("state")]);
    }

    /// Removes what the daemon keeps where its control socket is, as somebody does who clears
    /// `/run`.
    pub(crate) fn remove_control_files(&self) {
        for file in ["control.sock", "control.crash-plan", "control.sock.took-over"] {
            fs::remove_file(self.path(file)).unwrap();
        }
    }

    /// The state file's content.
    pub(crate) fn state(&self) -> String {
        fs::read_to_string(self.path("state/default.state")).unwrap_or_default()
    }

    // What the kernel gives its daemon.

    /// Lets the daemon open nothing any more. What it has open it keeps.
    pub(crate) fn exhaust_descriptors(&self) {
        self.limit("nofile", "0");
    }

    /// Lets it open as much as before.
    pub(crate) fn replenish_descriptors(&self) {
        self.limit("nofile", PLENTY);
    }

    /// Gives the daemon no more memory than it has.
    pub(crate) fn exhaust_memory(&self) {
        self.limit("as", "0");
    }

    fn limit(&self, resource: &str, soft: &str) {
        let pid = format!("--pid={}", self.daemon_pid());
        run("prlimit", &[&pid, &format!("--{resource}={soft}:")]);
    }

    /// The processor time that the daemon has taken, in clock ticks of 10 ms.
    pub(crate) fn processor_ticks(&self) -> u64 {
        let daemon = self.listed_daemon().expect("a daemon on its host");
        let stat = fs::read_to_string(daemon.join("stat")).unwrap();
        let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(2);
        fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    /// Whether the daemon's thread for the log has lines to write, and runs or is about to.
    pub(super) fn is_writing_log(&self) -> bool {
        let Some(daemon) = self.listed_daemon() else { return false };
        let threads = fs::read_dir(daemon.join("task")).into_iter().flatten().flatten();
        let stats = threads.flat_map(|thread| fs::read_to_string(thread.path().join("stat")));
        stats.into_iter().any(|stat| stat.contains(" (log) R ") || stat.contains(" (log) D "))
    }

    /// The daemon in `/proc`, while it runs.
    fn listed_daemon(&self) -> Option<PathBuf> {
        let daemon = Path::new("/proc").join(self.started_pid()?.to_string());
        daemon.exists().then_some(daemon)
    }

    /// A client that has connected and says nothing.
    pub(crate) fn connect(&self) -> UnixStream {
        UnixStream::connect(self.path("control.sock")).unwrap()
    }

    // What becomes of its datagrams.

    /// Has the host's own firewall refuse what it sends to the group.
    pub(crate) fn forbid_sending(&self) {
        let rules = "add table inet lan; \
            add chain inet lan out { type filter hook output priority 0; }; \
            add rule inet lan out meta l4proto udp drop";
        self.run_command("nft", &[rules]);
    }

    /// Has the host's own firewall drop what arrives for the group.
    pub(crate) fn drop_arrivals(&self) {
        let rules = "add table inet lan; \
            add chain inet lan in { type filter hook input priority 0; }; \
            add rule inet lan in meta l4proto udp drop";
        self.run_command("nft", &[rules]);
    }

    /// Has the host's own firewall drop what arrives for the group from one host.
    pub(crate) fn drop_arrivals_from(&self, other: &Host) {
        let rules = format!(
            "add table inet lan; \
            add chain inet lan in {{ type filter hook input priority 0; }}; \
            add rule inet lan in ip saddr {} meta l4proto udp drop",
            other.address(0)
        );
        self.run_command("nft", &[&rules]);
    }

    /// Has the host's own firewall drop whatever arrives that these rules do not accept.
    pub(crate) fn accept_only(&self, rules: &str) {
        let ruleset = format!(
            "flush ruleset\n\
            table inet filter {{\nchain input {{\n\
            type filter hook input priority filter; policy drop;\n{rules}\n}}\n}}\n"
        );
        let file = self.path("firewall.nft");
        fs::write(&file, ruleset).unwrap();
        self.run_command("nft", &["--file", &file]);
    }

    /// Lowers the TTL of what it sends, as a router does.
    pub(crate) fn lower_ttl(&self) {
        let rules = "add table inet lan; \
            add chain inet lan out { type filter hook postrouting priority 0; }; \
            add rule inet lan out ip ttl set 64";
        self.run_command("nft", &[rules]);
    }

    /// Makes everything that it forwards look as if it came from this host.
    pub(crate) fn translate_sources(&self) {
        let rules = "add table ip lan; \
            add chain ip lan nat { type nat hook postrouting priority srcnat; }; \
            add rule ip lan nat meta l4proto udp masquerade";
        self.run_command("nft", &[rules]);
    }

    /// Keeps for good that this address is on `eth0` of another host.
    pub(crate) fn keep_neighbour(&self, address: &str, other: &Host) {
        let [a, b, c, d, e, f] = Tap::deaf_on(other).mac();
        ip(&format!(
            "-n {} neigh replace {address} dev eth0 nud permanent \
             lladdr {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}",
            self.name
        ));
    }

    /// Gives `eth0` one more address.
    pub(crate) fn add_address(&self, address: &str) {
        ip(&format!("-n {} addr add {address} dev eth0", self.name));
    }

    /// Shows this host's processes another content of a file of the kernel. False if the machine
    /// has no such file, or forbids that.
    pub(crate) fn replace_file(&self, path: &str, content: &str) -> bool {
        let other = self.path("replaced");
        fs::write(&other, content).unwrap();
        let mount = Command::new("mount").args(["--bind", &other, path]).output().unwrap();
        mount.status.success()
    }

    /// Builds the library of this name, for `LD_PRELOAD`. Its source says what it does to a
    /// program.
    pub(crate) fn build_library(&self, name: &str) -> String {
        let library = self.path(&format!("{name}.so"));
        let source = format!("{LIBRARIES}/{name}.c");
        // Whoever links Rust has a C compiler.
        run("cc", &["-shared", "-fPIC", "-O2", "-o", &library, &source, "-ldl"]);
        library
    }

    /// Lets [`Host::hold_sends`] hold up daemons that start from now on.
    pub(crate) fn prepare_to_hold_sends(&self) {
        self.set_variable("LD_PRELOAD", Path::new(&self.build_library("held_send")));
        self.set_variable("HELD_SEND", Path::new(&self.path("held-send")));
    }

    /// Stops the daemon before it sends its next datagram: when it has decided to.
    pub(crate) fn hold_sends(&self) {
        fs::write(self.path("held-send"), "").unwrap();
    }

    /// Lets it go on.
    pub(crate) fn release_sends(&self) {
        fs::remove_file(self.path("held-send")).unwrap();
    }

    /// Removes its firewall.
    pub(crate) fn permit_sending(&self) {
        self.run_command("nft", &["flush ruleset"]);
    }

    /// Leaves no room in the queue of `eth0`.
    pub(crate) fn fill_queue(&self) {
        let words = "qdisc add dev eth0 root tbf rate 8bit burst 10b limit 1";
        self.run_command("tc", &words.split(' ').collect::<Vec<_>>());
    }

    /// Makes room in it again.
    pub(crate) fn free_queue(&self) {
        self.run_command("tc", &["qdisc", "del", "dev", "eth0", "root"]);
    }

    /// Removes the route by which IPv6 reaches any group.
    pub(crate) fn remove_multicast_route(&self) {
        ip(&format!("-n {} -6 route del multicast ff00::/8 dev eth0 table local", self.name));
    }

    /// Puts it back.
    pub(crate) fn restore_multicast_route(&self) {
        ip(&format!("-n {} -6 route add multicast ff00::/8 dev eth0 table local", self.name));
    }

    /// Changes something about the interfaces that concerns nobody, so that the daemon looks around
    /// now rather than in ten seconds.
    pub(crate) fn stir_interfaces(&self) {
        ip(&format!("-n {} addr add 192.0.2.1/32 dev lo", self.name));
    }

    /// Gives `eth0` another name, or that interface its name back.
    pub(crate) fn rename_interface(&self, from: &str, to: &str) {
        let name = &self.name;
        ip(&format!("-n {name} link set {from} down"));
        ip(&format!("-n {name} link set {from} name {to}"));
        ip(&format!("-n {name} link set {to} up"));
    }

    /// Runs a command on this host that must succeed.
    fn run_command(&self, program: &str, arguments: &[&str]) {
        self.run(|| run(program, arguments));
    }

    // Its time of day.

    /// Shows daemons that start from now on a time of day that [`Host::set_wall_clock`] sets.
    pub(crate) fn fake_wall_clock(&self) {
        self.set_variable("LD_PRELOAD", Path::new(&self.build_library("wall_clock")));
        self.set_variable("WALL_CLOCK", &self.wall_clock());
        self.set_wall_clock(0);
    }

    /// Sets the time of day that the daemon sees to so many seconds from now.
    pub(crate) fn set_wall_clock(&self, offset: i64) {
        let next = self.path("wall-clock.next");
        fs::write(&next, offset.to_string()).unwrap();
        fs::rename(&next, self.wall_clock()).unwrap();
    }

    fn wall_clock(&self) -> PathBuf {
        self.path("wall-clock").into()
    }
}

/// Whether a firewall can be set up here.
pub(crate) fn can_forbid_sending() -> Result<(), String> {
    let found = Command::new("nft").arg("--version").output().is_ok();
    found.then_some(()).ok_or_else(|| "there is no nft; install nftables".to_owned())
}

#[track_caller]
fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}
