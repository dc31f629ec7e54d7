//! Start-up: listen before speaking up, as in Hyperledger Fabric's gossip election.
//!
//! A starting node says hello at every sample, and a leader that hears it declares at once. While
//! a node starts, its datagrams never displace a member that is still visible under the same id,
//! and the holder of the id, if it lives, objects: the newcomer then refuses to run.

use super::{Election, State, at_least_a_millisecond};
use crate::core::timers::Timer;
use crate::time::Time;

/// At so many samples a node that starts says hello, however large the group is.
const HELLOS: u32 = 3;

impl Election {
    pub(super) fn begin_startup(&mut self, now: Time) {
        self.state = State::Starting { sampled: None, samples: 0 };
        self.timers.set(Timer::Grace, now + self.params.startup_grace_period);
        self.timers.set(Timer::Sweep, now + self.sweep_interval());
        self.say_hello(now);
    }

    /// Start-up ends where two samples in a row find the same members, and nobody better among them
    /// is still starting: of hosts that start together, the best leads.
    pub(super) fn sample_membership(&mut self, now: Time) {
        let State::Starting { sampled, samples } = self.state else { return };
        let seen = Some(self.members.changes());
        let ready = sampled == seen && !self.exclusions.interface_down && !self.better_starts(now);
        if ready {
            self.end_startup(now);
        } else {
            self.state = State::Starting { sampled: seen, samples: samples + 1 };
            self.say_hello(now);
        }
    }

    fn better_starts(&self, now: Time) -> bool {
        self.is_eligible() && self.members.best_starting(now).is_some_and(|best| best > self.rank())
    }

    /// From now on this node takes part: with no leader in sight, it stands when its turn comes.
    /// A node that cannot hear anybody goes on starting, however long that takes.
    pub(super) fn end_startup(&mut self, now: Time) {
        if self.exclusions.interface_down {
            return;
        }
        self.leave_startup();
        self.report_soon(now);
        self.await_leader(now);
    }

    /// Ends start-up, and tells whether it was not over already.
    pub(super) fn leave_startup(&mut self) -> bool {
        if !matches!(self.state, State::Starting { .. }) {
            return false;
        }
        self.timers.clear(Timer::Sample);
        self.timers.clear(Timer::Grace);
        self.state = State::Following;
        true
    }

    /// Tells the group that this node starts: at first at every sample, so that those that start
    /// together know each other by the second; then, in a large group, no more often than any
    /// member tells that it is there.
    pub(super) fn say_hello(&mut self, now: Time) {
        match self.state {
            State::Starting { samples, .. } if samples < HELLOS => self.send_heartbeat(now),
            _ => self.report_soon(now),
        }
        let interval = at_least_a_millisecond(self.params.membership_sample_interval);
        self.timers.set(Timer::Sample, now + interval);
    }
}
