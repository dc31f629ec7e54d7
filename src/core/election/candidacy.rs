//! Standing for leadership: propose, defer to a better candidate, or declare.
//!
//! The best candidate does not wait: it declares as soon as every better node has had the time to
//! answer, and at once if no other node is visible. A candidate that knows of a better one that is
//! alive but silent waits for the whole election time.

use super::{Election, State};
use crate::core::hook::Reason;
use crate::core::output::Event;
use crate::core::params::StaticRole;
use crate::core::rank::Rank;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::NodeId;

impl Election {
    /// Opens an election, unless there is a leader by now or this node may not lead.
    pub(super) fn stand(&mut self, now: Time) {
        if self.state != State::Following || !self.is_eligible() {
            return;
        }
        if self.params.static_role == Some(StaticRole::Leader) {
            return self.lead_by_role(now);
        }
        if self.leader.is_some() {
            return;
        }
        if !self.sees_enough_candidates(now) {
            return self.await_leader_for(now, self.params.heartbeat_interval);
        }
        self.open_candidacy(now);
    }

    /// A static leader leads without an election. While its term is being saved, another leader
    /// serves: a disk that hangs gives the group no second one.
    fn lead_by_role(&mut self, now: Time) {
        if self.leader.is_some() {
            self.take_untold_term();
            if !self.term_is_kept() {
                return;
            }
        }
        self.become_leader(now, Reason::Static);
    }

    /// Announces the candidacy, and repeats that during the election, in case a datagram was lost.
    pub(super) fn propose(&mut self, now: Time) {
        if self.state == State::Standing {
            self.repeat_proposal(now);
        }
    }

    /// Another node stands for leadership.
    pub(super) fn handle_proposal(&mut self, now: Time, candidate: NodeId, rank: Rank) {
        let better = rank > self.rank();
        match self.state {
            State::Leading | State::HandingOver { .. } => self.declare_soon(now),
            State::Standing if better => self.defer_to(now, candidate),
            State::Standing => self.answer_proposal(now),
            State::Following if self.leader.is_none() && better => {
                if self.makes_way_for(candidate) {
                    self.leave_it_to_others(now);
                }
            }
            State::Following if self.leader.is_none() => self.stand_in_turn(now),
            State::Starting { .. } | State::Following | State::Stopped => {}
        }
    }

    /// Leaves the leadership to a better candidate, for twice the time that an election takes.
    fn defer_to(&mut self, now: Time, candidate: NodeId) {
        if !self.makes_way_for(candidate) {
            return;
        }
        self.notify(Event::DeferredTo { candidate });
        self.abandon_candidacy();
        self.leave_it_to_others(now);
    }

    fn leave_it_to_others(&mut self, now: Time) {
        let turn = self.turn(now);
        self.await_leader_for(now, self.params.deference() + turn);
    }

    /// A worse candidate stands. Every better node then stands in its turn, the best one at once.
    fn stand_in_turn(&mut self, now: Time) {
        let turn = now + self.turn(now);
        if self.timers.get(Timer::Candidacy).is_some_and(|set| turn < set) {
            self.timers.set(Timer::Candidacy, turn);
        }
    }

    /// A worse candidate has missed this node's proposal. This node repeats it, but leaves time for
    /// an answer.
    fn answer_proposal(&mut self, now: Time) {
        let gap = self.params.answer_time();
        if self.sent.proposed.is_none_or(|last| now.since(last) >= gap) {
            self.propose(now);
        }
    }

    /// Ends the candidacy, if there is one.
    pub(super) fn abandon_candidacy(&mut self) {
        if self.state == State::Standing {
            self.state = State::Following;
        }
        self.timers.clear(Timer::Repropose);
        self.timers.clear(Timer::Certainty);
        self.timers.clear(Timer::ElectionEnd);
        self.drop_question();
    }

    /// Whether `min_candidates` are visible. Reports each change to too few.
    pub(super) fn sees_enough_candidates(&mut self, now: Time) -> bool {
        let missing = self.missing_candidates(now);
        if let Some((visible, needed)) = missing.filter(|_| !self.outbox.reported_short) {
            self.notify(Event::TooFewCandidates { visible, needed });
        }
        self.outbox.reported_short = missing.is_some();
        missing.is_none()
    }

    /// How many candidates are visible, including this node, and how many are needed, if that is
    /// more. A static leader needs no others.
    pub(super) fn missing_candidates(&self, now: Time) -> Option<(usize, usize)> {
        let visible = self.members.visible_candidates(now) + usize::from(self.params.candidate);
        let needed = usize::from(self.params.min_candidates);
        let alone = self.params.static_role == Some(StaticRole::Leader);
        (visible < needed && !alone).then_some((visible, needed))
    }

    /// A leader that sees too few candidates hands over.
    pub(super) fn check_visible_candidates(&mut self, now: Time) {
        if self.state == State::Leading && !self.sees_enough_candidates(now) {
            self.hand_over(now, Reason::TooFewCandidates, None);
        }
    }
}
