//! Keeping the lease, and ending the leadership when it expires.

use std::time::Duration;

use super::Election;
use crate::core::election::State;
use crate::core::hook::{HookEvent, Reason};
use crate::core::output::Output;
use crate::core::quorum::Lease;
use crate::core::quorum::lease::Cover;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{DatagramId, NodeId};
use crate::wire::message::{Body, Message};

impl Election {
    /// When this node's leadership ends unless voters renew it; none if nothing limits it.
    pub fn lease_end(&self) -> Option<Time> {
        self.quorum.lease.as_ref().map(Lease::end)
    }

    /// Checks the lease before anything else: a process that was held must not act under an expired
    /// one.
    pub(in crate::core::election) fn check_lease(&mut self, now: Time) {
        if self.lease_end().is_some_and(|end| end <= now) {
            self.end_lease(now, Reason::LeaseLost);
        }
    }

    /// Ends the leadership. The hooks must release everything within the demote grace: a running
    /// takeover is stopped, so that `demoted` gets half of what is left of the grace.
    fn end_lease(&mut self, now: Time, reason: Reason) {
        let Some(lease) = self.quorum.lease.take() else { return };
        self.timers.clear(Timer::Lease);
        self.stop_declaring(now);
        let running = self.hooks.schedule.running().map(|run| run.event);
        self.hand_over(now, reason, None);
        if !self.hooks.schedule.hold() {
            return;
        }
        if self.hooks.fencing.limit(self.terms.current, lease.grace_end()) {
            self.timers.set(Timer::GraceEnd, lease.grace_end());
        }
        if running.is_some_and(HookEvent::takes_over) {
            let by = now + lease.grace_end().since(now) / 2;
            self.outbox.push(Output::CutHookShort { by });
        }
    }

    /// The new declaration renews the lease once enough voters acknowledge it. This node's own vote
    /// acknowledges it at once.
    pub(in crate::core::election) fn await_acknowledgements(&mut self, now: Time) {
        let cover = Cover::new(now, self.params.lease_term(), self.params.demote_grace());
        let sequence = self.sent.newest;
        let Some(lease) = &mut self.quorum.lease else { return };
        lease.note_declared(now, sequence, cover);
        if self.own_vote_counts(now) {
            let (node_id, incarnation) = (self.life.node_id, self.life.incarnation);
            self.note_acknowledged(now, node_id, DatagramId { incarnation, sequence });
        }
    }

    /// A follower's heartbeat acknowledges one of this leader's declarations.
    pub(in crate::core::election) fn handle_acknowledgement(
        &mut self,
        now: Time,
        message: &Message,
    ) {
        let Body::Heartbeat { leader, acknowledged: Some(declaration), .. } = message.body else {
            return;
        };
        if leader == Some(self.life.node_id) && self.counts(now, &message.sender) {
            self.note_acknowledged(now, message.sender, declaration);
        }
    }

    fn note_acknowledged(&mut self, now: Time, voter: NodeId, declaration: DatagramId) {
        let Some(needed) = self.params.quorum.as_ref().map(|params| params.voters.needed()) else {
            return;
        };
        if declaration.incarnation != self.life.incarnation {
            return;
        }
        let Some(lease) = &mut self.quorum.lease else { return };
        lease.note_acknowledged(now, voter, declaration.sequence, needed);
        let (end, is_renewed) = (lease.end(), lease.is_renewed());
        self.timers.set(Timer::Lease, end);
        if is_renewed {
            self.rest_until_due();
        }
        self.run_elected_hook();
    }

    /// Another voter of this group declares itself the leader.
    pub(in crate::core::election) fn handle_declaration_in_quorum(
        &mut self,
        now: Time,
        message: &Message,
    ) {
        let Body::Declaration { interval_us, hold_us } = message.body else { return };
        let sender = message.sender;
        if self.holds_leadership() {
            // Two leaders at once: an assumption of the lease was broken, about a clock or a disk.
            // This leader gives way to a later term. An older leader has lost its pledges already.
            if message.term > self.terms.current {
                self.end_lease(now, Reason::BetterLeader);
            }
            return;
        }
        let follows_another = self.leader.is_some_and(|leader| leader != sender);
        if follows_another && message.term <= self.terms.current {
            return;
        }
        self.members.note_declaration(now, &sender, Duration::from_micros(interval_us.into()));
        if matches!(self.state, State::HandingOver { .. }) {
            self.leave_office(now);
        }
        self.learn_term(message.term);
        self.terms.current = message.term;
        if self.leader == Some(sender) {
            self.hear_leader_again(now);
        } else {
            self.follow(now, sender);
        }
        self.pledge_to_leader(now, message, Duration::from_micros(hold_us.into()));
        self.use_the_wake(now);
    }
}
