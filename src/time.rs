//! Time as the core sees it: nanoseconds from an arbitrary origin, without a `now()`.
//!
//! Only the caller knows a clock. The daemon's is `CLOCK_BOOTTIME`, the simulator's is virtual.

use std::ops::{Add, AddAssign};
use std::time::{Duration, Instant};

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

    /// The time from `origin`, which the caller chose once at its start, to `now`. An `origin` that
    /// is later than `now` gives [`Time::ZERO`].
    ///
    /// On Linux an [`Instant`] stands still while the machine is suspended. A program that may be
    /// suspended and runs in quorum mode needs a clock that goes on, such as `CLOCK_BOOTTIME`, and
    /// [`from_nanos`](Self::from_nanos): otherwise it takes an expired lease for a valid one.
    ///
    /// ```
    /// use std::time::Instant;
    ///
    /// use lanelect::time::Time;
    ///
    /// let origin = Instant::now();
    /// let earlier = Time::between(origin, Instant::now());
    /// let later = Time::between(origin, Instant::now());
    /// assert!(earlier <= later);
    /// ```
    pub fn between(origin: Instant, now: Instant) -> Self {
        Time::ZERO + now.saturating_duration_since(origin)
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

    #[expect(clippy::disallowed_methods, reason = "any instant does, and only a clock gives one")]
    #[test]
    fn time_between_instants_is_never_negative() {
        let origin = Instant::now();
        let later = origin + Duration::from_millis(7);
        assert_eq!(Time::between(origin, later), Time::from_millis(7));
        assert_eq!(Time::between(later, origin), Time::ZERO);
    }

    #[test]
    fn since_is_the_distance_to_an_earlier_time() {
        let start = Time::from_millis(5);
        assert_eq!((start + Duration::from_millis(7)).since(start), Duration::from_millis(7));
    }
}
