//! Which hook runs when, what becomes of a run that fails, and until when the hooks must have let
//! go.
//!
//! The order of the runs is [`HookSchedule`]'s. Here a leadership is announced once it may be, a
//! run is judged by how it ended, and in quorum mode the grace begins in which the hooks have to
//! let go; `core/fencing` has what follows if they do not.

use std::time::Duration;

use super::{Election, State};
use crate::core::fencing::{Fenced, Fencing};
use crate::core::hook::{HookEvent, HookOutcome, HookRun, Reason};
use crate::core::hook_schedule::HookSchedule;
use crate::core::output::{Event, Output};
use crate::core::params::OnElectedFailure;
use crate::core::timers::Timer;
use crate::time::{Time, doubled};
use crate::types::{Role, Term};

/// The time out after a failed hook doubles up to this, or is as long as configured.
const HOLDOFF_MAX: Duration = Duration::from_secs(3600);

/// How long to wait before a hook that could not be started is tried again. After a run that failed
/// or was lost the pause doubles with every further one, up to [`HOOK_RETRY_MAX`].
const HOOK_RETRY: Duration = Duration::from_secs(1);

/// Longest pause before a hook that failed is run again.
const HOOK_RETRY_MAX: Duration = Duration::from_secs(10);

/// The hook runs of this node, and what it expects of them.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct HookRuns {
    pub(super) schedule: HookSchedule,
    /// What is to announce this leadership, once it may.
    untold: Option<(HookEvent, Reason)>,
    /// `elected` hooks that failed since one last succeeded.
    failures_in_a_row: u32,
    /// Runs that failed or were lost, and are repeated, since one last ended as it should.
    repeated: u32,
    pub(super) fencing: Fencing,
}

impl HookRuns {
    /// This node leads, or leads on in a higher term, and its hooks are to be told so.
    pub(super) fn announce(&mut self, event: HookEvent, reason: Reason) {
        // Of a leadership that is not announced yet it is enough to announce the beginning.
        if event == HookEvent::Elected || self.untold.is_none() {
            self.untold = Some((event, reason));
        }
    }

    /// Whether the hooks hold nothing of a leadership, and no fence command runs: it would hit the
    /// next leadership of this node as well.
    pub(super) fn have_let_go(&self) -> bool {
        self.schedule.have_let_go() && !self.fencing.is_running()
    }

    /// Whether the hooks have been told that this node leads; forgets it where they have not.
    pub(super) fn retract_elected(&mut self) -> bool {
        !matches!(self.untold.take(), Some((HookEvent::Elected, _)))
    }
}

impl Election {
    pub(super) fn schedule_hook(&mut self, event: HookEvent, reason: Reason) {
        let leads = matches!(event, HookEvent::Elected | HookEvent::Reaffirmed);
        self.hooks.schedule.push(HookRun {
            event,
            reason,
            role: if leads { Role::Leader } else { Role::Follower },
            term: self.terms.known,
            leader: self.leader,
            leader_address: self.leader.and_then(|id| Some(self.members.get(&id)?.address)),
            previous_leader: self.outbox.previous_leader,
        });
        self.start_next_hook();
    }

    pub(super) fn start_next_hook(&mut self) {
        if self.timers.get(Timer::HookRetry).is_some() {
            return;
        }
        if let Some(run) = self.hooks.schedule.start_next() {
            // Before the hooks take over: nothing that they hold is without a crash plan.
            self.update_crash_plan();
            self.outbox.push(Output::RunHook(run));
        }
    }

    /// Does what waited for the hooks.
    pub(super) fn go_on_without_hook(&mut self, now: Time) {
        self.note_hooks_let_go();
        self.start_next_hook();
        self.advance_handover(now);
        self.advance_stop(now);
    }

    /// Runs the hook that tells of this leadership, once it may.
    pub(super) fn run_elected_hook(&mut self) {
        if !self.is_confirmed() || !self.term_is_kept() {
            return;
        }
        if let Some((event, reason)) = self.hooks.untold.take() {
            self.schedule_hook(event, reason);
        }
    }

