//! What is measured on a simulated group of one size.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use lanelect::core::params::Params;
use lanelect::time::Time;

use super::group::{Group, ROUTINE, Tally};

/// All nodes start within this time.
const START_SPREAD: Duration = Duration::from_millis(100);

/// A group that has no leader by then is said to have none.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long a group is left alone before it counts as settled, in heartbeat intervals.
const SETTLING: u32 = 5;

/// The steady state is looked at for so many seconds at least, and for longer in a large group, where
/// nodes speak so rarely that each hears about so many in a second.
const STEADY: u64 = 10;
const HEARD_PER_SECOND: u64 = 32;

/// Leaders that are killed, one after the other.
const TAKEOVERS: usize = 11;

/// A group from this size on fills memory with tables of members, and with little else.
const LARGE: usize = 300;

/// Nothing more is begun in a group of one size once so many datagrams were received, all nodes
/// together: some minutes.
const RECEIVED_MAX: u64 = 150_000_000;

/// What was measured at one size.
pub(crate) struct Sample {
    pub(crate) size: usize,
    pub(crate) startup: Startup,
    pub(crate) steady: Steady,
    pub(crate) takeovers: Vec<Takeover>,
    /// Resident memory of the whole simulation for each entry of a table of members, where those take
    /// most of it.
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
pub(crate) fn measure(size: usize) -> Sample {
    let mut group = Group::start(size, START_SPREAD, size as u64);
    let took = group.run_until_led(PATIENCE).map(|_| group.now.since(Time::ZERO));
    group.run_for(heartbeat() * SETTLING);
    let begun = group.take_tally();
    let bytes_per_member = (size >= LARGE).then(|| resident_memory() / (size * (size - 1)) as u64);
    let startup = Startup {
        took,
        accessions: begun.accessions,
        demotions: begun.demotions,
        busiest_second: begun.busiest_second,
    };
    let mut budget = Budget(RECEIVED_MAX.saturating_sub(begun.received));
    let steady = measure_steady(&mut group, size, &mut budget);
    let mut takeovers = Vec::new();
    // A group without a takeover says little, whatever it costs.
    while takeovers.len() < TAKEOVERS && (budget.0 > 0 || takeovers.is_empty()) {
        let Some(takeover) = measure_takeover(&mut group, &mut budget) else { break };
        takeovers.push(takeover);
    }
    Sample { size, startup, steady, takeovers, bytes_per_member }
}

/// How many more datagrams may be received, all nodes together.
struct Budget(u64);

impl Budget {
    fn spend(&mut self, tally: &Tally) {
        self.0 = self.0.saturating_sub(tally.received);
    }
}

/// Watches for as long as everyone needs to be heard, or until half of the budget is spent.
fn measure_steady(group: &mut Group, size: usize, budget: &mut Budget) -> Steady {
    let longest = STEADY.max(size as u64 / HEARD_PER_SECOND);
    let mut seconds = 0;
    while seconds < longest && (seconds == 0 || group.tally().received < budget.0 / 2) {
        group.run_for(Duration::from_secs(1));
        seconds += 1;
    }
    let tally = group.take_tally();
    budget.spend(&tally);
    let mean = tally.received as f64 / size as f64 / seconds as f64;
    Steady { mean, busiest_second: tally.busiest_second }
}

/// Kills the leader at any moment between two declarations; it is back for the next time.
fn measure_takeover(group: &mut Group, budget: &mut Budget) -> Option<Takeover> {
    let phase = group.random_duration(heartbeat());
    group.run_for(heartbeat() * SETTLING + phase);
    let leader = group.leader()?;
    budget.spend(&group.take_tally());
    let crash = group.now;
    group.crash(leader);
    group.run_until_led(PATIENCE)?;
    let followed_after = group.now.since(crash);
    let led_after = group.tally().last_accession.since(crash);
    group.run_for(heartbeat() / 2);
    let tally = group.take_tally();
    budget.spend(&tally);
    group.start_node(leader);
    Some(Takeover { led_after, followed_after, sent: tally.sent })
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
