//! What is measured on a simulated group of one size.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use lanelect::core::params::Params;
use lanelect::time::Time;

use super::group::{Group, ROUTINE, Tally};
use super::harness::patience::now;

/// All nodes start within this time.
const START_SPREAD: Duration = Duration::from_millis(100);

/// A group that has no leader by then is said to have none.
const PATIENCE: Duration = Duration::from_secs(60);

/// Groups that are started.
const STARTS: usize = 11;

/// How long a group is left alone before it counts as settled, in heartbeat intervals.
const SETTLING: u32 = 5;

/// The steady state is waited for and then watched, for so many seconds each; and for longer in a
/// large group, where each node hears so many others in a second and has heard all of them only
/// then.
const STEADY: u64 = 10;
const HEARD_PER_SECOND: u64 = 32;

/// Leaders that are killed, one after the other.
const TAKEOVERS: usize = 11;

/// A group from this size on fills memory with tables of members, and with little else.
const LARGE: usize = 300;

/// Nothing is begun again, nor watched further, once a measurement has taken so long.
const MEASUREMENT_LIMIT: Duration = Duration::from_secs(60);

/// What was measured at one size.
pub(crate) struct Sample {
    pub(crate) size: usize,
    pub(crate) startups: Vec<Startup>,
    pub(crate) steady: Steady,
    pub(crate) takeovers: Vec<Takeover>,
    /// Resident memory of the whole simulation for each entry of a table of members, where those
    /// take most of it.
    pub(crate) bytes_per_member: Option<u64>,
}

/// All nodes start at once.
pub(crate) struct Startup {
    /// Until one leads and all the others follow it.
    pub(crate) took: Option<Duration>,
    /// How often a node became the leader until the group had settled, and how often one lost it.
    pub(crate) accessions: u64,
    pub(crate) demotions: u64,
    /// Most datagrams that one node received in one second.
    pub(crate) busiest_second: u32,
}

/// Nothing happens.
pub(crate) struct Steady {
    /// When that began, after the start of all.
    pub(crate) from: Duration,
    /// For how long it was watched.
    pub(crate) seconds: u64,
    /// Datagrams received by a node in a second: the mean, and the most of any node in any second.
    pub(crate) mean: f64,
    pub(crate) busiest_second: u32,
}

/// The leader dies.
pub(crate) struct Takeover {
    pub(crate) led_after: Duration,
    pub(crate) followed_after: Duration,
    /// Datagrams by their kind, from the death until half an interval after all follow.
    pub(crate) sent: BTreeMap<String, u64>,
}

impl Takeover {
    /// Datagrams that would not have been sent otherwise.
    pub(crate) fn datagrams(&self) -> u64 {
        self.sent.iter().filter(|(kind, _)| *kind != ROUTINE).map(|(_, sent)| sent).sum()
    }

    pub(crate) fn routine_heartbeats(&self) -> u64 {
        self.sent.get(ROUTINE).copied().unwrap_or(0)
    }

    /// What the datagrams were that would not have been sent otherwise.
    pub(crate) fn kinds(&self) -> String {
        let kinds = self.sent.iter().filter(|(kind, _)| *kind != ROUTINE);
        kinds.map(|(kind, sent)| format!("{sent} {kind}")).collect::<Vec<_>>().join(", ")
    }
}

/// Measures a group of `size` nodes.
pub(crate) fn measure(size: usize, params: &Params) -> Sample {
    let (startups, mut group) = measure_startups(size, params);
    let steady = measure_steady(&mut group, size);
    let bytes_per_member = (size >= LARGE).then(|| resident_memory() / (size * (size - 1)) as u64);
    let takeovers = measure_takeovers(&mut group);
    Sample { size, startups, steady, takeovers, bytes_per_member }
}

/// Starts several groups; returns the last one too, settled.
fn measure_startups(size: usize, params: &Params) -> (Vec<Startup>, Group) {
    let begun = now();
    let mut startups = Vec::new();
    loop {
        let mut group = Group::start(size, params, START_SPREAD, (size + startups.len()) as u64);
        let took = group.run_until_led(PATIENCE).map(|_| group.now.since(Time::ZERO));
        group.run_for(heartbeat() * SETTLING);
        let Tally { accessions, demotions, busiest_second, .. } = group.take_tally();
        startups.push(Startup { took, accessions, demotions, busiest_second });
        if startups.len() == STARTS || begun.elapsed() > MEASUREMENT_LIMIT {
            return (startups, group);
        }
    }
}

/// Lets all come to know each other, and then watches for as long again.
fn measure_steady(group: &mut Group, size: usize) -> Steady {
    let cycle = STEADY.max(size as u64 / HEARD_PER_SECOND);
    group.run_for(Duration::from_secs(cycle));
    let from = group.now.since(Time::ZERO);
    group.take_tally();
    let seconds = run_in_time(group, cycle);
    let Tally { received, busiest_second, .. } = group.take_tally();
    let mean = received as f64 / size as f64 / seconds as f64;
    Steady { from, seconds, mean, busiest_second }
}

/// Runs for so many seconds, or for as many as can be simulated in time; returns how many.
fn run_in_time(group: &mut Group, seconds: u64) -> u64 {
    let begun = now();
    for second in 1..=seconds {
        group.run_for(Duration::from_secs(1));
        if begun.elapsed() > MEASUREMENT_LIMIT {
            return second;
        }
    }
    seconds
}

/// Kills several leaders, one after the other; fewer where one has no successor.
fn measure_takeovers(group: &mut Group) -> Vec<Takeover> {
    let begun = now();
    let mut takeovers = Vec::new();
    while let Some(takeover) = measure_takeover(group) {
        takeovers.push(takeover);
        if takeovers.len() == TAKEOVERS || begun.elapsed() > MEASUREMENT_LIMIT {
            break;
        }
    }
    takeovers
}

/// Kills the leader at any moment between two declarations; it is back for the next time.
fn measure_takeover(group: &mut Group) -> Option<Takeover> {
    let phase = group.random_duration(heartbeat());
    group.run_for(heartbeat() * SETTLING + phase);
    let leader = group.leader()?;
    group.take_tally();
    let crash = group.now;
    group.crash(leader);
    group.run_until_led(PATIENCE)?;
    let followed_after = group.now.since(crash);
    group.run_for(heartbeat() / 2);
    let Tally { last_accession, sent, .. } = group.take_tally();
    group.start_node(leader);
    Some(Takeover { led_after: last_accession.since(crash), followed_after, sent })
}

/// The default interval between declarations.
pub(crate) fn heartbeat() -> Duration {
    Params::default().heartbeat_interval
}

/// Resident memory of this process, in bytes.
fn resident_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib * 1024
}
