//! What clients of a load balancer notice of a failover: HAProxy sends them to the host whose
//! `lanelect-http` answers `/leader` with 200.
//!
//! ```text
//! cargo bench --bench balancer
//! LANELECT_BENCH_SAMPLES=5 cargo bench --bench balancer -- in_quorum
//! ```
//!
//! Three hosts, each with a daemon and `lanelect-http`, and a fourth one with HAProxy, configured
//! by `examples/haproxy/haproxy.cfg`, and with clients that never pause. What they ask for is
//! `/leader` itself, so that each answer says who was the leader when it was given. In one failover
//! after the other the leader's daemon is killed, its host is cut off, its daemon is stopped, or
//! the leader is told to yield.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark fails by panicking, in its helpers too"
)]
#![expect(clippy::disallowed_methods, reason = "it measures real hosts, in real time")]

#[path = "../../tests/lan/harness/mod.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
#[expect(unused_imports, reason = "the tests need more of it")]
mod harness;
#[path = "../options/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod options;
#[path = "../report/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod report;

mod clients;
mod servers;

use std::fmt;
use std::time::{Duration, Instant};

use clients::{Answer, Clients};
use harness::inside::Needs;
use harness::lan::scenario_with;
use harness::patience::{now, pass, wait_for};
use harness::{Host, Lan};
use report::{Samples, Table};
use servers::Servers;

const MEASUREMENTS: [(&str, fn()); 2] =
    [("in_available_mode", in_available_mode), ("in_quorum_mode", in_quorum_mode)];

/// The longest that one measurement may take.
const LIMIT: Duration = Duration::from_secs(3600);

fn main() {
    options::run(&MEASUREMENTS);
}

fn in_available_mode() {
    scenario_with(needs(), |lan, hosts| measure(lan, hosts, "available mode", ""));
}

/// The grace is for the hook to release everything; this one has little to do.
fn in_quorum_mode() {
    let lines = "mode = \"quorum\"\nvoters = [\"h1\", \"h2\", \"h3\"]\ndemote_grace = \"500ms\"\n";
    let title = "quorum mode, demote_grace = 500ms";
    scenario_with(needs(), |lan, hosts| measure(lan, hosts, title, lines));
}

fn needs() -> Needs {
    Needs { limit: LIMIT, real_root: true, trial: servers::trial }
}

/// How a leader comes to its end.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Killed,
    CutOff,
    Stopped,
    Yields,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::Killed => "daemon killed",
            Ending::CutOff => "host cut off",
            Ending::Stopped => "daemon stopped",
            Ending::Yields => "told to yield",
        })
    }
}

const ENDINGS: [Ending; 4] = [Ending::Killed, Ending::CutOff, Ending::Stopped, Ending::Yields];

fn measure(lan: &Lan, hosts: [&Host; 4], title: &str, lines: &str) {
    let [a, b, c, balancer] = hosts;
    let servers = Servers::start(lan, [a, b, c], balancer, lines);
    let clients = Clients::start(balancer);
    let headings =
        ["ms", "errors for, median", "longest", "successor after, median", "n", "late answers"];
    let mut table = Table::new(1, headings);
    for ending in ENDINGS {
        let observe = |_| Failover::observe(lan, &servers, &clients, ending);
        let failovers: Vec<_> = (0..options::samples()).map(observe).collect();
        row(&mut table, ending, &failovers);
    }
    println!("What {} requests through HAProxy met, {title}\n{table}", clients.stop());
}

/// What clients met.
struct Failover {
    /// From the first request that failed to the last one.
    errors: Duration,
    /// From the leader's end to the successor's first answer.
    successor: Duration,
    /// Answers as leader by the old leader, to requests that began after the successor's first
    /// answer.
    late: usize,
}

impl Failover {
    fn observe(lan: &Lan, servers: &Servers<'_>, clients: &Clients, ending: Ending) -> Failover {
        let leader = servers.settled_leader(clients);
        let begun = now();
        servers.end(lan, leader, ending);
        let others = |answer: &Answer| answer.leader.as_ref().is_some_and(|it| *it != leader.name);
        let first =
            wait_for("the successor answers", || clients.since(begun).into_iter().find(others));
        // Whatever the old one may still answer.
        pass(Duration::from_millis(300));
        let answers = clients.since(begun);
        servers.mend(lan, leader, ending);
        Failover {
            errors: span_of_errors(&answers),
            successor: first.end - begun,
            late: late_answers(&answers, &leader.name, first.end),
        }
    }
}

fn span_of_errors(answers: &[Answer]) -> Duration {
    let failed = || answers.iter().filter(|answer| answer.leader.is_none());
    let (first, last) = (failed().map(|it| it.start).min(), failed().map(|it| it.end).max());
    first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first)
}

fn late_answers(answers: &[Answer], old: &str, successor: Instant) -> usize {
    let is_old = |answer: &&Answer| answer.leader.as_deref() == Some(old);
    answers.iter().filter(is_old).filter(|answer| answer.start > successor).count()
}

fn row(table: &mut Table, ending: Ending, failovers: &[Failover]) {
    let millis = |of: fn(&Failover) -> Duration| {
        let values = failovers.iter().map(|it| of(it).as_secs_f64() * 1000.0).collect();
        Samples::new(ending.to_string(), values)
    };
    let (errors, successor) = (millis(|it| it.errors), millis(|it| it.successor));
    let late: usize = failovers.iter().map(|it| it.late).sum();
    let times = [errors.median(), errors.max(), successor.median()];
    let cells = [ending.to_string()].into_iter().chain(times.map(|time| format!("{time:.0}")));
    table.row(cells.chain([failovers.len().to_string(), late.to_string()]));
}
