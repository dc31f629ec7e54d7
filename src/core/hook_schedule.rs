//! The order of a host's hook runs: one at a time, strictly alternating, and the last one matches
//! the node's final state.

use std::collections::VecDeque;

use crate::core::hook::{HookEvent, HookOutcome, HookRun};

/// The running hook and the pending ones.
///
/// Invariant: in the order running, then pending, `elected` and `demoted` alternate. `reaffirmed`
/// comes only while the hooks have taken over, and `started` only first. A change that was undone
/// before its hook ran is left out, so at most three runs are pending.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct HookSchedule {
    running: Option<HookRun>,
    pending: VecDeque<HookRun>,
    /// Whether the hooks have begun to take over and have not released everything since.
    holds: bool,
    /// The last run that began takes over, and was lost: it may still run.
    lost_takeover: bool,
}

impl HookSchedule {
    /// Notes that `run.event` happened.
    pub(crate) fn push(&mut self, run: HookRun) {
        match run.event {
            HookEvent::Started | HookEvent::Elected => self.pending.push_back(run),
            HookEvent::Reaffirmed => self.push_reaffirmed(run),
            HookEvent::Demoted => self.push_demoted(run),
        }
    }

    /// The run to start now, if any. It counts as running until [`finish`](Self::finish).
    pub(crate) fn start_next(&mut self) -> Option<HookRun> {
        if self.running.is_some() {
            return None;
        }
        self.running = self.pending.pop_front();
        self.holds |= self.running.is_some_and(|run| run.event == HookEvent::Elected);
        self.running
    }

    /// The running hook has ended. Returns its run.
    pub(crate) fn finish(&mut self, outcome: HookOutcome) -> Option<HookRun> {
        let finished = self.running.take()?;
        self.holds &= finished.event != HookEvent::Demoted;
        match outcome {
            // Only the end of the run before lets one begin.
            HookOutcome::Succeeded | HookOutcome::Failed => self.lost_takeover = false,
            HookOutcome::Lost => self.lost_takeover = finished.event.takes_over(),
            HookOutcome::NotRun | HookOutcome::NoTurn => {}
        }
        Some(finished)
    }

    /// Returns a run that has to run again to the queue, ahead of later events, which may have made
    /// it moot.
    pub(crate) fn put_back(&mut self, run: HookRun) {
        match run.event {
            HookEvent::Elected => self.holds = false,
            HookEvent::Demoted => self.holds = true,
            HookEvent::Started | HookEvent::Reaffirmed => {}
        }
        let later = std::mem::take(&mut self.pending);
        self.push(run);
        later.into_iter().for_each(|run| self.push(run));
    }

    /// Drops a run that would have to run again, and every run that this makes moot.
    pub(crate) fn do_without(&mut self, run: HookRun) {
        self.put_back(run);
        if self.pending.front() == Some(&run) {
            self.pending.pop_front();
        }
    }

    /// The fence command has succeeded, so no `demoted` is needed.
    pub(crate) fn release(&mut self) {
        self.holds = false;
        if self.pending.front().is_some_and(|run| run.event == HookEvent::Demoted) {
            self.pending.pop_front();
        }
    }

    /// Whether a run for `elected` or `reaffirmed` may not have ended.
    pub(crate) fn may_take_over(&self) -> bool {
        self.lost_takeover || self.running.is_some_and(|run| run.event.takes_over())
    }

    /// What runs next.
    pub(crate) fn next(&self) -> Option<HookEvent> {
        self.pending.front().map(|run| run.event)
    }

    /// The run that has not ended.
    pub(crate) const fn running(&self) -> Option<&HookRun> {
        self.running.as_ref()
    }

    /// Whether the hooks have begun to take over and have not released everything since.
    pub(crate) const fn hold(&self) -> bool {
        self.holds
    }

    /// Whether the hooks have released everything, including what an earlier life left behind,
    /// which `started` does.
    pub(crate) fn have_released(&self) -> bool {
        let starts = |run: &HookRun| run.event == HookEvent::Started;
        !self.holds && !self.running.iter().chain(&self.pending).any(starts)
    }

