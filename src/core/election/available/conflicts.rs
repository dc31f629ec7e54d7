//! Conflicts: two leaders that hear each other, and leaderships that a leader has missed.
//!
//! After a partition two leaders hear each other. The better-ranked one stays, takes a term above
//! both and is `reaffirmed`, because the other's hook may have taken over meanwhile. The worse one
//! steps down when it hears the better one's declaration. Its heartbeats then concede until the
//! winner declares in a higher term, because the winner may never have heard of it.
//!
//! So two events raise a leader's term: the first declaration of a worse leader in a term, and a
//! follower's concession. Together they do so at most once an interval. A leader that hears more
//! meanwhile handles it at the end of the interval, because it may not hear it again.

use std::net::IpAddr;

use crate::core::election::{Election, State, at_least_a_millisecond};
use crate::core::hook::{HookEvent, Reason};
use crate::core::output::Event;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{NodeId, Term};
use crate::wire::message::{Body, Message};

/// The terms that a leader must get above.
///
/// A leader does not learn of higher terms. Until it has resigned, its highest known term is that
/// of its leadership, or the next one, which it takes once that is on disk.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(in crate::core::election) struct Conflicts {
    /// The highest term of other nodes that this node heard of while it led.
    pub(in crate::core::election) heard: Term,
    /// The highest term in which a node has led, or which the leader must get to. A leader in a
    /// lower term has missed that leadership; this node reports that to it.
    led: Term,
    /// When this node last took a higher term while it led.
    last_reaffirmed: Option<Time>,
}

impl Election {
    /// A worse leader has declared under `term`.
    pub(in crate::core::election) fn defend(
        &mut self,
        now: Time,
        rival: NodeId,
        address: IpAddr,
        term: Term,
    ) {
        if self.outbox.reported_rival.replace(rival) != Some(rival) {
            self.notify(Event::RivalLeader { rival, address });
        }
        self.declare_soon(now);
        // The sweep that came with the declaration may have ended the leadership.
        if self.state == State::Leading && self.members.note_outbid(&rival, term) {
            self.outdo(now, term);
        }
    }

    /// This node gives way to `leader`, which has declared under `term`, and follows it at once.
    pub(in crate::core::election) fn step_down(&mut self, now: Time, leader: NodeId, term: Term) {
        let led = self.state == State::Leading;
        self.leave_office(now);
        self.note_current_term(term);
        self.follow(now, leader);
        if led {
            self.outbox.cause = Some(Reason::BetterLeader);
        }
        if led && self.hooks.retract_elected() {
            self.schedule_hook(HookEvent::Demoted, Reason::BetterLeader);
        }
        self.concede(term);
        self.send_heartbeat(now);
    }

    /// This leader's term is not on disk yet, and `leader` has declared under `term`. No node has
    /// heard of this leadership, and no hook has run for it. So `leader`, which serves, need not
    /// get above it, even if it is worse.
    pub(in crate::core::election) fn withdraw_undeclared(
        &mut self,
        now: Time,
        leader: NodeId,
        term: Term,
    ) {
        self.hooks.retract_elected();
        self.leave_office(now);
        self.learn_term(term);
        self.note_current_term(term);
        self.follow(now, leader);
        self.concede_soon(now);
    }

    /// Another node leads by `static_role` too. Neither gives way; the operators must decide.
    pub(in crate::core::election) fn report_static_rival(
        &mut self,
        rival: NodeId,
        address: IpAddr,
    ) {
        if self.outbox.reported_rival.replace(rival) != Some(rival) {
            self.notify(Event::RivalStaticLeader { rival, address });
        }
    }

    /// A follower of this leader knows of an ended leadership in a higher term. No other report of
    /// a higher term moves a leader. Otherwise a third node would carry terms between two leaders
    /// that do not hear each other, and each would outbid the other for ever.
    pub(super) fn handle_concession(&mut self, now: Time, message: &Message) {
        let Body::Heartbeat { leader: Some(leader), conceded: Some(term), .. } = message.body
        else {
            return;
        };
        let leads = self.state == State::Leading && leader == self.life.node_id;
        if leads && term > self.terms.known {
            self.outdo(now, term);
        }
    }

