//! Whether this node may lead now, and what happens when that changes.

use std::time::Duration;

use super::{Election, State};
use crate::core::health::{Health, HealthState};
use crate::core::hook::{HookEvent, HookOutcome, HookRun, Reason};
use crate::core::output::Event;
use crate::core::params::{OnElectedFailure, Params, QuorumParams, StaticRole};
use crate::core::persist::{Enrolment, PersistentState};
use crate::core::status::Ineligible;
use crate::core::timers::Timer;
use crate::time::{Time, doubled};
use crate::types::NodeId;

/// The time out after a failed hook doubles up to this, or is as long as configured.
const HOLDOFF_MAX: Duration = Duration::from_secs(3600);

/// How long to wait before a hook that could not be started is tried again. After a run that failed or was
/// lost the pause doubles with every further one, up to [`HOOK_RETRY_MAX`].
const HOOK_RETRY: Duration = Duration::from_secs(1);

/// Longest pause before a hook that failed is run again.
const HOOK_RETRY_MAX: Duration = Duration::from_secs(10);

/// What keeps a node from standing. Any of them is enough.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Exclusions {
    pub(super) observer: bool,
    pub(super) static_follower: bool,
    pub(super) stopping: bool,
    pub(super) maintenance: bool,
    pub(super) interface_down: bool,
    /// The hook-runner has not agreed to run by the same configuration.
    pub(super) no_hook_runner: bool,
    /// None where there is no check.
    pub(super) health: Option<Health>,
    pub(super) held_off: bool,
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
            stopping: false,
            maintenance: persisted.maintenance,
            interface_down: !links_up,
            no_hook_runner: false,
            health: params.check.map(Health::pending),
            held_off: false,
            yielding: false,
            not_voter: params.quorum.as_ref().is_some_and(|quorum| !votes(quorum)),
            unenrolled: params.quorum.as_ref().is_some_and(votes) && !remembers,
        }
    }

    /// The first that holds, in the order in which they are reported.
    pub(super) fn first(&self) -> Option<Ineligible> {
        [
            self.stopping.then_some(Ineligible::Stopping),
            self.observer.then_some(Ineligible::Observer),
            self.not_voter.then_some(Ineligible::NotVoter),
            self.static_follower.then_some(Ineligible::StaticFollower),
            self.maintenance.then_some(Ineligible::Maintenance),
            self.interface_down.then_some(Ineligible::InterfaceDown),
            self.no_hook_runner.then_some(Ineligible::NoHookRunner),
            self.health.and_then(unhealthy),
            self.held_off.then_some(Ineligible::HookFailed),
            self.yielding.then_some(Ineligible::Yielding),
            self.unenrolled.then_some(Ineligible::Unenrolled),
        ]
        .into_iter()
        .flatten()
        .next()
    }
}

