//! Fencing in quorum mode: until when the hooks have to let go of a leadership that has ended, and
//! when the fence command runs because they have not.

use std::time::Duration;

use crate::core::hook::HookOutcome;
use crate::time::{Time, doubled};
use crate::types::Term;

/// How long to wait before a fence command that failed runs again. Doubles with every further
/// failure, up to [`FENCE_RETRY_MAX`].
const FENCE_RETRY: Duration = Duration::from_secs(1);

/// Longest pause before the fence command runs again.
const FENCE_RETRY_MAX: Duration = Duration::from_secs(60);

/// How long to wait after so many failures of the fence command, and one more.
pub fn pause_before_fencing_again(failures: u32) -> Duration {
    doubled(FENCE_RETRY, failures).min(FENCE_RETRY_MAX)
}

/// Whether the hooks are overdue, and whether the fence command runs.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct Fencing {
    overdue: Option<Overdue>,
    /// The term of the leadership that the running fence command is for.
    running: Option<Term>,
}

/// Hooks that have to let go of a leadership: until the grace ends. Then the fence command runs,
/// until it succeeds or the hooks have let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Overdue {
    term: Term,
    grace_end: Time,
    /// Whether a run by which they were to let go failed, or the grace is over.
    is_late: bool,
    /// Runs of the fence command that failed.
    failures: u32,
}

/// What follows from the end of a fence command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fenced {
    /// This host holds nothing of that leadership any more, whatever becomes of the demote hook.
    Released,
    /// The command runs again after this long.
    RetryIn(Duration),
    /// The hooks had let go meanwhile.
    Moot,
}

impl Fencing {
    /// The hooks have until `grace_end` to let go of the leadership in `term`; the sooner end
    /// counts.
    pub(crate) fn limit(&mut self, term: Term, grace_end: Time) {
        let overdue = self.overdue.get_or_insert(Overdue::new(term, grace_end));
        overdue.grace_end = overdue.grace_end.min(grace_end);
    }

    /// A run by which the hooks were to let go has failed. They have until `grace_end`, unless
    /// their time runs already. Returns whether it begins now.
    pub(crate) fn note_failed(&mut self, term: Term, grace_end: Time) -> bool {
        let begins = self.overdue.is_none();
        self.overdue.get_or_insert(Overdue::new(term, grace_end)).is_late = true;
        begins
    }

    /// The grace, or a pause, is over. Returns the term to run the fence command for, and whether
    /// this is its first run; none while one runs.
    pub(crate) fn start(&mut self) -> Option<(Term, bool)> {
        let overdue = self.overdue.as_mut()?;
        overdue.is_late = true;
        if self.running.is_some() {
            // One at a time: whether it runs again is decided at its end.
            return None;
        }
        self.running = Some(overdue.term);
        Some((overdue.term, overdue.failures == 0))
    }

    /// The fence command has ended.
    pub(crate) fn finish(&mut self, outcome: HookOutcome) -> Fenced {
        let (Some(fenced), Some(overdue)) = (self.running.take(), &mut self.overdue) else {
            return Fenced::Moot;
        };
        if overdue.term == fenced && outcome == HookOutcome::Succeeded {
            return Fenced::Released;
        }
        let pause = pause_before_fencing_again(overdue.failures);
        overdue.failures = overdue.failures.saturating_add(1);
        Fenced::RetryIn(pause)
    }

    /// The hooks have let go.
    pub(crate) const fn clear(&mut self) {
        self.overdue = None;
    }

    /// When the grace is over; none where it has not begun.
    pub(crate) fn grace_end(&self) -> Option<Time> {
        self.overdue.map(|overdue| overdue.grace_end)
    }

    /// The term that the hooks have not let go of in spite of `demoted`, or in time.
    pub(crate) fn overdue_term(&self) -> Option<Term> {
        self.overdue.filter(|overdue| overdue.is_late).map(|overdue| overdue.term)
    }

    /// Whether a fence command runs. It would hit the next leadership of this node as well.
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }
}

impl Overdue {
    const fn new(term: Term, grace_end: Time) -> Self {
        Overdue { term, grace_end, is_late: false, failures: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Time = Time::from_millis(5000);

    #[test]
    fn one_command_runs_at_a_time_and_a_failed_one_runs_again_later_and_later() {
        let mut fencing = Fencing::default();
        assert_eq!(fencing.start(), None, "nothing is overdue");
        fencing.limit(Term(7), END);
        assert_eq!((fencing.overdue_term(), fencing.grace_end()), (None, Some(END)));
        assert_eq!(fencing.start(), Some((Term(7), true)));
        assert_eq!(fencing.start(), None, "it runs already");
        assert_eq!(fencing.overdue_term(), Some(Term(7)));
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            let retry = Fenced::RetryIn(Duration::from_secs(pause));
            assert_eq!(fencing.finish(HookOutcome::Failed), retry);
            assert_eq!(fencing.start(), Some((Term(7), false)));
        }
        assert_eq!(fencing.finish(HookOutcome::Succeeded), Fenced::Released);
    }

    #[test]
    fn sooner_end_counts_and_failed_run_does_not_move_it() {
        let mut fencing = Fencing::default();
        fencing.limit(Term(7), END);
        fencing.limit(Term(7), END + Duration::from_secs(1));
        assert!(!fencing.note_failed(Term(7), END + Duration::from_secs(2)));
        assert_eq!((fencing.overdue_term(), fencing.grace_end()), (Some(Term(7)), Some(END)));
        fencing.clear();
        assert!(fencing.note_failed(Term(8), END));
    }

    #[test]
    fn fence_for_an_earlier_leadership_releases_nothing_of_a_later_one() {
        let mut fencing = Fencing::default();
        fencing.limit(Term(7), END);
        fencing.start();
        fencing.clear();
        assert!(fencing.is_running());
        fencing.limit(Term(9), END);
        let retry = Fenced::RetryIn(Duration::from_secs(1));
        assert_eq!(fencing.finish(HookOutcome::Succeeded), retry);
        fencing.start();
        fencing.clear();
        assert_eq!(fencing.finish(HookOutcome::Succeeded), Fenced::Moot);
    }
}
