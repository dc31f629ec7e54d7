//! The time in which a leader may act, and what voters promise so that it may.
//!
//! ```text
//!           s: the declaration is sent                      r: a voter takes it in
//!   leader  ├────────── term of lease L ──────────┤── demote grace G ──┤
//!   voter      ├───────────────── hold: (L + G) × 101/99 ────────────────────┤  may vote again
//!              r
//! ```
//!
//! The lease counts from the moment at which the acknowledged declaration was sent, by the leader's
//! clock; the voter's pledge from when it was taken in, which is later, by the voter's. In true
//! time the lease and the grace take at most `(L + G) / 0.99`, the pledge at least `hold / 1.01`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::time::Time;
use crate::types::{NodeId, Sequence};

/// The clocks run up to this part of a hundred too fast or too slow.
const DRIFT_PERCENT: u32 = 1;

/// No pledge may be asked for that lasts longer: a broken node must not bind the voters for ever.
pub const HOLD_MAX: Duration = Duration::from_secs(3600);

/// Declarations whose acknowledgements are waited for. They come a fortieth of an interval apart at
/// the closest, and a lease is rarely longer than three intervals; of more, the oldest do not
/// count.
const OUTSTANDING_MAX: usize = 128;

/// How long a voter has to hold still for a leader that relies on it for `reliance`, whichever of
/// the two clocks is the fast one.
pub fn hold_for(reliance: Duration) -> Duration {
    let nanos = reliance.as_nanos() * u128::from(100 + DRIFT_PERCENT);
    let nanos = nanos.div_ceil(u128::from(100 - DRIFT_PERCENT));
    u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
}

/// Until when a datagram that asks voters for a pledge lets its sender act, by the sender's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cover {
    /// From then on the sender is no leader.
    pub lease_end: Time,
    /// By then its hooks have let go.
    pub grace_end: Time,
}

impl Cover {
    /// What a datagram sent at `sent` covers: a lease of `term`, and `grace` after it.
    pub fn new(sent: Time, term: Duration, grace: Duration) -> Self {
        let lease_end = sent + term;
        Cover { lease_end, grace_end: lease_end + grace }
    }

    const NONE: Cover = Cover { lease_end: Time::ZERO, grace_end: Time::ZERO };

    fn max(self, other: Cover) -> Cover {
        Cover {
            lease_end: self.lease_end.max(other.lease_end),
            grace_end: self.grace_end.max(other.grace_end),
        }
    }
}

/// A leader's right to act: what a majority of the voters has granted or acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    cover: Cover,
    /// Whether a declaration of this leadership was acknowledged by a majority: before, the voters'
    /// pledges leave no time for a demote hook.
    confirmed: bool,
    /// The declarations that may still be acknowledged, the oldest first.
    outstanding: VecDeque<(Sequence, Cover)>,
    /// What each voter has acknowledged.
    acknowledged: BTreeMap<NodeId, Cover>,
}

impl Lease {
    /// The lease that a won vote gives.
    pub const fn new(granted: Cover) -> Self {
        Lease {
            cover: granted,
            confirmed: false,
            outstanding: VecDeque::new(),
            acknowledged: BTreeMap::new(),
        }
    }

    /// When the lease runs out. From then on the leader is none.
    pub const fn end(&self) -> Time {
        self.cover.lease_end
    }

    /// When a voter may vote for somebody else at the earliest; the hooks have to have let go.
    pub const fn grace_end(&self) -> Time {
        self.cover.grace_end
    }

    /// Whether a majority has acknowledged a declaration of this leadership.
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Whether a majority has acknowledged what was declared last.
    pub fn is_renewed(&self) -> bool {
        let newest = self.outstanding.back();
        self.confirmed && newest.is_some_and(|(_, newest)| newest.lease_end <= self.cover.lease_end)
    }

