//! Datagrams that do not count: each is counted, few are logged.

use std::time::Duration;

use crate::control_api::Rejected;
use crate::time::Time;
use crate::wire::frame::Reject;

/// Between two log lines about the same kind of datagram.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Counts what was dropped on arrival, and says so now and then.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    counts: Rejected,
    logged: [Option<Time>; Kind::COUNT],
}

/// What a log line is about. Foreign groups are normal where groups share an address, and are only
/// counted.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Malformed,
    Version,
    Unsealed,
    Sealed,
    Forged,
}

impl Kind {
    const COUNT: usize = Kind::Forged as usize + 1;

    const fn advice(self) -> &'static str {
        match self {
            Kind::Malformed => "something else uses this address and port, or damages datagrams",
            Kind::Version => "another version of lanelect runs there: upgrade one of the two",
            Kind::Unsealed => "that node has no key_file, this one has: the group is mixed",
            Kind::Sealed => "that node has a key_file, this one has none: the group is mixed",
            Kind::Forged => "that node's keys are others than this one's, or it forges datagrams",
        }
    }
}

impl Rejections {
    /// The counts so far, without those that the election ignored.
    pub(super) const fn counts(&self) -> Rejected {
        self.counts
    }

    /// Takes in that a datagram from `source` was dropped.
    pub(super) fn note(&mut self, now: Time, reject: Reject, source: std::net::IpAddr) {
        let (count, kind) = match reject {
            Reject::Malformed => (&mut self.counts.malformed, Some(Kind::Malformed)),
            Reject::Version => (&mut self.counts.version, Some(Kind::Version)),
            Reject::ForeignGroup => (&mut self.counts.foreign_group, None),
            Reject::Unsealed => (&mut self.counts.auth, Some(Kind::Unsealed)),
            Reject::Sealed => (&mut self.counts.auth, Some(Kind::Sealed)),
            Reject::Forged => (&mut self.counts.auth, Some(Kind::Forged)),
        };
        *count += 1;
        let Some(kind) = kind else { return };
        if let Some(logged) = self.logged.get_mut(kind as usize)
            && logged.is_none_or(|at| now.since(at) >= LOG_INTERVAL)
        {
            *logged = Some(now);
            log::warn!("dropped a datagram from {source}, {reject}: {}", kind.advice());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_where_the_status_shows_it() {
        let mut rejections = Rejections::default();
        let source = "10.0.0.1".parse().unwrap();
        for reject in [
            Reject::Malformed,
            Reject::Version,
            Reject::ForeignGroup,
            Reject::Unsealed,
            Reject::Sealed,
            Reject::Forged,
        ] {
            rejections.note(Time::ZERO, reject, source);
        }
        let Rejected { malformed, auth, foreign_group, version, .. } = rejections.counts();
        assert_eq!((malformed, auth, foreign_group, version), (1, 3, 1, 1));
    }
}
