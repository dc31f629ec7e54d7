//! The refresh: a leader runs its hook again from time to time, and when its host loses an address.
//! So the hook puts back what others have removed.

use std::time::Duration;

use super::{Election, State};
use crate::core::hook::{HookEvent, Reason};
use crate::core::timers::Timer;
use crate::time::Time;

/// From the loss of an address to the refresh. Losses in between need no run of their own, so a
/// program that keeps removing addresses causes two runs a second at most.
pub const REFRESH_PAUSE: Duration = Duration::from_millis(500);

impl Election {
    /// A hook run has ended: the time to the next refresh begins.
    ///
    /// Invariant: the timer is set only while the hook of a leader is idle.
    pub(super) fn plan_refresh(&mut self, now: Time) {
        match self.params.refresh_interval.filter(|_| self.may_refresh()) {
            Some(interval) => self.timers.set(Timer::Refresh, now + interval),
            None => self.timers.clear(Timer::Refresh),
        }
    }

    /// The settings have changed. A refresh that was planned comes no later.
    pub(super) fn plan_refresh_anew(&mut self, now: Time) {
        let planned = self.timers.get(Timer::Refresh);
        self.plan_refresh(now);
        if let Some(planned) = planned.filter(|_| self.timers.get(Timer::Refresh).is_some()) {
            self.timers.set_no_later(Timer::Refresh, planned);
        }
    }

    pub(super) fn refresh_soon(&mut self, now: Time) {
        if self.timers.get(Timer::Refresh).is_some() {
            self.timers.set_no_later(Timer::Refresh, now + REFRESH_PAUSE);
        }
    }

    pub(super) fn refresh(&mut self) {
        if self.may_refresh() {
            self.hooks.announce(HookEvent::Reaffirmed, Reason::Refresh);
            self.run_elected_hook();
        }
    }

    fn may_refresh(&self) -> bool {
        self.state == State::Leading && self.hooks.schedule.hold() && self.hooks.are_settled()
    }
}
