//! The hooks of a host, and what makes its hooks let go where its daemon cannot.

use lanelect::core::hook::{HookEvent, HookOutcome, HookRun};
use lanelect::time::Time;

use super::host::{FenceHabit, RunningHook, takes_over};
use super::{Action, Guard, Host, Sabotage, World, nanos};
use crate::watch::{Violation, Watch, refuse};

/// Between looks at whether a daemon is still held.
const HELD_LOOK: u64 = 1_000_000;

impl<W: Watch> World<W> {
    pub(super) fn run_hook(&mut self, index: usize, run: HookRun) -> Result<(), Violation> {
        let Host { hooks, is_stuck, .. } = &self.hosts[index];
        let ran = !is_stuck && self.rng.f64() >= hooks.absence;
        self.log(index, || format!("hook {} {} term {}", run.event, run.reason, run.term));
        if ran {
            self.watch.note_hook_start(index, self.now, &run, &self.hosts)?;
            self.hosts[index].hooks_hold |= run.event == HookEvent::Elected;
        }
        let hangs = self.hangs(index, run.event);
        let takes = match hangs {
            true => self.time_limit(index),
            false => self.hook_length(index, run.event),
        };
        let ends_at = self.now + takes;
        let number = self.next_hook_number(index);
        self.hosts[index].hook =
            Some(RunningHook { number, event: run.event, ends_at, ran, hangs });
        if self.sabotage == Some(Sabotage::ReportHooksEarly) {
            let now = self.hosts[index].local(self.now);
            if let Some(election) = &mut self.hosts[index].election {
                election.handle_hook_finished(now, HookOutcome::Succeeded);
            }
        }
        self.schedule(takes, Action::HookEnds { host: index, number });
        Ok(())
    }

    fn hangs(&mut self, index: usize, event: HookEvent) -> bool {
        let habit = self.hosts[index].hooks;
        let chance = if event == HookEvent::Demoted { habit.demoted_hangs } else { habit.hangs };
        chance > 0.0 && self.rng.f64() < chance
    }

    fn time_limit(&self, index: usize) -> u64 {
        let host = &self.hosts[index];
        host.clock.span(host.hooks.limit)
    }

    fn hook_length(&mut self, index: usize, event: HookEvent) -> u64 {
        let host = &self.hosts[index];
        let clock = host.clock;
        let takes = if event != HookEvent::Demoted {
            self.rng.u64(0..=host.hooks.longest)
        } else if self.rng.bool() {
            host.hooks.demoted_longest
        } else {
            self.rng.u64(0..=host.hooks.demoted_longest)
        };
        clock.span(takes)
    }

    fn next_hook_number(&mut self, index: usize) -> u64 {
        self.hosts[index].hooks_run += 1;
        self.hosts[index].hooks_run
    }

    /// The hook that runs is told to end, and does so by `by`.
    pub(super) fn cut_hook_short(&mut self, index: usize, by: Time) {
        self.log(index, || "cuts its hook short".into());
        let host = &self.hosts[index];
        let Some(hook) = host.hook else { return };
        let left = host.clock.span(nanos(by.since(host.local(self.now))));
        let takes = self.rng.u64(0..=left);
        let ends_at = hook.ends_at.min(self.now + takes);
        let number = self.next_hook_number(index);
        self.hosts[index].hook = Some(RunningHook { number, ends_at, ..hook });
        self.schedule(ends_at - self.now, Action::HookEnds { host: index, number });
    }

    /// The hook has ended. A daemon that is held learns of it later.
    pub(super) fn end_hook(&mut self, index: usize, number: u64) -> Result<(), Violation> {
        let Some(hook) = self.hosts[index].hook.take_if(|hook| hook.number == number) else {
            return Ok(());
        };
        let outcome = self.outcome_of(index, &hook);
        let was_to_let_go = matches!(hook.event, HookEvent::Started | HookEvent::Demoted);
        let host = &mut self.hosts[index];
        let is_repeated = host.last_hook.replace(hook.event) == Some(hook.event);
        host.tries_in_vain = is_repeated && host.is_stuck && !hook.ran;
        if was_to_let_go && outcome == HookOutcome::Succeeded {
            host.let_go();
        } else if hook.event == HookEvent::Demoted && host.hooks_hold {
            host.late_since.get_or_insert(host.clock.show(self.now));
        }
        if hook.ran {
            let is_lost = outcome == HookOutcome::Lost;
            host.lost_takeover = is_lost && takes_over(hook.event);
            let is_missing = match outcome {
                HookOutcome::Failed => host.params.quorum.is_some(),
                outcome => outcome == HookOutcome::Lost,
            };
            let still_holds = host.hooks_hold || hook.event == HookEvent::Started;
            let repeats = was_to_let_go && is_missing && still_holds;
            self.watch.note_hook_end(index, hook.event, repeats);
        }
        let host = &mut self.hosts[index];
        if host.held.is_some() {
            host.untold_end = Some((hook.event, outcome));
            return Ok(());
        }
        self.report_hook_end(index, outcome)
    }

