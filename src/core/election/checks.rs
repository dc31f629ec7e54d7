//! The health checks: `check` says whether this node may stand, `check_leader` whether it may
//! continue to lead.

use super::{Election, State};
use crate::core::health::{Health, HealthState};
use crate::core::hook::Reason;
use crate::core::output::Event;
use crate::core::params::Params;
use crate::core::timers::Timer;
use crate::time::Time;

impl Election {
    /// The state of the health check; none without one.
    pub const fn health(&self) -> Option<Health> {
        self.exclusions.health
    }

    /// The state of the leader's health check, by its results in this leadership, or in the last
    /// one until its hold-off is over; none without one.
    pub const fn leader_health(&self) -> Option<Health> {
        self.exclusions.leader_health
    }

    /// Whether this node leads, and its hooks have taken over: none runs or waits.
    pub fn has_taken_over(&self) -> bool {
        self.is_leader() && self.hooks.are_settled()
    }

    /// Whether the health check may start. It waits while a leader's hook runs, because the hook
    /// may be starting the service.
    pub fn may_check(&self) -> bool {
        !self.is_leader() || self.hooks.are_settled()
    }

    /// The health check has passed or failed. Ignored without a health check.
    pub fn handle_check(&mut self, now: Time, passed: bool) {
        let Some(mut health) = self.exclusions.health else { return };
        if self.state == State::Stopped {
            return;
        }
        health.note(passed);
        self.act(now, |election| {
            if health.state() == HealthState::Failing {
                election.hooks.note_failed();
            }
            election.change_exclusions(now, Reason::CheckFailed, |exclusions| {
                exclusions.health = Some(health);
            });
        });
    }

    /// The leader's health check has passed or failed. Ignored unless this node
    /// [has taken over](Self::has_taken_over).
    pub fn handle_leader_check(&mut self, now: Time, passed: bool) {
        if self.exclusions.leader_health.is_none() || self.state == State::Stopped {
            return;
        }
        self.act(now, |election| {
            if election.has_taken_over() {
                election.judge_leader_check(now, passed);
            }
        });
    }

    /// A leader whose check fails hands over. Only a leader can run the check, so nothing could
    /// show that this node has recovered: it is held off, as after a failed hook.
    fn judge_leader_check(&mut self, now: Time, passed: bool) {
        let Some(health) = &mut self.exclusions.leader_health else { return };
        health.note(passed);
        let health = *health;
        if health.state() == HealthState::Failing {
            self.hold_off(now, Reason::CheckFailed);
        } else if health.successes() >= health.thresholds().rise {
            self.hooks.end_failures();
        }
    }

    /// This node is not eligible for a while, for longer after each failure in a row. A leader
    /// hands over.
    pub(super) fn hold_off(&mut self, now: Time, reason: Reason) {
        self.hooks.note_failed();
        let holdoff = self.hooks.next_holdoff(self.params.failure_holdoff);
        self.notify(Event::HeldOff { reason, holdoff });
        self.timers.set(Timer::HoldoffEnd, now + holdoff);
        self.change_exclusions(now, reason, |exclusions| exclusions.held_off = Some(reason));
    }

    /// Ends a holdoff early if it is for `reason`.
    pub(super) fn end_holdoff_for(&mut self, now: Time, reason: Reason) {
        if self.exclusions.held_off == Some(reason) {
            self.timers.clear(Timer::HoldoffEnd);
            self.end_holdoff(now);
        }
    }

    pub(super) fn end_holdoff(&mut self, now: Time) {
        self.forget_leader_health();
        self.change_exclusions(now, Reason::HookFailed, |exclusions| exclusions.held_off = None);
    }

    /// The results in one leadership say nothing about the next.
    pub(super) fn forget_leader_health(&mut self) {
        self.exclusions.leader_health = self.params.check_leader.map(Health::untested);
    }

    /// Applies the settings of the checks. Without its check, a node is healthy.
    pub(super) fn take_check_params(&mut self, now: Time) {
        let Params { check, check_leader, .. } = self.params;
        let leader_health = self.exclusions.leader_health;
        self.exclusions.leader_health = check_leader.map(|thresholds| {
            leader_health.map_or(Health::untested(thresholds), |health| health.under(thresholds))
        });
        if check_leader.is_none() {
            self.end_holdoff_for(now, Reason::CheckFailed);
        }
        self.change_exclusions(now, Reason::Reconfigured, |exclusions| {
            let health = exclusions.health;
            exclusions.health = check.map(|thresholds| {
                health.map_or(Health::assumed(thresholds), |health| health.under(thresholds))
            });
        });
    }
}
