//! How long it takes on real hosts until there is a leader again, and how often one is replaced
//! that is well: lanelect beside keepalived and ucarp, and its quorum mode beside its available
//! mode.
//!
//! ```text
//! cargo bench --bench failover
//! cargo bench --bench failover -- takeover
//! LANELECT_BENCH_SAMPLES=5 LANELECT_BENCH_LOSS=60s LANELECT_BENCH_BUSY=60s cargo bench --bench failover
//! ```
//!
//! The hosts are network namespaces joined by the switch of `tests/lan`: it floods every frame, so
//! VRRP, CARP and UDP pass alike and all programs run over the same wire, one after the other. It
//! can cut a host off between two frames, and loses frames by dice for each receiver.
//!
//! Every program runs with its default settings apart from the interval, and from the ranks of the
//! hosts where it needs them. A promotion script is one shell that writes one line into a pipe,
//! which is noticed at once.
//!
//! `-- picture` draws `target/bench/failover.svg`, the README's picture, from the takeovers that
//! were measured last.
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
mod options;
#[path = "../programs/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod programs;
#[path = "../report/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod report;

mod false_takeovers;
mod handover;
mod picture;
mod quorum;
mod takeover;

use std::time::Duration;

use programs::YARDSTICK;
use report::{Samples, Table, ratio};

const MEASUREMENTS: [(&str, fn()); 13] = [
    ("takeover::by_default", takeover::by_default),
    ("takeover::at_100ms", takeover::at_100ms),
    ("picture::of_takeovers", picture::of_takeovers),
    ("handover::by_default", handover::by_default),
    ("handover::at_100ms", handover::at_100ms),
    ("false_takeovers::under_loss", false_takeovers::under_loss),
    ("false_takeovers::under_loss_at_100ms", false_takeovers::under_loss_at_100ms),
    ("false_takeovers::on_busy_cores", false_takeovers::on_busy_cores),
    ("quorum::three_nodes_available", quorum::three_nodes_available),
    ("quorum::three_voters_without_grace", quorum::three_voters_without_grace),
    ("quorum::three_voters_with_grace", quorum::three_voters_with_grace),
    ("quorum::five_voters_split_3_2", quorum::five_voters_split_3_2),
    ("quorum::five_voters_split_2_2_1", quorum::five_voters_split_2_2_1),
];

fn main() {
    options::run(&MEASUREMENTS);
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Prints and plots times in milliseconds.
fn report_times(file: &str, title: &str, sets: &[Samples]) {
    let yardstick = sets.iter().find(|set| set.name.starts_with(YARDSTICK)).map(Samples::median);
    let mut table = Table::new(1, ["ms", "median", "min", "max", "n", &format!("to {YARDSTICK}")]);
    for set in sets {
        let times = [set.median(), set.min(), set.max()].map(|time| format!("{time:.1}"));
        let count = set.values().len().to_string();
        let cells = [set.name.clone()].into_iter().chain(times);
        table.row(cells.chain([count, ratio(set.median(), yardstick)]));
    }
    println!("{title}\n{table}");
    report::keep(file, sets);
    report::save(file, &report::svg::distribution(title, "ms", sets));
}
