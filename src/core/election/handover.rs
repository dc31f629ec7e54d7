//! Orderly handover: the demote hook first, then the resignation. So the successor's `elected`
//! never starts before this node's `demoted` has ended.

use super::{Election, State, at_least_a_millisecond};
use crate::core::hook::{HookEvent, Reason};
use crate::core::output::Event;
use crate::core::params::QuorumParams;
use crate::core::rank::Rank;
use crate::core::status::VoterStanding;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::NodeId;
use crate::wire::message::{Body, Message};

/// Why a node cannot be named as the successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSuccessor {
    /// It is the leader itself.
    #[error("it is this node")]
    ThisNode,
    /// No member has this id, or no longer.
    #[error("it is not a member of the group, as far as this node hears")]
    NotMember,
    /// It is suspected.
    #[error("it is silent")]
    Silent,
    /// It is not one of the voters (quorum mode).
    #[error("it is not a voter, and only voters can lead")]
    NotVoter,
    /// Its vote does not count (quorum mode).
    #[error("it is a voter that does not count; the status says why")]
    DoesNotCount,
    /// It has `candidate = false`.
    #[error("it is an observer: candidate = false")]
    Observer,
    /// It is a candidate, and not eligible now.
    #[error("it is not eligible to lead now; its own status says why")]
    NotEligible,
}

impl Election {
    /// Begins to hand over. This node keeps declaring until the demote hook has ended, so that no
    /// other node takes over early.
    pub(super) fn hand_over(&mut self, now: Time, reason: Reason, successor: Option<NodeId>) {
        if self.state != State::Leading {
            return;
        }
        self.state = State::HandingOver { reason, successor };
        self.timers.clear(Timer::Reaffirm);
        self.set_leader(None);
        self.outbox.cause = Some(reason);
        if self.hooks.retract_elected() {
            self.schedule_hook(HookEvent::Demoted, reason);
        }
        self.advance_handover(now);
    }

    /// Resigns, once the hooks have released everything. After the fence command a `demoted` that
    /// still runs is not waited for.
    pub(super) fn advance_handover(&mut self, now: Time) {
        let State::HandingOver { successor, .. } = self.state else { return };
        let schedule = &self.hooks.schedule;
        let may_leave = schedule.is_idle() || schedule.have_released();
        if !may_leave && !self.leaves_without_demoted() {
            return;
        }
        if self.others_wait_for_hooks() && self.hooks.schedule.hold() {
            // This node stops while its hooks still hold. The voters keep their pledges, and
            // `post-stop` continues.
            self.leave_office(now);
        } else {
            self.resign(now, successor);
        }
    }

    /// A `demoted` that cannot begin is waited for as long as the leader still serves. But in
    /// available mode a failed leadership, or one stuck process, must not leave the group without a
    /// leader that works.
    fn leaves_without_demoted(&self) -> bool {
        self.exclusions.not_released && self.hooks.need_no_wait() && !self.others_wait_for_hooks()
    }

    /// Names the successor and follows again. A leader whose lease has expired names none, because
    /// a majority that could elect one may be out of reach.
    fn resign(&mut self, now: Time, asked_for_it: Option<NodeId>) {
        let may_name = self.holds_leadership();
        self.leave_office(now);
        let successor = self.choose_successor(now, asked_for_it).filter(|_| may_name);
        self.send(Body::Resignation { successor });
        self.sent.resigned = Some(now);
        self.pause_before_resigning_again(now, now);
        self.await_successor(now, successor);
    }

    /// Resigns again. A voter that missed it keeps its pledge until that expires, and in available
    /// mode a follower waits until its patience ends. The repetition names no successor, so that
    /// the successor asks for votes only once.
    pub(super) fn resign_again(&mut self, now: Time) {
        let Some(resigned_at) = self.sent.resigned else { return };
        let in_doubt = self.params.declaration_hold().max(self.params.leader_alive_threshold);
        if !self.resignation_may_help() || now.since(resigned_at) >= in_doubt {
            self.sent.resigned = None;
            return;
        }
        // A candidate must not release the voters whose votes it asks for.
        if self.state == State::Following {
            self.send(Body::Resignation { successor: None });
        }
        self.pause_before_resigning_again(now, resigned_at);
    }

    /// Each pause is as long as all earlier ones together.
    fn pause_before_resigning_again(&mut self, now: Time, resigned_at: Time) {
        let gap = at_least_a_millisecond(self.params.repetition_gap());
        self.timers.set(Timer::Resignation, now + now.since(resigned_at).max(gap));
    }

    /// Stops acting as the leader.
    pub(super) fn leave_office(&mut self, now: Time) {
        self.begin_yield_time(now);
        self.stop_declaring(now);
        self.timers.clear(Timer::Lease);
        self.timers.clear(Timer::Reaffirm);
        self.quorum.lease = None;
        self.state = State::Following;
        self.learn_term(self.conflicts.heard);
    }

