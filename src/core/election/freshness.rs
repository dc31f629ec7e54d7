//! Telling what is said now from what was said once and is sent again, where datagrams are
//! authenticated.
//!
//! ```text
//!   newcomer                         leader
//!      │ ── hello ───────────────────▶ │  a stranger: its hello may be old
//!      │ ◀── challenge, echoes hello ─ │
//!      │   the leader is there         │
//!      │ ── hello, echoes challenge ─▶ │  it is there
//!      │ ◀── declaration ───────────── │
//! ```
//!
//! A member that is there is believed as long as it goes on being heard: its life and its numbers
//! only grow. Everyone else is a *stranger*, which is new, restarted, or was gone, until one of its
//! datagrams echoes something that is recent: one of this node's own datagrams, or one of a
//! member's that is there. So everyone need not ask everyone. Followers echo their leader, which is
//! how they come to know each other; one that has no leader echoes what it heard last, which is how
//! nodes that start together do; and one challenge serves all that know the challenger.
//!
//! Nothing that a stranger says counts. The leader challenges it at once. The others leave it to
//! the leader for a while, and then to whoever is first: a challenge that is heard is as good as
//! one's own.

use std::time::Duration;

use super::{Election, State};
use crate::core::output::Event;
use crate::core::recent::Recent;
use crate::core::strangers::{Encounter, Patience, Strangers};
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{DatagramId, Life, Role, Sequence};
use crate::wire::echo::{Echo, Echoes};
use crate::wire::message::{Body, Message};

/// What this node needs to know to tell the new from the old, and to show others that it is there.
#[derive(Debug, Clone, Hash)]
pub(super) struct Freshness {
    strangers: Strangers,
    /// Which of its own datagrams are recent.
    own: Recent,
    /// What it heard last of several nodes, the newest first; as long as it has no leader.
    overheard: Echoes,
    /// The challenges that it has not answered.
    owed: Echoes,
    last_challenged: Option<Time>,
    last_answered: Option<Time>,
    /// By when this daemon looks at its members, unless it is held; none until it has looked at the
    /// time.
    wakes_by: Option<Time>,
}

impl Default for Freshness {
    fn default() -> Self {
        Freshness {
            strangers: Strangers::default(),
            own: Recent::since(Sequence::default()),
            overheard: Echoes::NONE,
            owed: Echoes::NONE,
            last_challenged: None,
            last_answered: None,
            wakes_by: None,
        }
    }
}

impl Election {
    /// Whether `message` is known to have been sent lately, and may not be an old one that is sent
    /// again. Always where datagrams are not authenticated: then whoever could send it again could
    /// make it up.
    pub fn is_fresh(&self, now: Time, message: &Message) -> bool {
        if !self.params.authenticated {
            return true;
        }
        if self.was_held(now) {
            return false;
        }
        if self.members.knows(message.life()) {
            return true;
        }
        let is_shown = message.echoes.iter().any(|echo| {
            // Shortly before a later life began this one may have echoed what is still recent.
            self.is_recent(echo) && !self.may_precede_later_life(message.life(), echo)
        });
        is_shown && !self.freshness.strangers.has_heard(message)
    }

    /// Whether `life` may have echoed this before a later life began that is known: all but what
    /// this very node sent after it came to know that.
    fn may_precede_later_life(&self, life: Life, echo: &Echo) -> bool {
        let own = (echo.node_id == self.life.node_id).then_some(echo.datagram.sequence);
        let met_at = self.members.later_life_met_at(life);
        met_at.is_some_and(|met_at| own.is_none_or(|own| own <= met_at))
    }

    /// What was said while this daemon was held, for longer than a member may be silent, has waited
    /// too long: somebody else may have kept it. Everyone has to show anew that they are there.
    pub(super) fn doubt_after_pause(&mut self, now: Time) {
        if self.params.authenticated && self.was_held(now) {
            self.doubt_everyone();
        }
        self.expect_to_wake(now);
    }

    /// Whether this daemon was held since it last looked at the time.
    fn was_held(&self, now: Time) -> bool {
        self.freshness.wakes_by.unwrap_or(self.next_wake(Time::ZERO)) < now
    }

