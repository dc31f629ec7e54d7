//! Leading: becoming the leader, and declaring.

use std::time::Duration;

use super::quorum::whole_micros;
use super::{Election, State, at_least_a_millisecond};
use crate::core::hook::{HookEvent, Reason};
use crate::core::params::StaticRole;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::wire::message::Body;

impl Election {
    /// Leads in a new term, if this node still may.
    pub(super) fn become_leader(&mut self, now: Time, reason: Reason) {
        if self.may_take_office(now) {
            self.take_untold_term();
            self.take_office(now, reason);
        }
    }

    /// Ends the candidacy, and returns whether this node may still lead.
    pub(super) fn may_take_office(&mut self, now: Time) -> bool {
        self.leave_startup();
        self.abandon_candidacy();
        let may_lead = self.is_eligible() && self.sees_enough_candidates(now);
        if !may_lead {
            self.await_leader_for(now, self.params.heartbeat_interval);
        }
        may_lead
    }

    /// Leads in the term that this node has taken.
    pub(super) fn take_office(&mut self, now: Time, reason: Reason) {
        self.probing.end(&mut self.timers);
        for timer in [Timer::Candidacy, Timer::Heartbeat, Timer::Resignation] {
            self.timers.clear(timer);
        }
        self.sent.resigned = None;
        self.sent.declared = None;
        self.state = State::Leading;
        self.set_leader(Some(self.life.node_id));
        self.outbox.reported_rival = None;
        self.probing.answers_owed = 0;
        self.outbox.cause = Some(reason);
        self.terms.current = self.terms.known;
        self.forget_leader_health();
        self.hooks.announce(HookEvent::Elected, reason);
        self.open_leadership(now);
    }

    /// Announces a leadership whose term is on disk to the group and the hooks.
    pub(super) fn open_leadership(&mut self, now: Time) {
        self.begin_above_heard_terms(now);
        if self.begins_next_term() || self.timers.get(Timer::Declare).is_none() {
            self.declare_soon(now);
        }
        self.run_elected_hook();
    }

    /// Declares, and again an interval later. The first declaration waits until its term is on
    /// disk. A leader that takes a higher term declares in the old one until then.
    pub(super) fn declare(&mut self, now: Time) {
        if !self.holds_leadership() || self.disk.written().term < self.terms.current {
            return self.timers.clear(Timer::Declare);
        }
        let interval = at_least_a_millisecond(self.params.heartbeat_interval);
        let interval_us = whole_micros(interval);
        self.plan_successor(now);
        let hold_us = whole_micros(self.params.declaration_hold());
        self.send(Body::Declaration { interval_us, hold_us });
        self.note_led(self.disk.written().term);
        self.sent.declared = Some(now);
        self.sent.owes_declaration = false;
        self.sent.announced = Some(interval);
        self.sent.declaration_due = Some(now + interval);
        let next = now + self.time_to_next_declaration();
        self.timers.set(Timer::Declare, next);
        self.await_acknowledgements(now);
        self.use_the_wake(now);
        self.measure(now);
    }

    /// A heartbeat takes the place of the next declaration, for which the others wait. Where none
    /// was due, because the term is not on disk, it comes at once.
    pub(super) fn stop_declaring(&mut self, now: Time) {
        let next = self.timers.get(Timer::Declare).or_else(|| self.timers.get(Timer::Heartbeat));
        let due = next.unwrap_or(now);
        self.timers.clear(Timer::Declare);
        self.timers.set_no_later(Timer::Heartbeat, due);
    }

    /// A leader that was probed repeats its declaration soon, because datagrams were lost.
    fn time_to_next_declaration(&mut self) -> Duration {
        if self.probing.answers_owed == 0 {
            return self.declaration_interval();
        }
        self.probing.answers_owed -= 1;
        let gap = self.params.declaration_gap().min(self.params.heartbeat_interval);
        at_least_a_millisecond(gap)
    }

    /// Enough voters acknowledged the last declaration: the next one is due when it said, even if
    /// the interval has changed.
    pub(super) fn rest_until_due(&mut self) {
        let is_asked = self.sent.owes_declaration || self.probing.answers_owed > 0;
        if let Some(due) = self.sent.declaration_due.filter(|_| !is_asked) {
            self.timers.set(Timer::Declare, due);
        }
    }

    /// Declares at once, or as soon as the last declaration is a gap ago. So one declaration
    /// answers all nodes that ask meanwhile. Does nothing if this node is not the announced leader.
    pub(super) fn declare_soon(&mut self, now: Time) {
        if !self.holds_leadership() {
            return;
        }
        let earliest = self.sent.declared.map_or(now, |last| last + self.params.declaration_gap());
        if earliest <= now {
            self.declare(now);
        } else {
            self.sent.owes_declaration = true;
            self.timers.set_no_later(Timer::Declare, earliest);
        }
    }

    /// Whether this leader has declared: its term is on disk, and its hooks may run.
    pub(super) const fn has_declared(&self) -> bool {
        self.sent.declared.is_some()
    }

    /// Whether this node announces itself as the leader.
    pub(super) const fn holds_leadership(&self) -> bool {
        self.may_act() && self.state.is_in_office()
    }

    /// A static leader that may lead does so, even if another node leads that it may challenge.
    pub(super) fn resume_static_leadership(&mut self, now: Time) {
        let fixed = self.params.static_role == Some(StaticRole::Leader);
        let knows_of_none = self.leader.is_none() && self.listens_until <= now;
        let is_free = knows_of_none || self.may_challenge_leader(now);
        if fixed && self.state == State::Following && self.is_eligible() && is_free {
            self.timers.set(Timer::Candidacy, now);
        }
    }
}
