//! Keeping the lease, and letting go of the leadership when it runs out.

use std::time::Duration;

use super::{Election, Overdue};
use crate::core::election::State;
use crate::core::hook::{HookEvent, HookOutcome, Reason};
use crate::core::output::{Event, Output};
use crate::core::quorum::Lease;
use crate::core::quorum::lease::Cover;
use crate::core::timers::Timer;
use crate::core::will::pause_before_fencing_again;
use crate::time::Time;
use crate::types::{NodeId, Term};
use crate::wire::message::{Body, DatagramId, Message};

impl Election {
    /// When this node's leadership ends unless voters renew it; none where nothing limits it.
    pub fn lease_end(&self) -> Option<Time> {
        self.quorum.lease.as_ref().map(Lease::end)
    }

    /// Comes first in whatever is done: a process that was held must not act under a lease that has
    /// run out meanwhile.
    pub(in crate::core::election) fn check_lease(&mut self, now: Time) {
        if self.lease_end().is_some_and(|end| end <= now) {
            self.end_lease(now, Reason::LeaseLost);
        }
    }

    /// Leads no more. The scripts have the demote grace to let go in; one that still takes over is cut
    /// short, and half of what is left of the grace is the demote hook's.
    fn end_lease(&mut self, now: Time, reason: Reason) {
        let Some(lease) = self.quorum.lease.take() else { return };
        self.timers.clear(Timer::Lease);
        self.timers.clear(Timer::Declare);
        let scripts_run = self.hooks.running().map(|run| run.event);
        self.hand_over(now, reason, None);
        if !self.hooks.hold() {
            return;
        }
        let overdue = Overdue::new(self.reign, lease.grace_end());
        let overdue = self.quorum.overdue.get_or_insert(overdue);
        overdue.grace_end = overdue.grace_end.min(lease.grace_end());
        self.timers.set_no_later(Timer::GraceEnd, lease.grace_end());
        if matches!(scripts_run, Some(HookEvent::Elected | HookEvent::Reaffirmed)) {
            let by = now + lease.grace_end().since(now) / 2;
            self.outputs.push_back(Output::CutHookShort { by });
        }
    }

    /// A run by which the scripts were to let go has not done so. They have the grace to do it after all,
    /// also where this node still has its lease: it does not resign before.
    pub(in crate::core::election) fn begin_grace(&mut self, now: Time) {
        if !self.hooks.hold() {
            return;
        }
        let grace_end = now + self.params.demote_grace();
        if self.quorum.overdue.is_none() {
            self.timers.set(Timer::GraceEnd, grace_end);
        }
        let overdue = Overdue::new(self.reign, grace_end);
        self.quorum.overdue.get_or_insert(overdue).is_late = true;
    }

    /// The grace is over. Where the lease is too, another node may take by now what the scripts hold.
    pub(in crate::core::election) fn end_grace(&mut self) {
        let Some(overdue) = &mut self.quorum.overdue else { return };
        overdue.is_late = true;
        let Overdue { term, fence_failures, .. } = *overdue;
        if self.quorum.fencing.is_some() {
            // One at a time: whether it runs again is decided at its end.
            return;
        }
        if fence_failures == 0 {
            self.notify(Event::GraceOverrun { term });
        }
        self.quorum.fencing = Some(term);
        self.outputs.push_back(Output::Fence { term });
    }

    /// Takes in how the fence command ended. After a success this host holds nothing of that reign any more,
    /// whatever becomes of the demote hook.
    pub(in crate::core::election) fn judge_fence(&mut self, now: Time, outcome: HookOutcome) {
        let Some(fenced) = self.quorum.fencing.take() else { return };
        let Some(overdue) = &mut self.quorum.overdue else { return };
        if overdue.term == fenced && outcome == HookOutcome::Succeeded {
            self.timers.clear(Timer::HookRetry);
            return self.hooks.release();
        }
        let retry_in = pause_before_fencing_again(overdue.fence_failures);
        overdue.fence_failures = overdue.fence_failures.saturating_add(1);
        if self.timers.get(Timer::GraceEnd).is_none() {
            self.timers.set(Timer::GraceEnd, now + retry_in);
        }
    }

    /// Whether a fence command runs. It would hit the next reign of this node as well.
    pub(in crate::core::election) const fn is_fencing(&self) -> bool {
        self.quorum.fencing.is_some()
    }

    /// The reign that this node's scripts have not let go of in spite of `demoted`, or in time.
    pub fn overdue_term(&self) -> Option<Term> {
        self.quorum.overdue.filter(|overdue| overdue.is_late).map(|overdue| overdue.term)
    }

    /// When the grace is over in which the scripts have to let go; none where it has not begun.
    pub(in crate::core::election) fn grace_end(&self) -> Option<Time> {
        self.quorum.overdue.map(|overdue| overdue.grace_end)
    }

    /// Takes in that the scripts have let go, where they have.
    pub(in crate::core::election) fn note_scripts(&mut self) {
        if !self.hooks.hold() {
            self.quorum.overdue = None;
            self.timers.clear(Timer::GraceEnd);
        }
    }

    /// What this node has just declared renews its lease once enough voters acknowledge it; its own
    /// vote does so at once.
    pub(in crate::core::election) fn await_acknowledgements(&mut self, now: Time) {
        let cover = Cover::new(now, self.params.lease_term(), self.params.demote_grace());
        let sequence = self.sequence;
        let Some(lease) = &mut self.quorum.lease else { return };
        lease.note_declared(now, sequence, cover);
        if self.own_vote_counts(now) {
            let (node_id, incarnation) = (self.node_id, self.incarnation);
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
        if leader == Some(self.node_id) && self.counts(now, &message.sender) {
            self.note_acknowledged(now, message.sender, declaration);
        }
    }

    fn note_acknowledged(&mut self, now: Time, voter: NodeId, declaration: DatagramId) {
        let Some(needed) = self.quorum_params().map(|params| params.voters.needed()) else {
            return;
        };
        if declaration.incarnation != self.incarnation {
            return;
        }
        let Some(lease) = &mut self.quorum.lease else { return };
        lease.note_acknowledged(now, voter, declaration.sequence, needed);
        let (end, is_renewed) = (lease.end(), lease.is_renewed());
        self.timers.set(Timer::Lease, end);
        if is_renewed {
            self.rest_until_due();
        }
        self.tell_scripts();
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
            return self.give_way(now, message.term);
        }
        let follows_another = self.leader.is_some_and(|leader| leader != sender);
        if follows_another && message.term <= self.reign {
            return;
        }
        self.members.note_declaration(now, &sender, Duration::from_micros(interval_us.into()));
        self.learn_term(message.term);
        self.reign = message.term;
        if matches!(self.state, State::HandingOver { .. }) {
            self.leave_office(now);
            self.schedule_heartbeat(now);
        }
        if self.leader == Some(sender) {
            self.watch_leader();
            self.consider_claim(now);
        } else {
            self.follow(now, sender);
        }
        self.pledge_to_leader(now, message, Duration::from_micros(hold_us.into()));
        self.use_the_wake(now);
    }

    /// Two leaders at once: some promise that the lease rests on was broken, a clock's or a disk's.
    /// Of an outdated leader the promises are over; a later one is given way to.
    fn give_way(&mut self, now: Time, term: Term) {
        if term > self.reign {
            self.end_lease(now, Reason::BetterLeader);
        }
    }
}
