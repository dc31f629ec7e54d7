//! What one datagram costs: taking it in at different sizes of the group, encoding and decoding.
//!
//! ```text
//! cargo bench --bench core
//! cargo bench --bench core -- declaration
//! ```
//!
//! Times come first, and with them what was allocated, where anything was. Then come instructions
//! and allocations of the same work, counted by valgrind: those are the same on every machine.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark fails by panicking, in its helpers too"
)]

mod counts;
mod work;

use divan::{AllocProfiler, Bencher};
use work::Work;

/// Members of a group: a usual one, a large one, and one far beyond what multicast is used for.
const GROUP_SIZES: [usize; 3] = [3, 100, 1000];

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    if counts::repeat_as_asked() {
        return;
    }
    divan::main();
    counts::report();
}

#[divan::bench(args = GROUP_SIZES)]
fn heartbeat(bencher: Bencher<'_, '_>, members: usize) {
    bencher.bench_local(work::heartbeats(members));
}

#[divan::bench(args = GROUP_SIZES)]
fn probe(bencher: Bencher<'_, '_>, members: usize) {
    bencher.bench_local(work::probes(members));
}

#[divan::bench(args = GROUP_SIZES)]
fn declaration(bencher: Bencher<'_, '_>, members: usize) {
    bencher.bench_local(work::declarations(members));
}

#[divan::bench]
fn declaration_acknowledged(bencher: Bencher<'_, '_>) {
    bencher.bench_local(work::acknowledgements());
}

#[divan::bench(args = [false, true])]
fn encode(bencher: Bencher<'_, '_>, sealed: bool) {
    bencher.bench_local(work::encoding(sealed));
}

#[divan::bench(args = [false, true])]
fn decode(bencher: Bencher<'_, '_>, sealed: bool) {
    bencher.bench_local(work::decoding(sealed));
}

/// Begins some work.
type Begin = fn() -> Work;

/// The same for [`counts`], by name.
const WORK: [(&str, Begin); 12] = [
    ("heartbeat 3", || work::heartbeats(3)),
    ("heartbeat 100", || work::heartbeats(100)),
    ("heartbeat 1000", || work::heartbeats(1000)),
    ("probe 3", || work::probes(3)),
    ("probe 100", || work::probes(100)),
    ("probe 1000", || work::probes(1000)),
    ("declaration 3", || work::declarations(3)),
    ("declaration 100", || work::declarations(100)),
    ("declaration 1000", || work::declarations(1000)),
    ("declaration_acknowledged", work::acknowledgements),
    ("encode", || work::encoding(false)),
    ("decode", || work::decoding(false)),
];
