//! The lease: the time in which a leader may act, and the pledges that it depends on.
//!
//! ```text
//!           s: the declaration is sent                      r: a voter receives it
//!   leader  ├────────── term of lease L ──────────┤── demote grace G ──┤
//!   voter      ├───────────────── hold: (L + G) × 101/99 ────────────────────┤  may vote again
//!              r
//! ```
//!
//! The lease counts from the sending of the acknowledged declaration, by the leader's clock. The
//! voter's pledge counts from the receipt, which is later, by the voter's clock. In true time the
//! lease and the grace last at most `(L + G) / 0.99`, and the pledge at least `hold / 1.01`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::time::Time;
use crate::types::{NodeId, Sequence};

/// The most by which a clock may be fast or slow, in percent.
const DRIFT_PERCENT: u32 = 1;

/// The longest pledge that a node may ask for. A broken node must not bind the voters for ever.
pub const HOLD_MAX: Duration = Duration::from_secs(3600);

/// Declarations that may still be acknowledged. They are at least a fortieth of an interval apart,
/// and a lease is rarely longer than three intervals. Above this number the oldest do not count.
const OUTSTANDING_MAX: usize = 128;

/// How long a voter's pledge must last for a leader that relies on it for `reliance`, whichever of
/// the two clocks is the fast one.
pub fn hold_for(reliance: Duration) -> Duration {
    let nanos = reliance.as_nanos() * u128::from(100 + DRIFT_PERCENT);
    let nanos = nanos.div_ceil(u128::from(100 - DRIFT_PERCENT));
    u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
}

/// How long a datagram that asks for pledges lets its sender act, by the sender's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cover {
    /// When the sender stops being the leader.
    pub lease_end: Time,
    /// When its hooks must have released everything.
    pub grace_end: Time,
}

impl Cover {
    /// The cover of a datagram sent at `sent`: a lease of `term`, and `grace` after it.
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

/// A leader's right to act, which a majority of the voters has granted or acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    cover: Cover,
    /// Whether a majority has acknowledged a declaration of this leadership. Before that, the
    /// pledges leave no time for a demote hook.
    confirmed: bool,
    /// The declarations that may still be acknowledged, the oldest first.
    outstanding: VecDeque<(Sequence, Cover)>,
    /// What each voter's acknowledgements cover.
    acknowledged: BTreeMap<NodeId, Cover>,
}

impl Lease {
    /// The lease of a candidate that won the vote.
    pub const fn new(granted: Cover) -> Self {
        Lease {
            cover: granted,
            confirmed: false,
            outstanding: VecDeque::new(),
            acknowledged: BTreeMap::new(),
        }
    }

    /// When the lease expires, and the leadership with it.
    pub const fn end(&self) -> Time {
        self.cover.lease_end
    }

    /// The earliest time at which a voter may vote for another node. The hooks must have released
    /// everything.
    pub const fn grace_end(&self) -> Time {
        self.cover.grace_end
    }

    /// Whether a majority has acknowledged a declaration of this leadership.
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Whether a majority has acknowledged the newest declaration.
    pub fn is_renewed(&self) -> bool {
        let newest = self.outstanding.back();
        self.confirmed && newest.is_some_and(|(_, newest)| newest.lease_end <= self.cover.lease_end)
    }

    /// Notes the declaration `sequence`, sent at `now`, and what it covers.
    pub fn note_declared(&mut self, now: Time, sequence: Sequence, cover: Cover) {
        self.outstanding.retain(|(_, cover)| cover.lease_end > now);
        if self.outstanding.len() == OUTSTANDING_MAX {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back((sequence, cover));
    }

    /// Notes that `voter` acknowledges the declaration `sequence`. Renews the lease if `needed`
    /// voters have acknowledged this or another declaration that covers as much. An unknown or
    /// outdated declaration changes nothing.
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
        // The vote may cover more time, but it left no grace.
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

    /// A lease won at time 0, with declaration 7 sent at 100 ms and declaration 8 a second later.
    fn declared() -> Lease {
        let mut lease = Lease::new(Cover::new(at(0), TERM, Duration::ZERO));
        lease.note_declared(at(100), Sequence(7), Cover::new(at(100), TERM, GRACE));
        lease.note_declared(at(1100), Sequence(8), Cover::new(at(1100), TERM, GRACE));
        lease
    }

    #[test]
    fn hold_outlasts_the_reliance_on_the_worst_pair_of_clocks() {
        for nanos in [1, 99, 100, 3_000_000_000, 3_600_000_000_000] {
            let reliance = Duration::from_nanos(nanos);
            let hold = hold_for(reliance);
            // A slow clock of the leader against a fast one of the voter, in hundredths of true
            // time.
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
    fn majority_renews_the_lease_from_the_sending_of_the_declaration() {
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
    fn first_acknowledgements_replace_the_lease_of_the_vote() {
        let mut lease = Lease::new(Cover::new(at(0), TERM * 4, Duration::ZERO));
        lease.note_declared(at(100), Sequence(7), Cover::new(at(100), TERM, GRACE));
        acknowledge(&mut lease, "a", 7, 1);
        assert_eq!((lease.end(), lease.grace_end()), (at(3100), at(8100)));
    }

    #[test]
    fn expired_declaration_confirms_no_lease() {
        let mut lease = declared();
        lease.note_acknowledged(at(3100), id("a"), Sequence(7), 1);
        assert!(!lease.is_confirmed());
    }

    #[test]
    fn old_acknowledgement_shortens_nothing() {
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
    fn unknown_or_outdated_declaration_cannot_be_acknowledged() {
        let mut lease = declared();
        acknowledge(&mut lease, "a", 6, 1);
        assert!(!lease.is_confirmed());
        lease.note_declared(at(3100), Sequence(9), Cover::new(at(3100), TERM, GRACE));
        acknowledge(&mut lease, "a", 7, 1);
        assert!(!lease.is_confirmed(), "its lease would have expired");
        for number in 10..1000 {
            lease.note_declared(at(3101), Sequence(number), Cover::new(at(3101), TERM, GRACE));
        }
        assert!(lease.outstanding.len() <= OUTSTANDING_MAX);
        acknowledge(&mut lease, "a", 999, 1);
        assert_eq!(lease.end(), at(6101));
    }

    #[test]
    fn new_settings_apply_from_the_declarations_that_carry_them() {
        let mut lease = declared();
        lease.note_declared(at(2100), Sequence(9), Cover::new(at(2100), TERM * 4, Duration::ZERO));
        acknowledge(&mut lease, "a", 8, 1);
        assert_eq!((lease.end(), lease.grace_end()), (at(4100), at(9100)));
        acknowledge(&mut lease, "a", 9, 1);
        assert_eq!((lease.end(), lease.grace_end()), (at(14_100), at(14_100)));
    }
}
