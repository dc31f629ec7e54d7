//! What one datagram costs: taking it in at different sizes of the group, encoding and decoding.
//!
//! ```text
//! cargo bench --bench core
//! cargo bench --bench core -- declaration
//! ```
//!
//! Times come first, and with them what was allocated, where anything was. Then come instructions and
//! allocations of the same work, counted by valgrind: those are the same on every machine.
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
    if let Some(work) = work::probes(members) {
        bencher.bench_local(work);
    }
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

/// A kind of work; none where there is no such thing.
type MakeWork = fn() -> Option<Work>;

/// The same for [`counts`], by name.
const WORK: [(&str, MakeWork); 12] = [
    ("heartbeat 3", || Some(work::heartbeats(3))),
    ("heartbeat 100", || Some(work::heartbeats(100))),
    ("heartbeat 1000", || Some(work::heartbeats(1000))),
    ("probe 3", || work::probes(3)),
    ("probe 100", || work::probes(100)),
    ("probe 1000", || work::probes(1000)),
    ("declaration 3", || Some(work::declarations(3))),
    ("declaration 100", || Some(work::declarations(100))),
    ("declaration 1000", || Some(work::declarations(1000))),
    ("declaration_acknowledged", || Some(work::acknowledgements())),
    ("encode", || Some(work::encoding(false))),
    ("decode", || Some(work::decoding(false))),
];
