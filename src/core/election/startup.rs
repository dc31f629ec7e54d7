//! Start-up: a node listens before it takes part, as in Hyperledger Fabric's gossip election.
//!
//! A starting node sends a heartbeat at every sample, and a leader that receives it declares at
//! once. The datagrams of a starting node never displace a visible member with the same id. If the
//! holder of the id is alive, it objects, and the starting node stops.

use super::{Election, State, at_least_a_millisecond};
use crate::core::timers::Timer;
use crate::time::Time;

/// A starting node sends a heartbeat at this many samples, however large the group is.
const HELLOS: u32 = 3;

impl Election {
    pub(super) fn begin_startup(&mut self, now: Time) {
        self.state = State::Starting { sampled: None, samples: 0 };
        self.timers.set(Timer::Grace, now + self.params.startup_grace_period);
        self.timers.set(Timer::Sweep, now + self.params.sweep_interval());
        self.say_hello(now);
    }

    /// Start-up ends when two samples in a row find the same members and no better one is still
    /// starting. So of hosts that start together, the best one leads.
    pub(super) fn sample_membership(&mut self, now: Time) {
        let State::Starting { sampled, samples } = self.state else { return };
        let seen = Some(self.members.changes());
        let ready = sampled == seen && !self.exclusions.is_mute() && !self.better_starts(now);
        if ready {
            self.end_startup(now);
        } else {
            self.state = State::Starting { sampled: seen, samples: samples.saturating_add(1) };
            self.say_hello(now);
        }
    }

    fn better_starts(&self, now: Time) -> bool {
        self.is_eligible() && self.members.best_starting(now).is_some_and(|best| best > self.rank())
    }

    /// Takes part from now on: without a leader, this node stands in its turn. A mute node stays in
    /// start-up.
    pub(super) fn end_startup(&mut self, now: Time) {
        if self.exclusions.is_mute() {
            return;
        }
        self.leave_startup();
        self.report_soon(now);
        self.await_leader(now);
    }

    /// Ends start-up, and returns whether it was still on.
    pub(super) fn leave_startup(&mut self) -> bool {
        if !self.state.is_starting() {
            return false;
        }
        self.timers.clear(Timer::Sample);
        self.timers.clear(Timer::Grace);
        self.state = State::Following;
        true
    }

    /// Announces that this node starts. It does so at the first samples, so that nodes that start
    /// together know each other by the second one. Then a large group's report interval applies.
    pub(super) fn say_hello(&mut self, now: Time) {
        let is_hello = matches!(self.state, State::Starting { samples, .. } if samples < HELLOS);
        if is_hello || !self.reports_rarely(now) {
            self.send_heartbeat(now);
        }
        let interval = at_least_a_millisecond(self.params.membership_sample_interval);
        self.timers.set(Timer::Sample, now + interval);
    }
}
