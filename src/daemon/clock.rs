//! The daemon's clock.

use nix::time::{ClockId, clock_gettime};

use crate::time::Time;

/// Now, by `CLOCK_BOOTTIME`: it never steps, and it counts while the machine is suspended.
///
/// Linux has had this clock since 2.6.39 and never fails to read it; were it to, the answer is the
/// origin.
pub fn boottime() -> Time {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map_or(Time::ZERO, |now| Time::ZERO + std::time::Duration::from(now))
}
