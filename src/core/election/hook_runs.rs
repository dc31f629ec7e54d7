//! The hook runs: which hook runs when, what follows a failed run, and when the hooks must have let
//! go.
//!
//! [`HookSchedule`] keeps the order of the runs. This file announces a leadership to the hooks,
//! judges each run by its outcome, and in quorum mode begins the grace. `core/fencing` takes over
//! if the hooks have not released everything by its end.

use std::time::Duration;

use super::{Election, State};
use crate::core::back_off::{BackOff, PAUSE_MAX};
use crate::core::fencing::{Fenced, Fencing};
use crate::core::hook::{HookEvent, HookOutcome, HookRun, Reason};
use crate::core::hook_schedule::HookSchedule;
use crate::core::output::{Event, Output};
use crate::core::params::OnElectedFailure;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{Role, Term};

/// Pause before a hook that could not be started is tried again. After a failed or lost run it
/// doubles each time, up to [`HOOK_RETRY_MAX`].
const HOOK_RETRY: Duration = Duration::from_secs(1);

const HOOK_RETRY_MAX: Duration = Duration::from_secs(10);

/// The hook runs of this node, and their failures.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct HookRuns {
    pub(super) schedule: HookSchedule,
    /// The announcement of this leadership, until its hook may run.
    unannounced: Option<(HookEvent, Reason)>,
    /// Leaderships that failed since the last success: by the hook or the leader's check.
    failures_in_a_row: BackOff,
    /// Failed or lost runs that were repeated since the last success.
    repeated: BackOff,
    /// The last run was lost, or its turn did not come: that of the next may never come.
    stuck: bool,
    /// What the hooks have taken over since the last `elected` has failed there: the hook, a check
    /// or a unit.
    failed: bool,
    pub(super) fencing: Fencing,
}

impl HookRuns {
    /// This node leads, or continues in a higher term, and its hooks must learn that.
    pub(super) fn announce(&mut self, event: HookEvent, reason: Reason) {
        // Before `elected` has run, no other announcement is needed.
        if event == HookEvent::Elected || self.unannounced.is_none() {
            self.unannounced = Some((event, reason));
        }
    }

    /// Whether the hooks have run for all that has happened.
    pub(super) fn are_settled(&self) -> bool {
        self.unannounced.is_none() && self.schedule.is_idle()
    }

    /// Whether what the hooks hold is to change: they have to take over or to release.
    fn are_changing(&self) -> bool {
        let has_to_announce = matches!(self.unannounced, Some((HookEvent::Elected, _)));
        has_to_announce || self.schedule.is_changing()
    }

    /// This leadership does not work. Counts until the next `elected` begins.
    pub(super) const fn note_failed(&mut self) {
        self.failed = true;
    }

    /// This leadership works, so the next failure is the first one.
    pub(super) fn end_failures(&mut self) {
        self.failures_in_a_row.note_succeeded();
    }

    /// Whether the hooks hold nothing, and no fence command runs, which would also hit this node's
    /// next leadership.
    pub(super) fn have_released(&self) -> bool {
        self.schedule.have_released() && !self.fencing.is_running()
    }

    /// Whether no handover needs to wait for a missing `demoted`: the leadership has failed, its
    /// turn may never come, or it has nothing to release.
    pub(super) const fn need_no_wait(&self) -> bool {
        self.failed || self.stuck || !self.schedule.hold()
    }

    /// Whether the hooks know that this node leads. Drops the announcement if they do not.
    pub(super) fn retract_elected(&mut self) -> bool {
        !matches!(self.unannounced.take(), Some((HookEvent::Elected, _)))
    }

