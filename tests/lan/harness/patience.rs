//! The only clock and the only sleep of these tests: they wait for conditions, not for times.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

/// How long a condition may take before the test gives up. Generous, because nothing is asserted
/// about speed and a loaded machine is no failure.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Between two looks at a condition.
const POLL: Duration = Duration::from_millis(30);

/// How long a campaign lasts, such as `10m`; as long as any endurance test where it is not set.
const CAMPAIGN: &str = "LANELECT_CAMPAIGN";

/// Set: the tests that may last any time last longer than in every run.
const LONG: &str = "LANELECT_LONG";

/// Short enough for every run of the tests.
const SHORT_ENDURANCE: Duration = Duration::from_secs(15);

/// Where [`LONG`] is set.
const LONG_ENDURANCE: Duration = Duration::from_secs(60);

/// How long a campaign is to last, before it is healed.
pub(crate) fn campaign_duration() -> Duration {
    endurance(CAMPAIGN)
}

/// How long an endurance test is to last: as `variable` says, or as long as suits this run.
pub(crate) fn endurance(variable: &str) -> Duration {
    let usual = if env::var_os(LONG).is_some() { LONG_ENDURANCE } else { SHORT_ENDURANCE };
    let asked = env::var(variable).ok();
    asked.map_or(usual, |text| humantime::parse_duration(&text).expect("a duration"))
}

/// Lets time pass between the faults of a campaign; no condition is waited for so.
pub(crate) fn pass(duration: Duration) {
    thread::sleep(duration);
}

/// The time, for printed measurements and for frames that the switch holds back.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns once `condition` holds; panics with `what` where it does not within [`LIMIT`].
#[track_caller]
pub(crate) fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    assert!(holds_within(LIMIT, condition), "gave up after {LIMIT:?} of waiting until {what}");
}

/// Returns what `look` finds, once it finds something; panics with `what` where it does not within
/// [`LIMIT`].
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    wait_until(what, || {
        found = look();
        found.is_some()
    });
    found.unwrap()
}

/// Whether `condition` comes to hold within `limit`.
pub(crate) fn holds_within(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let started = now();
    loop {
        if condition() {
            return true;
        }
        if started.elapsed() > limit {
            return false;
        }
        thread::sleep(POLL);
    }
}
