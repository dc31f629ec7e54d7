//! Health: several results of the health check in a row, because a single one may be wrong.

use serde::{Deserialize, Serialize};

use crate::core::params::Thresholds;

/// The health of a node by its check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthState {
    /// There is no result yet.
    Pending,
    /// The node may lead.
    Healthy,
    /// The node must not lead.
    Failing,
}

/// The health of one node, or of its leadership. It takes several results in a row to change the
/// state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Health {
    thresholds: Thresholds,
    state: HealthState,
    /// Whether a single failure decides if it is the first result.
    is_strict: bool,
    /// Since the last success.
    failures: u32,
    /// Since the last failure.
    successes: u32,
}

impl Health {
    /// The health of a node that has just started: the first result decides alone.
    pub const fn pending(thresholds: Thresholds) -> Self {
        let state = HealthState::Pending;
        Health { thresholds, state, is_strict: true, failures: 0, successes: 0 }
    }

    /// The health of a leadership that has just begun: one success is enough, and it takes as many
    /// failures as later.
    pub const fn untested(thresholds: Thresholds) -> Self {
        Health { is_strict: false, ..Health::pending(thresholds) }
    }

    /// The health of a node that gets its first check by a reload. It stays healthy until the check
    /// fails.
    pub const fn assumed(thresholds: Thresholds) -> Self {
        Health { state: HealthState::Healthy, ..Health::pending(thresholds) }
    }

    /// The same health under other thresholds, which apply from the next result on.
    #[must_use]
    pub const fn under(self, thresholds: Thresholds) -> Self {
        Health { thresholds, ..self }
    }

    /// The check has passed or failed.
    pub fn note(&mut self, passed: bool) {
        if passed {
            (self.failures, self.successes) = (0, self.successes.saturating_add(1));
        } else {
            (self.failures, self.successes) = (self.failures.saturating_add(1), 0);
        }
        let Thresholds { fall, rise } = self.thresholds;
        self.state = match self.state {
            HealthState::Pending if passed => HealthState::Healthy,
            HealthState::Pending if self.is_strict => HealthState::Failing,
            HealthState::Pending | HealthState::Healthy if self.failures >= fall => {
                HealthState::Failing
            }
            HealthState::Failing if self.successes >= rise => HealthState::Healthy,
            unchanged => unchanged,
        };
    }

    /// The state.
    pub const fn state(&self) -> HealthState {
        self.state
    }

    /// The thresholds.
    pub const fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Failures in a row.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Successes in a row.
    pub const fn successes(&self) -> u32 {
        self.successes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FALL_3_RISE_2: Thresholds = Thresholds { fall: 3, rise: 2 };

    /// The states after each of `results`; `+` is a success, `-` a failure.
    fn states(mut health: Health, results: &str) -> Vec<HealthState> {
        results
            .chars()
            .map(|result| {
                health.note(result == '+');
                health.state()
            })
            .collect()
    }

    /// The last of them.
    fn outcome(health: Health, results: &str) -> HealthState {
        states(health, results).pop().unwrap()
    }

    #[test]
    fn the_first_result_decides() {
        let started = Health::pending(FALL_3_RISE_2);
        assert_eq!(started.state(), HealthState::Pending);
        assert_eq!(outcome(started, "+"), HealthState::Healthy);
        assert_eq!(outcome(started, "-"), HealthState::Failing);
    }

    #[test]
    fn it_takes_failures_in_a_row_to_fall_and_successes_in_a_row_to_rise() {
        let healthy = Health::assumed(FALL_3_RISE_2);
        assert_eq!(outcome(healthy, "--+--+--"), HealthState::Healthy);
        assert_eq!(outcome(healthy, "--+---"), HealthState::Failing);
        assert_eq!(outcome(healthy, "---+-+-"), HealthState::Failing);
        assert_eq!(outcome(healthy, "---+-++"), HealthState::Healthy);
    }

    #[test]
    fn starting_node_with_a_failed_check_needs_successes_in_a_row() {
        let started = Health::pending(FALL_3_RISE_2);
        assert_eq!(outcome(started, "-+"), HealthState::Failing);
        assert_eq!(outcome(started, "-++"), HealthState::Healthy);
    }

    #[test]
    fn leadership_takes_one_success_to_be_healthy_and_failures_in_a_row_to_fail() {
        let begun = Health::untested(FALL_3_RISE_2);
        assert_eq!(outcome(begun, "--"), HealthState::Pending);
        assert_eq!(outcome(begun, "---"), HealthState::Failing);
        assert_eq!(outcome(begun, "--+--"), HealthState::Healthy);
    }

    #[test]
    fn new_thresholds_apply_from_the_next_result() {
        let mut health = Health::assumed(Thresholds { fall: 9, rise: 1 });
        for _ in 0..3 {
            health.note(false);
        }
        let mut stricter = health.under(FALL_3_RISE_2);
        assert_eq!(stricter.state(), HealthState::Healthy);
        stricter.note(false);
        assert_eq!(stricter.state(), HealthState::Failing);
    }

    /// The state by the whole history, read backwards: the newest streak that is long enough, or
    /// else the first result.
    fn judged(history: &[bool], Thresholds { fall, rise }: Thresholds) -> HealthState {
        let state = |passed| if passed { HealthState::Healthy } else { HealthState::Failing };
        (0..history.len())
            .rev()
            .find_map(|end| {
                let last = history[end];
                let before = history[..=end].iter().rev();
                let streak = before.take_while(|passed| **passed == last).count();
                let needed = if last { rise } else { fall };
                (streak >= needed as usize).then(|| state(last))
            })
            .or(history.first().copied().map(state))
            .unwrap_or(HealthState::Pending)
    }

    proptest! {
        #[test]
        fn the_newest_streak_that_is_long_enough_decides(
            history in proptest::collection::vec(any::<bool>(), 0..60),
            fall in 1..6_u32,
            rise in 1..6_u32,
        ) {
            let thresholds = Thresholds { fall, rise };
            let mut health = Health::pending(thresholds);
            for (count, passed) in history.iter().enumerate() {
                prop_assert_eq!(health.state(), judged(&history[..count], thresholds));
                health.note(*passed);
                prop_assert_eq!(health.failures().min(health.successes()), 0);
            }
            prop_assert_eq!(health.state(), judged(&history, thresholds));
        }
    }
}