    /// Takes in that the declaration `sequence` is sent at `now`, and what it covers.
    pub fn note_declared(&mut self, now: Time, sequence: Sequence, cover: Cover) {
        self.outstanding.retain(|(_, cover)| cover.lease_end > now);
        if self.outstanding.len() == OUTSTANDING_MAX {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back((sequence, cover));
    }

    /// Takes in, at `now`, that `voter` acknowledges the declaration `sequence`, and renews the
    /// lease where that makes `needed` voters who have acknowledged it or another that covers as
    /// much. A declaration that is too old to count, or was none, changes nothing.
    pub fn note_acknowledged(
        &mut self,
        now: Time,
        voter: NodeId,
        sequence: Sequence,
        needed: usize,
    ) {
        let found = self.outstanding.iter().find(|(number, _)| *number == sequence);
        let Some((_, cover)) = found else { return };
        let newest = self.acknowledged.entry(voter).or_insert(Cover::NONE);
        *newest = newest.max(*cover);
        let renewed = Cover {
            lease_end: self.covered_by(needed, |cover| cover.lease_end),
            grace_end: self.covered_by(needed, |cover| cover.grace_end),
        };
        if renewed.lease_end <= now {
            return;
        }
        // What the vote granted may last longer, but left no grace.
        self.cover = if self.confirmed { self.cover.max(renewed) } else { renewed };
        self.confirmed = true;
    }

    /// The latest time that at least `needed` voters cover.
    fn covered_by(&self, needed: usize, end: impl Fn(&Cover) -> Time) -> Time {
        let mut ends: Vec<_> = self.acknowledged.values().map(end).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        needed.checked_sub(1).and_then(|at| ends.get(at)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Duration = Duration::from_secs(3);
    const GRACE: Duration = Duration::from_secs(5);

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn acknowledge(lease: &mut Lease, voter: &str, sequence: u64, needed: usize) {
        lease.note_acknowledged(at(200), id(voter), Sequence(sequence), needed);
    }

    /// A lease won at time 0, under which a declaration 7 was sent at 100 ms and 8 a second later.
    fn declared() -> Lease {
        let mut lease = Lease::new(Cover::new(at(0), TERM, Duration::ZERO));
        lease.note_declared(at(100), Sequence(7), Cover::new(at(100), TERM, GRACE));
        lease.note_declared(at(1100), Sequence(8), Cover::new(at(1100), TERM, GRACE));
        lease
    }

    #[test]
    fn a_hold_outlasts_what_relies_on_it_on_the_worst_pair_of_clocks() {
        for nanos in [1, 99, 100, 3_000_000_000, 3_600_000_000_000] {
            let reliance = Duration::from_nanos(nanos);
            let hold = hold_for(reliance);
            // A slow leader's clock against a fast voter's, in hundredths of true time.
            assert!(hold.as_nanos() * 99 >= reliance.as_nanos() * 101, "{nanos}");
            assert!(hold.as_nanos() * 99 < reliance.as_nanos() * 101 + 99, "{nanos}");
        }
        assert_eq!(hold_for(Duration::ZERO), Duration::ZERO);
        assert_eq!(hold_for(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn a_new_lease_counts_from_the_vote_request_and_leaves_no_grace() {
        let lease = Lease::new(Cover::new(at(1000), TERM, Duration::ZERO));
        assert_eq!((lease.end(), lease.grace_end()), (at(4000), at(4000)));
        assert!(!lease.is_confirmed());
    }

    #[test]
    fn a_majority_renews_it_from_when_the_declaration_was_sent() {
        let mut lease = declared();
        acknowledge(&mut lease, "a", 8, 2);
        assert!(!lease.is_confirmed());
        assert_eq!(lease.end(), at(3000), "one of two needed");
        acknowledge(&mut lease, "b", 7, 2);
        assert!(lease.is_confirmed());
        assert_eq!(lease.end(), at(3100), "both cover the older one only");
        assert_eq!(lease.grace_end(), at(8100));
        acknowledge(&mut lease, "b", 8, 2);
        assert_eq!(lease.end(), at(4100));
    }

    #[test]
    fn the_first_acknowledgements_replace_what_the_vote_granted_without_grace() {
        let mut lease = Lease::new(Cover::new(at(0), TERM * 4, Duration::ZERO));
        lease.note_declared(at(100), Sequence(7), Cover::new(at(100), TERM, GRACE));
        acknowledge(&mut lease, "a", 7, 1);
        assert_eq!((lease.end(), lease.grace_end()), (at(3100), at(8100)));
    }

    #[test]
    fn what_has_run_out_is_not_confirmed() {
        let mut lease = declared();
        lease.note_acknowledged(at(3100), id("a"), Sequence(7), 1);
        assert!(!lease.is_confirmed());
    }

    #[test]
    fn an_old_acknowledgement_takes_nothing_back() {
        let mut lease = declared();
        acknowledge(&mut lease, "a", 8, 2);
        acknowledge(&mut lease, "b", 8, 2);
        acknowledge(&mut lease, "a", 7, 2);
        assert_eq!(lease.end(), at(4100));
    }

    #[test]
    fn the_same_voter_counts_once() {
        let mut lease = declared();
        acknowledge(&mut lease, "a", 7, 2);
        acknowledge(&mut lease, "a", 8, 2);
        assert_eq!(lease.end(), at(3000));
        assert!(!lease.is_confirmed());
    }

    #[test]
    fn what_was_never_sent_or_long_ago_cannot_be_acknowledged() {
        let mut lease = declared();
        acknowledge(&mut lease, "a", 6, 1);
        assert!(!lease.is_confirmed());
        lease.note_declared(at(3100), Sequence(9), Cover::new(at(3100), TERM, GRACE));
        acknowledge(&mut lease, "a", 7, 1);
        assert!(!lease.is_confirmed(), "its lease would have run out");
        for number in 10..1000 {
            lease.note_declared(at(3101), Sequence(number), Cover::new(at(3101), TERM, GRACE));
        }
        assert!(lease.outstanding.len() <= OUTSTANDING_MAX);
        acknowledge(&mut lease, "a", 999, 1);
        assert_eq!(lease.end(), at(6101));
    }

    #[test]
    fn new_settings_count_with_the_declarations_that_tell_them() {
        let mut lease = declared();
        lease.note_declared(at(2100), Sequence(9), Cover::new(at(2100), TERM * 4, Duration::ZERO));
        acknowledge(&mut lease, "a", 8, 1);
        assert_eq!((lease.end(), lease.grace_end()), (at(4100), at(9100)));
        acknowledge(&mut lease, "a", 9, 1);
        assert_eq!((lease.end(), lease.grace_end()), (at(14_100), at(14_100)));
    }
}
