//! How long a leader may pause until another host takes over: lanelect beside keepalived and
//! ucarp. A pause is a busy machine, a slow disk under the daemon's memory, or a virtual machine
//! that moves.
//!
//! ```text
//! cargo bench --bench stalls
//! LANELECT_BENCH_SAMPLES=5 cargo bench --bench stalls -- table
//! ```
//!
//! The leader is held by SIGSTOP: either the process that declares it, or all processes of its
//! host. Each hold begins at a random moment between two declarations. If another host's promotion
//! script starts, the leadership has moved.
//!
//! `-- curves` sets what a pause may last against the time that a takeover takes. A short interval
//! makes both short, in every program: the curves show what each program makes of that choice.
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
#[path = "../programs/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod programs;
#[path = "../report/mod.rs"]
#[expect(dead_code, reason = "the other benchmarks need more of it")]
mod report;

mod curves;
mod table;

const MEASUREMENTS: [(&str, fn()); 2] =
    [("table::by_default", table::by_default), ("curves::at_intervals", curves::at_intervals)];

fn main() {
    options::run(&MEASUREMENTS);
}
