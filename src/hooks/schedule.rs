//! When a health check is due, and which of its results count.

use std::time::Duration;

use super::{HookFinished, HookSettings, Lane};
use crate::config::Config;
use crate::core::hook::HookOutcome;
use crate::time::Time;

/// Time for a check to end and be reported after its time limit: a process that gets TERM needs a
/// moment to end, and the hook-runner needs one to report it.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// How often the check runs, and for how long it may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSettings {
    command: String,
    interval: Duration,
    timeout: Duration,
}

impl CheckSettings {
    /// None if the check of this lane is not configured.
    pub fn new(config: &Config, lane: Lane) -> Option<Self> {
        Some(CheckSettings {
            command: HookSettings::from(config).command(lane)?.to_owned(),
            interval: config.check_interval,
            timeout: config.check_timeout,
        })
    }
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Start the check.
    Start,
    /// Count it as failed: it should have ended long ago.
    Overdue,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckResult {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It failed, and does not count: what it checks is being started.
    NotUpYet,
}

/// The timetable of the check. It starts one interval after its last start, and after the end of
/// the previous run. An overdue check counts as failed, and once more with each interval, until it
/// has ended: a service that hangs is not healthy, and two checks never run at a time.
#[derive(Debug)]
pub struct CheckSchedule {
    settings: Option<CheckSettings>,
    next_start: Time,
    under_way: Option<UnderWay>,
    /// No check starts: what it would check is not there, or is being started.
    is_paused: bool,
    /// Until the first success, and at the longest until then, failures do not count.
    starts_up_until: Option<Time>,
}

#[derive(Debug)]
struct UnderWay {
    overdue_at: Time,
    /// Whether its end has a meaning: it was not counted yet, and its command is still the
    /// configured one.
    counts: bool,
}

impl CheckSchedule {
    /// With the first check due at `now`, if there is one.
    pub const fn new(settings: Option<CheckSettings>, now: Time) -> Self {
        CheckSchedule {
            settings,
            next_start: now,
            under_way: None,
            is_paused: false,
            starts_up_until: None,
        }
    }

    /// Applies other settings. Failures of a check that is added count at once. Returns whether the
    /// caller must end the check in progress, because it belongs to the previous settings.
    pub fn reconfigure(&mut self, settings: Option<CheckSettings>, now: Time) -> bool {
        let command = |settings: &Option<CheckSettings>| {
            settings.as_ref().map(|settings| settings.command.clone())
        };
        let is_another = command(&self.settings) != command(&settings);
        if self.settings.is_none() {
            self.starts_up_until = None;
        }
        self.settings = settings;
        let wait = self.settings.as_ref().map_or(Duration::ZERO, |settings| settings.interval);
        self.next_start = if is_another { now } else { self.next_start.min(now + wait) };
        is_another && self.disregard(now)
    }

    /// Lets no check start, or lets checks start again. A check in progress continues.
    pub fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// What is checked is being started: until the first success, but not after `until`, failures
    /// do not count.
    pub fn allow_start_up(&mut self, until: Time) {
        self.starts_up_until = Some(until);
    }

    /// Stops the checks. Returns whether the caller must end a check in progress.
    pub fn stop(&mut self, now: Time) -> bool {
        self.settings = None;
        self.disregard(now)
    }

    /// When [`poll_due`](Self::poll_due) next has something; none if there is no check.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.settings.as_ref()?;
        match &self.under_way {
            Some(check) => Some(check.overdue_at),
            None => (!self.is_paused).then_some(self.next_start),
        }
    }

    /// What is due at `now`, once.
    pub fn poll_due(&mut self, now: Time) -> Option<Due> {
        let at = self.poll_timeout().filter(|at| *at <= now);
        let (Some(settings), Some(_)) = (&self.settings, at) else { return None };
        if let Some(check) = &mut self.under_way {
            *check = UnderWay { overdue_at: now + settings.interval, counts: false };
            return (!self.starts_up_at(now)).then_some(Due::Overdue);
        }
        let overdue_at = now + settings.timeout + PATIENCE;
        self.under_way = Some(UnderWay { overdue_at, counts: true });
        self.next_start = now + settings.interval;
        Some(Due::Start)
    }

