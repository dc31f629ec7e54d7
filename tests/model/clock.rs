//! Time in coarse steps, and the hash that goes with it.
//!
//! Things happen only at whole ticks, which are longer than any chance the core takes (the jitter
//! of heartbeats, the spread of candidacies). A deadline between two ticks is met at the later one,
//! so deadlines that differ by less are one and the same to everybody: states that differ in no
//! more than that, or in the generators behind it, hash alike and are explored once.

use std::hash::{DefaultHasher, Hasher};

use lanelect::time::Time;

/// A tick of true time, in nanoseconds.
const TICK: u64 = 100_000_000;

/// What the clocks show at tick 0. No other number that an election holds is as large, so that
/// times are known by it.
const ORIGIN: u64 = 1 << 50;

/// A host's clock, which may run too fast or too slow.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// By how much it moves in a tick.
    pace: u64,
}

impl Clock {
    /// A clock that runs `drift_percent` too fast.
    pub const fn new(drift_percent: i64) -> Self {
        Clock { pace: TICK / 100 * (100 + drift_percent).unsigned_abs() }
    }

    /// What it shows at `tick`.
    pub const fn at(self, tick: u8) -> Time {
        Time::from_nanos(ORIGIN + tick as u64 * self.pace)
    }

    /// The hash of things that hold this clock's times.
    pub fn hasher(self) -> TickHasher {
        TickHasher { clock: self, inner: DefaultHasher::new() }
    }
}

/// Hashes times as the ticks at which they have come.
pub struct TickHasher {
    clock: Clock,
    inner: DefaultHasher,
}

impl Hasher for TickHasher {
    fn finish(&self) -> u64 {
        self.inner.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.inner.write(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        let moment = number.checked_sub(ORIGIN).map(|since| since.div_ceil(self.clock.pace));
        self.inner.write_u64(moment.map_or(number, |tick| ORIGIN + tick));
    }
}