/// Why a node of this health must not lead; none where it may.
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
        self.exclusions.first().is_none()
    }

    /// What the health check says of this node; none where there is no check.
    pub const fn health(&self) -> Option<Health> {
        self.exclusions.health
    }

    /// Applies `change` to what keeps this node from standing, and acts on the outcome: a leader
    /// hands over for `reason`, a candidate withdraws, a node that may stand again does when its
    /// turn comes.
    pub(super) fn change_exclusions(
        &mut self,
        now: Time,
        reason: Reason,
        change: impl FnOnce(&mut Exclusions),
    ) {
        let was_eligible = self.is_eligible();
        let was_following = self.state == State::Following;
        change(&mut self.exclusions);
        let eligible = self.is_eligible();
        if eligible == was_eligible {
            return;
        }
        if eligible {
            self.rejoin_candidates(now);
        } else {
            self.withdraw(now, reason);
        }
        if was_following {
            // Those who rank this node learn of it now rather than with the next heartbeat.
            self.send_heartbeat(now);
        }
    }

    fn withdraw(&mut self, now: Time, reason: Reason) {
        self.abandon_candidacy();
        self.timers.clear(Timer::Candidacy);
        self.timers.clear(Timer::Claim);
        self.hand_over(now, reason, None);
    }

    fn rejoin_candidates(&mut self, now: Time) {
        self.await_leader(now);
        self.consider_claim(now);
        self.resume_static_leadership(now);
    }

    /// A node that was cut off starts listening anew, or gives the others' leader the time to be
    /// heard.
    pub(super) fn relink(&mut self, now: Time) {
        if matches!(self.state, State::Starting { .. }) {
            return self.begin_startup(now);
        }
        if self.params.static_role == Some(StaticRole::Leader) {
            return self.resume_static_leadership(now);
        }
        let turn = self.turn(now);
        self.await_leader_for(now, self.params.leader_alive_threshold + turn);
    }

    /// A yield counts from the end of the leadership on, however that ends.
    pub(super) fn begin_yield_time(&mut self, now: Time) {
        if self.exclusions.yielding {
            let end = now + self.params.yield_time();
            self.no_claim_before = end;
            self.timers.set(Timer::YieldEnd, end);
        }
    }

    /// Nobody else has taken the leadership: this node may have it back.
    pub(super) fn end_yield(&mut self, now: Time) {
        self.change_exclusions(now, Reason::Yield, |exclusions| exclusions.yielding = false);
    }

    /// Another leader is there, so a yield has done what it was for.
    pub(super) fn finish_yield(&mut self, now: Time) {
        self.timers.clear(Timer::YieldEnd);
        self.end_yield(now);
    }

    pub(super) fn end_holdoff(&mut self, now: Time) {
        self.change_exclusions(now, Reason::HookFailed, |exclusions| exclusions.held_off = false);
    }

    /// Takes in how `run` ended, by which the scripts may have let go. A run that is missing is repeated;
    /// only a daemon that stops does not wait for it.
    /// `held` says whether the scripts held anything until then.
    pub(super) fn judge_hook(&mut self, now: Time, run: HookRun, outcome: HookOutcome, held: bool) {
        if !self.is_missing(&run, outcome, held) {
            self.hook_failures = 0;
        } else if self.exclusions.stopping {
            self.hooks.do_without(run);
        } else {
            self.repeat_hook(now, run, outcome);
        }
        if run.event == HookEvent::Elected {
            self.judge_elected_hook(now, outcome);
        }
    }

    /// Whether the scripts miss a run that ended so. They miss each that never started. What lets go they
    /// miss where it may not have ended, because it is done twice rather than not; and in quorum mode,
    /// where others rely on it, until it succeeds.
    fn is_missing(&self, run: &HookRun, outcome: HookOutcome, held: bool) -> bool {
        let lets_go = match run.event {
            HookEvent::Started => true,
            // Where the fence command has succeeded meanwhile, there is nothing left to let go of.
            HookEvent::Demoted => held,
            HookEvent::Elected | HookEvent::Reaffirmed => false,
        };
        match outcome {
            HookOutcome::Succeeded => false,
            HookOutcome::Failed => lets_go && self.in_quorum_mode(),
            HookOutcome::Lost => lets_go,
            HookOutcome::NotRun => lets_go || run.event != HookEvent::Demoted,
        }
    }

    fn repeat_hook(&mut self, now: Time, run: HookRun, outcome: HookOutcome) {
        let mut retry_in = HOOK_RETRY;
        if outcome != HookOutcome::NotRun {
            retry_in = doubled(HOOK_RETRY, self.hook_failures).min(HOOK_RETRY_MAX);
            self.hook_failures = self.hook_failures.saturating_add(1);
        }
        self.timers.set(Timer::HookRetry, now + retry_in);
        self.hooks.put_back(run);
        if self.in_quorum_mode() && matches!(run.event, HookEvent::Started | HookEvent::Demoted) {
            let HookRun { event, term, .. } = run;
            self.notify(Event::NotLetGo { event, term, retry_in });
            self.begin_grace(now);
        }
    }

    /// A leader whose hook failed for `elected` is no use: it stays out, for longer every time.
    fn judge_elected_hook(&mut self, now: Time, outcome: HookOutcome) {
        match outcome {
            HookOutcome::Succeeded => self.failures_in_a_row = 0,
            HookOutcome::Failed | HookOutcome::Lost | HookOutcome::NotRun
                if self.state == State::Leading
                    && self.params.on_elected_failure == OnElectedFailure::Resign =>
            {
                let holdoff = self.next_holdoff();
                self.notify(Event::HeldOff { holdoff });
                self.timers.set(Timer::HoldoffEnd, now + holdoff);
                self.change_exclusions(now, Reason::HookFailed, |exclusions| {
                    exclusions.held_off = true;
                });
            }
            HookOutcome::Failed | HookOutcome::Lost | HookOutcome::NotRun => {}
        }
    }

    fn next_holdoff(&mut self) -> Duration {
        let base = self.params.failure_holdoff;
        let holdoff = doubled(base, self.failures_in_a_row);
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        holdoff.min(HOLDOFF_MAX.max(base))
    }
}
