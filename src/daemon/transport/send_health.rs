//! Whether the kernel accepts an interface's datagrams, reduced to the changes worth reporting.

use super::change::{LinkEvent, SendFailure};

/// Number of datagrams in a row that the kernel rejects before the interface counts as mute. The
/// others give a leader up after missing as many: the declaration and the answers to seven probes.
const MUTE_AFTER: u32 = 8;

/// Tracks the results of sends. A failure is reported at once. Recovery is reported by a review if
/// all sends since the previous review succeeded. So an interface that accepts every second
/// datagram causes one report and not a stream of them.
#[derive(Debug, Default)]
pub(super) struct SendHealth {
    /// What was last reported.
    told: Option<SendFailure>,
    /// The last failure since the last review.
    failed: Option<SendFailure>,
    /// Whether any send succeeded since the last review.
    succeeded: bool,
    /// Failures since the last success.
    failures_in_a_row: u32,
    /// Whether it was mute at the last review.
    was_mute: bool,
}

impl SendHealth {
    /// A send ended.
    pub(super) fn record(&mut self, result: Result<(), SendFailure>) {
        match result {
            Ok(()) => {
                self.succeeded = true;
                self.failures_in_a_row = 0;
            }
            Err(failure) => {
                self.failed = Some(failure);
                self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
            }
        }
    }

    /// Whether there is something for a review to check soon.
    pub(super) fn has_news(&self) -> bool {
        self.has_new_failure() || self.was_mute != self.is_mute()
    }

    /// Whether the kernel has rejected so many in a row that no other node receives this host
    /// through the interface.
    pub(super) const fn is_mute(&self) -> bool {
        self.failures_in_a_row >= MUTE_AFTER
    }

    /// The failure that lasts, as last reported.
    pub(super) fn failure(&self) -> Option<SendFailure> {
        self.told
    }

    /// Ends a period and returns what changed since the previous one.
    pub(super) fn review(&mut self) -> Option<LinkEvent> {
        let news = self.has_new_failure();
        self.was_mute = self.is_mute();
        match (self.failed.take(), std::mem::take(&mut self.succeeded)) {
            (Some(failure), _) if news => {
                self.told = Some(failure);
                Some(LinkEvent::SendFailing(failure))
            }
            (None, true) => self.told.take().map(|_| LinkEvent::SendRecovered),
            _ => None,
        }
    }

    fn has_new_failure(&self) -> bool {
        self.failed.is_some() && self.failed != self.told
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
    fn who_is_refused_often_in_a_row_is_mute_until_a_datagram_is_taken() {
        let mut health = SendHealth::default();
        for _ in 0..3 {
            (1..MUTE_AFTER).for_each(|_| health.record(Err(CONGESTED)));
            health.review();
            assert!(!health.is_mute() && !health.has_news());
            health.record(Ok(()));
        }
        (0..MUTE_AFTER).for_each(|_| health.record(Err(CONGESTED)));
        assert!(health.is_mute() && health.has_news());
        health.review();
        assert!(health.is_mute() && !health.has_news());
        health.record(Ok(()));
        assert!(!health.is_mute() && health.has_news());
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
