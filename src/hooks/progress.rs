//! How far the hook has come: what the status reports of its runs, and whether it has taken over.

use crate::control_api::{HookReport, Readiness};
use crate::core::hook::{HookEvent, HookOutcome, HookRun};

use super::HookFinished;

/// What is known of the hook runs of this life.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    report: HookReport,
    /// The event of the run in progress, also if no hook is configured.
    running: Option<HookEvent>,
    /// The result of the last run that takes over; none since a run that releases.
    took_over: Option<bool>,
}

impl Progress {
    /// What `status` reports about the hook.
    pub const fn report(&self) -> &HookReport {
        &self.report
    }

    /// Whether the node is ready, if it `leads` or not.
    pub const fn readiness(&self, leads: bool) -> Readiness {
        match self.took_over {
            _ if !leads => Readiness::NotLeader,
            Some(true) => Readiness::Ready,
            Some(false) => Readiness::HookFailed,
            None => Readiness::HookPending,
        }
    }

    /// `run` starts. It `is_shown` in the report unless no hook is configured.
    pub(super) fn note_started(&mut self, run: &HookRun, is_shown: bool) {
        self.running = Some(run.event);
        // While `reaffirmed` runs, the node holds what `elected` took over.
        if run.event != HookEvent::Reaffirmed {
            self.took_over = None;
        }
        if is_shown {
            self.report.running = true;
            self.report.last_event = Some(run.event);
            self.report.last_reason = Some(run.reason);
        }
    }

    /// The run has ended.
    pub(super) fn note_finished(&mut self, finished: &HookFinished) {
        let succeeded = finished.outcome == HookOutcome::Succeeded;
        match self.running.take() {
            Some(HookEvent::Elected | HookEvent::Reaffirmed) => self.took_over = Some(succeeded),
            Some(HookEvent::Started | HookEvent::Demoted) | None => {}
        }
        if self.report.running {
            self.report.running = false;
            self.report.last_exit = finished.exit;
            self.report.last_ms = u64::try_from(finished.took.as_millis()).ok();
        }
    }

    /// The fence command has succeeded, so the hook holds nothing.
    pub(super) const fn note_fenced(&mut self) {
        self.took_over = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{demoted, elected};
    use super::*;

    /// How a run ended that began for this event.
    fn after(progress: &mut Progress, run: HookRun, outcome: HookOutcome) -> Readiness {
        progress.note_started(&run, false);
        let not_run = HookFinished::not_run(Duration::ZERO);
        progress.note_finished(&HookFinished { outcome, ..not_run });
        progress.readiness(true)
    }

    #[test]
    fn leader_is_ready_once_its_hook_has_succeeded_for_elected() {
        let mut progress = Progress::default();
        assert_eq!(progress.readiness(true), Readiness::HookPending);
        progress.note_started(&elected(7), true);
        assert_eq!(progress.readiness(true), Readiness::HookPending);
        let succeeded = after(&mut progress, elected(7), HookOutcome::Succeeded);
        assert_eq!(succeeded, Readiness::Ready);
        assert_eq!(progress.readiness(false), Readiness::NotLeader);
        let released = after(&mut progress, demoted(7), HookOutcome::Succeeded);
        assert_eq!(released, Readiness::HookPending, "the next elected has not run");
        let failed = after(&mut progress, elected(8), HookOutcome::Failed);
        assert_eq!(failed, Readiness::HookFailed);
    }

    #[test]
    fn leader_stays_ready_while_reaffirmed_runs_and_is_not_if_that_fails() {
        let mut progress = Progress::default();
        after(&mut progress, elected(7), HookOutcome::Succeeded);
        let reaffirmed = HookRun { event: HookEvent::Reaffirmed, ..elected(8) };
        progress.note_started(&reaffirmed, true);
        assert_eq!(progress.readiness(true), Readiness::Ready);
        let failed = after(&mut progress, reaffirmed, HookOutcome::Failed);
        assert_eq!(failed, Readiness::HookFailed);
    }

    #[test]
    fn fenced_hook_has_not_taken_over() {
        let mut progress = Progress::default();
        after(&mut progress, elected(7), HookOutcome::Succeeded);
        progress.note_fenced();
        assert_eq!(progress.readiness(true), Readiness::HookPending);
    }
}
