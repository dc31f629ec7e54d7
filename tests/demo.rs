//! `lanelect demo` as the real binary performs it: on the loopback, and gone without a trace.
//!
//! Each demo has a temporary directory of its own, which is also how its daemons are found: they
//! work in there.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;
#[path = "common/waiting.rs"]
mod waiting;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgid};
use tempfile::TempDir;

use waiting::until;

/// How often a demo is begun anew that ran past the moment where it was to be stopped.
const ATTEMPTS_MAX: usize = 5;

#[test]
fn everything_is_seen_to_happen_in_its_order() {
    let home = Home::new();
    let output = demo(&home).output().unwrap();
    let said = succeeded(&output);
    let mut rest = said.as_str();
    for milestone in [
        "starts five daemons",
        "leads, term ",
        "hook: elected (election)",
        "all      follow",
        "(kill -9)",
        "leads, term ",
        "hook: elected (",
        "others   follow",
        "to yield",
        "hook: demoted (yield)",
        "leads, term ",
        "hook: elected (",
        "others   follow",
        "again",
        "hook: started (startup)",
        "no takeover without reason",
        "(SIGTERM)",
        "hook: demoted (shutdown)",
        "ended with status 0",
        "takeover",
        "(killed), started",
        "All of it was seen to happen.",
    ] {
        let (_, after) =
            rest.split_once(milestone).unwrap_or_else(|| panic!("{milestone}: {said}"));
        rest = after;
    }
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    nothing_is_left(&home);
}

#[test]
fn signals_end_it_and_its_daemons() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let (home, demo) = halted_in_the_middle();
        demo.send(signal);
        demo.send(Signal::SIGCONT);
        let (status, complaint) = demo.end();
        assert_eq!(status.code(), Some(1), "{complaint}");
        assert!(complaint.contains(&format!("stopped by {signal}")), "{complaint}");
        nothing_is_left(&home);
    }
}

#[test]
fn ctrl_c_on_a_terminal_reaches_the_demo_alone() {
    let (home, _demo) = halted_in_the_middle();
    for daemon in daemons(&home) {
        assert_eq!(getpgid(Some(daemon)).unwrap(), daemon, "a process group of its own");
    }
}

