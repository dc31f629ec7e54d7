//! Waiting for events.

use std::io::{self, ErrorKind};
use std::time::Duration;

use mio::{Events, Poll};

/// Waits for events, until `timeout` at the latest. A signal ends the wait without any, also one
/// that has no handler and stops and continues this process.
pub(crate) fn wait(
    poll: &mut Poll,
    events: &mut Events,
    timeout: Option<Duration>,
) -> io::Result<()> {
    match poll.poll(events, timeout) {
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
