//! Voters without a memory.
//!
//! A disk that was lost looks like one that never was written. A voter that remembers nothing may
//! have voted in terms it no longer knows of, so it gives no vote until one of two things shows that
//! it cannot vote twice in a term:
//!
//! * *The group has a memory without it.* So many voters that do remember answer its inquiry, asked
//!   once every pledge it may have given has run out, that every majority has one of them besides
//!   this voter. Whoever won a term with a forgotten vote did so with such a majority: the forgotten
//!   term is not above the highest one answered. It takes half of the voters, and in a group of an
//!   odd number a majority; so a group of one can take in a second.
//! * *The group is new.* Every voter is seen without a memory, and each has seen that of every other
//!   one: one that lost its disk in a group which remembers never sees it.

use super::Election;
use crate::core::election::at_least_a_millisecond;
use crate::core::hook::Reason;
use crate::core::output::Event;
use crate::core::persist::Enrolment;
use crate::core::quorum::{Poll, Question};
use crate::core::status::VoterStanding;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::NodeId;
use crate::wire::message::{Body, Flags};

impl Election {
    /// Whether this voter remembers every vote that it may have given, on disk.
    pub(in crate::core::election) fn is_enrolled(&self) -> bool {
        self.durable.enrolment == Enrolment::Enrolled
    }

    /// Whether this node is a voter that does not remember its votes.
    pub(in crate::core::election) fn lacks_memory(&self) -> bool {
        self.is_voter() && self.voter.enrolment() != Enrolment::Enrolled
    }

    /// Waits until no pledge of an earlier life can be in force, to ask for the term then.
    pub(in crate::core::election) fn begin_enrolment(&mut self, now: Time) {
        if self.lacks_memory() {
            self.timers.set(Timer::Inquiry, now + self.params.declaration_hold());
        }
    }

    /// Looks whether the group is new, after something was heard.
    pub(in crate::core::election) fn consider_founding(&mut self, now: Time) {
        if !self.lacks_memory() {
            return;
        }
        let next = match self.durable.enrolment {
            Enrolment::None
                if self.every_other_voter(now, |flags| !flags.contains(Flags::ENROLLED)) =>
            {
                Enrolment::Founding
            }
            Enrolment::Founding
                if self.every_other_voter(now, |flags| {
                    flags.contains(Flags::FOUNDING) || flags.contains(Flags::ENROLLED)
                }) =>
            {
                Enrolment::Enrolled
            }
            _ => return,
        };
        if self.voter.enrolment() != next {
            self.enrol(next);
        }
    }

    /// Whether every other voter is visible, names the same voters, and shows flags that `fit`.
    fn every_other_voter(&self, now: Time, fit: impl Fn(Flags) -> bool) -> bool {
        let Some(params) = self.quorum_params() else { return false };
        let digest = params.voters.digest();
        params.voters.ids().iter().filter(|id| **id != self.node_id).all(|id| {
            let standing = self.members.voter_standing(now, id, digest);
            matches!(standing, VoterStanding::Counts | VoterStanding::Unenrolled)
                && self.members.get(id).is_some_and(|member| fit(member.standing.flags))
        })
    }

    /// Asks for the term, and again an interval later.
    pub(in crate::core::election) fn inquire(&mut self, now: Time) {
        if !self.lacks_memory() {
            return;
        }
        self.consider_founding(now);
        self.report_awaiting(now);
        self.send(Body::Inquiry);
        self.quorum.inquiry = Some(Poll::new(Question::Support, now, self.sequence));
        let interval = at_least_a_millisecond(self.params.heartbeat_interval);
        self.timers.set(Timer::Inquiry, now + interval);
    }

    fn report_awaiting(&mut self, now: Time) {
        let Some(params) = self.quorum_params() else { return };
        let digest = params.voters.digest();
        let count = |standing: VoterStanding| {
            let others = params.voters.ids().iter().filter(|id| **id != self.node_id);
            others.filter(|id| self.members.voter_standing(now, id, digest) == standing).count()
        };
        let (silent, enrolled) = (count(VoterStanding::Silent), count(VoterStanding::Counts));
        if self.quorum.reported_awaiting.replace((silent, enrolled)) != Some((silent, enrolled)) {
            self.notify(Event::AwaitingEnrolment { silent, enrolled });
        }
    }

    /// A voter that remembers has told the highest term that it knows, which was learned.
    pub(super) fn count_testimony(&mut self, voter: NodeId) {
        let Some(needed) = self.quorum_params().map(|params| params.voters.needed_to_testify())
        else {
            return;
        };
        let Some(inquiry) = &mut self.quorum.inquiry else { return };
        if inquiry.note_granted(voter) < needed || !self.lacks_memory() {
            return;
        }
        // Whatever it voted for in this term, it does not vote for anything else.
        self.voter.cast(self.term, self.life());
        self.enrol(Enrolment::Enrolled);
    }

    fn enrol(&mut self, enrolment: Enrolment) {
        self.voter.set_enrolment(enrolment);
        self.persist();
    }

    /// The memory is on disk: from now on this voter counts.
    pub(super) fn take_up_enrolment(&mut self, now: Time) {
        if !self.exclusions.unenrolled || !self.is_enrolled() {
            return;
        }
        self.timers.clear(Timer::Inquiry);
        self.quorum.inquiry = None;
        self.notify(Event::Enrolled { above: self.durable.term });
        self.change_exclusions(now, Reason::Startup, |exclusions| exclusions.unenrolled = false);
    }
}
