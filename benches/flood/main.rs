//! What a flood does to a group with a key: somebody on its LAN sends what is not to count, 100,000
//! frames a second, or as many as this machine can send.
//!
//! ```text
//! cargo bench --bench flood
//! LANELECT_BENCH_FLOOD=10s LANELECT_BENCH_RATE=50000 cargo bench --bench flood -- at_100ms
//! ```
//!
//! Three hosts with a daemon, one that floods them and one that listens, in network namespaces on a
//! bridge of the kernel. All of them share this machine's cores, so that a daemon has less of them
//! the more is sent, which is not so on hosts of their own; where that may be set, they go before
//! the flood, as their unit has it. What is sent, and how much of each kind, is in
//! `tests/lan/harness/flood.rs`: forged, malformed, foreign and replayed datagrams, many from the
//! addresses of the group's own nodes.
//!
//! The listener takes the time of each declaration from the kernel, when the frame arrives; it
//! hears nothing but the leader. What is sent and what a host's interface takes in are counted by
//! the kernel, and so is what its sockets have no room for.
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
#[path = "../cost/meter.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod meter;
#[path = "../options/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod options;
#[path = "../programs/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod programs;
#[path = "../report/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod report;

mod keyed;
mod victim;

use std::env;
use std::time::Duration;

use fastrand::Rng;
use harness::flood::{Flood, Mix};
use harness::lan::scenario_with;
use harness::patience::{now, pass};
use harness::tap::{Heard, Recorder, Tap};
use harness::{Host, Lan};
use keyed::Keyed;
use programs::{Group, HOSTS};
use report::{Samples, Table};
use victim::Victim;

/// How long the flood lasts.
const FLOOD: &str = "LANELECT_BENCH_FLOOD";
const USUAL_FLOOD: Duration = Duration::from_secs(30);

/// Frames a second.
const RATE: &str = "LANELECT_BENCH_RATE";
const USUAL_RATE: u32 = 100_000;

/// Threads that send. One alone does not fill two cores.
const SENDERS: u32 = 2;

/// More than any machine sends.
const LINE_RATE: u32 = u32::MAX;

const MEASUREMENTS: [(&str, fn()); 3] =
    [("at_100ms", at_100ms), ("at_1s", at_1s), ("at_line_rate", at_line_rate)];

fn main() {
    options::run(&MEASUREMENTS);
}

fn at_100ms() {
    scenario_with(programs::needs(), |lan, hosts| measure(lan, hosts, "100ms", asked_rate()));
}

fn at_1s() {
    scenario_with(programs::needs(), |lan, hosts| measure(lan, hosts, "1s", asked_rate()));
}

fn at_line_rate() {
    scenario_with(programs::needs(), |lan, hosts| measure(lan, hosts, "100ms", LINE_RATE));
}

fn asked_rate() -> u32 {
    env::var(RATE).map_or(USUAL_RATE, |text| text.parse().expect("frames a second"))
}

fn measure(
    lan: &Lan,
    [hosts @ .., attacker, listener]: [&Host; HOSTS + 2],
    every: &str,
    rate: u32,
) {
    let interval = humantime::parse_duration(every).unwrap();
    let window = options::duration(FLOOD, USUAL_FLOOD);
    lan.use_bridges();
    let captor = Recorder::start(Tap::on(attacker));
    let group = Group::start(&Keyed, hosts, interval);
    group.settled_leader();
    for host in 0..HOSTS {
        group.terminate(host);
        group.restart(host);
    }
    let leader = group.settled_leader();
    let captured = captor.datagrams();
    drop(captor);
    let mac = |host| Tap::deaf_on(host).mac();
    let random = Rng::with_seed(lan.seed);
    let mix = Mix { random, mac: mac(attacker), members: &hosts, captured: &captured };
    let frames = mix.frames();
    let listen = || Recorder::start(Tap::on(listener).hearing_only(mac(hosts[leader])));

    let quiet = listen();
    pass(window / 3);
    let quiet = gaps("quiet", &quiet.datagrams(), interval);

    let before = hosts.map(Victim::look);
    let (flooded, started) = (listen(), now());
    let flood = Flood::start(attacker, frames, rate, SENDERS);
    pass(window);
    let (sent, lasted) = (flood.sent(), started.elapsed());
    let after = hosts.map(Victim::look);
    drop(flood);
    let flooded = gaps("in the flood", &flooded.datagrams(), interval);
    let promotions = group.bell.rings().len();

    let asked = if rate == LINE_RATE { "any rate".to_owned() } else { format!("{rate} a second") };
    println!("Flood of {lasted:.1?}, interval {every}, asked for {asked}");
    println!(
        "  {:.0} frames a second were sent; promotions: {promotions}",
        per_second(sent, lasted)
    );
    println!("{}", rhythm(&[quiet, flooded]));
    println!("{}", victims(leader, &before, &after, lasted));
}

fn per_second(count: u64, lasted: Duration) -> f64 {
    count as f64 / lasted.as_secs_f64()
}

/// The times between two declarations, in intervals.
fn gaps(name: &str, heard: &[Heard], interval: Duration) -> Samples {
    let times: Vec<Duration> = heard.iter().filter_map(keyed::declared_at).collect();
    let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]).div_duration_f64(interval));
    Samples::new(name, gaps.collect())
}

fn rhythm(sets: &[Samples]) -> Table {
    let headings = ["between declarations, in intervals", "median", "99 %", "min", "max", "n"];
    let mut table = Table::new(1, headings);
    for set in sets {
        let figures = [set.median(), quantile(set, 0.99), set.min(), set.max()];
        let figures = figures.map(|figure| format!("{figure:.3}"));
        let cells = [set.name.clone()].into_iter().chain(figures);
        table.row(cells.chain([set.values().len().to_string()]));
    }
    table
}

/// The least that is above so large a part of them.
fn quantile(set: &Samples, part: f64) -> f64 {
    let below = (set.values().len() as f64 * part) as usize;
    set.values()[below.min(set.values().len() - 1)]
}

fn victims(leader: usize, before: &[Victim], after: &[Victim], lasted: Duration) -> Table {
    let headings = [
        "",
        "arrived/s",
        "judged/s",
        "lost/s",
        "CPU",
        "RSS kB",
        "more",
        "log lines",
        "transitions",
    ];
    let mut table = Table::new(1, headings);
    for (host, (before, after)) in before.iter().zip(after).enumerate() {
        let rate = |what: fn(&Victim) -> u64| {
            format!("{:.0}", per_second(what(after) - what(before), lasted))
        };
        let cpu = Duration::from_nanos(after.cpu_ns - before.cpu_ns).div_duration_f64(lasted);
        table.row([
            if host == leader { "leader" } else { "follower" }.to_owned(),
            rate(|victim| victim.arrived),
            rate(|victim| victim.judged),
            rate(|victim| victim.lost),
            format!("{:.0} %", cpu * 100.0),
            before.resident_kb.to_string(),
            (after.resident_kb as i64 - before.resident_kb as i64).to_string(),
            (after.lines - before.lines).to_string(),
            (after.transitions - before.transitions).to_string(),
        ]);
    }
    table
}