    /// Makes the winner, which leads in `term`, take a term above both, even if this node restarts
    /// first. The winner's hook ran before this node's hooks had released everything.
    pub(in crate::core::election) fn concede(&mut self, term: Term) {
        self.terms.known = self.terms.known.max(term);
        self.take_next_term();
        self.note_led(self.terms.known);
    }

    /// No leader may be in a term below `term` any more.
    pub(in crate::core::election) fn concede_at_least(&mut self, term: Term) {
        self.conflicts.led = self.conflicts.led.max(term);
    }

    /// The followed leader declares in `term`. If that is below one that was declared before, it is
    /// another leader, or one that has lost its disk.
    pub(in crate::core::election) fn note_current_term(&mut self, term: Term) {
        self.terms.current = term;
        self.note_led(term);
    }

    /// The term that the leader has yet to get to.
    pub(in crate::core::election) fn concession(&self) -> Option<Term> {
        let is_behind = self.leader.is_some() && self.terms.current < self.conflicts.led;
        is_behind.then_some(self.conflicts.led)
    }

    /// Another leader leads in `term`, and this one must get above it: now, or an interval after it
    /// last took a higher term.
    pub(in crate::core::election) fn outdo(&mut self, now: Time, term: Term) {
        self.learn_term(term);
        self.reaffirm_when_due(now);
    }

    fn reaffirm_when_due(&mut self, now: Time) {
        let interval = self.params.heartbeat_interval;
        match self.conflicts.last_reaffirmed.filter(|last| now.since(*last) < interval) {
            None => self.reaffirm(now),
            Some(last) => self.timers.set(Timer::Reaffirm, last + interval),
        }
    }

    /// The disk is done, or the intervals have changed, so a term that waits may be due.
    pub(in crate::core::election) fn go_on_reaffirming(&mut self, now: Time) {
        if self.timers.get(Timer::Reaffirm).is_some() {
            self.reaffirm_when_due(now);
        }
    }

    /// Continues to lead, in a term above all that it heard of, once its present term is on disk.
    pub(in crate::core::election) fn reaffirm(&mut self, now: Time) {
        if !self.term_is_kept() {
            let interval = at_least_a_millisecond(self.params.heartbeat_interval);
            return self.timers.set_no_later(Timer::Reaffirm, now + interval);
        }
        self.take_term_above_heard(now);
        self.outbox.cause = Some(Reason::Conflict);
        self.hooks.announce(HookEvent::Reaffirmed, Reason::Conflict);
        self.open_leadership(now);
    }

    /// The next higher term is due an interval later.
    fn take_term_above_heard(&mut self, now: Time) {
        self.timers.clear(Timer::Reaffirm);
        self.conflicts.last_reaffirmed = Some(now);
        self.terms.known = self.terms.known.max(self.conflicts.heard);
        self.take_next_term();
    }

    /// Until it declares, no other node knows of this leadership. If it has heard of its term or of
    /// a higher one meanwhile, another node led in that, so it begins above: once, as terms that
    /// rise at every write would keep it from declaring.
    pub(in crate::core::election) fn begin_above_heard_terms(&mut self, now: Time) {
        let is_new = self.state.is_in_office() && !self.has_declared();
        if is_new && self.terms.is_untold() && self.conflicts.heard >= self.terms.known {
            self.take_term_above_heard(now);
            self.terms.current = self.terms.known;
        }
    }

    /// A leader that took a higher term leads in it as soon as that term is on disk.
    pub(in crate::core::election) fn begins_next_term(&mut self) -> bool {
        let begins = self.state == State::Leading
            && self.term_is_kept()
            && self.terms.current < self.terms.known;
        if begins {
            self.terms.current = self.terms.known;
        }
        begins
    }
}
