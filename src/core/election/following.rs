//! Following a leader, losing it, and the heartbeats of a follower.

use std::time::Duration;

use super::quorum::whole_micros;
use super::{Election, State, at_least_a_millisecond};
use crate::core::membership::Fading;
use crate::core::output::Event;
use crate::core::params::StaticRole;
use crate::core::status::MemberState;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{DatagramId, NodeId};
use crate::wire::message::Body;

/// A heartbeat is delayed by up to this part of the interval, so that followers do not synchronise.
const HEARTBEAT_JITTER_PART: u32 = 10;

impl Election {
    /// Follows `leader`, which has just declared. A mute node that is starting does so later: the
    /// group has yet to hear of it.
    pub(super) fn follow(&mut self, now: Time, leader: NodeId) {
        if self.state.is_starting() && self.exclusions.is_mute() {
            return;
        }
        let started = self.leave_startup();
        self.abandon_candidacy();
        self.timers.clear(Timer::Candidacy);
        self.listens_until = Time::ZERO;
        self.state = State::Following;
        self.set_leader(Some(leader));
        if started {
            self.report_soon(now);
        }
        self.watch_leader();
        self.finish_yield(now);
        self.judge_claim(now);
        self.consider_claim(now);
        self.resume_static_leadership(now);
    }

    /// The followed leader has declared again.
    pub(super) fn hear_leader_again(&mut self, now: Time) {
        self.listens_until = Time::ZERO;
        self.watch_leader();
        self.consider_claim(now);
    }

    /// The leader has been silent for too long, and did not answer the probes.
    pub(super) fn give_leader_up(&mut self, now: Time) {
        let Some(leader) = self.leader.filter(|_| self.state == State::Following) else { return };
        if !self.was_asked(now) {
            return;
        }
        let heard = self.members.get(&leader).and_then(|member| member.last_declared);
        let silence = heard.map_or(Duration::ZERO, |heard| now.since(heard));
        self.notify(Event::LeaderSilent { leader, silence });
        self.members.note_given_up(&leader);
        let since = self.probing.asking.since;
        self.lose_leader(now, leader);
        if self.leader.is_none() {
            self.probing.asking.since = since;
        }
        self.await_leader(now);
    }

    /// The leader is lost. Follows the best-ranked other leader that declares, if there is one.
    pub(super) fn lose_leader(&mut self, now: Time, leader: NodeId) {
        self.members.note_resigned(&leader);
        self.set_leader(None);
        self.probing.end(&mut self.timers);
        self.replace_leader(now);
    }

    /// Without a leader, this node stands when its turn comes: the best candidate at once, each
    /// worse one a slot later. By then it has heard of the better one.
    pub(super) fn await_leader(&mut self, now: Time) {
        let turn = self.turn(now);
        self.await_leader_for(now, turn);
    }

    /// Without a leader, this node stands after `patience`.
    pub(super) fn await_leader_for(&mut self, now: Time, patience: Duration) {
        if self.state == State::Following && self.leader.is_none() && self.is_eligible() {
            let free = self.quorum.voter.bound_until(now, self.life).unwrap_or(now);
            let earliest = now.max(free).max(self.listens_until);
            self.timers.set(Timer::Candidacy, earliest + patience);
        }
    }

    /// How long this node lets better candidates go first: one slot for each of the best ones.
    /// Behind those, the wait is random.
    pub(super) fn turn(&mut self, now: Time) -> Duration {
        if self.params.static_role == Some(StaticRole::Leader) {
            return Duration::ZERO;
        }
        let (slot, slots) = (self.params.candidacy_slot(), self.params.candidacy_slots());
        match u32::try_from(self.better_rivals(now)) {
            Ok(ahead) if ahead < slots => slot * ahead,
            _ => slot * slots + self.chance.up_to(slot * slots / 2),
        }
    }

    pub(super) fn send_heartbeat(&mut self, now: Time) {
        // One that acknowledges a declaration goes to the leader alone by unicast.
        let acknowledged = match self.params.unicast {
            true => None,
            false => self.take_acknowledgement(now),
        };
        let interval = self.schedule_heartbeat(now);
        self.say_alive(interval, acknowledged);
        self.measure(now);
    }

