//! How much a group may grow: traffic, elections and start-up with 3 to 5,000 nodes.
//!
//! ```text
//! cargo bench --bench scale
//! cargo bench --bench scale -- 10 100 1000     simulated groups of these sizes alone
//! cargo bench --bench scale -- keyed 1000      the same with a key, where newcomers show that they are there
//! cargo bench --bench scale -- daemons         a hundred real daemons alone
//! ```
//!
//! First the election of the daemon on a simulated network, where a datagram takes 0.2 ms and none
//! is lost; then a hundred daemons in network namespaces. All at the default settings.
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
mod summary;

use std::env;

use harness::patience::now;
use lanelect::core::params::Params;
use lanelect::types::KeyMode;

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
    let sizes: Vec<usize> = asked.iter().filter_map(|word| word.parse().ok()).collect();
    let params = Params {
        key_mode: asked.iter().any(|word| word == "keyed").then_some(KeyMode::Require),
        ..Params::default()
    };
    if sizes.is_empty() {
        simulate(&SIZES, &params);
        daemons::measure();
    } else {
        simulate(&sizes, &params);
    }
}

fn simulate(sizes: &[usize], params: &Params) {
    let mut samples = Vec::new();
    for size in sizes {
        let begun = now();
        samples.push(measure::measure(*size, params));
        println!("  {size} nodes: simulated in {:.1} s", begun.elapsed().as_secs_f64());
    }
    println!();
    summary::print(&samples);
}