    /// Whether a run with this outcome is missing. A run that never started is missing, unless the
    /// hooks need it no more. A lost run that releases is missing: it may not have ended, and a
    /// second run does no harm. A failed one is missing too if other nodes wait for it.
    ///
    /// `held` is whether the hooks held anything until then. If the fence command has succeeded
    /// meanwhile, they have released that already.
    fn is_missing(event: HookEvent, outcome: HookOutcome, held: bool, others_wait: bool) -> bool {
        let releases = !event.takes_over() && (held || event != HookEvent::Demoted);
        match outcome {
            HookOutcome::Succeeded => false,
            HookOutcome::Failed => releases && others_wait,
            HookOutcome::Lost => releases,
            HookOutcome::NotRun | HookOutcome::NoTurn => releases || event != HookEvent::Demoted,
        }
    }

    /// Returns a run that has to run again to the queue, and how long to wait before that.
    fn put_back(&mut self, run: HookRun, outcome: HookOutcome) -> Duration {
        self.schedule.put_back(run);
        if matches!(outcome, HookOutcome::NotRun | HookOutcome::NoTurn) {
            return HOOK_RETRY;
        }
        self.repeated.note_failed(HOOK_RETRY, HOOK_RETRY_MAX)
    }

    /// How long a leader whose hook or check failed stays out: `base`, doubled with each failure in
    /// a row.
    pub(super) fn next_holdoff(&mut self, base: Duration) -> Duration {
        self.failures_in_a_row.note_failed(base, PAUSE_MAX)
    }
}

impl Election {
    pub(super) fn schedule_hook(&mut self, event: HookEvent, reason: Reason) {
        let run = HookRun {
            event,
            reason,
            role: if event.takes_over() { Role::Leader } else { Role::Follower },
            term: self.terms.known,
            leader: self.leader,
            leader_address: self.leader.and_then(|id| Some(self.members.get(&id)?.address)),
            previous_leader: self.outbox.previous_leader,
        };
        let awaited = self.hooks.schedule.next();
        self.hooks.schedule.push(run);
        if self.hooks.schedule.next() != awaited {
            // What waited for its next try is moot.
            self.timers.clear(Timer::HookRetry);
        }
        self.start_next_hook();
    }

    pub(super) fn start_next_hook(&mut self) {
        if self.timers.get(Timer::HookRetry).is_some() {
            return;
        }
        if let Some(run) = self.hooks.schedule.start_next() {
            // Comes first: the hooks hold nothing without a crash plan.
            self.update_crash_plan();
            self.hooks.failed &= run.event != HookEvent::Elected;
            self.outbox.push(Output::RunHook(run));
        }
    }

    /// Does what waited for the hooks.
    pub(super) fn go_on_without_hook(&mut self, now: Time) {
        if !self.hooks.schedule.hold() {
            self.hooks.fencing.clear();
            self.timers.clear(Timer::GraceEnd);
        }
        self.start_next_hook();
        self.resume_static_leadership(now);
        self.advance_handover(now);
        self.advance_stop(now);
    }

    /// Runs the hook that announces this leadership, as soon as it may.
    pub(super) fn run_elected_hook(&mut self) {
        if !self.is_confirmed() || !self.term_is_kept() {
            return;
        }
        if let Some((event, reason)) = self.hooks.unannounced.take() {
            self.claims.note_led();
            self.schedule_hook(event, reason);
        }
    }

    /// Judges how `run` ended. A run that is missing is repeated, unless the daemon stops. `held`
    /// is whether the hooks held anything until then.
    pub(super) fn judge_hook(&mut self, now: Time, run: HookRun, outcome: HookOutcome, held: bool) {
        let others_wait = self.others_wait_for_hooks();
        let is_missing = HookRuns::is_missing(run.event, outcome, held, others_wait);
        self.hooks.stuck = matches!(outcome, HookOutcome::Lost | HookOutcome::NoTurn);
        if !is_missing {
            self.hooks.repeated.note_succeeded();
        } else if self.exclusions.stopping.is_some() {
            self.hooks.schedule.do_without(run);
        } else {
            self.repeat_hook(now, run, outcome);
        }
        if !run.event.takes_over() {
            self.set_not_released(now, is_missing);
        }
        if run.event == HookEvent::Elected {
            self.judge_elected_hook(now, outcome);
        }
    }

