//! Fencing in quorum mode: when the hooks must have released an ended leadership, and when
//! the fence command runs because they have not.

use std::time::Duration;

use crate::core::hook::HookOutcome;
use crate::time::{Time, doubled};
use crate::types::Term;

/// Pause before a failed fence command runs again. Doubles with every further failure, up to
/// [`FENCE_RETRY_MAX`].
const FENCE_RETRY: Duration = Duration::from_secs(1);

/// Longest pause before the fence command runs again.
const FENCE_RETRY_MAX: Duration = Duration::from_secs(60);

/// The pause after `failures` earlier failures of the fence command and one more.
pub fn pause_before_fencing_again(failures: u32) -> Duration {
    doubled(FENCE_RETRY, failures).min(FENCE_RETRY_MAX)
}

/// Whether the hooks are overdue, and whether the fence command runs.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct Fencing {
    overdue: Option<Overdue>,
    running: Option<Run>,
}

/// A run of the fence command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Run {
    /// The leadership that it is for.
    term: Term,
    /// Whether a hook that takes over had not ended when it began. That one may take something
    /// after what the command does, also if it ends before the command.
    beside_takeover: bool,
}

/// A leadership that the hooks must release before the grace ends. After that the fence command
/// runs until it succeeds or the hooks have released it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Overdue {
    term: Term,
    grace_end: Time,
    /// Whether a run that should make the hooks release everything failed, or the grace is over.
    is_late: bool,
    /// Failed runs of the fence command.
    failures: u32,
}

/// What follows when a fence command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fenced {
    /// This host holds nothing of that leadership any more, even if the demote hook fails.
    Released,
    /// The command runs again after this long.
    RetryIn(Duration),
    /// The hooks have released everything meanwhile.
    Moot,
}

impl Fencing {
    /// The hooks must release the leadership in `term` by `grace_end`. Returns whether the grace
    /// ends then: one that ends earlier stays.
    pub(crate) fn limit(&mut self, term: Term, grace_end: Time) -> bool {
        let stays = self.grace_end().is_some_and(|earlier| earlier <= grace_end);
        if !stays {
            self.overdue.get_or_insert(Overdue::new(term, grace_end)).grace_end = grace_end;
        }
        !stays
    }

    /// A run that should make the hooks release everything has failed, and they get until
    /// `grace_end`. Returns whether the grace ends then: one that ends earlier stays.
    pub(crate) fn note_failed(&mut self, term: Term, grace_end: Time) -> bool {
        let ends_then = self.limit(term, grace_end);
        if let Some(overdue) = &mut self.overdue {
            overdue.is_late = true;
        }
        ends_then
    }

    /// The grace, or a pause, is over. Returns the term to fence, and whether this is the first
    /// run. None while a run is on. `beside_takeover` is whether a hook may still take over.
    pub(crate) fn start(&mut self, beside_takeover: bool) -> Option<(Term, bool)> {
        let overdue = self.overdue.as_mut()?;
        overdue.is_late = true;
        if self.running.is_some() {
            // One run at a time: its end decides whether another follows.
            return None;
        }
        self.running = Some(Run { term: overdue.term, beside_takeover });
        Some((overdue.term, overdue.failures == 0))
    }

    /// The fence command has ended.
    pub(crate) fn finish(&mut self, outcome: HookOutcome) -> Fenced {
        let (Some(fenced), Some(overdue)) = (self.running.take(), &mut self.overdue) else {
            return Fenced::Moot;
        };
        let releases = overdue.term == fenced.term && !fenced.beside_takeover;
        if releases && outcome == HookOutcome::Succeeded {
            return Fenced::Released;
        }
        let pause = pause_before_fencing_again(overdue.failures);
        overdue.failures = overdue.failures.saturating_add(1);
        Fenced::RetryIn(pause)
    }

    /// The hooks have released everything.
    pub(crate) const fn clear(&mut self) {
        self.overdue = None;
    }

    /// When the grace is over; none if it has not begun.
    pub(crate) fn grace_end(&self) -> Option<Time> {
        self.overdue.map(|overdue| overdue.grace_end)
    }

    /// The leadership that the hooks must release; none if no grace has begun.
    pub(crate) fn term(&self) -> Option<Term> {
        self.overdue.map(|overdue| overdue.term)
    }

    /// The term whose hooks have not released everything although `demoted` ran, or have not in
    /// time.
    pub(crate) fn overdue_term(&self) -> Option<Term> {
        self.overdue.filter(|overdue| overdue.is_late).map(|overdue| overdue.term)
    }

    /// Whether a fence command runs. It would also hit this node's next leadership.
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
    fn one_fence_runs_at_a_time_and_retries_at_growing_intervals() {
        let mut fencing = Fencing::default();
        assert_eq!(fencing.start(false), None, "nothing is overdue");
        fencing.limit(Term(7), END);
        assert_eq!((fencing.overdue_term(), fencing.grace_end()), (None, Some(END)));
        assert_eq!(fencing.start(false), Some((Term(7), true)));
        assert_eq!(fencing.start(false), None, "it runs already");
        assert_eq!(fencing.overdue_term(), Some(Term(7)));
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            let retry = Fenced::RetryIn(Duration::from_secs(pause));
            assert_eq!(fencing.finish(HookOutcome::Failed), retry);
            assert_eq!(fencing.start(false), Some((Term(7), false)));
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
        fencing.start(false);
        fencing.clear();
        assert!(fencing.is_running());
        fencing.limit(Term(9), END);
        let retry = Fenced::RetryIn(Duration::from_secs(1));
        assert_eq!(fencing.finish(HookOutcome::Succeeded), retry);
        fencing.start(false);
        fencing.clear();
        assert_eq!(fencing.finish(HookOutcome::Succeeded), Fenced::Moot);
    }

    #[test]
    fn fence_beside_a_takeover_releases_nothing_and_runs_again() {
        let mut fencing = Fencing::default();
        fencing.limit(Term(7), END);
        fencing.start(true);
        let retry = Fenced::RetryIn(Duration::from_secs(1));
        assert_eq!(fencing.finish(HookOutcome::Succeeded), retry);
        fencing.start(false);
        assert_eq!(fencing.finish(HookOutcome::Succeeded), Fenced::Released);
    }
}
