//! A voter's promises: what, to whom, and until when.

use std::time::Duration;

use crate::core::persist::{Ballot, Enrolment, Pledge};
use crate::time::Time;
use crate::types::{Life, Term};

/// A voter's promises. [`PersistentState`](crate::core::persist::PersistentState) keeps the fields
/// that must outlive the daemon.
///
/// Invariants: a pledge to another life is given only after the earlier one has expired or was
/// released. Within one life of its holder a pledge only grows. No two ballots are cast in one
/// term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Voter {
    enrolment: Enrolment,
    ballot: Option<Ballot>,
    pledge: Option<Pledge>,
    /// When the pledge expires.
    pledged_until: Time,
}

impl Voter {
    /// The voter of an earlier life. That life may have renewed its pledge just before its end, so
    /// the pledge lasts for its whole length from `now` on.
    pub fn restored(
        now: Time,
        enrolment: Enrolment,
        ballot: Option<Ballot>,
        pledge: Option<Pledge>,
    ) -> Self {
        let pledged_until = pledge.map_or(Time::ZERO, |pledge| now + pledge.hold());
        Voter { enrolment, ballot, pledge, pledged_until }
    }

    /// Whether this voter is enrolled.
    pub const fn enrolment(&self) -> Enrolment {
        self.enrolment
    }

    /// Sets the enrolment.
    pub const fn set_enrolment(&mut self, enrolment: Enrolment) {
        self.enrolment = enrolment;
    }

    /// The last vote.
    pub const fn ballot(&self) -> Option<Ballot> {
        self.ballot
    }

    /// The last pledge, expired or not.
    pub const fn pledge(&self) -> Option<Pledge> {
        self.pledge
    }

    /// When a pledge to another life than `life` expires; none if there is no such pledge.
    pub fn bound_until(&self, now: Time, life: Life) -> Option<Time> {
        let other = self.pledge.is_some_and(|pledge| pledge.to != life);
        (other && now < self.pledged_until).then_some(self.pledged_until)
    }

    /// Whether earlier votes allow a vote for `candidate` in `term`. The same vote may be given
    /// again.
    pub fn may_cast(&self, term: Term, candidate: Life) -> bool {
        self.ballot.is_none_or(|ballot| {
            ballot.term < term || (ballot.term == term && ballot.candidate == candidate)
        })
    }

    /// Votes. The caller checks [`may_cast`](Self::may_cast) first.
    pub const fn cast(&mut self, term: Term, candidate: Life) {
        self.ballot = Some(Ballot { term, candidate });
    }

    /// Makes a pledge of `hold` from `now` on to `to`, which leads or stands in `term`. The caller
    /// checks [`bound_until`](Self::bound_until) first.
    ///
    /// Within one life of its holder a pledge only grows: its term, its length and its end. The
    /// network may deliver old requests and resignations of that life after newer requests.
    ///
    /// A renewal needs no write, because at least `least_kept` is persisted, even if a shorter hold
    /// is asked for.
    pub fn give(&mut self, now: Time, to: Life, term: Term, hold: Duration, least_kept: Duration) {
        let asked = Pledge::new(to, term, hold.max(least_kept));
        let held = self.pledge.filter(|held| held.to == to);
        let earlier_end = held.map_or(Time::ZERO, |_| self.pledged_until);
        self.pledged_until = earlier_end.max(now + hold);
        self.pledge = Some(held.map_or(asked, |held| held.grown_by(asked)));
    }