    /// Whether what the hooks hold is to change: a run for anything but `reaffirmed` runs or waits.
    pub(crate) fn is_changing(&self) -> bool {
        let changes = |run: &HookRun| run.event != HookEvent::Reaffirmed;
        self.running.iter().chain(&self.pending).any(changes)
    }

    /// Whether no hook runs or waits.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none() && self.pending.is_empty()
    }

    /// A pending `elected` gets the new term; an older `reaffirmed` is replaced.
    fn push_reaffirmed(&mut self, run: HookRun) {
        match self.pending.back_mut() {
            Some(elected) if elected.event == HookEvent::Elected => elected.term = run.term,
            Some(older) if older.event == HookEvent::Reaffirmed => *older = run,
            _ => self.pending.push_back(run),
        }
    }

    /// A pending `elected` is dropped together with this `demoted`, because the hooks have not
    /// taken over, or an earlier pending `demoted` makes them release everything.
    fn push_demoted(&mut self, run: HookRun) {
        match self.pending.back_mut() {
            Some(elected) if elected.event == HookEvent::Elected => {
                self.pending.pop_back();
            }
            Some(moot) if moot.event == HookEvent::Reaffirmed => *moot = run,
            _ => self.pending.push_back(run),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::hook::Reason;
    use crate::types::{Role, Term};
    use HookEvent::{Demoted, Elected, Reaffirmed, Started};
    use HookOutcome::{Failed, Lost, NoTurn, NotRun, Succeeded};
    use proptest::prelude::*;

    fn run(event: HookEvent, term: u64) -> HookRun {
        HookRun {
            event,
            reason: Reason::Election,
            role: Role::Follower,
            term: Term(term),
            leader: None,
            leader_address: None,
            previous_leader: None,
        }
    }

    fn drain(schedule: &mut HookSchedule) -> Vec<(HookEvent, u64)> {
        let mut runs = Vec::new();
        loop {
            runs.extend(schedule.finish(Succeeded).map(|run| (run.event, run.term.0)));
            if schedule.start_next().is_none() {
                return runs;
            }
        }
    }

    #[test]
    fn one_hook_runs_at_a_time() {
        let mut schedule = HookSchedule::default();
        schedule.push(run(Elected, 1));
        assert_eq!(schedule.start_next().unwrap().event, Elected);
        schedule.push(run(Demoted, 1));
        assert_eq!(schedule.start_next(), None);
        assert_eq!(schedule.finish(Succeeded).unwrap().event, Elected);
        assert_eq!(schedule.start_next().unwrap().event, Demoted);
    }

    #[test]
    fn a_leadership_that_came_and_went_while_a_hook_ran_is_left_out() {
        let mut schedule = HookSchedule::default();
        schedule.push(run(Started, 0));
        schedule.start_next();
        schedule.push(run(Elected, 1));
        schedule.push(run(Demoted, 1));
        assert_eq!(drain(&mut schedule), [(Started, 0)]);
    }

    #[test]
    fn a_loss_while_elected_runs_is_never_left_out() {
        let mut schedule = HookSchedule::default();
        schedule.push(run(Elected, 1));
        schedule.start_next();
        schedule.push(run(Demoted, 1));
        schedule.push(run(Elected, 3));
        schedule.push(run(Reaffirmed, 5));
        assert_eq!(drain(&mut schedule), [(Elected, 1), (Demoted, 1), (Elected, 5)]);
    }

    #[test]
    fn a_run_that_never_started_waits_again_unless_it_is_moot() {
        let mut schedule = HookSchedule::default();
        schedule.push(run(Elected, 1));
        let elected = schedule.start_next().unwrap();
        schedule.finish(NotRun);
        schedule.put_back(elected);
        schedule.push(run(Reaffirmed, 2));
        assert_eq!(schedule.start_next().unwrap().term, Term(2));
        schedule.push(run(Demoted, 2));
        let elected = schedule.finish(NotRun).unwrap();
        schedule.put_back(elected);
        assert!(schedule.is_idle(), "the hooks saw neither");
    }

    #[test]
    fn what_the_hooks_hold_changes_until_the_last_run_has_ended_but_not_by_reaffirmed() {
        let mut schedule = HookSchedule::default();
        assert!(!schedule.is_changing());
        schedule.push(run(Elected, 1));
        assert!(schedule.is_changing());
        drain(&mut schedule);
        schedule.push(run(Reaffirmed, 2));
        assert!(!schedule.is_changing());
        schedule.start_next();
        schedule.push(run(Demoted, 2));
        assert!(schedule.is_changing());
        schedule.push(run(Elected, 3));
        schedule.finish(Succeeded);
        schedule.start_next();
        schedule.finish(Succeeded);
        assert!(schedule.is_changing(), "demoted has ended, and elected has not run");
    }

    #[test]
    fn dropped_run_drops_the_runs_that_depend_on_it() {
        let mut schedule = HookSchedule::default();
        schedule.push(run(Elected, 1));
        let elected = schedule.start_next().unwrap();
        schedule.push(run(Demoted, 1));
        schedule.finish(NotRun);
        schedule.do_without(elected);
        assert!(schedule.is_idle(), "the hooks never took over");
        schedule.push(run(Demoted, 2));
        let demoted = schedule.start_next().unwrap();
        schedule.finish(NotRun);
        schedule.do_without(demoted);
        assert!(schedule.is_idle());
    }

    #[test]
    fn fenced_hooks_need_no_demoted() {
        let mut schedule = HookSchedule::default();
        schedule.push(run(Elected, 1));
        schedule.start_next();
        schedule.finish(Succeeded);
        schedule.push(run(Demoted, 1));
        schedule.release();
        assert!(!schedule.hold());
        schedule.push(run(Elected, 2));
        assert_eq!(drain(&mut schedule), [(Elected, 2)]);
    }

    #[test]
    fn lost_takeover_may_go_on_until_the_next_run_has_begun() {
        let mut schedule = HookSchedule::default();
        schedule.push(run(Elected, 1));
        assert!(!schedule.may_take_over());
        schedule.start_next();
        assert!(schedule.may_take_over());
        schedule.finish(Failed);
        assert!(!schedule.may_take_over());
        schedule.push(run(Reaffirmed, 4));
        schedule.start_next();
        schedule.finish(Lost);
        for (outcome, may_take_over) in [(NotRun, true), (NoTurn, true), (Lost, false)] {
            schedule.push(run(Demoted, 4));
            schedule.start_next();
            assert!(schedule.may_take_over());
            schedule.finish(outcome);
            assert_eq!(schedule.may_take_over(), may_take_over, "{outcome:?}");
        }
    }

    #[test]
    fn newest_reaffirmed_replaces_older_ones() {
        let mut schedule = HookSchedule::default();
        schedule.push(run(Elected, 1));
        schedule.start_next();
        schedule.push(run(Reaffirmed, 2));
        schedule.push(run(Reaffirmed, 3));
        assert_eq!(drain(&mut schedule), [(Elected, 1), (Reaffirmed, 3)]);
    }

    proptest! {
        /// However slow the hooks are, they alternate strictly, and the last one matches the state.
        #[test]
        fn hooks_alternate_and_end_where_the_node_is(steps in prop::collection::vec(0..4u8, 0..60)) {
            let mut schedule = HookSchedule::default();
            schedule.push(run(Started, 0));
            let (mut leads, mut term) = (false, 0);
            let mut seen = Vec::new();
            for step in steps {
                match step {
                    0 => {
                        seen.extend(schedule.finish(Succeeded).map(|run| run.event));
                    }
                    1 => {
                        schedule.start_next();
                    }
                    2 => {
                        term += 1;
                        schedule.push(run(if leads { Demoted } else { Elected }, term));
                        leads = !leads;
                    }
                    _ if leads => {
                        term += 1;
                        schedule.push(run(Reaffirmed, term));
                    }
                    _ => {}
                }
                prop_assert!(schedule.pending.len() <= 3);
            }
            seen.extend(drain(&mut schedule).into_iter().map(|(event, _)| event));
            prop_assert!(schedule.is_idle());
            prop_assert_eq!(seen.remove(0), Started);
            let mut leading = false;
            for event in seen {
                match event {
                    Elected => prop_assert!(!std::mem::replace(&mut leading, true)),
                    Demoted => prop_assert!(std::mem::replace(&mut leading, false)),
                    Reaffirmed => prop_assert!(leading),
                    Started => prop_assert!(false, "started twice"),
                }
            }
            prop_assert_eq!(leading, leads);
        }
    }
}