    fn outcome_of(&mut self, index: usize, hook: &RunningHook) -> HookOutcome {
        let habit = self.hosts[index].hooks;
        let failure = match hook.event {
            HookEvent::Elected | HookEvent::Reaffirmed => habit.failure,
            HookEvent::Started | HookEvent::Demoted => habit.stubbornness,
        };
        if !hook.ran && self.hosts[index].is_stuck {
            HookOutcome::NoTurn
        } else if !hook.ran {
            HookOutcome::NotRun
        } else if habit.blocked {
            self.hosts[index].is_stuck = true;
            HookOutcome::Lost
        } else if hook.hangs {
            HookOutcome::Failed
        } else if self.rng.f64() >= failure {
            HookOutcome::Succeeded
        } else if self.rng.bool() {
            HookOutcome::Failed
        } else {
            HookOutcome::Lost
        }
    }

    pub(super) fn report_hook_end(
        &mut self,
        index: usize,
        outcome: HookOutcome,
    ) -> Result<(), Violation> {
        self.log(index, || format!("hook {outcome:?}"));
        let host = &mut self.hosts[index];
        let now = host.local(self.now);
        if let Some(election) = &mut host.election {
            let was_eligible = election.is_eligible();
            election.handle_hook_finished(now, outcome);
            let is_news = outcome != HookOutcome::Succeeded && !host.tries_in_vain;
            if is_news || election.is_eligible() != was_eligible {
                self.watch.stir(self.now);
            }
        }
        if outcome != HookOutcome::Succeeded {
            self.watch.note_failed_run();
        }
        self.drain(index)
    }

    /// The fence command runs, beside whatever hook still does.
    pub(super) fn run_fence(&mut self, index: usize) -> Result<(), Violation> {
        let label = self.label(index);
        let runs = std::mem::replace(&mut self.hosts[index].fence_runs, true);
        refuse(runs, || format!("{label} starts a fence command beside another"))?;
        let host = &mut self.hosts[index];
        host.fenced_beside_takeover = host.may_take_over();
        let (life, longest) = (host.life, host.clock.span(host.hooks.longest));
        let takes = match host.hooks.fence {
            FenceHabit::Hangs => self.time_limit(index),
            FenceHabit::Mixed | FenceHabit::Fails => self.rng.u64(0..=longest),
        };
        self.schedule(takes, Action::FenceEnds { host: index, life });
        Ok(())
    }

    /// The fence command has ended. A daemon that is held learns of it later.
    pub(super) fn end_fence(&mut self, index: usize) -> Result<(), Violation> {
        let life = self.hosts[index].life;
        if self.hosts[index].held.is_some() {
            self.schedule(HELD_LOOK, Action::FenceEnds { host: index, life });
            return Ok(());
        }
        self.hosts[index].fence_runs = false;
        let works = self.hosts[index].hooks.fence == FenceHabit::Mixed && self.rng.bool();
        let outcome = if works { HookOutcome::Succeeded } else { HookOutcome::Failed };
        self.log(index, || format!("fence {outcome:?}"));
        let now = self.hosts[index].local(self.now);
        // What takes over may take something after what the command does.
        if outcome == HookOutcome::Succeeded && !self.hosts[index].fenced_beside_takeover {
            self.hosts[index].let_go();
            self.watch.note_fenced(index);
        }
        if let Some(election) = &mut self.hosts[index].election {
            election.handle_fence_finished(now, outcome);
        }
        self.drain(index)
    }

    /// A daemon died without a word. Its unit's `post-stop` carries out its crash plan: it has the
    /// hooks let go, within the grace of the lease that it had, and resigns.
    pub(super) fn clean_up_after_crash(&mut self, index: usize) -> Result<(), Violation> {
        self.hosts[index].hook = None;
        let host = &self.hosts[index];
        // In quorum mode, it does not resign before the hooks have let go.
        let is_vain = host.is_stuck && host.params.quorum.is_some();
        if is_vain || self.rng.f64() >= self.post_stop {
            self.hosts[index].plan = None;
            return Ok(());
        }
        let host = &self.hosts[index];
        let lets_go = host.plan.as_ref().is_some_and(|plan| plan.hook.is_some());
        // Where it did not run after an earlier life either, what that left may hold still.
        if host.hooks_hold && !lets_go && self.post_stop >= 1.0 {
            let label = self.label(index);
            return Err(Violation::new(format!(
                "{label} died, and no crash plan lets its hooks go"
            )));
        }
        let number = self.next_hook_number(index);
        if self.hosts[index].plan.is_none() {
            return Ok(());
        }
        self.log(index, || "runs post-stop".into());
        let takes = if lets_go { self.last_demotion_length(index) } else { 0 };
        if takes == 0 {
            return self.end_post_stop(index, number);
        }
        self.hosts[index].busy_until = self.now + takes;
        self.schedule(takes, Action::PostStopEnds { host: index, number });
        Ok(())
    }

    fn last_demotion_length(&mut self, index: usize) -> u64 {
        let takes = self.hook_length(index, HookEvent::Demoted);
        let Some(Guard { grace, .. }) = self.guard else { return takes };
        let host = &self.hosts[index];
        let lease_seen = host.lease_seen.unwrap_or_default();
        let left = nanos((lease_seen + grace).since(host.local(self.now)));
        takes.min(host.clock.span(left))
    }

    pub(super) fn end_post_stop(&mut self, index: usize, number: u64) -> Result<(), Violation> {
        if self.hosts[index].hooks_run != number {
            return Ok(());
        }
        self.log(index, || "has cleaned up after its daemon".into());
        self.hosts[index].let_go();
        match self.hosts[index].plan.take().and_then(|plan| plan.resignation) {
            Some(resignation) => {
                self.watch.note_cleaned_up(index, self.now, &resignation, &self.hosts);
                self.send(index, &resignation)
            }
            None => Ok(()),
        }
    }
}
