//! The second implementation of the protocol, `tests/peer`, on a host.

use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::process::{Child, Command, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::forge::GROUP;
use super::host::Host;
use super::patience::wait_for;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peer/peer.py");

/// A peer, which runs until it is dropped.
pub(crate) struct Peer<'a> {
    host: &'a Host,
    child: RefCell<Child>,
}

/// Whether this machine has a Python that works; a test passes without it, and prints why.
pub(crate) fn has_python() -> bool {
    let found = Command::new("python3").args(["-c", "import unicodedata, hmac"]).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        println!("skipped: there is no python3 here");
    }
    found
}

impl<'a> Peer<'a> {
    /// Starts it on a host, with these settings besides, or instead of, those that the harness
    /// gives to daemons.
    pub(crate) fn start(host: &'a Host, settings: &Value) -> Peer<'a> {
        let path = host.path("peer.json");
        fs::write(&path, merged(host, settings).to_string()).unwrap();
        let _ = fs::remove_file(host.path("peer.status"));
        let log = OpenOptions::new().create(true).append(true).open(host.path("peer.log"));
        let mut command = Command::new("python3");
        command.args([PROGRAM, &path]).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.unwrap());
        Peer { host, child: RefCell::new(host.run(|| command.spawn().unwrap())) }
    }

    /// What it shows of itself; null before it has shown anything.
    pub(crate) fn status(&self) -> Value {
        let ended = self.child.borrow_mut().try_wait().unwrap();
        assert!(ended.is_none(), "the peer has ended by itself");
        let text = fs::read_to_string(self.host.path("peer.status")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(crate) fn leads(&self) -> bool {
        self.status()["role"] == "leader"
    }

    pub(crate) fn follows(&self, host: &Host) -> bool {
        let status = self.status();
        status["role"] == "follower" && status["leader"] == host.name.as_str()
    }

    /// Whether it is a voter that counts.
    pub(crate) fn is_enrolled(&self) -> bool {
        self.status()["enrolled"] == true
    }

    /// Stops it in order.
    pub(crate) fn stop(self) {
        let mut child = self.child.borrow_mut();
        kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
        let status = wait_for("the peer ends", || child.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }

    /// Has it lose what it had on disk.
    pub(crate) fn lose_state(host: &Host) {
        fs::remove_file(host.path("peer.state")).unwrap();
    }
}

impl Drop for Peer<'_> {
    fn drop(&mut self) {
        let mut child = self.child.borrow_mut();
        let _ = child.kill();
        let _ = child.wait();
        if thread::panicking() {
            let read = |file| fs::read_to_string(self.host.path(file)).unwrap_or_default();
            println!("--- the peer on {}\n{}", self.host.name, read("peer.status"));
            println!("--- log\n{}", read("peer.log"));
        }
    }
}

/// The settings, in seconds.
fn merged(host: &Host, settings: &Value) -> Value {
    let mut all = json!({
        "node_id": host.name,
        "group": "default",
        "multicast": GROUP.0.to_string(),
        "port": GROUP.1,
        "interface": "eth0",
        "address": host.address(0),
        "priority": 100,
        "candidate": true,
        "voters": [],
        "interval": 0.1,
        "threshold": 2.0,
        "election": 0.025,
        "sample": 0.5,
        "startup": 1.5,
        "lease": 2.0,
        "grace": 0.5,
        "key": null,
        "release": 1,
        "state": host.path("peer.state"),
        "status": host.path("peer.status"),
    });
    for (name, value) in settings.as_object().into_iter().flatten() {
        all[name] = value.clone();
    }
    all
}
