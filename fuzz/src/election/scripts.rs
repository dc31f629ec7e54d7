//! What the hook's runs tell the hooks of a host: they take over and let go in turn.

use lanelect::core::hook::{HookEvent, HookOutcome, HookRun};
use lanelect::types::Term;

use HookEvent::{Demoted, Elected, Reaffirmed, Started};

/// One life's runs of the hook.
#[derive(Debug, Default)]
pub(super) struct Scripts {
    /// The last run that began.
    last: Option<HookEvent>,
    /// The one that runs, and the one before it.
    running: Option<(HookEvent, Option<HookEvent>)>,
    /// Whether the run that ended last comes again.
    comes_again: bool,
    /// The highest term that a run was told.
    term: Term,
}

impl Scripts {
    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether the run is another try to let go. In available mode nobody waits for that: a leader
    /// whose hook cannot run resigns, and may say so, late or again, beside the next try.
    pub(super) const fn lets_go_again(&self) -> bool {
        matches!(self.running, Some((Started | Demoted, _))) && self.comes_again
    }

    /// Whether they have begun to take over, and not let go since.
    pub(super) fn hold(&self) -> bool {
        match self.last {
            Some(Elected | Reaffirmed) => true,
            Some(Demoted) => self.is_running(),
            Some(Started) | None => false,
        }
    }

    /// One run at a time, in their order, under terms that grow with each leadership.
    pub(super) fn start(&mut self, run: &HookRun) {
        assert!(self.running.is_none(), "{} beside a run of the hook", run.event);
        let fits = matches!(
            (self.last, run.event),
            (None, Started)
                | (Some(Started | Demoted), Elected)
                | (Some(Elected | Reaffirmed), Reaffirmed | Demoted)
        );
        assert!(fits, "{} after {:?}", run.event, self.last);
        assert!(run.term >= self.term, "{} under a term that shrank", run.event);
        self.term = run.term;
        self.running = Some((run.event, self.last.replace(run.event)));
    }

    /// A run that did not happen comes again, and so does one of which nobody knows whether the
    /// hooks have let go; in quorum mode one that failed to let go, too.
    pub(super) fn end(&mut self, outcome: HookOutcome, in_quorum_mode: bool) {
        let Some((event, before)) = self.running.take() else { return };
        let lets_go = matches!(event, Started | Demoted);
        self.comes_again = match outcome {
            HookOutcome::NotRun | HookOutcome::NoTurn => true,
            HookOutcome::Lost => lets_go,
            HookOutcome::Failed => lets_go && in_quorum_mode,
            HookOutcome::Succeeded => false,
        };
        if self.comes_again {
            self.last = before;
        }
    }
}
