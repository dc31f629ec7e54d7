//! How far the hook has come: what the status reports of its runs, and whether it has taken over.

use crate::control_api::{HookReport, Readiness, RunReport, RunTimes};
use crate::core::hook::{HookEvent, HookOutcome, HookRun};
use crate::os::clock;

use super::HookFinished;

/// What is known of the hook runs of this life.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    report: HookReport,
    /// The event of the run in progress, also if no hook is configured.
    running: Option<HookEvent>,
    /// The result of the last run that takes over; none if what it took over was released since.
    took_over: Option<bool>,
    /// The last run of the fence command.
    fence: Option<RunReport>,
}

impl Progress {
    /// What `status` reports about the hook.
    pub const fn report(&self) -> &HookReport {
        &self.report
    }

    /// The last run of the fence command; none if it has not run.
    pub const fn fence(&self) -> Option<RunReport> {
        self.fence
    }

    /// Whether the node is ready, if it `leads` or not. If a changeover is pending, the last run
    /// that took over was perhaps that of an earlier leadership.
    pub const fn readiness(&self, leads: bool, has_changeover_pending: bool) -> Readiness {
        match self.took_over {
            _ if !leads => Readiness::NotLeader,
            _ if has_changeover_pending => Readiness::HookPending,
            Some(true) => Readiness::Ready,
            Some(false) => Readiness::HookFailed,
            None => Readiness::HookPending,
        }
    }

    /// `run` starts. Its output goes to `output`; none if no hook is configured, and nothing is
    /// reported.
    pub(super) fn note_started(&mut self, run: &HookRun, output: Option<String>) {
        self.running = Some(run.event);
        if output.is_some() {
            self.report.running = true;
            self.report.last_event = Some(run.event);
            self.report.last_reason = Some(run.reason);
            self.report.last_term = Some(run.term);
            self.report.last_start_ms = Some(clock::wall_ms());
            self.report.output = output;
        }
    }

    /// The run has ended.
    pub(super) fn note_finished(&mut self, finished: &HookFinished) {
        let succeeded = finished.outcome == HookOutcome::Succeeded;
        let event = self.running.take();
        self.took_over = match event {
            Some(HookEvent::Elected | HookEvent::Reaffirmed) => Some(succeeded),
            _ => None,
        };
        if event == Some(HookEvent::Elected) && !succeeded {
            self.report.elected_failures += 1;
            self.report.last_elected_failure = Some(run_report(finished));
        }
        if self.report.running {
            self.report.running = false;
            self.report.last_exit_event = event;
            self.report.last_exit = finished.exit;
            self.report.last_ms = Some(millis(finished));
            if let Some(event) = event {
                self.note_time(event, millis(finished));
            }
        }
    }

    fn note_time(&mut self, event: HookEvent, took_ms: u64) {
        let times = &mut self.report.run_times;
        let known = times.iter().position(|times| times.event == event);
        let at = known.unwrap_or_else(|| {
            times.push(RunTimes::new(event));
            times.len() - 1
        });
        times[at].note(took_ms);
    }

    /// The fence command has ended. If it succeeded, the hook holds nothing.
    pub(super) fn note_fenced(&mut self, finished: &HookFinished) {
        self.fence = Some(run_report(finished));
        if finished.outcome == HookOutcome::Succeeded {
            self.took_over = None;
        }
    }
}

/// A run that has just ended.
fn run_report(finished: &HookFinished) -> RunReport {
    RunReport {
        time_ms: clock::wall_ms(),
        succeeded: finished.outcome == HookOutcome::Succeeded,
        exit: finished.exit,
        took_ms: millis(finished),
    }
}

