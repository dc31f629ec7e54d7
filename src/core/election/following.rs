//! Following a leader, losing it, and telling the group that one is there.

use std::time::Duration;

use super::{Election, State, at_least_a_millisecond};
use crate::core::membership::Fading;
use crate::core::output::{Event, Output};
use crate::core::params::StaticRole;
use crate::core::rank::Rank;
use crate::core::status::MemberState;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::NodeId;
use crate::wire::message::Body;

/// A heartbeat comes up to this part of the interval late, so that followers do not fall into step.
const HEARTBEAT_JITTER_PART: u32 = 10;

impl Election {
    /// Follows `leader`, which has just declared.
    pub(super) fn follow(&mut self, now: Time, leader: NodeId) {
        let started = self.leave_startup();
        self.abandon_candidacy();
        self.timers.clear(Timer::Candidacy);
        self.state = State::Following;
        self.quorum.deferred_to.clear();
        self.quorum.refused.clear();
        self.set_leader(Some(leader));
        if started {
            self.send_heartbeat(now);
        }
        self.watch_leader();
        self.finish_yield(now);
        self.consider_claim(now);
        self.resume_static_leadership(now);
    }

    /// Sets the time at which the leader counts as gone, unless it declares again.
    pub(super) fn watch_leader(&mut self) {
        let end = self.leader.and_then(|leader| self.members.leads_until(&leader));
        if let Some(end) = end {
            self.timers.set(Timer::Silence, end);
        }
    }

    /// The leader has been silent for too long.
    pub(super) fn give_leader_up(&mut self, now: Time) {
        let Some(leader) = self.leader.filter(|_| self.state == State::Following) else { return };
        let heard = self.members.get(&leader).and_then(|member| member.last_declared);
        let silence = heard.map_or(Duration::ZERO, |heard| now.since(heard));
        self.notify(Event::LeaderSilent { leader, silence });
        self.lose_leader(now, leader);
        self.await_leader(now);
    }

    /// The leader is gone; another that declares is followed, the best-ranked one first.
    pub(super) fn lose_leader(&mut self, now: Time, leader: NodeId) {
        self.members.note_resigned(&leader);
        self.set_leader(None);
        self.timers.clear(Timer::Silence);
        self.timers.clear(Timer::Claim);
        if self.in_quorum_mode() {
            return self.forget_declaration();
        }
        if let Some(active) = self.members.best_active_leader(now) {
            self.follow(now, active.node_id());
        }
    }

    /// With no leader in sight, this node stands when its turn comes: the best candidate at once,
    /// each worse one a slot later, by when it has heard of the better one.
    pub(super) fn await_leader(&mut self, now: Time) {
        let turn = self.turn(now);
        self.await_leader_for(now, turn);
    }

    /// With no leader in sight, this node stands after `patience`.
    pub(super) fn await_leader_for(&mut self, now: Time, patience: Duration) {
        if self.state == State::Following && self.leader.is_none() && self.is_eligible() {
            let free = self.voter.bound_until(now, self.life()).unwrap_or(now);
            self.timers.set(Timer::Candidacy, now.max(free) + patience);
        }
    }

    /// How long this node lets better candidates go first.
    pub(super) fn turn(&self, now: Time) -> Duration {
        if self.params.static_role == Some(StaticRole::Leader) {
            return Duration::ZERO;
        }
        let ahead = u32::try_from(self.better_rivals(now)).unwrap_or(u32::MAX);
        self.params.candidacy_slot() * ahead.min(self.params.candidacy_slots())
    }

    pub(super) fn send_heartbeat(&mut self, now: Time) {
        let conceded = self.conceded.filter(|(_, until)| now < *until).map(|(reign, _)| reign);
        let acknowledged = self.take_acknowledgement();
        self.send(Body::Heartbeat { leader: self.leader, conceded, acknowledged });
        self.schedule_heartbeat(now);
    }

    pub(super) fn schedule_heartbeat(&mut self, now: Time) {
        let interval = at_least_a_millisecond(self.params.heartbeat_interval);
        let most = u64::try_from((interval / HEARTBEAT_JITTER_PART).as_nanos()).unwrap_or(u64::MAX);
        let jitter = Duration::from_nanos(self.rng.u64(0..=most));
        self.timers.set(Timer::Heartbeat, now + interval + jitter);
    }

    /// A better candidate under a worse leader asks for the leadership, once it may.
    pub(super) fn consider_claim(&mut self, now: Time) {
        if !self.may_claim(now) {
            self.timers.clear(Timer::Claim);
        } else if self.timers.get(Timer::Claim).is_none() {
            self.timers
                .set(Timer::Claim, self.no_claim_before.max(now + self.params.preempt_delay));
        }
    }

    /// Asks the leader to hand over, and asks again a heartbeat later unless it has.
    pub(super) fn claim(&mut self, now: Time) {
        if self.may_claim(now) {
            self.send(Body::Claim);
            let interval = at_least_a_millisecond(self.params.heartbeat_interval);
            self.timers.set(Timer::Claim, now + interval);
        }
    }

    fn may_claim(&self, now: Time) -> bool {
        let leader = self.leader.and_then(|id| Some((id, self.members.get(&id)?)));
        self.params.preempt
            && self.state == State::Following
            && self.is_eligible()
            && self.missing_candidates(now).is_none()
            && (!self.in_quorum_mode() || self.may_vote(now))
            && leader.is_some_and(|(id, member)| self.rank() > Rank::new(id, &member.standing))
    }

    /// Tells that this node is there along with the leader's declaration, where that is nearly due: the host
    /// is awake for it, and those who hear the heartbeat are too.
    pub(super) fn report_in_passing(&mut self, now: Time) {
        let soon = now + self.params.heartbeat_interval / 2;
        if self.timers.get(Timer::Heartbeat).is_some_and(|due| due <= soon) {
            self.send_heartbeat(now);
        }
    }

    /// Looks the members over where that is nearly due. Nobody waits for it to the moment, and so it
    /// seldom needs a wake of its own.
    pub(super) fn sweep_in_passing(&mut self, now: Time) {
        let soon = now + self.sweep_interval() / 2;
        if self.timers.get(Timer::Sweep).is_some_and(|due| due <= soon) {
            self.sweep(now);
        }
    }

    /// Looks the members over.
    pub(super) fn sweep(&mut self, now: Time) {
        self.timers.set(Timer::Sweep, now + self.sweep_interval());
        let outputs = &mut self.outputs;
        self.members.sweep(now, |Fading { node_id, state, silence }| {
            let event = match state {
                MemberState::Gone => Event::MemberGone { node_id, silence },
                _ => Event::MemberSuspect { node_id, silence },
            };
            outputs.push_back(Output::Notify(event));
        });
        self.check_visible_candidates(now);
    }

    /// Often enough to notice a silent member within half a threshold.
    pub(super) fn sweep_interval(&self) -> Duration {
        at_least_a_millisecond(self.params.leader_alive_threshold / 2)
    }
}
