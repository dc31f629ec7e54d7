//! Claims: a better candidate asks the leader to hand over, if it has `preempt`.
//!
//! A leader that hands over to a candidate that then does not lead has given up its leadership, and
//! the group has gone without a leader, for nothing. The candidate cannot know all that would keep
//! it from leading: its disk, the voters' disks, who hears it. So after each claim that fails, it
//! waits longer before it claims again.

use super::{Election, State, at_least_a_millisecond};
use crate::core::back_off::{BackOff, PAUSE_MAX};
use crate::core::output::Event;
use crate::core::rank::Rank;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::wire::message::Body;

/// The claims of this node.
///
/// From the first datagram to the handover or the next leader it is one claim, however often it is
/// repeated: the leader's `demoted` takes its time.
#[derive(Debug, Clone, Copy, Hash, Default)]
pub(super) struct Claims {
    /// Whether this node has claimed, and has neither led nor followed another leader since.
    is_open: bool,
    /// The claims that failed since this node last led.
    failed: BackOff,
    /// Makes no claim before this time.
    not_before: Time,
}

impl Claims {
    /// Makes no claim before `end`.
    pub(super) fn rest_until(&mut self, end: Time) {
        self.not_before = self.not_before.max(end);
    }

    /// This node leads: its term is on disk, and in quorum mode a majority has acknowledged it.
    pub(super) fn note_led(&mut self) {
        *self = Claims::default();
    }
}

impl Election {
    /// A better candidate under a worse leader claims the leadership as soon as it may.
    pub(super) fn consider_claim(&mut self, now: Time) {
        if !self.may_claim(now) {
            self.timers.clear(Timer::Claim);
        } else if self.timers.get(Timer::Claim).is_none() {
            let earliest = now + self.params.preempt_delay;
            self.timers.set(Timer::Claim, earliest.max(self.claims.not_before));
        }
    }

    /// Asks the leader to hand over, and repeats that every interval until it does.
    pub(super) fn claim(&mut self, now: Time) {
        if self.may_claim(now) {
            // If this node did not hear the leader, it would miss the resignation too, and the
            // others would wait for it. So they would if its disk hung.
            let hears_leader = self.leader.is_some_and(|leader| self.members.hears(&leader));
            if hears_leader && self.disk.has_all() {
                self.send(Body::Claim);
                self.claims.is_open = true;
            }
            let interval = at_least_a_millisecond(self.params.heartbeat_interval);
            self.timers.set(Timer::Claim, now + interval);
        }
    }

    /// This node begins to follow a leader. If it has claimed the leadership meanwhile, the claim
    /// has failed, unless the leader is better now: then no other claim follows.
    pub(super) fn judge_claim(&mut self, now: Time) {
        let was_open = std::mem::take(&mut self.claims.is_open);
        if !was_open || !self.outranks_leader() {
            return;
        }
        let pause = self.claims.failed.note_failed(self.params.yield_time(), PAUSE_MAX);
        self.claims.rest_until(now + pause);
        self.timers.clear(Timer::Claim);
        self.notify(Event::ClaimFailed { pause });
    }

    fn may_claim(&self, now: Time) -> bool {
        self.params.preempt
            && self.state == State::Following
            && self.is_eligible()
            && self.missing_candidates(now).is_none()
            && self.may_challenge_leader(now)
            && self.outranks_leader()
    }

    /// Whether this node follows a worse leader.
    fn outranks_leader(&self) -> bool {
        let leader = self.leader.and_then(|id| Some((id, self.members.get(&id)?)));
        leader.is_some_and(|(id, member)| self.rank() > Rank::new(id, &member.standing))
    }
}
