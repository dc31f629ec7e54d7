//! A host with keepalived, lanelect, or both.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::harness::Host;
use crate::harness::host::{ip, status_at};
use crate::harness::keys::KEY;
use crate::harness::patience::wait_until;
use crate::harness::program::{Program, search_path};

const LANELECT: &str = env!("CARGO_BIN_EXE_lanelect");

/// Where the examples expect the hooks.
const INSTALLED_HOOKS: &str = "/usr/share/lanelect/hooks";

/// Keys that step 1 leaves out: what they need is still keepalived's.
const LATER: [&str; 2] = ["hook", "check_leader"];

/// Line that a daemon's file has besides the example's, until its failover is measured: a stall of
/// a loaded machine would be a failover, after which both hosts have the address for a moment.
const PATIENCE: &str = "leader_alive_threshold = \"3s\"\n";

/// Starts and stops the one service of the example where there is no systemd: a web server, whose
/// number is in a file while it is to run. `tests/systemd` has the example with a systemd.
const SYSTEMCTL: &str = r#"#!/bin/sh
set -eu
pid=/run/lan/$(uname -n)/report
case "$*" in
show*) echo report.service ;;
start*report.service*)
    [ -e "$pid" ] && exit
    setsid python3 -m http.server --bind 127.0.0.1 9090 >/dev/null 2>&1 </dev/null &
    echo $! >"$pid"
    ;;
stop*report.service*)
    [ -e "$pid" ] || exit 0
    kill -KILL "$(cat "$pid")" || true
    rm "$pid"
    ;;
daemon-reload) ;;
*) exit 1 ;;
esac
"#;

/// How far the change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The address is keepalived's.
    Beside,
    /// The address is lanelect's.
    Over,
    /// The same, with the settings of the example and no other.
    Measured,
}

/// Has every host of the test find a service manager.
pub(super) fn provide_systemctl() {
    let script = Path::new("/run/lan/systemctl");
    fs::write(script, SYSTEMCTL).unwrap();
    fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
    let mut mount = Command::new("mount");
    // In the mount namespace of the test, and nowhere else.
    mount.args(["--bind", "/run/lan/systemctl", "/usr/bin/systemctl"]);
    assert!(mount.status().unwrap().success());
}

/// Starts what the check of each host asks.
pub(super) fn start_proxy(host: &Host) -> Program {
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--bind", "127.0.0.1", "8080"]);
    let proxy = Program::start(host, command, &host.path("proxy.log"));
    wait_until("the proxy answers", || {
        let mut ask = Command::new("curl");
        ask.args(["--silent", "--output", "/dev/null", "http://127.0.0.1:8080/"]);
        host.run(|| ask.status().unwrap().success())
    });
    proxy
}

/// One of the two hosts of an example.
pub(super) struct Server<'a> {
    /// Where it runs.
    pub(super) host: &'a Host,
    example: PathBuf,
    name: &'static str,
    keepalived: Option<Program>,
    lanelect: Vec<(String, Program)>,
}