fn millis(finished: &HookFinished) -> u64 {
    u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{demoted, elected};
    use super::*;

    /// The readiness after this run, which ended like this.
    fn after(progress: &mut Progress, run: HookRun, outcome: HookOutcome) -> Readiness {
        progress.note_started(&run, None);
        let not_run = HookFinished::not_run(Duration::ZERO);
        progress.note_finished(&HookFinished { outcome, ..not_run });
        progress.readiness(true, false)
    }

    #[test]
    fn leader_is_ready_once_its_hook_has_succeeded_for_elected() {
        let mut progress = Progress::default();
        assert_eq!(progress.readiness(true, true), Readiness::HookPending);
        let succeeded = after(&mut progress, elected(7), HookOutcome::Succeeded);
        assert_eq!(succeeded, Readiness::Ready);
        assert_eq!(progress.readiness(false, false), Readiness::NotLeader);
        let released = after(&mut progress, demoted(7), HookOutcome::Succeeded);
        assert_eq!(released, Readiness::HookPending, "the next elected has not run");
        let failed = after(&mut progress, elected(8), HookOutcome::Failed);
        assert_eq!(failed, Readiness::HookFailed);
    }

    #[test]
    fn leader_is_not_ready_by_the_elected_of_an_earlier_leadership() {
        let mut progress = Progress::default();
        after(&mut progress, elected(7), HookOutcome::Succeeded);
        let waiting = progress.readiness(true, true);
        assert_eq!(waiting, Readiness::HookPending, "demoted waits, and so does elected");
        progress.note_started(&demoted(7), None);
        assert_eq!(progress.readiness(true, true), Readiness::HookPending);
    }

    #[test]
    fn leader_stays_ready_while_reaffirmed_runs_and_is_not_if_that_fails() {
        let mut progress = Progress::default();
        after(&mut progress, elected(7), HookOutcome::Succeeded);
        let reaffirmed = HookRun { event: HookEvent::Reaffirmed, ..elected(8) };
        progress.note_started(&reaffirmed, None);
        assert_eq!(progress.readiness(true, false), Readiness::Ready);
        let failed = after(&mut progress, reaffirmed, HookOutcome::Failed);
        assert_eq!(failed, Readiness::HookFailed);
    }

    #[test]
    fn fenced_hook_has_not_taken_over() {
        let mut progress = Progress::default();
        after(&mut progress, elected(7), HookOutcome::Succeeded);
        let not_run = HookFinished::not_run(Duration::ZERO);
        progress.note_fenced(&not_run);
        assert!(progress.fence().is_some_and(|run| !run.succeeded && run.exit.is_none()));
        assert_eq!(progress.readiness(true, false), Readiness::Ready);
        let succeeded = HookOutcome::Succeeded;
        progress.note_fenced(&HookFinished { outcome: succeeded, exit: Some(0), ..not_run });
        assert!(progress.fence().is_some_and(|run| run.succeeded));
        assert_eq!(progress.readiness(true, false), Readiness::HookPending);
    }

    #[test]
    fn failed_run_for_elected_stays_in_the_report() {
        let mut progress = Progress::default();
        after(&mut progress, elected(7), HookOutcome::Failed);
        after(&mut progress, demoted(7), HookOutcome::Failed);
        let report = progress.report();
        assert_eq!(report.elected_failures, 1);
        assert!(report.last_elected_failure.is_some_and(|run| !run.succeeded));
        after(&mut progress, elected(8), HookOutcome::Succeeded);
        assert_eq!(progress.report().elected_failures, 1);
    }

    #[test]
    fn exit_status_goes_with_the_event_of_its_run_while_the_next_one_runs() {
        let mut progress = Progress::default();
        let finished = HookFinished { exit: Some(3), ..HookFinished::not_run(Duration::ZERO) };
        progress.note_started(&elected(7), Some("the log".to_owned()));
        progress.note_finished(&finished);
        progress.note_started(&demoted(7), Some("the log".to_owned()));
        let report = progress.report();
        assert_eq!(report.last_event, Some(HookEvent::Demoted));
        assert_eq!((report.last_exit_event, report.last_exit), (Some(HookEvent::Elected), Some(3)));
    }

    #[test]
    fn each_event_has_its_own_run_times() {
        let mut progress = Progress::default();
        let mut run = |run: HookRun, took: u64| {
            progress.note_started(&run, Some("the log".to_owned()));
            let took = Duration::from_millis(took);
            progress.note_finished(&HookFinished::not_run(took));
        };
        run(elected(7), 10);
        run(elected(8), 11);
        run(elected(9), 60_001);
        run(demoted(9), 0);
        let [elected, demoted] = progress.report().run_times[..] else { panic!("two events") };
        assert_eq!((elected.event, elected.sum_ms), (HookEvent::Elected, 60_022));
        assert_eq!(elected.counts, [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((demoted.counts[0], demoted.sum_ms), (1, 0));
    }
}