    /// Takes in that this daemon looks at the time.
    pub(super) fn expect_to_wake(&mut self, now: Time) {
        if self.params.authenticated {
            self.freshness.wakes_by = Some(self.next_wake(now));
        }
    }

    /// By when the next look at the members is over, which may be due already.
    fn next_wake(&self, now: Time) -> Time {
        let sweep = self.timers.get(Timer::Sweep).unwrap_or(now);
        sweep.max(now) + self.params.member_patience()
    }

    fn doubt_everyone(&mut self) {
        self.members.doubt_all();
        self.freshness.own = Recent::after(self.sent.newest);
    }

    /// Datagrams are authenticated from now on, or no longer. Who was believed without a key is not
    /// with one.
    pub(super) fn begin_anew(&mut self) {
        self.freshness = Freshness::default();
        self.duplicates.forget_doubt();
        self.doubt_everyone();
    }

    fn is_recent(&self, echo: &Echo) -> bool {
        if echo.node_id != self.life.node_id {
            return self.members.sent_lately(echo);
        }
        let Echo { datagram, .. } = echo;
        datagram.incarnation == self.life.incarnation
            && self.freshness.own.covers(datagram.sequence)
    }

    /// Time has passed.
    pub(super) fn move_on(&mut self, now: Time) {
        self.freshness.own.move_on(self.sent.newest);
        self.freshness.strangers.sweep(now, self.params.member_patience() * 2);
        if !self.freshness.strangers.knows(&self.life.node_id) {
            self.limit_doubt(now);
        }
    }

    /// Takes in that `message` was heard, whoever sent it, for others to know that this node has.
    pub(super) fn overhear(&mut self, message: &Message) {
        let is_needed = self.params.authenticated && self.leader.is_none();
        let may_live = || self.freshness.strangers.may_live(&message.sender);
        if is_needed && (self.members.knows(message.life()) || may_live()) {
            self.freshness.overheard.put_first(message.echo());
        }
    }

    /// The sender of `message` is no stranger any more.
    pub(super) fn make_acquaintance(&mut self, message: &Message) {
        self.freshness.strangers.remove(message.life());
    }

    /// Whoever is believed from now on may have asked for the leader before, when nothing that it
    /// said counted.
    pub(super) fn make_up_for_silence(&mut self, now: Time) {
        if self.params.authenticated {
            self.declare_soon(now);
        }
    }

    /// Who sent `message` has shown that it is there. Where that made it no member, the same again
    /// is to show nothing.
    pub(super) fn note_shown(&mut self, now: Time, message: &Message) {
        if self.params.authenticated && !self.members.knows(message.life()) {
            self.freshness.strangers.note_shown(now, message);
        }
    }

    /// Somebody speaks who may not be there.
    pub(super) fn meet_stranger(&mut self, now: Time, message: &Message) {
        if self.members.has_heard(message) {
            self.outbox.ignored.stale += 1;
            return;
        }
        self.overhear(message);
        match self.freshness.strangers.hear(now, message) {
            Encounter::Stale => self.outbox.ignored.stale += 1,
            Encounter::Full => self.outbox.ignored.table_full += 1,
            Encounter::Asked => self.outbox.ignored.unproven += 1,
            Encounter::Due { in_vain } => {
                self.outbox.ignored.unproven += 1;
                if in_vain {
                    self.notify(Event::StrangerSilent { node_id: message.sender });
                }
                if message.sender == self.life.node_id {
                    self.begin_doubt(now);
                }
                let wait = self.wait_to_challenge(message.life());
                self.challenge_soon(now, wait);
            }
        }
    }

    fn challenge_soon(&mut self, now: Time, wait: Duration) {
        if !wait.is_zero() && self.timers.get(Timer::Challenge).is_some() {
            return;
        }
        let at = self.no_sooner_than_a_gap_after(self.freshness.last_challenged, now + wait);
        if at <= now {
            self.challenge(now);
        } else {
            self.timers.set_no_later(Timer::Challenge, at);
        }
    }

    /// `at`, or a declaration gap after `last` where that is later.
    fn no_sooner_than_a_gap_after(&self, last: Option<Time>, at: Time) -> Time {
        last.map_or(at, |last| at.max(last + self.params.declaration_gap()))
    }

