//! What a host that is flooded shows of it.

use std::fs;

use crate::harness::Host;
use crate::meter::{self, Reading};
use crate::programs::lanelect::status;

/// What has been counted since the daemon, or its host, was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Victim {
    /// Frames that its interface took in.
    pub(crate) arrived: u64,
    /// Datagrams that the daemon took in.
    pub(crate) judged: u64,
    /// Datagrams that its socket had no room for.
    pub(crate) lost: u64,
    /// How often the daemon's role changed.
    pub(crate) transitions: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) resident_kb: u64,
    pub(crate) lines: usize,
}

impl Victim {
    pub(crate) fn look(host: &Host) -> Victim {
        let counters = status(host)["counters"].take();
        let count = |name: &str| counters[name].as_u64().unwrap();
        Victim {
            arrived: arrived(host),
            judged: count("datagrams_received"),
            lost: lost(host),
            transitions: count("transitions"),
            cpu_ns: Reading::of(host).cpu_ns,
            resident_kb: meter::memory(host).0,
            lines: fs::read_to_string(host.path("bench.log")).unwrap().lines().count(),
        }
    }
}

fn arrived(host: &Host) -> u64 {
    let table = read(host, "/proc/thread-self/net/dev");
    let line = table.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn lost(host: &Host) -> u64 {
    let table = read(host, "/proc/thread-self/net/snmp");
    let mut udp = table.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, counts) = (udp.next().unwrap(), udp.next().unwrap());
    let mut pairs = names.split_whitespace().zip(counts.split_whitespace());
    pairs.find(|(name, _)| *name == "RcvbufErrors").unwrap().1.parse().unwrap()
}

fn read(host: &Host, path: &str) -> String {
    host.run(|| fs::read_to_string(path).unwrap())
}
