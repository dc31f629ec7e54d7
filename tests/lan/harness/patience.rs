//! The only clock and the only sleep of these tests: they wait for conditions, not for times.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

/// How long a condition may take before the test gives up. Generous, because nothing is asserted
/// about speed and a loaded machine is no failure.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Between two looks at a condition.
const POLL: Duration = Duration::from_millis(30);

/// How long a campaign lasts, such as `10m`; short where it is not set.
const CAMPAIGN: &str = "LANELECT_CAMPAIGN";

/// Short enough for every run of the tests.
const SHORT_CAMPAIGN: Duration = Duration::from_secs(15);

/// How long a campaign is to last, before it is healed.
pub(crate) fn campaign_duration() -> Duration {
    let asked = env::var(CAMPAIGN).ok();
    asked.map_or(SHORT_CAMPAIGN, |text| humantime::parse_duration(&text).expect("a duration"))
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
