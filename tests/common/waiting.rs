//! Waiting for other processes.

use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `condition` holds.
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    until_within(PATIENCE, what, condition);
}

/// The same, for a test in which something else would make it hold later.
#[expect(
    clippy::disallowed_methods,
    reason = "waits for other processes, which share no event loop with this one"
)]
pub fn until_within(patience: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < patience, "not within {patience:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
