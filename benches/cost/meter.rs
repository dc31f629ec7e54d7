//! What the programs on a host use, read from `/proc`.
//!
//! Nothing else runs on the hosts, so every process in a host's network namespace is the program's.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::unistd::Pid;

use crate::harness::Host;
use crate::programs::{HOSTS, sent};

/// How long `strace` may take to start and to end.
const STRACE_SLACK: Duration = Duration::from_secs(10);

/// What has been used since the program started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// Time on a core, in nanoseconds, of all threads.
    pub(crate) cpu_ns: u64,
    /// How often a thread gave up its core to wait for something.
    pub(crate) waits: u64,
    /// Frames that have left the host.
    pub(crate) frames: u64,
    /// Bytes of these, with their Ethernet headers.
    pub(crate) bytes: u64,
}

impl Reading {
    pub(crate) fn of(host: &Host) -> Reading {
        let (frames, bytes) = sent(host);
        let tasks = tasks(host);
        let sum = |value: fn(&str) -> u64| tasks.iter().map(|task| value(task)).sum();
        Reading { cpu_ns: sum(cpu_ns), waits: sum(waits), frames, bytes }
    }
}

/// Resident and proportional set of the program on a host, in kilobytes. What its processes share
/// is counted for each of them in the first; in the second it is divided by all on this machine
/// that share it, those of the other hosts included.
pub(crate) fn memory(host: &Host) -> (u64, u64) {
    let processes = host.processes().into_iter();
    let rollups = processes.map(|pid| read(&format!("/proc/{pid}/smaps_rollup")));
    let sizes = rollups.map(|text| (number_after(&text, "Rss:"), number_after(&text, "Pss:")));
    sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
}

/// The system calls of the program on each host within so long. The error says why they cannot be
/// counted here.
pub(crate) fn system_calls(
    hosts: [&Host; HOSTS],
    lasting: Duration,
) -> Result<[u64; HOSTS], String> {
    let mut counts = [0; HOSTS];
    let tracers = hosts.map(|host| trace(host, lasting));
    for ((count, tracer), host) in counts.iter_mut().zip(tracers).zip(hosts) {
        let output = tracer.wait_with_output().unwrap();
        let summary = fs::read_to_string(host.path("strace")).unwrap_or_default();
        let total = summary.lines().find_map(|line| line.trim().strip_suffix(" total"));
        *count = total
            .and_then(|calls| calls.trim().parse().ok())
            .ok_or_else(|| String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "))?;
    }
    Ok(counts)
}

/// Counts the system calls on a host for so long, into its file `strace`.
fn trace(host: &Host, lasting: Duration) -> Child {
    let path = host.path("strace");
    let _ = fs::remove_file(&path);
    let slack = format!("--kill-after={}", STRACE_SLACK.as_secs());
    let mut command = Command::new("timeout");
    command.args(["--signal=INT", &slack, &lasting.as_secs_f64().to_string()]);
    command.args(["strace", "-f", "-c", "-U", "calls,name", "-o", &path]);
    command.args(host.processes().iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The directories of all threads on a host.
fn tasks(host: &Host) -> Vec<String> {
    let of = |pid: Pid| {
        let entries = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        entries.map(|entry| entry.unwrap().path().display().to_string())
    };
    host.processes().into_iter().flat_map(of).collect()
}

fn cpu_ns(task: &str) -> u64 {
    read(&format!("{task}/schedstat")).split_whitespace().next().unwrap().parse().unwrap()
}

fn waits(task: &str) -> u64 {
    number_after(&read(&format!("{task}/status")), "\nvoluntary_ctxt_switches:")
}

/// The number that follows this word.
fn number_after(text: &str, word: &str) -> u64 {
    let (_, rest) = text.split_once(word).unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
