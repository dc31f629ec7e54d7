//! Commands of the operator, and inputs from the host.

use super::handover::NoSuccessor;
use super::{Election, State};
use crate::core::hook::Reason;
use crate::core::output::StopCause;
use crate::core::params::{Params, StaticRole};
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::NodeId;

/// A yield that was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Yielding {
    /// The leader began to hand over.
    Began,
    /// The leader was already handing over or staying out; nothing changed.
    Already,
}

/// A yield that was refused; nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum YieldError {
    /// This node does not lead, perhaps because the leadership has moved meanwhile.
    #[error("cannot yield: this node does not lead")]
    NotLeader,
    /// This node leads by `static_role`.
    #[error("cannot yield: this node leads by static_role, and no other node can take over")]
    StaticRole,
    /// The named successor cannot take over.
    #[error("cannot yield to {successor}: {why}")]
    Successor {
        /// The node that was named.
        successor: NodeId,
        /// Why it cannot take over.
        why: NoSuccessor,
    },
}

impl Election {
    /// Yields the leadership, and stays out until another leader declares or the yield time is
    /// over.
    ///
    /// # Errors
    ///
    /// If this node does not lead, or leads by `static_role`.
    pub fn yield_leadership(&mut self, now: Time) -> Result<Yielding, YieldError> {
        self.act(now, |election| election.begin_yielding(now, None))
    }

    /// Yields, and names `successor` in the resignation. If `successor` can no longer take over
    /// when the hooks have released everything, the resignation names the best node.
    ///
    /// # Errors
    ///
    /// As [`yield_leadership`](Self::yield_leadership), and if `successor` cannot take over now.
    pub fn yield_to(&mut self, now: Time, successor: NodeId) -> Result<Yielding, YieldError> {
        self.act(now, |election| election.begin_yielding(now, Some(successor)))
    }

    /// Yields because what this node leads for has failed here. If another node can take over, this
    /// one is held off, as after a failed hook: the others shall be tried before it is again.
    ///
    /// # Errors
    ///
    /// As [`yield_leadership`](Self::yield_leadership).
    pub fn yield_after_failure(&mut self, now: Time) -> Result<Yielding, YieldError> {
        self.act(now, |election| {
            let can_be_replaced = election.choose_successor(now, None).is_some();
            let outcome = election.begin_yielding(now, None)?;
            election.hooks.note_failed();
            // A failure during a handover is its result: programs may end badly when stopped.
            if outcome == Yielding::Began && can_be_replaced {
                election.hold_off(now, Reason::Yield);
            }
            Ok(outcome)
        })
    }

    fn begin_yielding(
        &mut self,
        now: Time,
        successor: Option<NodeId>,
    ) -> Result<Yielding, YieldError> {
        let in_office = self.state.is_in_office();
        if !in_office && self.exclusions.yielding && successor.is_none() {
            return Ok(Yielding::Already);
        }
        if !in_office {
            return Err(YieldError::NotLeader);
        }
        if self.state == State::Leading && self.params.static_role == Some(StaticRole::Leader) {
            return Err(YieldError::StaticRole);
        }
        if let Some(successor) = successor {
            self.check_successor(now, successor)
                .map_err(|why| YieldError::Successor { successor, why })?;
        }
        // The node stays out afterwards, whatever it hands over for.
        self.exclusions.yielding = true;
        if let State::HandingOver { successor: named, .. } = &mut self.state {
            *named = successor.or(*named);
            return Ok(Yielding::Already);
        }
        self.withdraw(now, Reason::Yield, successor);
        Ok(Yielding::Began)
    }

    /// Takes the node out of service, or back in. A restart does not change that.
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

    /// The hook-runner has reported whether it uses this node's configuration. Without a report,
    /// the election assumes that it does.
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

    /// Continues under new settings. A leader keeps its leadership unless they forbid it. The mode
    /// and the voters do not change before a restart.
    pub fn reconfigure(&mut self, now: Time, params: Params) {
        if self.state != State::Stopped {
            self.act(now, |election| election.take_params(now, params));
        }
    }

    /// The hooks change. If they hold a leadership, the leader hands over first, so that the old
    /// hooks release everything.
    pub fn replace_hook(&mut self, now: Time) {
        if self.hooks.schedule.hold() {
            self.act(now, |election| election.hand_over(now, Reason::Reconfigured, None));
        }
    }

    /// Ends in an orderly way: hands over, waits for the hooks, sends a farewell.
    pub fn stop(&mut self, now: Time) {
        self.act(now, |election| election.stop_because(now, StopCause::Requested));
    }

    pub(super) fn stop_because(&mut self, now: Time, cause: StopCause) {
        if self.exclusions.stopping.is_some() {
            return;
        }
        self.change_exclusions(now, Reason::Shutdown, |exclusions| {
            exclusions.stopping = Some(cause);
        });
        self.timers.clear(Timer::HookRetry);
        self.start_next_hook();
        self.advance_stop(now);
    }

    fn take_params(&mut self, now: Time, new: Params) {
        self.interrupt_election(now);
        if self.params.preempt_delay != new.preempt_delay {
            self.timers.clear(Timer::Claim);
        }
        let begins_anew = self.params.key_mode != new.key_mode;
        self.params = new.without_restart(&self.params);
        if begins_anew {
            self.begin_anew();
        }
        self.members.set_params(&self.params);
        let observer = !self.params.candidate;
        let static_follower = self.params.static_role == Some(StaticRole::Follower);
        self.change_exclusions(now, Reason::Reconfigured, |exclusions| {
            exclusions.observer = observer;
            exclusions.static_follower = static_follower;
        });
        self.take_check_params(now);
        self.plan_refresh_anew(now);
        self.apply_intervals(now);
    }

    /// Applies new intervals at once, and not only after the old ones have expired.
    fn apply_intervals(&mut self, now: Time) {
        match self.state {
            State::Leading | State::HandingOver { .. } => {
                self.declare_soon(now);
                self.go_on_reaffirming(now);
            }
            State::Following => {
                self.send_heartbeat(now);
                self.watch_leader();
                self.consider_claim(now);
                self.resume_static_leadership(now);
            }
            State::Starting { .. } | State::Standing | State::Stopped => {}
        }
        self.timers.set(Timer::Sweep, now + self.params.sweep_interval());
        self.check_visible_candidates(now);
    }
}
