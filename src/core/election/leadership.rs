//! Leading: declare, answer whoever doubts it, and settle conflicts with other leaders.
//!
//! Two leaders meet after a partition heals. The better-ranked one stays, takes a term above both
//! and is `reaffirmed`, because the other's scripts may have taken things over meanwhile. The worse
//! one steps down when it hears a better declaration. Its heartbeats then concede, until the winner
//! declares in a higher term: the winner may never have heard of it.
//!
//! So two things move a leader's term: the first declaration of a worse leader in a term, and a
//! follower's concession. Both together do so once an interval at the most, whatever others say;
//! what is heard meanwhile waits for the end of the interval, as whoever said it may not say it
//! again.

use std::net::IpAddr;
use std::time::Duration;

use super::quorum::whole_micros;
use super::{Election, State, at_least_a_millisecond};
use crate::core::hook::{HookEvent, Reason};
use crate::core::output::Event;
use crate::core::params::{Params, StaticRole};
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{NodeId, Term};
use crate::wire::message::Body;

impl Election {
    /// Takes the leadership under a new term, unless this node may not lead after all.
    pub(super) fn become_leader(&mut self, now: Time, reason: Reason) {
        self.leave_startup();
        self.abandon_candidacy();
        if !self.is_eligible() || !self.sees_enough_candidates(now) {
            return self.await_leader_for(now, self.params.heartbeat_interval);
        }
        self.forget_leader();
        for timer in [Timer::Candidacy, Timer::Heartbeat, Timer::Resignation] {
            self.timers.clear(timer);
        }
        self.handover.resigned_at = None;
        self.state = State::Leading;
        self.set_leader(Some(self.life.node_id));
        self.outbox.reported_rival = None;
        self.probing.answers_owed = 0;
        self.outbox.cause = Some(reason);
        if !self.in_quorum_mode() {
            // There the term was taken to ask for votes.
            self.take_next_term();
        }
        self.terms.reign = self.terms.known;
        self.hooks.announce(HookEvent::Elected, reason);
        self.open_reign(now);
    }

    /// Tells the group and the scripts of a reign whose term is on disk.
    pub(super) fn open_reign(&mut self, now: Time) {
        let leads_in_available_mode = self.state == State::Leading && !self.in_quorum_mode();
        let is_new =
            leads_in_available_mode && self.term_is_kept() && self.terms.reign < self.terms.known;
        if is_new {
            self.terms.reign = self.terms.known;
        }
        if is_new || self.timers.get(Timer::Declare).is_none() {
            self.declare_soon(now);
        }
        self.tell_scripts();
    }

    /// Tells the group who leads, and again an interval later. A leadership whose first term is not
    /// on disk yet is told of once it is; one that is to get a higher term goes on in its old one
    /// until then.
    pub(super) fn declare(&mut self, now: Time) {
        if !self.holds_leadership() || self.disk.written().term < self.terms.reign {
            return self.timers.clear(Timer::Declare);
        }
        let interval = at_least_a_millisecond(self.params.heartbeat_interval);
        let interval_us = u32::try_from(interval.as_micros()).unwrap_or(u32::MAX);
        self.choose_heir(now);
        let hold_us = whole_micros(self.params.declaration_hold());
        self.send(Body::Declaration { interval_us, hold_us });
        self.sent.declared = Some(now);
        let next = now + self.time_to_next_declaration(interval);
        self.timers.set(Timer::Declare, next);
        self.await_acknowledgements(now);
        self.use_the_wake(now);
    }

    /// A leader that was not heard, or that does not hear, tries again before long.
    fn time_to_next_declaration(&mut self, interval: Duration) -> Duration {
        if self.probing.answers_owed > 0 {
            self.probing.answers_owed -= 1;
            return at_least_a_millisecond(self.params.declaration_gap()).min(interval);
        }
        let window = self.params.lease_term().saturating_sub(interval);
        if self.in_quorum_mode() && !window.is_zero() {
            return at_least_a_millisecond(Params::probe_spacing(window)).min(interval);
        }
        interval
    }

    /// The last declaration was heard: the next one is due an interval after it.
    pub(super) fn rest_until_due(&mut self) {
        let interval = at_least_a_millisecond(self.params.heartbeat_interval);
        if let Some(declared) = self.sent.declared.filter(|_| self.probing.answers_owed == 0) {
            self.timers.set(Timer::Declare, declared + interval);
        }
    }

    /// Declares at once, or as soon as the last declaration is a gap ago: one declaration answers
    /// everyone who asks meanwhile. Does nothing where this node is not seen as the leader.
    pub(super) fn declare_soon(&mut self, now: Time) {
        if !self.holds_leadership() {
            return;
        }
        let earliest = self.sent.declared.map_or(now, |last| last + self.params.declaration_gap());
        if earliest <= now {
            self.declare(now);
        } else {
            self.timers.set_no_later(Timer::Declare, earliest);
        }
    }

    /// Whether the group is to see this node as its leader.
    pub(super) const fn holds_leadership(&self) -> bool {
        let may_act = self.quorum.lease.is_some() || !self.in_quorum_mode();
        may_act && matches!(self.state, State::Leading | State::HandingOver { .. })
    }

    /// Another leader, worse than this one, has declared under `term`.
    pub(super) fn defend(&mut self, now: Time, rival: NodeId, address: IpAddr, term: Term) {
        if self.outbox.reported_rival.replace(rival) != Some(rival) {
            self.notify(Event::RivalLeader { rival, address });
        }
        self.declare_soon(now);
        // The look at the members that came with a declaration may have ended the leadership.
        if self.state == State::Leading && self.members.settle(&rival, term) {
            self.outdo(now, term);
        }
    }

    /// A leader that this one gives way to has declared under `term`: follow it at once.
    pub(super) fn step_down(&mut self, now: Time, leader: NodeId, term: Term) {
        let led = self.state == State::Leading;
        self.leave_office(now);
        self.terms.reign = term;
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

    /// Another node leads by `static_role` too. Neither gives way; people have to decide.
    pub(super) fn report_static_rival(&mut self, rival: NodeId, address: IpAddr) {
        if self.outbox.reported_rival.replace(rival) != Some(rival) {
            self.notify(Event::RivalStaticLeader { rival, address });
        }
    }

    /// A static leader that may lead does, whoever else leads.
    pub(super) fn resume_static_leadership(&mut self, now: Time) {
        let fixed = self.params.static_role == Some(StaticRole::Leader);
        if fixed && self.state == State::Following && self.is_eligible() {
            self.timers.set(Timer::Candidacy, now);
        }
    }
}
