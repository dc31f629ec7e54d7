//! The health checks: started when they are due, and their results handed to the election.

use super::Daemon;
use crate::config::Config;
use crate::control_api::CheckReport;
use crate::core::Election;
use crate::core::health::Health;
use crate::core::hook::HookOutcome;
use crate::core::status::HealthState;
use crate::hooks::group::KILL_GRACE;
use crate::hooks::schedule::{CheckResult, CheckSchedule, CheckSettings, Due, PATIENCE};
use crate::hooks::{Forced, HookFinished, Lane, Task};
use crate::os::clock;
use crate::time::Time;
use crate::types::Role;

/// The checks of a daemon.
pub(super) struct Checks {
    check: Check,
    check_leader: Check,
}

/// One of them.
struct Check {
    schedule: CheckSchedule,
    /// How it ended last; none if it has not ended in time.
    last: Option<HookFinished>,
}

impl Checks {
    pub(super) fn new(config: &Config, now: Time) -> Self {
        let check = |lane| {
            let schedule = CheckSchedule::new(CheckSettings::new(config, lane), now);
            Check { schedule, last: None }
        };
        Checks { check: check(Lane::Check), check_leader: check(Lane::CheckLeader) }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let checks = [&self.check, &self.check_leader];
        checks.into_iter().filter_map(|check| check.schedule.poll_timeout()).min()
    }

    /// What this leader takes over has this long to pass its check for the first time.
    pub(super) fn allow_start_up(&mut self, until: Time) {
        self.check_leader.schedule.allow_start_up(until);
    }

    fn of(&mut self, lane: Lane) -> &mut Check {
        if lane == Lane::CheckLeader { &mut self.check_leader } else { &mut self.check }
    }
}

impl Daemon {
    /// Processes the ends of checks, and starts those that are due.
    pub(super) fn attend_to_checks(&mut self) {
        self.pause_checks();
        for lane in Lane::CHECKS {
            self.take_check_result(lane);
            match self.checks.of(lane).schedule.poll_due(clock::now()) {
                Some(Due::Start) => self.start_check(lane),
                Some(Due::Overdue) => {
                    self.checks.of(lane).last = None;
                    self.judge_check(lane, false, "time limit exceeded");
                }
                None => {}
            }
        }
    }

    /// Applies the configuration after a reload.
    pub(super) fn reconfigure_checks(&mut self) {
        for lane in Lane::CHECKS {
            let settings = CheckSettings::new(&self.config, lane);
            if self.checks.of(lane).schedule.reconfigure(settings, clock::now()) {
                self.end_check(lane);
            }
        }
    }

    /// Ends the checks for good.
    pub(super) fn stop_checks(&mut self) {
        for lane in Lane::CHECKS {
            if self.checks.of(lane).schedule.stop(clock::now()) {
                self.end_check(lane);
            }
        }
    }

    /// What `status` reports about `check`; none if there is none.
    pub(super) fn check_report(&self) -> Option<CheckReport> {
        Some(self.report_of(&self.checks.check, Lane::Check, self.election.health()?))
    }

    /// The same about `check_leader`.
    pub(super) fn leader_check_report(&self) -> Option<CheckReport> {
        let health = self.election.leader_health()?;
        Some(self.report_of(&self.checks.check_leader, Lane::CheckLeader, health))
    }

    fn report_of(&self, check: &Check, lane: Lane, health: Health) -> CheckReport {
        let thresholds = health.thresholds();
        let last = check.last.as_ref();
        CheckReport {
            state: health.state(),
            running: self.hooks.is_running(lane),
            failures: health.failures(),
            fall: thresholds.fall,
            successes: health.successes(),
            rise: thresholds.rise,
            last_exit: last.and_then(|last| last.exit),
            last_ms: last.and_then(|last| u64::try_from(last.took.as_millis()).ok()),
        }
    }

