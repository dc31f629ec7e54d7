//! Carries out what the election requests.
//!
//! A process can be stopped between any two instructions, and a lease can expire meanwhile. So
//! whatever speaks or acts as the leader first checks the lease against the clock, and does not
//! rely on what the election knew when it made the request.

use super::{Daemon, report};
use crate::config::Config;
use crate::core::Election;
use crate::core::hook::{HookEvent, HookOutcome, HookRun};
use crate::core::output::{Event, Output, Transition};
use crate::hooks::group::KILL_GRACE;
use crate::hooks::{Lane, Task};
use crate::os::clock;
use crate::time::Time;
use crate::types::Role;
use crate::wire::message::Message;

impl Daemon {
    /// Carries out what the election requests, in order.
    pub(super) fn carry_out(&mut self) {
        while let Some(output) = self.election.poll_output() {
            clock::may_be_stopped_here();
            match output {
                Output::Persist(state) => {
                    self.writer.save(state, clock::now());
                    self.note_settled();
                }
                Output::Transmit(message) => self.transmit(&message),
                Output::RunHook(run) => self.run_hook(run),
                Output::CutHookShort { by } => {
                    self.hooks.cut_short(Lane::Hook, by, clock::now());
                    self.report_finished_hooks();
                }
                Output::Fence { term } => {
                    self.hooks.start(Task::Fence { term }, KILL_GRACE, clock::now());
                    self.report_finished_hooks();
                }
                Output::UpdateCrashPlan => self.keep_crash_plan(),
                Output::Notify(event) => self.tell(&event),
                Output::Stopped(cause) => {
                    self.stopped = Some(cause);
                    self.stop_checks();
                }
            }
        }
    }

    /// Reports to the election which state is on disk. In available mode this includes a state that
    /// could not be written, because nothing waits for it forever. The caller carries out what the
    /// election then requests.
    pub(super) fn note_settled(&mut self) {
        while let Some(state) = self.writer.poll_settled() {
            self.election.handle_persisted(clock::now(), state);
        }
    }

    /// Reports the ends of hook and fence runs to the election. The caller carries out what the
    /// election then requests.
    pub(super) fn report_finished_hooks(&mut self) {
        while let Some(finished) = self.hooks.poll_finished(Lane::Hook) {
            self.election.handle_hook_finished(clock::now(), finished.outcome);
        }
        while let Some(finished) = self.hooks.poll_finished(Lane::Fence) {
            self.election.handle_fence_finished(clock::now(), finished.outcome);
        }
        self.pause_checks();
    }

    /// Shows the service manager the current leader.
    pub(super) fn show_headline(&mut self) {
        let now = clock::now();
        let headline = self.election.headline(now);
        if may_show(&self.election, headline.role, now) {
            self.notifier.status(&headline);
        }
    }

    /// Stores the crash plan. While there is one, the watchdog limit is shorter: a daemon that
    /// hangs is killed soon, and post-stop carries out the plan.
    pub(super) fn keep_crash_plan(&mut self) {
        // The hook that took over must release.
        let hook = self.hooks.hook_that_took_over().unwrap_or(&self.config.hook).clone();
        self.keep_crash_plan_by(hook);
    }

    /// `hook` is the command that releases.
    fn keep_crash_plan_by(&mut self, hook: Option<String>) {
        let plan = self.election.crash_plan();
        let config = Config { hook, ..self.config.clone() };
        let holders = self.holds.known_holders();
        let peers = self.transport.peer_addresses();
        self.plan.keep(plan.as_ref(), &config, self.hooks.interfaces(), holders, &peers);
        let limit = plan.and_then(|_| self.election.params().leader_watchdog());
        if self.notifier.tighten_watchdog(limit) {
            self.feed_watchdog_from(clock::now());
        }
    }

    /// By unicast, a datagram that concerns one member alone goes to no other one.
    pub(super) fn transmit(&mut self, message: &Message) {
        let addressee = message.body.addressee();
        let to = addressee.and_then(|node_id| self.election.address_of(&node_id));
        let write = |source, datagram: &mut Vec<u8>| {
            let result = self.codec.encode(source, message, datagram);
            if let Err(error) = &result {
                log::error!("cannot encode a datagram: {error}; it was not sent");
            }
            result.is_ok()
        };
        let may_leave = || may_show(&self.election, message.standing.role, clock::now());
        self.transport.send(to, write, may_leave);
    }

    /// A hook does not take over if the lease has expired: such a run has not begun.
    fn run_hook(&mut self, run: HookRun) {
        let now = clock::now();
        if !may_show(&self.election, run.role, now) {
            return self.election.handle_hook_finished(now, HookOutcome::NotRun);
        }
        if run.event == HookEvent::Demoted && self.waits_for_holders(run) {
            return;
        }
        self.start_hook(now, run);
    }

    /// The time for the hooks has come. A run that still waits for the hook-runner begins only now,
    /// so the lease is looked at again, too.
    pub(super) fn try_hooks_again(&mut self) {
        let now = clock::now();
        if self.hooks.waits_to_take_over() && !may_show(&self.election, Role::Leader, now) {
            self.hooks.cut_short(Lane::Hook, now, now);
        }
        self.hooks.handle_timeout(now);
    }

    /// Whether the lease of a run that takes over holds was seen at `now`, so the clock is not read
    /// again.
    pub(super) fn start_hook(&mut self, now: Time, mut run: HookRun) {
        if run.leader == Some(self.config.node_id) {
            run.leader_address = self.transport.source_address();
        }
        let took_over = self.hooks.hook_that_took_over();
        if run.event == HookEvent::Elected
            && took_over.is_some_and(|hook| *hook != self.config.hook)
        {
            self.keep_crash_plan_by(self.config.hook.clone());
        }
        if run.event == HookEvent::Elected {
            self.checks.allow_start_up(now + self.config.hook_timeout);
        }
        self.hooks.start(Task::Hook(run), KILL_GRACE, now);
        self.report_finished_hooks();
    }

    fn tell(&mut self, event: &Event) {
        self.narration.tell(clock::now(), event);
        match event {
            Event::Transition(transition) => {
                self.transitions += u64::from(transition.role != transition.previous_role);
                self.tell_watchers(transition);
                self.show_headline();
            }
            Event::GraceOverrun { .. } => self.fences += 1,
            Event::DuplicateNodeId { newcomer } => {
                self.duplicate = Some((*newcomer, clock::now()));
            }
            Event::LeaderSilent { .. } | Event::MemberSuspect { .. } => {
                self.transport.announce_anew(clock::now());
            }
            _ => {}
        }
    }

    /// If a leadership ended before it could be reported, watchers receive only its end.
    fn tell_watchers(&mut self, transition: &Transition) {
        let report = report::transition(transition);
        if may_show(&self.election, transition.role, clock::now()) {
            self.control.broadcast(&report);
        }
    }
}

/// Whether `role` may be shown at `now`: in quorum mode a leader counts as one only until its lease
/// expires, whatever its role was when it spoke.
fn may_show(election: &Election, role: Role, now: Time) -> bool {
    let rules_by_lease = election.params().quorum.is_some();
    role != Role::Leader || !rules_by_lease || election.lease_end().is_some_and(|end| now < end)
}