    /// Sends a heartbeat to a leader alone, to acknowledge its declaration. What that announces it
    /// gets, even if the interval was longer when the last heartbeat to all was sent.
    pub(super) fn send_acknowledgement(&mut self, now: Time) {
        let acknowledged = self.take_acknowledgement(now);
        let interval = longest(self.report_interval(now));
        self.timers.set_no_later(Timer::Heartbeat, now + interval);
        self.say_alive(interval, acknowledged);
    }

    fn say_alive(&mut self, interval: Duration, acknowledged: Option<DatagramId>) {
        let interval_us = whole_micros(interval);
        let conceded = self.concession();
        self.send(Body::Heartbeat { interval_us, leader: self.leader, conceded, acknowledged });
    }

    /// Sets the time of the next heartbeat, and returns the longest time between two from now on.
    /// If that grows, the next one still comes after the shorter time: the heartbeat that announces
    /// the longer one may be lost.
    fn schedule_heartbeat(&mut self, now: Time) -> Duration {
        let interval = self.report_interval(now);
        let announced = self.sent.announced.replace(interval);
        let next = announced.map_or(interval, |announced| announced.min(interval));
        let chosen = next + self.chance.up_to(next / HEARTBEAT_JITTER_PART);
        self.timers.set(Timer::Heartbeat, now + chosen);
        longest(interval)
    }

    /// Announces the end of this node's start-up, or a concession. In a large group, whose hosts
    /// may all do so at the same time, the announcements spread over one report interval.
    pub(super) fn report_soon(&mut self, now: Time) {
        if self.reports_rarely(now) {
            let wait = self.chance.up_to(self.report_interval(now));
            self.timers.set_no_later(Timer::Heartbeat, now + wait);
        } else {
            self.send_heartbeat(now);
        }
    }

    /// Whether the group is so large that a heartbeat more is too many.
    pub(super) fn reports_rarely(&self, now: Time) -> bool {
        self.usual_report_interval(now) > self.params.shortest_report_interval()
    }

    /// The time between this node's heartbeats to all. A concession is urgent.
    pub(super) fn report_interval(&self, now: Time) -> Duration {
        at_least_a_millisecond(match self.concession() {
            Some(_) => self.params.heartbeat_interval,
            None => self.usual_report_interval(now),
        })
    }

    fn usual_report_interval(&self, now: Time) -> Duration {
        let others = self.members.visible(now);
        match self.is_voter() {
            true => self.params.voter_report_interval(others),
            false => self.params.report_interval(others),
        }
    }

    /// Reports soon to the leader that it has missed a leadership.
    pub(super) fn concede_soon(&mut self, now: Time) {
        if self.concession().is_some() {
            self.report_soon(now);
        }
    }

    /// Does what is due before the next declaration: waking up costs more than the work.
    pub(super) fn use_the_wake(&mut self, now: Time) {
        let soon = now + self.params.heartbeat_interval;
        let due_soon = |timer| self.timers.get(timer).is_some_and(|at| at <= soon);
        let (sweep, heartbeat) = (due_soon(Timer::Sweep), due_soon(Timer::Heartbeat));
        if sweep {
            self.sweep(now);
        }
        // Of two datagrams at once the second may arrive first. Then the first one does not count.
        let has_just_acknowledged = self.params.unicast && self.is_voter();
        if heartbeat && self.state == State::Following && !has_just_acknowledged {
            self.send_heartbeat(now);
        }
    }

    /// Updates the members' states.
    pub(super) fn sweep(&mut self, now: Time) {
        self.timers.set(Timer::Sweep, now + self.params.sweep_interval());
        self.sweep_replay_protection(now);
        let outbox = &mut self.outbox;
        self.members.sweep(now, self.leader, |Fading { node_id, state, silence }| {
            let event = match state {
                MemberState::Gone => Event::MemberGone { node_id, silence },
                _ => Event::MemberSuspect { node_id, silence },
            };
            outbox.notify(event);
        });
        self.check_visible_candidates(now);
    }
}

/// The longest time between two heartbeats at this interval.
fn longest(interval: Duration) -> Duration {
    interval + interval / HEARTBEAT_JITTER_PART
}
