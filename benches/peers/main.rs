//! What unicast costs a group: lanelect with peers beside lanelect by multicast and beside
//! keepalived with `unicast_peer`, in groups of 3 to 64 hosts.
//!
//! ```text
//! cargo bench --bench peers
//! LANELECT_BENCH_SAMPLES=5 LANELECT_BENCH_COST=15s cargo bench --bench peers -- three_hosts
//! ```
//!
//! Each group has its own hosts, which are network namespaces, and its own bridge of the kernel.
//! keepalived runs twice, one after the other: at its default interval, and at the one that makes
//! its takeover as long as lanelect's. The two groups of lanelect run beside it both times.
//!
//! The groups take turns. In each round the leader of each one is killed at the same phase of its
//! interval, and the phases of all rounds cover the interval evenly. So chance does not make one
//! median longer than another.
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
mod options;
#[path = "../programs/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod programs;
#[path = "../report/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod report;

mod contest;
mod counter;
mod sheet;
mod wires;

use std::time::Duration;

use contest::Contest;
use harness::lan::scenario_with;
use harness::patience::pass;
use harness::{Host, Lan};
use programs::{Carrier, Contender, Pace, YARDSTICK};
use sheet::Sheet;

/// For how long the calm groups are watched, all windows together.
const WINDOW: &str = "LANELECT_BENCH_COST";
const USUAL_WINDOW: Duration = Duration::from_secs(60);

/// How many windows there are. The median counts.
const WINDOWS: u32 = 3;

/// How long a group is left alone before it counts as settled. keepalived announces its address a
/// second time after five seconds, and a member of a large group sends a heartbeat in six.
const SETTLING: Duration = Duration::from_secs(12);

/// Groups that run at one time.
const GROUPS: usize = 3;

const MEASUREMENTS: [(&str, fn()); 4] = [
    ("three_hosts", three_hosts),
    ("ten_hosts", ten_hosts),
    ("thirty_hosts", thirty_hosts),
    ("sixty_four_hosts", sixty_four_hosts),
];

fn main() {
    options::run(&MEASUREMENTS);
}

fn three_hosts() {
    scenario_with(programs::needs(), |lan, hosts: [_; 3 * GROUPS]| measure(lan, &hosts));
}

fn ten_hosts() {
    scenario_with(programs::needs(), |lan, hosts: [_; 10 * GROUPS]| measure(lan, &hosts));
}

fn thirty_hosts() {
    scenario_with(programs::needs(), |lan, hosts: [_; 30 * GROUPS]| measure(lan, &hosts));
}

fn sixty_four_hosts() {
    scenario_with(programs::needs(), |lan, hosts: [_; 64 * GROUPS]| measure(lan, &hosts));
}

fn measure(lan: &Lan, hosts: &[&Host]) {
    let size = hosts.len() / GROUPS;
    let seats: Vec<&[&Host]> = hosts.chunks_exact(size).collect();
    wires::lay(lan, &seats);
    let lanelect = Contender::new(&programs::lanelect::Lanelect, Pace::Default);
    let takeover = lanelect.interval.mul_f64(lanelect.program.takeover());
    let (mut multicast, mut peers) = (Sheet::new("multicast"), Sheet::new("peers"));
    let mut others = Vec::new();
    for pace in [Pace::Default, Pace::Takeover(takeover)] {
        let contenders = programs::available(pace);
        let mut contests = vec![
            Contest::start(multicast, Carrier::Multicast, lanelect, seats[0]),
            Contest::start(peers, Carrier::Peers, lanelect, seats[1]),
        ];
        let other = contenders.iter().find(|contender| contender.program.name() == YARDSTICK);
        contests.extend(other.map(|other| {
            let sheet = Sheet::new(&format!("{YARDSTICK}, {:?}", other.interval));
            Contest::start(sheet, Carrier::Peers, *other, seats[2])
        }));
        run(&mut contests);
        let mut finished = contests.into_iter().map(Contest::finish);
        (multicast, peers) = (finished.next().unwrap(), finished.next().unwrap());
        others.extend(finished);
    }
    others.splice(0..0, [multicast, peers]);
    sheet::print(size, &others);
}

/// Measures groups that have just started, side by side.
fn run(contests: &mut [Contest<'_>]) {
    for contest in contests.iter() {
        contest.settle();
    }
    pass(SETTLING);
    let window = options::duration(WINDOW, USUAL_WINDOW) / WINDOWS;
    (0..WINDOWS).for_each(|_| contest::watch(contests, window));
    let samples = options::samples();
    for round in 0..samples {
        let phase = (round as f64 + 0.5) / samples as f64;
        contests.iter_mut().for_each(|contest| contest.take_over(phase));
    }
    for _ in 0..samples {
        contests.iter_mut().for_each(Contest::hand_over);
    }
}