    /// The candidate that claimed the leadership, if it is still visible, or else the best one.
    pub(super) fn choose_successor(
        &self,
        now: Time,
        asked_for_it: Option<NodeId>,
    ) -> Option<NodeId> {
        let electable = |rival: &Rank| self.may_be_elected(&rival.node_id());
        let best = || self.members.rivals(now).filter(electable).max();
        asked_for_it
            .filter(|id| self.members.is_rival(now, id))
            .or_else(|| best().map(Rank::node_id))
    }

    /// Whether `node_id` could take over now.
    pub(super) fn check_successor(&self, now: Time, node_id: NodeId) -> Result<(), NoSuccessor> {
        if node_id == self.life.node_id {
            return Err(NoSuccessor::ThisNode);
        }
        let known = self.members.iter(now).find(|(id, ..)| **id == node_id);
        let (_, member, _) =
            known.filter(|(.., state)| state.is_visible()).ok_or(NoSuccessor::NotMember)?;
        if !self.may_be_elected(&node_id) {
            return Err(NoSuccessor::NotVoter);
        }
        if !member.is_candidate() {
            return Err(NoSuccessor::Observer);
        }
        if !member.is_eligible() {
            return Err(NoSuccessor::NotEligible);
        }
        if !self.members.is_rival(now, &node_id) {
            return Err(NoSuccessor::Silent);
        }
        match &self.params.quorum {
            Some(QuorumParams { voters, .. })
                if self.members.voter_standing(now, &node_id, voters.digest())
                    != VoterStanding::Counts =>
            {
                Err(NoSuccessor::DoesNotCount)
            }
            _ => Ok(()),
        }
    }

    /// A node has resigned in favour of `successor`.
    pub(super) fn handle_resignation(
        &mut self,
        now: Time,
        message: &Message,
        successor: Option<NodeId>,
    ) {
        let resigned = message.sender;
        self.members.note_resigned(&resigned);
        let was_bound = self.quorum.voter.bound_until(now, self.life).is_some();
        let is_freed = self.quorum.voter.release(message.life(), message.term) && was_bound;
        if is_freed {
            self.answer_postponed(now);
        }
        let leaderless = self.leader.is_none_or(|leader| leader == resigned);
        let takes_part =
            matches!(self.state, State::Starting { .. } | State::Following | State::Standing);
        if !leaderless || !takes_part {
            return;
        }
        let is_repeated = self.leader.is_none() && !is_freed;
        if is_repeated && successor.is_none() {
            return;
        }
        if self.leader.is_some() {
            self.notify(Event::LeaderResigned { leader: resigned });
            self.lose_leader(now, resigned);
        }
        if self.leader.is_some() {
            return;
        }
        if successor == Some(self.life.node_id) && self.is_eligible() {
            self.succeed(now);
        } else {
            self.await_successor(now, successor);
        }
    }

    /// The successor gets one election time to declare before this node stands in its turn.
    fn await_successor(&mut self, now: Time, successor: Option<NodeId>) {
        let head_start = successor.map(|_| self.params.leader_election_duration);
        let turn = self.turn(now);
        self.await_leader_for(now, head_start.unwrap_or_default() + turn);
    }

    /// A better candidate asks this leader to hand over. If a still better one does before
    /// `demoted` has ended, that one is the successor instead: otherwise each would preempt the one
    /// before. A yield, which may have named the successor, ends that.
    pub(super) fn handle_claim(&mut self, now: Time, claimant: NodeId, rank: Rank) {
        if rank <= self.rank() || !self.members.is_rival(now, &claimant) {
            return;
        }
        let beats = |named| self.members.rivals(now).any(|it| it.node_id() == named && it < rank);
        match self.state {
            State::HandingOver { reason: reason @ Reason::Preempted, successor: Some(named) }
                if !self.exclusions.yielding && beats(named) =>
            {
                self.state = State::HandingOver { reason, successor: Some(claimant) };
            }
            _ => self.hand_over(now, Reason::Preempted, Some(claimant)),
        }
    }

    /// Stops once the leadership is handed over and no hook runs.
    pub(super) fn advance_stop(&mut self, now: Time) {
        if self.exclusions.stopping.is_none() {
            return;
        }
        let in_office = self.state.is_in_office();
        if in_office || !self.hooks.schedule.is_idle() || self.hooks.fencing.is_running() {
            return;
        }
        if !self.others_wait_for_hooks() || !self.hooks.schedule.hold() {
            self.send(Body::Farewell);
        }
        self.fall_silent(now);
    }

    /// Reports the end, after every other output.
    pub(super) fn report_end(&mut self) {
        let is_over = self.state == State::Stopped && self.hooks.schedule.is_idle();
        if let Some(cause) = self.exclusions.stopping.filter(|_| is_over) {
            self.outbox.report_end(cause);
        }
    }

    /// Sends nothing and ignores every datagram from now on.
    fn fall_silent(&mut self, now: Time) {
        if self.state == State::Stopped {
            return;
        }
        self.state = State::Stopped;
        self.set_leader(None);
        self.timers.clear_all();
        self.outbox.since = now;
    }
}