    /// How long this node leaves a stranger to others. A daemon with its own id it does not: until
    /// that has had the time to answer, this node's own vote does not count. Of a life before the
    /// one that is known each node has to ask itself, so all have the same chance to be first.
    fn wait_to_challenge(&mut self, stranger: Life) -> Duration {
        let slot = self.params.candidacy_slot();
        let is_former = self.members.later_life_met_at(stranger).is_some();
        match self.state {
            _ if stranger.node_id == self.life.node_id => Duration::ZERO,
            _ if is_former => self.chance.up_to(self.params.heartbeat_interval),
            State::Leading | State::HandingOver { .. } => Duration::ZERO,
            State::Starting { .. } => self.chance.up_to(self.params.time_to_meet()),
            State::Following if self.leader.is_some() => slot + self.chance.up_to(slot),
            State::Following | State::Standing | State::Stopped => self.chance.up_to(slot),
        }
    }

    /// Asks strangers whether they are there.
    pub(super) fn challenge(&mut self, now: Time) {
        if !self.may_send() {
            return;
        }
        let patience = self.patience_with_strangers();
        let asked = self.freshness.strangers.ask(now, patience, self.life.node_id);
        if asked.is_empty() {
            return;
        }
        if asked.iter().any(|echo| echo.node_id == self.life.node_id) {
            self.limit_doubt(now);
        }
        self.freshness.last_challenged = Some(now);
        self.transmit(Body::Challenge, asked);
        if self.freshness.strangers.any_due(now) {
            self.timers.set(Timer::Challenge, now + patience.least);
        }
    }

    pub(super) fn patience_with_strangers(&self) -> Patience {
        let most = self.params.heartbeat_interval;
        let least = self.params.declaration_gap().clamp(Duration::from_millis(1).min(most), most);
        Patience { least, most }
    }

    /// Somebody asks whether those that it echoes are there.
    pub(super) fn handle_challenge(&mut self, now: Time, challenge: &Message) {
        let patience = self.patience_with_strangers();
        for echo in challenge.echoes.iter() {
            let Echo { node_id, datagram: DatagramId { incarnation, .. } } = *echo;
            let life = Life { node_id, incarnation };
            if life == self.life {
                self.answer_soon(now, challenge);
            } else {
                self.freshness.strangers.note_asked(now, echo, patience);
                if node_id == self.life.node_id {
                    self.limit_doubt(now);
                }
            }
        }
    }

    /// Nodes that start together take their time, so that one datagram answers many.
    fn answer_soon(&mut self, now: Time, challenge: &Message) {
        self.owe_echo(challenge);
        let both_start = matches!(self.state, State::Starting { .. })
            && challenge.standing.role == Role::Starting;
        let most = if both_start { self.params.time_to_meet() } else { Duration::ZERO };
        let wait = self.chance.up_to(most);
        let at = self.no_sooner_than_a_gap_after(self.freshness.last_answered, now + wait);
        if at <= now {
            self.answer_challenge(now);
        } else {
            self.timers.set_no_later(Timer::Answer, at);
        }
    }

    /// Says what this node has to say at present, unless it has since it was asked.
    pub(super) fn answer_challenge(&mut self, now: Time) {
        if self.freshness.owed.is_empty() {
            return;
        }
        self.freshness.last_answered = Some(now);
        if self.holds_leadership() {
            return self.declare_soon(now);
        }
        if self.state == State::Standing {
            self.propose(now);
        }
        if !self.freshness.owed.is_empty() {
            self.send_heartbeat(now);
        }
    }

    /// The next datagram of this node is to echo `message`.
    pub(super) fn owe_echo(&mut self, message: &Message) {
        if self.params.authenticated {
            self.freshness.owed.put_first(message.echo());
        }
    }

    /// What the next datagram echoes.
    pub(super) fn take_echoes(&mut self) -> Echoes {
        if !self.params.authenticated {
            return Echoes::NONE;
        }
        // What is owed is of the very life that asked.
        let mut echoes = std::mem::take(&mut self.freshness.owed);
        match self.leader {
            Some(leader) => {
                if let Some(datagram) = self.members.newest(&leader) {
                    echoes.add_missing(Echo { node_id: leader, datagram });
                }
            }
            None => self.freshness.overheard.iter().for_each(|echo| echoes.add_missing(*echo)),
        }
        echoes
    }
}