    /// While a run that releases is missing, no other run can begin: a leader would lead without
    /// its `elected`.
    fn set_not_released(&mut self, now: Time, not_released: bool) {
        self.change_exclusions(now, Reason::HookFailed, |exclusions| {
            exclusions.not_released = not_released;
        });
    }

    fn repeat_hook(&mut self, now: Time, run: HookRun, outcome: HookOutcome) {
        let retry_in = self.hooks.put_back(run, outcome);
        if self.hooks.schedule.next() == Some(run.event) {
            self.timers.set(Timer::HookRetry, now + retry_in);
        }
        if run.event.takes_over() {
            return;
        }
        // In available mode a hook-runner that is away is no more than that.
        if self.others_wait_for_hooks() || !self.exclusions.not_released {
            let HookRun { event, term, .. } = run;
            self.notify(Event::NotReleased { event, term, retry_in });
        }
        if self.others_wait_for_hooks() && self.hooks.schedule.hold() {
            // The hooks get the grace even if this node still has its lease, because it does not
            // resign before.
            let grace_end = now + self.params.demote_grace();
            if self.hooks.fencing.note_failed(self.terms.current, grace_end) {
                self.timers.set(Timer::GraceEnd, grace_end);
            }
        }
    }

    /// A leader whose `elected` hook failed steps down and stays out, for longer each time. So does
    /// one that yields already, unless the failure that it yields for has held it off. Whether a
    /// leadership works is decided by the leader's check, if there is one.
    fn judge_elected_hook(&mut self, now: Time, outcome: HookOutcome) {
        match outcome {
            HookOutcome::Succeeded if self.exclusions.leader_health.is_none() => {
                self.hooks.end_failures()
            }
            HookOutcome::Succeeded => {}
            _ if self.params.on_elected_failure == OnElectedFailure::Ignore => {}
            _ if self.state == State::Leading || self.yields_in_office() => {
                self.hold_off(now, Reason::HookFailed);
            }
            _ => self.hooks.note_failed(),
        }
    }

    /// Without its lease a leader cuts the hook short, which is no failure of the hook.
    const fn yields_in_office(&self) -> bool {
        let yields = matches!(self.state, State::HandingOver { .. }) && self.exclusions.yielding;
        yields && self.holds_leadership() && self.exclusions.held_off.is_none()
    }

    /// The grace is over. If the lease is over too, another node may by now take over what the
    /// hooks hold.
    pub(super) fn end_grace(&mut self) {
        let takes_over = self.hooks.schedule.may_take_over();
        let Some((term, is_first)) = self.hooks.fencing.start(takes_over) else { return };
        if is_first {
            self.notify(Event::GraceOverrun { term });
        }
        self.outbox.push(Output::Fence { term });
    }

    /// Judges how the fence command ended.
    pub(super) fn judge_fence(&mut self, now: Time, outcome: HookOutcome) {
        match self.hooks.fencing.finish(outcome) {
            Fenced::Released => {
                self.timers.clear(Timer::HookRetry);
                self.hooks.schedule.release();
                // As the leader this node would wait for it with `elected`.
                let still_runs = self.hooks.schedule.running().is_some();
                self.set_not_released(now, still_runs);
            }
            Fenced::RetryIn(pause) if self.timers.get(Timer::GraceEnd).is_none() => {
                self.timers.set(Timer::GraceEnd, now + pause);
            }
            Fenced::RetryIn(_) | Fenced::Moot => {}
        }
    }

    /// Whether a hook run is in progress, or waits.
    pub fn has_hook_pending(&self) -> bool {
        !self.hooks.are_settled()
    }

    /// Whether the hooks still have to take over or to release, so that what they hold is not yet
    /// that of this node's role. A `reaffirmed` changes nothing.
    pub fn has_changeover_pending(&self) -> bool {
        self.hooks.are_changing()
    }

    /// The term whose hooks have not released everything although `demoted` ran, or have not in
    /// time.
    pub fn overdue_term(&self) -> Option<Term> {
        self.hooks.fencing.overdue_term()
    }
}