    /// `holder` has ended its leaderships and candidacies up to `term`. Returns whether that
    /// releases the pledge.
    pub fn release(&mut self, holder: Life, term: Term) -> bool {
        let frees = self.pledge.is_some_and(|pledge| pledge.to == holder && pledge.term <= term);
        if frees {
            self.pledged_until = Time::ZERO;
        }
        frees
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::types::Incarnation;

    const HOLD: Duration = Duration::from_secs(8);

    fn life(name: &str) -> Life {
        life_of(name, 3)
    }

    fn life_of(name: &str, incarnation: u64) -> Life {
        Life { node_id: name.parse().unwrap(), incarnation: Incarnation(incarnation) }
    }

    fn at(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn fresh() -> Voter {
        Voter::restored(at(0), Enrolment::Enrolled, None, None)
    }

    fn pledged_to_a() -> Voter {
        let mut voter = fresh();
        voter.give(at(10), life("a"), Term(5), HOLD, Duration::ZERO);
        voter
    }

    #[test]
    fn pledge_excludes_other_lives_until_it_expires() {
        let voter = pledged_to_a();
        assert_eq!(voter.bound_until(at(10), life("b")), Some(at(18)));
        assert_eq!(voter.bound_until(at(10), life("a")), None);
        assert_eq!(voter.bound_until(at(18), life("b")), None);
    }

    #[test]
    fn a_renewal_never_shortens() {
        let mut voter = pledged_to_a();
        voter.give(at(11), life("a"), Term(6), Duration::from_secs(1), Duration::ZERO);
        assert_eq!(voter.bound_until(at(12), life("b")), Some(at(18)));
    }

    #[test]
    fn an_earlier_term_and_a_shorter_hold_of_the_same_life_change_nothing() {
        let mut voter = pledged_to_a();
        let remembered = voter.pledge();
        voter.give(at(11), life("a"), Term(3), Duration::from_secs(1), Duration::ZERO);
        assert_eq!(voter.pledge(), remembered);
        assert!(!voter.release(life("a"), Term(3)));
        voter.give(at(12), life("a"), Term(6), Duration::from_secs(1), Duration::ZERO);
        assert_eq!(voter.pledge(), Some(Pledge::new(life("a"), Term(6), HOLD)));
    }

    #[test]
    fn restored_pledge_lasts_for_its_whole_length() {
        let pledge = pledged_to_a().pledge();
        let voter = Voter::restored(at(100), Enrolment::Enrolled, None, pledge);
        assert_eq!(voter.bound_until(at(107), life("b")), Some(at(108)));
        assert_eq!(voter.bound_until(at(107), life("a")), None);
    }

    #[test]
    fn pledge_excludes_another_life_of_its_holder() {
        let voter = pledged_to_a();
        assert_eq!(voter.bound_until(at(10), life_of("a", 4)), Some(at(18)));
    }

    #[test]
    fn only_the_holder_releases_a_pledge_in_its_term_or_a_later_one() {
        for (holder, term) in
            [(life("b"), 9), (life_of("a", 2), 9), (life_of("a", 4), 9), (life("a"), 4)]
        {
            let mut voter = pledged_to_a();
            assert!(!voter.release(holder, Term(term)), "{holder:?} {term}");
            assert!(voter.bound_until(at(10), life("b")).is_some());
        }
        for term in [5, 6] {
            let mut voter = pledged_to_a();
            assert!(voter.release(life("a"), Term(term)));
            assert_eq!(voter.bound_until(at(10), life("b")), None);
        }
    }

    #[test]
    fn one_vote_a_term_which_may_be_repeated() {
        let mut voter = fresh();
        assert!(voter.may_cast(Term(0), life("a")));
        voter.cast(Term(5), life("a"));
        assert!(voter.may_cast(Term(5), life("a")));
        assert!(!voter.may_cast(Term(5), life("b")));
        assert!(!voter.may_cast(Term(4), life("a")));
        assert!(voter.may_cast(Term(6), life("b")));
    }

    #[test]
    fn persisted_pledge_changes_only_with_the_holder_the_term_or_a_longer_hold() {
        let mut voter = fresh();
        voter.give(at(10), life("a"), Term(5), Duration::from_secs(3), HOLD);
        let remembered = voter.pledge();
        assert_eq!(remembered.unwrap().hold(), HOLD);
        for seconds in [11, 12, 13] {
            voter.give(at(seconds), life("a"), Term(5), HOLD, Duration::ZERO);
            assert_eq!(voter.pledge(), remembered);
        }
        voter.give(at(14), life("a"), Term(5), HOLD * 2, Duration::ZERO);
        assert_ne!(voter.pledge(), remembered);
    }

    /// The datagrams of one life: it asks for pledges, and sometimes resigns all of them.
    #[derive(Debug, Clone, Copy)]
    enum Sent {
        Ask { term: Term, hold: Duration },
        End { term: Term },
    }

    /// The order in which a life sends: terms never fall, and after a resignation the next one is
    /// higher.
    fn history() -> impl Strategy<Value = Vec<Sent>> {
        vec((any::<bool>(), 1..20u64), 1..12).prop_map(|steps| {
            let mut term = 1;
            let mut next = |(ends, seconds)| {
                let sent = Term(term);
                term += u64::from(ends);
                let hold = Duration::from_secs(seconds);
                if ends { Sent::End { term: sent } } else { Sent::Ask { term: sent, hold } }
            };
            steps.into_iter().map(&mut next).collect()
        })
    }

    /// The next step of the network or the voter's host, and the seconds before it.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Deliver { sender: usize, datagram: prop::sample::Index },
        Restart,
    }

    fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
        let deliver = (0..2usize, any::<prop::sample::Index>())
            .prop_map(|(sender, datagram)| Step::Deliver { sender, datagram });
        vec((0..4u64, prop_oneof![4 => deliver, 1 => Just(Step::Restart)]), 1..60)
    }

    proptest! {
        /// The network delivers any datagram of two lives at any time, in any order and repeatedly,
        /// even after the voter has restarted. Only a datagram sent after the request for a pledge
        /// ends that pledge early.
        #[test]
        fn no_order_of_old_datagrams_ends_a_pledge_early(
            histories in [history(), history()],
            steps in steps(),
        ) {
            let lives = [life("a"), life("b")];
            let mut voter = fresh();
            let mut seconds = 10;
            // The sender and number of the request, and when its pledge expires.
            let mut given: Vec<(usize, usize, Time)> = Vec::new();
            for (pause, step) in steps {
                seconds += pause;
                let now = at(seconds);
                match step {
                    Step::Restart => {
                        voter = Voter::restored(now, Enrolment::Enrolled, None, voter.pledge());
                    }
                    Step::Deliver { sender, datagram } => {
                        let number = datagram.index(histories[sender].len());
                        match histories[sender][number] {
                            Sent::Ask { term, hold }
                                if voter.bound_until(now, lives[sender]).is_none() =>
                            {
                                voter.give(now, lives[sender], term, hold, Duration::ZERO);
                                given.push((sender, number, now + hold));
                            }
                            Sent::Ask { .. } => {}
                            Sent::End { term } => {
                                voter.release(lives[sender], term);
                                given.retain(|(to, asked, _)| *to != sender || *asked > number);
                            }
                        }
                    }
                }
                for (to, asked, until) in given.iter().filter(|(.., until)| now < *until) {
                    let bound = voter.bound_until(now, life("c"));
                    prop_assert!(
                        bound >= Some(*until) && voter.bound_until(now, lives[*to]).is_none(),
                        "datagram {} of {:?} asked until {:?}, and {:?}", asked, to, until, voter
                    );
                }
            }
        }
    }
}
