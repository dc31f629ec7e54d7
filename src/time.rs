//! Time as the core sees it: nanoseconds from an arbitrary origin, without a `now()`.
//!
//! Only the caller knows a clock. The daemon's is `CLOCK_BOOTTIME`, the simulator's is virtual.

use std::ops::{Add, AddAssign};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time, in nanoseconds since an origin that the caller chose.
///
/// Arithmetic saturates: a time that cannot be represented is "never", not a panic.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);

    /// The time `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(nanos)
    }

    /// The time `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Time(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero where it is not later.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

/// `base`, doubled `times`, within reason: a pause before the next of many attempts.
pub(crate) fn doubled(base: Duration, times: u32) -> Duration {
    base.saturating_mul(1 << times.min(20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        let never = Time::from_nanos(u64::MAX);
        assert_eq!(never + Duration::from_secs(1), never);
        assert_eq!(Time::ZERO + Duration::MAX, never);
        assert_eq!(Time::ZERO.since(never), Duration::ZERO);
    }

    #[test]
    fn since_is_the_distance_to_an_earlier_time() {
        let start = Time::from_millis(5);
        assert_eq!((start + Duration::from_millis(7)).since(start), Duration::from_millis(7));
    }
}
