//! The health check: started when it is due, and its results handed to the election.

use super::Daemon;
use crate::control_api::CheckReport;
use crate::core::hook::HookOutcome;
use crate::core::status::HealthState;
use crate::hooks::group::KILL_GRACE;
use crate::hooks::schedule::{CheckSchedule, Due, PATIENCE};
use crate::hooks::{Forced, HookFinished, Lane, Task};
use crate::os::clock;
use crate::types::Role;

/// The check of a daemon.
pub(super) struct Check {
    pub(super) schedule: CheckSchedule,
    /// How it ended last; none if it has not ended in time.
    last: Option<HookFinished>,
}

impl Check {
    pub(super) const fn new(schedule: CheckSchedule) -> Self {
        Check { schedule, last: None }
    }
}

impl Daemon {
    /// Processes the end of the check, and starts the next one if it is due.
    pub(super) fn attend_to_check(&mut self) {
        self.take_check_result();
        match self.check.schedule.poll_due(clock::now()) {
            Some(Due::Start) => self.start_check(),
            Some(Due::Overdue) => {
                self.check.last = None;
                self.judge_check(false, "time limit exceeded");
            }
            None => {}
        }
    }

    /// Ends the check in progress, because its result is no longer needed.
    pub(super) fn end_check(&mut self) {
        let now = clock::now();
        self.hooks.cut_short(Lane::Check, now + PATIENCE, now);
        self.take_check_result();
    }

    /// What `status` reports about the check; none if there is none.
    pub(super) fn check_report(&self) -> Option<CheckReport> {
        let health = self.election.health()?;
        let thresholds = health.thresholds();
        let last = self.check.last.as_ref();
        Some(CheckReport {
            state: health.state(),
            running: self.hooks.is_running(Lane::Check),
            failures: health.failures(),
            fall: thresholds.fall,
            successes: health.successes(),
            rise: thresholds.rise,
            last_exit: last.and_then(|last| last.exit),
            last_ms: last.and_then(|last| u64::try_from(last.took.as_millis()).ok()),
        })
    }

    fn start_check(&mut self) {
        let now = clock::now();
        let role = if self.election.is_leader_at(now) { Role::Leader } else { Role::Follower };
        let check = Task::Check { role, term: self.election.term() };
        self.hooks.start(check, KILL_GRACE, now);
        self.take_check_result();
    }

    fn take_check_result(&mut self) {
        let Some(finished) = self.hooks.poll_finished(Lane::Check) else { return };
        if let Some(passed) = self.check.schedule.handle_finished(&finished) {
            self.check.last = Some(finished);
            self.judge_check(passed, &describe(&finished));
        }
    }

    /// Passes a result to the election, and logs it if it changes anything.
    fn judge_check(&mut self, passed: bool, result: &str) {
        let before = self.election.health().map(|health| health.state());
        self.election.handle_check(clock::now(), passed);
        let after = self.election.health().map(|health| health.state());
        if before != after {
            tell_change(before, after, result);
        }
        self.carry_out();
    }
}

fn tell_change(before: Option<HealthState>, after: Option<HealthState>, result: &str) {
    match (before, after) {
        (_, Some(HealthState::Failing)) => {
            log::warn!("check failed ({result}): this node is not eligible to lead");
        }
        (Some(HealthState::Failing), _) => {
            log::info!("check passed again ({result}): it allows this node to lead");
        }
        _ => log::info!("check passed ({result})"),
    }
}

/// How a check ended, in words.
fn describe(finished: &HookFinished) -> String {
    let took = finished.took.as_millis();
    match (finished.outcome, finished.exit, finished.forced) {
        (HookOutcome::NotRun, ..) => "the command could not be run".to_owned(),
        (HookOutcome::Lost, ..) => "its result is unknown".to_owned(),
        (.., Some(Forced::Overran)) => {
            format!("time limit exceeded, ended after {took} ms")
        }
        (_, Some(exit), _) => format!("exit status {exit} after {took} ms"),
        (_, None, _) => format!("no exit status after {took} ms"),
    }
}
