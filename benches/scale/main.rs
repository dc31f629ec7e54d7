//! How much a group may grow: traffic, elections and start-up with 3 to 5,000 nodes.
//!
//! ```text
//! cargo bench --bench scale
//! cargo bench --bench scale -- 10 100 1000     groups of these sizes alone
//! ```
//!
//! The election of the daemon, at its default settings, on a simulated network where a datagram takes
//! 0.2 ms and none is lost.
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
#[path = "../report/mod.rs"]
#[expect(dead_code, reason = "other benchmarks need more of it")]
mod report;

mod daemons;
mod group;
mod measure;

use std::env;

use measure::{Sample, Takeover, measure};

/// From what VRRP is used for to far beyond what multicast is used for.
const SIZES: [usize; 8] = [3, 10, 30, 100, 300, 1000, 3000, 5000];

fn main() {
    let asked: Vec<String> = env::args().skip(1).collect();
    if asked.iter().any(|word| word == daemons::NAME) {
        return daemons::measure();
    }
    if !asked.iter().any(|word| word == "--bench") {
        return println!("measures only under `cargo bench`");
    }
    let mut sizes: Vec<usize> = asked.iter().filter_map(|word| word.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    println!("{HEADER}");
    for size in sizes {
        let sample = measure(size);
        println!("{}", row(&sample));
    }
}

const HEADER: &str = "\
\x20      | start-up of all at once              | received per s | leader killed, median (most)                        | bytes per
 nodes | led after  leaders demoted in 1 s    | mean   in 1 s  |  n  leads ms     all follow   datagrams  heartbeats | member";

fn row(sample: &Sample) -> String {
    let Sample { size, startup, steady, elections, bytes_per_member } = sample;
    let took =
        startup.took.map_or("never".to_owned(), |took| format!("{:.2} s", took.as_secs_f64()));
    let times = |what: fn(&Takeover) -> f64| spread(elections, what);
    format!(
        "{size:>6} | {took:>9} {:>8} {:>7} {:>7}   | {:>6.1} {:>6}  | {:>2} {:>12} {:>12} {:>12} {:>10}  | {bytes_per_member}",
        startup.accessions,
        startup.demotions,
        startup.busiest_second,
        steady.mean,
        steady.busiest_second,
        elections.len(),
        times(|takeover| takeover.led_after.as_secs_f64() * 1e3),
        times(|takeover| takeover.followed_after.as_secs_f64() * 1e3),
        times(|takeover| takeover.datagrams() as f64),
        times(|takeover| takeover.routine_heartbeats() as f64),
    )
}

/// Median and greatest.
fn spread(elections: &[Takeover], what: fn(&Takeover) -> f64) -> String {
    let mut values: Vec<f64> = elections.iter().map(what).collect();
    values.sort_by(f64::total_cmp);
    match values.as_slice() {
        [] => "-".to_owned(),
        [.., last] => format!("{:.0} ({last:.0})", values[values.len() / 2]),
    }
}