    /// The check has ended. Returns its result; none if it no longer matters.
    pub fn handle_finished(&mut self, finished: &HookFinished, now: Time) -> Option<CheckResult> {
        self.under_way.take().filter(|check| check.counts)?;
        Some(match finished.outcome {
            HookOutcome::Succeeded => {
                self.starts_up_until = None;
                CheckResult::Passed
            }
            _ if self.starts_up_at(now) => CheckResult::NotUpYet,
            _ => CheckResult::Failed,
        })
    }

    /// The check in progress is no longer needed. Returns whether the caller must end it.
    pub fn give_up(&mut self, now: Time) -> bool {
        self.under_way.as_ref().is_some_and(|check| check.counts) && self.disregard(now)
    }

    /// Makes the result of the check in progress not count, and gives it the usual time to end.
    /// Returns whether there is one.
    fn disregard(&mut self, now: Time) -> bool {
        let timeout = self.settings.as_ref().map_or(Duration::ZERO, |settings| settings.timeout);
        let Some(check) = &mut self.under_way else { return false };
        *check = UnderWay { overdue_at: now + timeout + PATIENCE, counts: false };
        true
    }

    fn starts_up_at(&self, now: Time) -> bool {
        self.starts_up_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_millis(1_000);
    const PASSED: HookFinished = HookFinished {
        outcome: HookOutcome::Succeeded,
        exit: Some(0),
        took: Duration::from_millis(20),
        forced: None,
    };
    const FAILED: HookFinished =
        HookFinished { outcome: HookOutcome::Failed, exit: Some(1), ..PASSED };

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Every second, for at most half a second.
    fn every_second(command: &str) -> Option<CheckSettings> {
        let command = command.to_owned();
        Some(CheckSettings { command, interval: ms(1_000), timeout: ms(500) })
    }

    fn schedule() -> CheckSchedule {
        CheckSchedule::new(every_second("a"), START)
    }

    #[test]
    fn a_check_starts_an_interval_after_the_last_one_started() {
        let mut schedule = schedule();
        assert_eq!(schedule.poll_due(START), Some(Due::Start));
        assert_eq!(schedule.poll_due(START), None);
        assert_eq!(schedule.handle_finished(&PASSED, START), Some(CheckResult::Passed));
        assert_eq!(schedule.poll_timeout(), Some(START + ms(1_000)));
        assert_eq!(schedule.poll_due(START + ms(999)), None);
        assert_eq!(schedule.poll_due(START + ms(1_000)), Some(Due::Start));
        assert_eq!(schedule.handle_finished(&FAILED, START), Some(CheckResult::Failed));
    }

    #[test]
    fn checks_that_were_missed_are_not_made_up_for() {
        let mut schedule = schedule();
        schedule.poll_due(START);
        schedule.handle_finished(&PASSED, START);
        let late = START + ms(60_500);
        assert_eq!(schedule.poll_due(late), Some(Due::Start));
        schedule.handle_finished(&PASSED, START);
        assert_eq!(schedule.poll_timeout(), Some(late + ms(1_000)));
    }

    #[test]
    fn a_check_that_does_not_end_counts_as_failed_with_each_interval_and_no_other_starts() {
        let mut schedule = schedule();
        schedule.poll_due(START);
        let mut now = START + ms(500) + PATIENCE;
        for _ in 0..5 {
            assert_eq!(schedule.poll_timeout(), Some(now));
            assert_eq!(schedule.poll_due(now), Some(Due::Overdue));
            assert_eq!(schedule.poll_due(now), None);
            now += ms(1_000);
        }
        now += ms(1);
        assert_eq!(schedule.handle_finished(&FAILED, START), None, "it was counted");
        assert_eq!(schedule.poll_due(now), Some(Due::Start), "at once");
    }

    #[test]
    fn without_a_check_nothing_is_ever_due() {
        let mut schedule = CheckSchedule::new(None, START);
        assert_eq!(schedule.poll_timeout(), None);
        assert_eq!(schedule.poll_due(START + ms(60_000)), None);
    }

    #[test]
    fn another_command_starts_as_soon_as_the_one_under_way_is_ended() {
        let mut schedule = schedule();
        schedule.poll_due(START);
        let now = START + ms(100);
        assert!(schedule.reconfigure(every_second("b"), now));
        assert_eq!(schedule.poll_timeout(), Some(now + ms(500) + PATIENCE), "it has time to end");
        assert_eq!(schedule.handle_finished(&FAILED, START), None, "it was the other one");
        assert_eq!(schedule.poll_due(now), Some(Due::Start));
        assert_eq!(schedule.handle_finished(&PASSED, START), Some(CheckResult::Passed));
    }

    #[test]
    fn other_times_leave_the_check_under_way_alone() {
        let mut schedule = schedule();
        schedule.poll_due(START);
        let quicker = CheckSettings { interval: ms(200), ..every_second("a").unwrap() };
        assert!(!schedule.reconfigure(Some(quicker), START + ms(100)));
        assert_eq!(schedule.handle_finished(&PASSED, START), Some(CheckResult::Passed));
        assert_eq!(schedule.poll_timeout(), Some(START + ms(300)));
    }

    #[test]
    fn a_check_that_is_taken_away_and_given_back_does_not_run_twice() {
        let mut schedule = schedule();
        schedule.poll_due(START);
        assert!(schedule.reconfigure(None, START));
        assert_eq!(schedule.poll_timeout(), None);
        assert!(schedule.reconfigure(every_second("a"), START), "it is still being ended");
        assert_eq!(schedule.poll_due(START), None);
        assert_eq!(schedule.handle_finished(&FAILED, START), None);
        assert_eq!(schedule.poll_due(START), Some(Due::Start));
    }

    #[test]
    fn paused_check_starts_when_the_pause_is_over() {
        let mut schedule = schedule();
        schedule.poll_due(START);
        schedule.pause(true);
        assert_eq!(
            schedule.handle_finished(&PASSED, START),
            Some(CheckResult::Passed),
            "it was under way"
        );
        assert_eq!(schedule.poll_timeout(), None);
        assert_eq!(schedule.poll_due(START + ms(9_000)), None);
        schedule.pause(false);
        assert_eq!(schedule.poll_due(START + ms(9_000)), Some(Due::Start));
    }

    #[test]
    fn failures_count_after_the_first_success_or_the_start_up_time() {
        let results = |results: [HookFinished; 3], ends: [u64; 3]| {
            let mut schedule = schedule();
            schedule.allow_start_up(START + ms(5_000));
            let mut finish = |result: &HookFinished, end| {
                assert_eq!(schedule.poll_due(START + ms(end)), Some(Due::Start));
                schedule.handle_finished(result, START + ms(end))
            };
            let ends = ends.into_iter();
            results.iter().zip(ends).map(|(result, end)| finish(result, end)).collect::<Vec<_>>()
        };
        let starting = Some(CheckResult::NotUpYet);
        let early = [0, 1_000, 2_000];
        assert_eq!(results([FAILED, FAILED, FAILED], early), [starting; 3]);
        assert_eq!(
            results([FAILED, PASSED, FAILED], early),
            [starting, Some(CheckResult::Passed), Some(CheckResult::Failed)]
        );
        let late = [4_000, 5_000, 6_000];
        assert_eq!(
            results([FAILED, FAILED, FAILED], late),
            [starting, Some(CheckResult::Failed), Some(CheckResult::Failed)]
        );
    }

    #[test]
    fn failures_of_a_check_that_is_added_later_count_at_once() {
        let mut schedule = CheckSchedule::new(None, START);
        schedule.allow_start_up(START + ms(5_000));
        schedule.reconfigure(every_second("a"), START);
        assert_eq!(schedule.poll_due(START), Some(Due::Start));
        assert_eq!(schedule.handle_finished(&FAILED, START), Some(CheckResult::Failed));
    }

    #[test]
    fn check_that_hangs_during_the_start_up_time_does_not_count() {
        let mut schedule = schedule();
        schedule.allow_start_up(START + ms(2_000));
        schedule.poll_due(START);
        let overdue = START + ms(500) + PATIENCE;
        assert_eq!(schedule.poll_due(overdue), None);
        assert_eq!(schedule.poll_due(overdue + ms(1_000)), Some(Due::Overdue));
    }

    #[test]
    fn after_the_end_there_are_no_more_checks() {
        let mut schedule = schedule();
        schedule.poll_due(START);
        assert!(schedule.stop(START));
        assert_eq!(schedule.handle_finished(&PASSED, START), None);
        assert_eq!(schedule.poll_timeout(), None);
        assert!(!schedule.stop(START));
    }
}
