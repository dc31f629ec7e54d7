//! What operators and the host ask of an election.

use super::{Election, State};
use crate::core::health::Health;
use crate::core::hook::Reason;
use crate::core::output::StopCause;
use crate::core::params::{Params, StaticRole};
use crate::core::timers::Timer;
use crate::time::Time;

/// A yield that was taken up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Yielding {
    /// The leader began to hand over.
    Began,
    /// It was handing over or staying out already; nothing changed.
    Already,
}

/// A yield that was not taken up; nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum YieldError {
    /// This node does not lead. Normal: leadership may have moved meanwhile.
    #[error("this node does not lead")]
    NotLeader,
    /// This node leads by `static_role`.
    #[error("this node leads by static_role, which leaves nobody to yield to")]
    StaticRole,
}

impl Election {
    /// Gives leadership up, and stays out until another leader declares or the yield time is over.
    ///
    /// # Errors
    ///
    /// Where this node does not lead, or leads by `static_role`.
    pub fn yield_leadership(&mut self, now: Time) -> Result<Yielding, YieldError> {
        self.act(now, |election| election.begin_yielding(now))
    }

    fn begin_yielding(&mut self, now: Time) -> Result<Yielding, YieldError> {
        if matches!(self.state, State::HandingOver { .. }) {
            // Whatever it hands over for, it is to stay out afterwards.
            self.exclusions.yielding = true;
            return Ok(Yielding::Already);
        }
        if self.exclusions.yielding {
            return Ok(Yielding::Already);
        }
        if self.state != State::Leading {
            return Err(YieldError::NotLeader);
        }
        if self.params.static_role == Some(StaticRole::Leader) {
            return Err(YieldError::StaticRole);
        }
        self.change_exclusions(now, Reason::Yield, |exclusions| exclusions.yielding = true);
        Ok(Yielding::Began)
    }

    /// Takes the node out of service, or back in. Outlives a restart.
    pub fn set_maintenance(&mut self, now: Time, on: bool) {
        if self.exclusions.maintenance == on || self.state == State::Stopped {
            return;
        }
        self.act(now, |election| {
            election.change_exclusions(now, Reason::Maintenance, |exclusions| {
                exclusions.maintenance = on
            });
            election.persist();
        });
    }

    /// An interface can reach the group again, or none can any more.
    pub fn handle_links(&mut self, now: Time, up: bool) {
        if self.exclusions.interface_down != up || self.state == State::Stopped {
            return;
        }
        self.act(now, |election| {
            election.change_exclusions(now, Reason::InterfaceDown, |exclusions| {
                exclusions.interface_down = !up;
            });
            if up {
                election.relink(now);
            }
        });
    }

    /// The health check has passed or failed once more. Means nothing where there is none.
    pub fn handle_check(&mut self, now: Time, passed: bool) {
        if self.exclusions.health.is_none() || self.state == State::Stopped {
            return;
        }
        self.act(now, |election| {
            election.change_exclusions(now, Reason::CheckFailed, |exclusions| {
                if let Some(health) = &mut exclusions.health {
                    health.note(passed);
                }
            });
        });
    }

    /// The hook-runner has said whether it runs by this node's configuration. Where nobody says so,
    /// it does.
    pub fn handle_hook_runner(&mut self, now: Time, agrees: bool) {
        if self.state == State::Stopped {
            return;
        }
        self.act(now, |election| {
            election.change_exclusions(now, Reason::Reconfigured, |exclusions| {
                exclusions.no_hook_runner = !agrees;
            });
        });
    }

    /// Goes on under new settings, without giving up leadership unless they forbid it. The mode and
    /// the voters stay what they were when it started.
    pub fn reconfigure(&mut self, now: Time, params: Params) {
        if self.state != State::Stopped {
            self.act(now, |election| election.take_params(now, params));
        }
    }

    /// Other hooks are to run from now on. Those that have taken over let go first: a leader
    /// hands over.
    pub fn replace_hook(&mut self, now: Time) {
        if self.hooks.schedule.hold() {
            self.act(now, |election| election.hand_over(now, Reason::Reconfigured, None));
        }
    }

    /// Ends in an orderly way: hands over, waits for the hooks, says farewell.
    pub fn stop(&mut self, now: Time) {
        self.act(now, |election| election.stop_because(now, StopCause::Requested));
    }

    pub(super) fn stop_because(&mut self, now: Time, cause: StopCause) {
        if self.exclusions.stopping {
            return;
        }
        self.stop_cause = Some(cause);
        self.change_exclusions(now, Reason::Shutdown, |exclusions| exclusions.stopping = true);
        self.timers.clear(Timer::HookRetry);
        self.start_next_hook();
        self.advance_stop(now);
    }

    fn take_params(&mut self, now: Time, new: Params) {
        self.interrupt_election(now);
        let begins_anew = self.params.authenticated != new.authenticated;
        self.params = new.without_restart(&self.params);
        if begins_anew {
            self.begin_anew();
        }
        self.members.set_params(&self.params);
        let observer = !self.params.candidate;
        let static_follower = self.params.static_role == Some(StaticRole::Follower);
        let check = self.params.check;
        self.change_exclusions(now, Reason::Reconfigured, |exclusions| {
            exclusions.observer = observer;
            exclusions.static_follower = static_follower;
            let health = exclusions.health;
            exclusions.health = check.map(|thresholds| {
                health.map_or(Health::assumed(thresholds), |health| health.under(thresholds))
            });
        });
        self.apply_intervals(now);
    }

    /// Makes new intervals count from now on rather than after the old ones have run out.
    fn apply_intervals(&mut self, now: Time) {
        match self.state {
            State::Leading | State::HandingOver { .. } => {
                self.declare_soon(now);
                self.go_on_reaffirming(now);
            }
            State::Following => {
                self.send_heartbeat(now);
                self.watch_leader();
                self.timers.clear(Timer::Claim);
                self.consider_claim(now);
                self.resume_static_leadership(now);
            }
            State::Starting { .. } | State::Standing | State::Stopped => {}
        }
        self.timers.set(Timer::Sweep, now + self.sweep_interval());
        self.check_visible_candidates(now);
    }
}
