//! Whether the kernel takes an interface's datagrams, reduced to the changes worth telling.

use std::io;

use nix::errno::Errno;

use super::link::LinkEvent;

/// Why the kernel did not take a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendFailure {
    /// The interface, its address or its route is no longer what the socket was opened for.
    #[error("sending fails: the interface is not what it was ({0})")]
    Stale(Errno),
    /// A local rule forbids it.
    #[error("sending fails: the kernel forbids it ({0}); let the firewall pass UDP to the group")]
    Forbidden(Errno),
    /// The interface's queue is full.
    #[error("sending fails: the interface's queue is full ({0})")]
    Congested(Errno),
    /// Something else.
    #[error("sending fails: {0}")]
    Other(Errno),
}

impl From<&io::Error> for SendFailure {
    fn from(error: &io::Error) -> Self {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or_default());
        match errno {
            // EINVAL: the source address that the socket is fixed to is gone.
            Errno::ENETUNREACH
            | Errno::EHOSTUNREACH
            | Errno::ENETDOWN
            | Errno::ENODEV
            | Errno::ENXIO
            | Errno::EADDRNOTAVAIL
            | Errno::EINVAL => SendFailure::Stale(errno),
            Errno::EPERM | Errno::EACCES => SendFailure::Forbidden(errno),
            Errno::ENOBUFS | Errno::ENOMEM | Errno::EAGAIN => SendFailure::Congested(errno),
            _ => SendFailure::Other(errno),
        }
    }
}

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