#[test]
fn nobody_else_can_look_into_its_files() {
    let (home, _demo) = halted_in_the_middle();
    let files = fs::read_dir(home.0.path()).unwrap().next().unwrap().unwrap();
    assert_eq!(files.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn the_daemons_die_even_where_the_demo_is_killed() {
    let (home, demo) = halted_in_the_middle();
    demo.send(Signal::SIGKILL);
    demo.end();
    until("the daemons are gone", || daemons(&home).is_empty());
}

#[test]
fn daemons_that_die_unasked_fail_it_and_their_logs_are_shown() {
    let (home, demo) = halted_in_the_middle();
    // One of them the demo itself may be about to kill, the others not.
    daemons(&home).into_iter().for_each(|daemon| kill(daemon, Signal::SIGKILL).unwrap());
    demo.send(Signal::SIGCONT);
    let (status, complaint) = demo.end();
    assert_eq!(status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("ended with signal: 9"), "{complaint}");
    assert!(complaint.contains("The last lines of epsilon's log:\n  "), "{complaint}");
    nothing_is_left(&home);
}

#[test]
fn it_ends_where_nobody_reads_on() {
    let home = Home::new();
    let mut child = demo(&home).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let (status, complaint) = Demo(child).end();
    assert_eq!(status.code(), Some(1));
    assert!(complaint.contains("cannot write to stdout"), "{complaint}");
    nothing_is_left(&home);
}

#[test]
fn a_temporary_directory_with_too_long_a_path_is_named() {
    let home = Home::new();
    let long = home.0.path().join("x".repeat(100));
    fs::create_dir(&long).unwrap();
    let output = demo(&home).env("TMPDIR", &long).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("set TMPDIR"));
    assert_eq!(fs::read_dir(&long).unwrap().count(), 0);
}

#[test]
fn two_demos_do_not_disturb_each_other_or_mind_blanks_in_paths() {
    let homes = [Home::new(), Home::new()];
    let begun = homes.each_ref().map(|home| {
        let blank = home.0.path().join("it's a $HOME");
        fs::create_dir(&blank).unwrap();
        let mut command = demo(home);
        command.env("TMPDIR", &blank).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    });
    for demo in begun {
        succeeded(&demo.wait_with_output().unwrap());
    }
}

#[test]
fn nothing_leaves_by_the_route_to_the_group() {
    isolated("nothing_leaves_by_the_route_to_the_group", || {
        ip("link add wan type veth peer name provider");
        for end in ["wan", "provider"] {
            // Without IPv6, an interface sends nothing by itself.
            ip(&format!("link set {end} addrgenmode none"));
            ip(&format!("link set {end} up"));
        }
        ip("addr add 10.9.9.9/24 dev wan");
        ip("route add default via 10.9.9.1");
        ip("route add 239.0.0.0/8 dev wan");
        until("the carrier", || ip("-br link show wan").contains(" UP "));

        let home = Home::new();
        let (before, on_loopback) = (packets_sent("wan"), packets_sent("lo"));
        succeeded(&demo(&home).output().unwrap());
        assert_eq!(packets_sent("wan"), before);
        assert!(packets_sent("lo") > on_loopback);

        // The counter does count, and the group is routed that way.
        let stray = UdpSocket::bind("0.0.0.0:0").unwrap();
        stray.send_to(b"away", "239.255.0.1:7669").unwrap();
        assert!(packets_sent("wan") > before);
    });
}

#[test]
fn without_a_loopback_it_fails() {
    isolated("without_a_loopback_it_fails", || {
        ip("link set lo down");
        let home = Home::new();
        let output = demo(&home).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{complaint}");
        assert!(complaint.contains("a leader whom all follow"), "{complaint}");
        assert!(complaint.contains("The last lines of alpha's log:"), "{complaint}");
        nothing_is_left(&home);
    });
}

/// A demo's temporary directory. Dropping it kills whatever still works in there.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Home(tempfile::tempdir().unwrap())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for daemon in daemons(self) {
            let _ = kill(daemon, Signal::SIGKILL);
        }
    }
}

/// The demo, with `home` for its temporary directory.
fn demo(home: &Home) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanelect"));
    command.arg("demo").env("TMPDIR", home.0.path()).stdin(Stdio::null());
    command
}

fn succeeded(output: &Output) -> String {
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complaint}");
    said
}

/// A demo under way. Dropping it kills it.
struct Demo(Child);

impl Demo {
    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), signal).unwrap();
    }

    /// How it ends, and what it says on stderr.
    fn end(mut self) -> (ExitStatus, String) {
        let mut complaint = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        (self.0.wait().unwrap(), complaint)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A demo that is held up by SIGSTOP as it kills its first leader. At least four daemons run.
fn halted_in_the_middle() -> (Home, Demo) {
    for _ in 0..ATTEMPTS_MAX {
        let home = Home::new();
        let mut child = demo(&home).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let demo = Demo(child);
        let mut line = String::new();
        while !line.contains("(kill -9)") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "the demo says no more");
        }
        demo.send(Signal::SIGSTOP);
        // Nobody reads any more what it prints: it must be able to print all of it.
        thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        if daemons(&home).len() >= 4 {
            return (home, demo);
        }
    }
    panic!("the demo ran past its middle {ATTEMPTS_MAX} times");
}

/// The processes that work in `home`.
fn daemons(home: &Home) -> Vec<Pid> {
    let home = fs::canonicalize(home.0.path()).unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
        // Fails where the process has ended meanwhile, or is another user's.
        if fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&home)) {
            found.push(Pid::from_raw(pid));
        }
    }
    found
}

fn nothing_is_left(home: &Home) {
    assert_eq!(daemons(home), []);
    assert_eq!(fs::read_dir(home.0.path()).unwrap().count(), 0);
}

/// Runs `body` as root of its own network namespace with its loopback up.
fn isolated(test: &str, body: impl FnOnce()) {
    common::run_inside(test, &["-Urn"], || {
        ip("link set lo up");
        body();
    });
}

/// Runs `ip` and returns what it prints.
fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

fn packets_sent(interface: &str) -> u64 {
    let shown = ip(&format!("-s -j link show {interface}"));
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    shown[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
}