    /// The checks of a leader wait for its hook, which may be starting what they check.
    pub(super) fn pause_checks(&mut self) {
        let (may_check, has_taken_over) =
            (self.election.may_check(), self.election.has_taken_over());
        self.checks.check.schedule.pause(!may_check);
        self.checks.check_leader.schedule.pause(!has_taken_over);
        if !self.election.is_leader() {
            self.give_up_leader_check();
        }
    }

    /// Its results matter only while this node leads, except for one that ended a leadership.
    fn give_up_leader_check(&mut self) {
        if self.checks.check_leader.schedule.give_up(clock::now()) {
            self.end_check(Lane::CheckLeader);
        }
        if state(&self.election, Lane::CheckLeader) != Some(HealthState::Failing) {
            self.checks.check_leader.last = None;
        }
    }

    /// Ends the check in progress, because its result is not needed.
    fn end_check(&mut self, lane: Lane) {
        let now = clock::now();
        self.hooks.cut_short(lane, now + PATIENCE, now);
        self.take_check_result(lane);
    }

    fn start_check(&mut self, lane: Lane) {
        let now = clock::now();
        let term = self.election.term();
        let role = if self.election.is_leader_at(now) { Role::Leader } else { Role::Follower };
        let task = match lane {
            Lane::CheckLeader => Task::CheckLeader { term },
            _ => Task::Check { role, term },
        };
        self.hooks.start(task, KILL_GRACE, now);
        self.take_check_result(lane);
    }

    fn take_check_result(&mut self, lane: Lane) {
        let Some(finished) = self.hooks.poll_finished(lane) else { return };
        let check = self.checks.of(lane);
        let Some(result) = check.schedule.handle_finished(&finished, clock::now()) else { return };
        check.last = Some(finished);
        if result != CheckResult::NotUpYet {
            self.judge_check(lane, result == CheckResult::Passed, &describe(&finished));
        }
    }

    /// Passes a result to the election, and logs it if it changes anything.
    fn judge_check(&mut self, lane: Lane, passed: bool, result: &str) {
        let before = state(&self.election, lane);
        if lane == Lane::CheckLeader {
            self.election.handle_leader_check(clock::now(), passed);
        } else {
            self.election.handle_check(clock::now(), passed);
        }
        let after = state(&self.election, lane);
        if before != after {
            tell_change(lane, before, after, result);
        }
        self.carry_out();
    }
}

fn state(election: &Election, lane: Lane) -> Option<HealthState> {
    let is_leaders = lane == Lane::CheckLeader;
    let health = if is_leaders { election.leader_health() } else { election.health() };
    health.map(|health| health.state())
}

fn tell_change(lane: Lane, before: Option<HealthState>, after: Option<HealthState>, result: &str) {
    match (before, after) {
        (_, Some(HealthState::Failing)) if lane == Lane::CheckLeader => {
            log::warn!("{lane} failed ({result}): this leader hands over");
        }
        (_, Some(HealthState::Failing)) => {
            log::warn!("{lane} failed ({result}): this node is not eligible to lead");
        }
        (Some(HealthState::Failing), _) => {
            log::info!("{lane} passed again ({result}): it allows this node to lead");
        }
        _ => log::info!("{lane} passed ({result})"),
    }
}

/// How a check ended, in words.
fn describe(finished: &HookFinished) -> String {
    let took = finished.took.as_millis();
    match (finished.outcome, finished.exit, finished.forced) {
        (HookOutcome::NotRun | HookOutcome::NoTurn, ..) => {
            "the command could not be run".to_owned()
        }
        (HookOutcome::Lost, ..) => "its result is unknown".to_owned(),
        (.., Some(Forced::Overran)) => {
            format!("time limit exceeded, ended after {took} ms")
        }
        (_, Some(exit), _) => format!("exit status {exit} after {took} ms"),
        (_, None, _) => format!("no exit status after {took} ms"),
    }
}
