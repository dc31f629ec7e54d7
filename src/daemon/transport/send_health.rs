//! Whether the kernel takes an interface's datagrams, reduced to the changes worth telling.

use super::change::{LinkEvent, SendFailure};

/// Watches how sends end. A failure is news at once; recovery is told by a review that has seen
/// successes alone since the one before, so that an interface which takes every second datagram
/// is one complaint and not a stream of them.
#[derive(Debug, Default)]
pub(super) struct SendHealth {
    /// What was last told.
    told: Option<SendFailure>,
    /// The last failure since the last review.
    failed: Option<SendFailure>,
    /// Whether any send succeeded since the last review.
    succeeded: bool,
}

impl SendHealth {
    /// A send ended.
    pub(super) fn record(&mut self, result: Result<(), SendFailure>) {
        match result {
            Ok(()) => self.succeeded = true,
            Err(failure) => self.failed = Some(failure),
        }
    }

    /// Whether a review has a failure to tell.
    pub(super) fn has_news(&self) -> bool {
        self.failed.is_some() && self.failed != self.told
    }

    /// The failure that lasts, as far as it has been told.
    pub(super) fn failure(&self) -> Option<SendFailure> {
        self.told
    }

    /// Closes a period and tells what changed against the one before.
    pub(super) fn review(&mut self) -> Option<LinkEvent> {
        let news = self.has_news();
        match (self.failed.take(), std::mem::take(&mut self.succeeded)) {
            (Some(failure), _) if news => {
                self.told = Some(failure);
                Some(LinkEvent::SendFailing(failure))
            }
            (None, true) => self.told.take().map(|_| LinkEvent::SendRecovered),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use nix::errno::Errno;

    use super::*;

    const FORBIDDEN: SendFailure = SendFailure::Forbidden(Errno::EPERM);
    const CONGESTED: SendFailure = SendFailure::Congested(Errno::ENOBUFS);

    #[test]
    fn a_lasting_failure_is_told_once() {
        let mut health = SendHealth::default();
        health.record(Err(FORBIDDEN));
        assert!(health.has_news());
        assert_eq!(health.review(), Some(LinkEvent::SendFailing(FORBIDDEN)));
        health.record(Err(FORBIDDEN));
        assert!(!health.has_news());
        assert_eq!(health.review(), None);
        assert_eq!(health.failure(), Some(FORBIDDEN));
    }

    #[test]
    fn another_failure_is_news() {
        let mut health = SendHealth::default();
        health.record(Err(FORBIDDEN));
        health.review();
        health.record(Err(CONGESTED));
        assert_eq!(health.review(), Some(LinkEvent::SendFailing(CONGESTED)));
    }

    #[test]
    fn recovery_takes_a_period_of_successes_alone() {
        let mut health = SendHealth::default();
        health.record(Err(CONGESTED));
        health.review();
        assert_eq!(health.review(), None, "no send, no evidence");
        health.record(Ok(()));
        health.record(Err(CONGESTED));
        health.record(Ok(()));
        assert_eq!(health.review(), None, "still failing now and then");
        health.record(Ok(()));
        assert_eq!(health.review(), Some(LinkEvent::SendRecovered));
        assert_eq!(health.failure(), None);
        health.record(Ok(()));
        assert_eq!(health.review(), None);
    }

    #[test]
    fn errors_are_told_apart_by_what_helps() {
        let failure = |errno: Errno| SendFailure::from(&io::Error::from(errno));
        for errno in [Errno::ENETUNREACH, Errno::ENODEV, Errno::EADDRNOTAVAIL, Errno::EINVAL] {
            assert_eq!(failure(errno), SendFailure::Stale(errno));
        }
        assert_eq!(failure(Errno::EPERM), FORBIDDEN);
        assert_eq!(failure(Errno::ENOBUFS), CONGESTED);
        assert_eq!(failure(Errno::EAGAIN), SendFailure::Congested(Errno::EAGAIN));
        assert_eq!(failure(Errno::EMSGSIZE), SendFailure::Other(Errno::EMSGSIZE));
    }
}
