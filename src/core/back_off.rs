//! Pauses that double with each failure in a row.

use std::time::Duration;

use crate::time::doubled;

/// No pause of minutes doubles beyond this, unless the first one is longer.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// The failures in a row of something that is tried again and again.
#[derive(Debug, Clone, Copy, Hash, Default)]
pub(crate) struct BackOff {
    failures: u32,
}

impl BackOff {
    /// Notes a failure, and returns the pause before the next try: `first`, doubled with each
    /// earlier failure in the row, up to the longer of `first` and `longest`.
    pub(crate) fn note_failed(&mut self, first: Duration, longest: Duration) -> Duration {
        let pause = doubled(first, self.failures).min(longest.max(first));
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// Notes a success, which ends the row.
    pub(crate) const fn note_succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_until_a_success() {
        let (first, longest) = (Duration::from_secs(2), Duration::from_secs(10));
        let mut back_off = BackOff::default();
        for seconds in [2, 4, 8, 10, 10] {
            assert_eq!(back_off.note_failed(first, longest), Duration::from_secs(seconds));
        }
        back_off.note_succeeded();
        assert_eq!(back_off.note_failed(first, longest), first);
        assert_eq!(back_off.note_failed(longest * 2, longest), longest * 2);
    }
}
