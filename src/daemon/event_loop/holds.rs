//! The commands that `lanelect exec` runs on a leader. They begin when the hook for `elected` has
//! succeeded, and end before the one for `demoted` begins.
//!
//! Each of them has a grant, which says until when it may run without another one. So it ends in
//! time also if this process hangs. A client hangs up when its command has ended. If one does not,
//! because it hangs itself, its command is dead by the end of the grant and the time that it has to
//! stop: it runs beside a second process that sees to that.

use std::time::Duration;

use super::Daemon;
use super::report::millis;
use crate::control_api::{Grant, Readiness};
use crate::core::hook::HookRun;
use crate::core::params::Params;
use crate::hooks::group::KILL_GRACE;
use crate::os::clock;
use crate::time::Time;

/// Grants are renewed when this part of the longest one is used up.
const RENEWALS: u32 = 4;

/// How much later than it should a command may be dead: the kernel needs time to end it.
const KILL_MARGIN: Duration = Duration::from_millis(100);

/// What was granted, and what waits for the commands.
#[derive(Debug, Default)]
pub(super) struct Holds {
    /// The end of the last grant; none if nothing is granted now.
    granted: Option<Time>,
    /// By then the commands of all grants so far are dead, whatever hangs.
    dead_by: Time,
    /// The processes that live as long as the commands, as the crash plan names them.
    known: Vec<i32>,
    /// The run for `demoted`, and when it begins at the latest.
    waiting: Option<(HookRun, Time)>,
}

impl Holds {
    /// When the run that waits begins at the latest.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.waiting.map(|(_, limit)| limit)
    }

    /// The processes that live as long as the commands that may still run.
    pub(super) fn known_holders(&self) -> &[i32] {
        &self.known
    }
}

impl Daemon {
    /// Renews the grants, or ends them, and starts the run that waited for the last command.
    pub(super) fn attend_to_holds(&mut self) {
        if self.holds.waiting.is_some()
            || self.control.has_holders()
            || !self.holds.known.is_empty()
        {
            self.renew_grants();
            self.note_holders(self.control.holders().collect());
            self.start_waiting_run();
        } else {
            self.holds.granted = None;
        }
    }

    /// Ends all grants. Returns whether `run` has to wait for the commands.
    pub(super) fn waits_for_holders(&mut self, run: HookRun) -> bool {
        self.end_grants();
        if self.control.holders().next().is_none() {
            return false;
        }
        let stop = stop_within(self.election.params());
        let limit = self.holds.dead_by.max(clock::now() + stop + KILL_MARGIN);
        log::info!("the hook for {} waits for the commands of `lanelect exec` to end", run.event);
        self.holds.waiting = Some((run, limit));
        true
    }

    /// How long a stop may wait for commands.
    pub(super) fn longest_hold(&self) -> Duration {
        match self.control.has_holders() {
            true => longest_hold(self.election.params()),
            false => Duration::ZERO,
        }
    }

    pub(super) fn renew_grants(&mut self) {
        let now = clock::now();
        let leads = self.election.leads_until(now);
        let may_begin = self.readiness_if(leads.is_some()) == Readiness::Ready;
        // A refresh that fails ends no command.
        let Some(until) = leads.filter(|_| may_begin || self.holds.granted.is_some()) else {
            self.end_grants();
            return;
        };
        let step = self.election.params().leader_alive_threshold / RENEWALS;
        let is_due = self.holds.granted.is_none_or(|granted| until >= granted + step);
        if is_due || self.control.has_newcomer() {
            let stop = stop_within(self.election.params());
            self.holds.granted = Some(until);
            self.holds.dead_by = self.holds.dead_by.max(until + stop + KILL_MARGIN);
            // A command may begin as soon as the grant is sent, and this daemon may die then.
            self.note_holders(self.control.next_holders().collect());
            self.control.grant(Some(&Grant {
                node_id: self.config.node_id,
                group: self.config.group,
                term: self.election.term(),
                until_ns: until.as_nanos(),
                stop_within_ms: millis(stop),
            }));
        }
    }

    fn end_grants(&mut self) {
        if self.holds.granted.take().is_some() {
            self.control.grant(None);
        }
    }

    /// Commands outlive a daemon that dies for a moment, and post-stop waits for them.
    fn note_holders(&mut self, holders: Vec<i32>) {
        if holders != self.holds.known {
            self.holds.known = holders;
            self.keep_crash_plan();
        }
    }

    fn start_waiting_run(&mut self) {
        let Some((run, limit)) = self.holds.waiting else { return };
        let late = self.control.holders().count();
        if late > 0 && clock::now() < limit {
            return;
        }
        if late > 0 {
            log::error!("{late} commands of `lanelect exec` have not ended: continuing without");
            self.control.drop_holders();
        }
        self.holds.waiting = None;
        self.start_hook(clock::now(), run);
    }
}

/// How long a command may take to end after SIGTERM. In quorum mode the hook for `demoted` needs
/// the other half of the grace.
fn stop_within(params: &Params) -> Duration {
    let grace = params.quorum.as_ref().map(|quorum| quorum.demote_grace / 2);
    grace.unwrap_or(KILL_GRACE).min(KILL_GRACE)
}

/// The longest time from now until the last command is dead, whatever hangs.
pub(in crate::daemon) fn longest_hold(params: &Params) -> Duration {
    params.leader_alive_threshold + stop_within(params) + KILL_MARGIN
}