impl<'a> Server<'a> {
    /// The server of this name in the files of an example.
    pub(super) fn new(example: &str, name: &'static str, host: &'a Host) -> Server<'a> {
        let example = root().join("examples/keepalived").join(example);
        let key = host.path("key");
        fs::write(&key, KEY.repeat(64)).unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        Server { host, example, name, keepalived: None, lanelect: Vec::new() }
    }

    /// Whether it has an address.
    pub(super) fn holds(&self, address: &str) -> bool {
        !ip(&format!("-n {} address show to {address}", self.host.name)).is_empty()
    }

    /// Whether the service of the example is to run here.
    pub(super) fn serves(&self) -> bool {
        fs::exists(self.host.path("report")).unwrap()
    }

    /// Kills that service.
    pub(super) fn kill_service(&self) {
        let pid: i32 =
            fs::read_to_string(self.host.path("report")).unwrap().trim().parse().unwrap();
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }

    // keepalived.

    /// Has keepalived judge the example.
    pub(super) fn validate_keepalived(&self) {
        let mut command = self.keepalived();
        let output = self.host.run(|| command.arg("--config-test").output().unwrap());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    pub(super) fn start_keepalived(&mut self) {
        let mut command = self.keepalived();
        command.args(["--dont-fork", "--log-console", "--vrrp"]);
        self.keepalived = Some(Program::start(self.host, command, &self.keepalived_log_file()));
    }

    pub(super) fn stop_keepalived(&mut self) {
        self.keepalived.take().unwrap().stop();
    }

    /// What keepalived has said.
    pub(super) fn keepalived_log(&self) -> String {
        fs::read_to_string(self.keepalived_log_file()).unwrap()
    }

    fn keepalived_log_file(&self) -> String {
        self.host.path("keepalived.log")
    }

    fn keepalived(&self) -> Command {
        let mut command = Command::new("keepalived");
        command.arg("--use-file").arg(self.example.join("keepalived.conf"));
        command.args(["--config-id", self.name]);
        command.args(["--pid", &self.host.path("keepalived.pid")]);
        command.args(["--vrrp_pid", &self.host.path("vrrp.pid")]);
        command
    }

    // lanelect.

    /// Starts the daemon of a group with the file of this stage.
    pub(super) fn start_lanelect(&mut self, group: &str, stage: Stage) {
        self.write_config(group, stage);
        let mut command = Command::new(LANELECT);
        let option = |name: &str| self.host.path(&format!("{group}.{name}"));
        command.args(["run", "--config", &option("toml"), "--node-id", self.name]);
        command.args(["--state-dir", &option("state"), "--socket", &option("sock")]);
        command.args(["--key-file", &self.host.path("key")]).env("PATH", search_path());
        let program = Program::start(self.host, command, &option("log"));
        self.lanelect.push((group.to_owned(), program));
    }

    /// Gives the daemon the file of this stage.
    pub(super) fn reload_lanelect(&self, group: &str, stage: Stage) {
        let read = || self.status(group)["config"]["read_ms"].as_u64();
        let before = read();
        self.write_config(group, stage);
        let (_, program) = self.lanelect.iter().find(|(name, _)| name == group).unwrap();
        program.signal(Signal::SIGHUP);
        wait_until("it has read the file", || read() > before);
        let config = self.status(group)["config"].take();
        let is_applied =
            config["reload_failure"].is_null() && config["restart_needed"] == json!([]);
        assert!(is_applied, "{config}");
    }

    pub(super) fn stop_lanelect(&mut self, group: &str) {
        self.take_lanelect(group).stop();
    }

    /// Ends the daemon without warning, and nobody cleans up.
    pub(super) fn kill_lanelect(&mut self, group: &str) {
        drop(self.take_lanelect(group));
    }

    /// The group's status; null while its daemon does not answer.
    pub(super) fn status(&self, group: &str) -> Value {
        status_at(self.host.path(&format!("{group}.sock")))
    }

    /// Whether it leads the group, and its hook has succeeded.
    pub(super) fn is_ready(&self, group: &str) -> bool {
        self.status(group)["ready"] == true
    }

    /// Runs a command for the group, which succeeds.
    pub(super) fn client(&self, group: &str, words: &[&str]) {
        let mut command = Command::new(LANELECT);
        command.args(words).arg("--socket").arg(self.host.path(&format!("{group}.sock")));
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn take_lanelect(&mut self, group: &str) -> Program {
        let position = self.lanelect.iter().position(|(name, _)| name == group).unwrap();
        self.lanelect.swap_remove(position).1
    }

    fn write_config(&self, group: &str, stage: Stage) {
        let file = format!("{group}.toml");
        // Where the hosts' files differ, each has a directory.
        let [own, common] = [self.example.join(self.name).join(&file), self.example.join(&file)];
        let text = fs::read_to_string(if own.exists() { own } else { common }).unwrap();
        let hooks = root().join("examples/hooks");
        let mut config: toml::Table =
            text.replace(INSTALLED_HOOKS, hooks.to_str().unwrap()).parse().unwrap();
        if stage != Stage::Measured {
            config.extend(PATIENCE.parse::<toml::Table>().unwrap());
        }
        if stage == Stage::Beside {
            config.retain(|key, _| !LATER.contains(&key));
        }
        fs::write(self.host.path(&file), config.to_string()).unwrap();
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for file in ["keepalived.log", "web.log", "blue.log", "green.log"] {
            let text = fs::read_to_string(self.host.path(file)).unwrap_or_default();
            println!("--- {} of {}\n{text}", file, self.name);
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
