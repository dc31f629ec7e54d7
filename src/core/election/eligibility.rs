//! Whether this node may lead now, and what happens when that changes.

use super::{Election, State};
use crate::core::health::{Health, HealthState};
use crate::core::hook::Reason;
use crate::core::output::StopCause;
use crate::core::params::{Params, QuorumParams, StaticRole};
use crate::core::persist::{Enrolment, PersistentState};
use crate::core::status::Ineligible;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::NodeId;

/// Reasons why a node is not eligible. Any of them is enough.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Exclusions {
    pub(super) observer: bool,
    pub(super) static_follower: bool,
    /// Why this node stops.
    pub(super) stopping: Option<StopCause>,
    pub(super) maintenance: bool,
    pub(super) interface_down: bool,
    /// The number of this life is not on disk yet.
    pub(super) disk_pending: bool,
    /// The hook-runner has not confirmed that it uses the same configuration.
    pub(super) no_hook_runner: bool,
    /// A hook run that releases is missing, and is tried until it has taken place.
    pub(super) not_released: bool,
    /// None without a health check.
    pub(super) health: Option<Health>,
    /// None without a leader's health check. It excludes this node only by a hold-off.
    pub(super) leader_health: Option<Health>,
    /// Why this node is held off: its hook or its leader's check failed, or it yielded after a
    /// failure.
    pub(super) held_off: Option<Reason>,
    pub(super) yielding: bool,
    pub(super) not_voter: bool,
    pub(super) unenrolled: bool,
}

impl Exclusions {
    pub(super) fn new(
        params: &Params,
        node_id: NodeId,
        persisted: &PersistentState,
        links_up: bool,
    ) -> Self {
        let votes = |quorum: &QuorumParams| quorum.voters.contains(&node_id);
        let remembers = persisted.enrolment == Enrolment::Enrolled;
        Exclusions {
            observer: !params.candidate,
            static_follower: params.static_role == Some(StaticRole::Follower),
            stopping: None,
            maintenance: persisted.maintenance,
            interface_down: !links_up,
            disk_pending: true,
            no_hook_runner: false,
            not_released: false,
            health: params.check.map(Health::pending),
            leader_health: params.check_leader.map(Health::untested),
            held_off: None,
            yielding: false,
            not_voter: params.quorum.as_ref().is_some_and(|quorum| !votes(quorum)),
            unenrolled: params.quorum.as_ref().is_some_and(votes) && !remembers,
        }
    }

    /// Whether nothing that this node says reaches the group.
    pub(super) const fn is_mute(&self) -> bool {
        self.interface_down || self.disk_pending
    }

    /// The reasons that hold, in the order in which they are reported.
    pub(super) fn reasons(&self) -> impl Iterator<Item = Ineligible> {
        let reasons = [
            self.stopping.map(|_| Ineligible::Stopping),
            self.observer.then_some(Ineligible::Observer),
            self.not_voter.then_some(Ineligible::NotVoter),
            self.static_follower.then_some(Ineligible::StaticFollower),
            self.maintenance.then_some(Ineligible::Maintenance),
            self.interface_down.then_some(Ineligible::InterfaceDown),
            self.disk_pending.then_some(Ineligible::DiskPending),
            self.no_hook_runner.then_some(Ineligible::NoHookRunner),
            self.not_released.then_some(Ineligible::NotReleased),
            self.health.and_then(unhealthy),
            self.held_off.map(held_off),
            self.yielding.then_some(Ineligible::Yielding),
            self.unenrolled.then_some(Ineligible::Unenrolled),
        ];
        reasons.into_iter().flatten()
    }
}

/// What the status shows for a node that is held off.
const fn held_off(reason: Reason) -> Ineligible {
    match reason {
        Reason::CheckFailed => Ineligible::CheckFailed,
        Reason::Yield => Ineligible::ServiceFailed,
        _ => Ineligible::HookFailed,
    }
}

/// Why a node of this health must not lead; none if it may.
const fn unhealthy(health: Health) -> Option<Ineligible> {
    match health.state() {
        HealthState::Pending => Some(Ineligible::CheckPending),
        HealthState::Healthy => None,
        HealthState::Failing => Some(Ineligible::CheckFailed),
    }
}

impl Election {
    /// Whether this node may stand for leadership now.
    pub fn is_eligible(&self) -> bool {
        self.exclusions.reasons().next().is_none()
    }

    /// Applies `change` to the exclusions. If this node is no longer eligible, a leader hands over
    /// for `reason` and a candidate withdraws. If it is eligible again, it stands in its turn.
    pub(super) fn change_exclusions(
        &mut self,
        now: Time,
        reason: Reason,
        change: impl FnOnce(&mut Exclusions),
    ) {
        let was_eligible = self.is_eligible();
        let was_ranked = matches!(self.state, State::Following | State::Standing);
        change(&mut self.exclusions);
        let eligible = self.is_eligible();
        if eligible == was_eligible {
            return;
        }
        if eligible {
            self.rejoin_candidates(now);
        } else {
            self.withdraw(now, reason, None);
        }
        if was_ranked {
            // The other nodes rank this one, so they learn of it before the next heartbeat is due.
            self.send_heartbeat(now);
        }
    }

    /// Withdraws from the election, or hands over, if the operator wants that to `successor`.
    pub(super) fn withdraw(&mut self, now: Time, reason: Reason, successor: Option<NodeId>) {
        self.interrupt_election(now);
        self.abandon_candidacy();
        self.timers.clear(Timer::Candidacy);
        self.timers.clear(Timer::Claim);
        self.hand_over(now, reason, successor);
    }

    fn rejoin_candidates(&mut self, now: Time) {
        self.await_leader(now);
        self.consider_claim(now);
        self.resume_static_leadership(now);
    }

    /// After all interfaces were down, a starting node listens anew. Any other node waits to hear
    /// the others' leader first, unless it leads in any case.
    pub(super) fn relink(&mut self, now: Time) {
        if self.state.is_starting() {
            return self.begin_startup(now);
        }
        self.probing.forget_unsent();
        // One that still hands over has led until now.
        let leads_in_any_case = self.params.static_role == Some(StaticRole::Leader)
            && (self.state.is_in_office() || self.may_challenge_leader(now));
        if leads_in_any_case {
            return self.resume_static_leadership(now);
        }
        self.listens_until = now + self.params.leader_alive_threshold;
        self.await_leader(now);
    }

    /// The yield time starts at the end of the leadership, whatever ended it.
    pub(super) fn begin_yield_time(&mut self, now: Time) {
        if self.exclusions.yielding {
            let end = now + self.params.yield_time();
            self.claims.rest_until(end);
            self.timers.set(Timer::YieldEnd, end);
        }
    }

    /// No other node has taken the leadership, so this node may take it again, even if it has
    /// yielded because of a failure.
    pub(super) fn end_yield(&mut self, now: Time) {
        self.end_holdoff_for(now, Reason::Yield);
        self.change_exclusions(now, Reason::Yield, |exclusions| exclusions.yielding = false);
    }

    /// Another node leads, so the yield has served its purpose.
    pub(super) fn finish_yield(&mut self, now: Time) {
        self.timers.clear(Timer::YieldEnd);
        self.change_exclusions(now, Reason::Yield, |exclusions| exclusions.yielding = false);
    }
}
