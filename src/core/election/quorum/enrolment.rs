//! Voter recovery: voters without their state, and the founding of a group.
//!
//! A lost disk looks like one that was never written. A voter without its state may have voted in
//! terms that it no longer knows. It gives no vote until it cannot vote twice in a term:
//!
//! * *The group has a state.* A majority of the voters testifies; of two voters, the other one. A
//!   voter testifies only once it has known this life for as long as any pledge of an earlier life
//!   can last. One of those that testify has voted in every term that was won with a forgotten
//!   vote. So no forgotten term is above the highest one they report. Founding voters testify too,
//!   because they have never voted.
//! * *The group is new.* Every other voter answers that it has no state, and then that it has
//!   learned the same of all others. In a group that has a state, a lost disk never gets such
//!   answers.

use super::Election;
use crate::core::election::at_least_a_millisecond;
use crate::core::hook::Reason;
use crate::core::output::Event;
use crate::core::persist::Enrolment;
use crate::core::quorum::{Answer, Census};
use crate::core::status::VoterStanding;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::wire::message::{Body, Message};

impl Election {
    /// Whether this node is a voter without its state.
    pub(in crate::core::election) fn lacks_state(&self) -> bool {
        self.is_voter() && self.quorum.voter.enrolment() != Enrolment::Enrolled
    }

    /// Asks the other voters for their state, and again an interval later.
    pub(in crate::core::election) fn inquire(&mut self, now: Time) {
        if !self.lacks_state() {
            return;
        }
        let interval = at_least_a_millisecond(self.params.heartbeat_interval);
        self.timers.set(Timer::Inquiry, now + interval);
        if !self.may_send() {
            return;
        }
        self.report_awaiting(now);
        self.send(Body::Inquiry);
        let inquiry = self.sent.newest;
        self.quorum.census.get_or_insert(Census::new(inquiry)).requests.note_repeated(inquiry);
        self.judge_census();
    }

    /// Asks `message`'s sender again soon if its known answer is outdated, as while a group is
    /// founded.
    pub(super) fn inquire_where_outdated(&mut self, now: Time, message: &Message) {
        let known = self.quorum.census.as_ref().and_then(|census| census.answer(&message.sender));
        let told = Enrolment::told_by(message.standing.flags);
        let is_news = known.is_none_or(|known| known.enrolment != told);
        if self.lacks_state() && told != Enrolment::Enrolled && is_news {
            self.timers.set_no_later(Timer::Inquiry, now + self.params.repetition_gap());
        }
    }

    /// A voter has answered an inquiry of this life.
    pub(super) fn note_answer(&mut self, now: Time, message: &Message, testifies: bool) {
        let Some(params) = self.params.quorum.as_ref() else { return };
        let standing = self.members.voter_standing(now, &message.sender, params.voters.digest());
        let heeded = matches!(standing, VoterStanding::Counts | VoterStanding::Unenrolled);
        if !heeded || !params.voters.contains(&message.sender) {
            return;
        }
        let enrolment = Enrolment::told_by(message.standing.flags);
        let answer = Answer { enrolment, testifies: testifies && enrolment != Enrolment::None };
        if let Some(census) = &mut self.quorum.census {
            census.note(message.sender, answer);
        }
        self.judge_census();
    }

    /// Decides by the answers whether this voter is enrolled, or founds the group with the others.
    pub(super) fn judge_census(&mut self) {
        let (Some(params), Some(census)) = (self.params.quorum.as_ref(), &self.quorum.census)
        else {
            return;
        };
        let others = || params.voters.ids().iter().copied().filter(|id| *id != self.life.node_id);
        let testified = census.testimonies() >= params.voters.needed_to_testify();
        let none_is_enrolled =
            || census.all(others(), |enrolment| enrolment != Enrolment::Enrolled);
        let all_have_learned_that =
            || census.all(others(), |enrolment| enrolment != Enrolment::None);
        let next = match self.disk.written().enrolment {
            _ if !self.lacks_state() => return,
            _ if testified => Enrolment::Enrolled,
            Enrolment::None if none_is_enrolled() => Enrolment::Founding,
            Enrolment::Founding if all_have_learned_that() => Enrolment::Enrolled,
            _ => return,
        };
        if testified {
            // Whatever its forgotten vote in this term was, it does not vote for another node in
            // it.
            self.quorum.voter.cast(self.terms.known, self.life);
        }
        self.quorum.voter.set_enrolment(next);
        self.persist();
    }

    fn report_awaiting(&mut self, now: Time) {
        let Some(params) = self.params.quorum.as_ref() else { return };
        let digest = params.voters.digest();
        let count = |standing: VoterStanding| {
            let others = params.voters.ids().iter().filter(|id| **id != self.life.node_id);
            others.filter(|id| self.members.voter_standing(now, id, digest) == standing).count()
        };
        let (silent, enrolled) = (count(VoterStanding::Silent), count(VoterStanding::Counts));
        if self.quorum.reported_awaiting.replace((silent, enrolled)) != Some((silent, enrolled)) {
            self.notify(Event::AwaitingEnrolment { silent, enrolled });
        }
    }

    /// The enrolment is on disk: from now on this voter's vote counts.
    pub(super) fn take_up_enrolment(&mut self, now: Time) {
        if !self.exclusions.unenrolled || !self.disk.is_enrolled() {
            return;
        }
        self.timers.clear(Timer::Inquiry);
        self.quorum.census = None;
        self.notify(Event::Enrolled { above: self.disk.written().term });
        self.change_exclusions(now, Reason::Startup, |exclusions| exclusions.unenrolled = false);
        // In a new group all voters are enrolled at about this time, and the best one stands first.
        let turn = self.turn(now);
        self.await_leader_for(now, self.params.leader_election_duration + turn);
    }
}