    /// Takes in how `run` ended, by which the hooks may have let go. A run that is missing is
    /// repeated; only a daemon that stops does not wait for it. `held` says whether the hooks
    /// held anything until then.
    pub(super) fn judge_hook(&mut self, now: Time, run: HookRun, outcome: HookOutcome, held: bool) {
        if !self.is_missing(&run, outcome, held) {
            self.hooks.repeated = 0;
        } else if self.exclusions.stopping {
            self.hooks.schedule.do_without(run);
        } else {
            self.repeat_hook(now, run, outcome);
        }
        if run.event == HookEvent::Elected {
            self.judge_elected_hook(now, outcome);
        }
    }

    /// Whether the hooks miss a run that ended so. They miss each that never started. What lets
    /// go they miss where it may not have ended, because it is done twice rather than not; and in
    /// quorum mode, where others rely on it, until it succeeds.
    fn is_missing(&self, run: &HookRun, outcome: HookOutcome, held: bool) -> bool {
        let lets_go = match run.event {
            HookEvent::Started => true,
            // Where the fence command has succeeded meanwhile, there is nothing left to let go of.
            HookEvent::Demoted => held,
            HookEvent::Elected | HookEvent::Reaffirmed => false,
        };
        match outcome {
            HookOutcome::Succeeded => false,
            HookOutcome::Failed => lets_go && self.others_wait_for_hooks(),
            HookOutcome::Lost => lets_go,
            HookOutcome::NotRun => lets_go || run.event != HookEvent::Demoted,
        }
    }

    fn repeat_hook(&mut self, now: Time, run: HookRun, outcome: HookOutcome) {
        let mut retry_in = HOOK_RETRY;
        if outcome != HookOutcome::NotRun {
            retry_in = doubled(HOOK_RETRY, self.hooks.repeated).min(HOOK_RETRY_MAX);
            self.hooks.repeated = self.hooks.repeated.saturating_add(1);
        }
        self.timers.set(Timer::HookRetry, now + retry_in);
        self.hooks.schedule.put_back(run);
        let lets_go = matches!(run.event, HookEvent::Started | HookEvent::Demoted);
        if lets_go && self.others_wait_for_hooks() {
            let HookRun { event, term, .. } = run;
            self.notify(Event::NotLetGo { event, term, retry_in });
            self.begin_grace(now);
        }
    }

    /// A leader whose hook failed for `elected` is no use: it stays out, for longer every time.
    fn judge_elected_hook(&mut self, now: Time, outcome: HookOutcome) {
        match outcome {
            HookOutcome::Succeeded => self.hooks.failures_in_a_row = 0,
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
        let holdoff = doubled(base, self.hooks.failures_in_a_row);
        self.hooks.failures_in_a_row = self.hooks.failures_in_a_row.saturating_add(1);
        holdoff.min(HOLDOFF_MAX.max(base))
    }

    /// A run by which the hooks were to let go has not done so. They have the grace to do it
    /// after all, also where this node still has its lease: it does not resign before.
    pub(super) fn begin_grace(&mut self, now: Time) {
        if !self.hooks.schedule.hold() {
            return;
        }
        let grace_end = now + self.params.demote_grace();
        if self.hooks.fencing.note_failed(self.terms.current, grace_end) {
            self.timers.set(Timer::GraceEnd, grace_end);
        }
    }

    /// The grace is over. Where the lease is too, another node may take by now what the hooks hold.
    pub(super) fn end_grace(&mut self) {
        let Some((term, is_first)) = self.hooks.fencing.start() else { return };
        if is_first {
            self.notify(Event::GraceOverrun { term });
        }
        self.outbox.push(Output::Fence { term });
    }

    /// Takes in how the fence command ended.
    pub(super) fn judge_fence(&mut self, now: Time, outcome: HookOutcome) {
        match self.hooks.fencing.finish(outcome) {
            Fenced::Released => {
                self.timers.clear(Timer::HookRetry);
                self.hooks.schedule.release();
            }
            Fenced::RetryIn(pause) if self.timers.get(Timer::GraceEnd).is_none() => {
                self.timers.set(Timer::GraceEnd, now + pause);
            }
            Fenced::RetryIn(_) | Fenced::Moot => {}
        }
    }

    /// The term that this node's hooks have not let go of in spite of `demoted`, or in time.
    pub fn overdue_term(&self) -> Option<Term> {
        self.hooks.fencing.overdue_term()
    }

    /// Takes in that the hooks have let go, where they have.
    pub(super) fn note_hooks_let_go(&mut self) {
        if !self.hooks.schedule.hold() {
            self.hooks.fencing.clear();
            self.timers.clear(Timer::GraceEnd);
        }
    }
}
