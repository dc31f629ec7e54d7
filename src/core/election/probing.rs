//! Asking a silent leader before it is given up, and answering for it.
//!
//! ```text
//!  declared      due                                      given up
//!     ├───────────┼──┬──┬──┬──┬──┬──┬──┬──────────────────────▶
//!                    probes, a part of the time between apart
//! ```
//!
//! Between the time at which a declaration is due and the alive threshold, followers that miss it
//! ask the leader, which declares at once, and once more twice over: whoever asks has lost a
//! datagram already. A follower that did hear it says so where the leader's answers stay away. So a
//! short threshold loses no leader to a few lost datagrams.
//!
//! Of the followers that would ask, or tell, the best goes first and the others take what it said
//! for theirs: what it costs does not grow with the group. Whoever is better and was not heard
//! while the leader was asked is gone too, as far as can be known.

use std::time::Duration;

use super::{Election, State};
use crate::core::membership::Awaited;
use crate::core::params::Params;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{DatagramId, NodeId};
use crate::wire::message::Body;

/// A leader is not given up before it was asked so often, by whomever: a node that was stopped for
/// a while finds its leader overdue, but knows nothing yet.
const ASKED_AT_LEAST: u32 = 3;

/// How many go first in an order of their own; the others' turn comes after them at random.
const TURNS: u32 = 8;

/// The times that a leader which was probed declares beyond the first.
const ANSWERS_REPEATED: u32 = 2;

/// What this node asks of a leader that is overdue, is about to tell of one that it hears, and owes
/// those who did not hear it as the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Probing {
    pub(super) asking: Asking,
    telling: Telling,
    /// How often this leader declares again soon, as somebody did not hear it.
    pub(super) answers_owed: u32,
}

/// What a follower knows of a leader that is overdue, and of who asks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Asking {
    /// Since when, once the leader was asked and did not answer.
    pub(super) since: Option<Time>,
    /// The probes that this node sent or heard.
    asked: u32,
    /// Whether the better ones have had the time to ask before this node does.
    in_turn: bool,
}

/// What a follower is about to tell of a leader that it hears and somebody else does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Telling {
    /// When somebody last asked.
    asked_at: Option<Time>,
    /// Whether it asked again though the leader had answered: it does not hear the leader at all.
    in_vain: bool,
    /// Whether the better ones have had the time to tell before this node does.
    in_turn: bool,
}

impl Election {
    /// Awaits the leader's next declaration: asks for it when it is overdue, and gives the leader
    /// up in the end.
    pub(super) fn watch_leader(&mut self) {
        self.probing.asking = Asking::default();
        if !self.probing.telling.in_vain {
            self.timers.clear(Timer::ProbeReply);
        }
        let Some(Awaited { due, until }) = self.awaited() else { return };
        self.timers.set(Timer::Silence, until);
        self.timers.set(Timer::Probe, due + spacing(due, until));
    }

    /// No longer awaits a declaration.
    pub(super) fn forget_leader(&mut self) {
        self.probing.asking = Asking::default();
        self.probing.telling = Telling::default();
        for timer in [Timer::Silence, Timer::Probe, Timer::ProbeReply, Timer::Claim] {
            self.timers.clear(timer);
        }
    }

    /// Asks the leader whether it is still there, unless somebody better does.
    pub(super) fn probe(&mut self, now: Time) {
        let Some((leader, Awaited { due, until })) = self.leader_awaited() else { return };
        let spacing = spacing(due, until);
        if !self.probing.asking.in_turn {
            self.probing.asking.in_turn = true;
            let wait = self.turn_to_speak(now, spacing);
            return self.timers.set(Timer::Probe, now + wait);
        }
        self.send(Body::Probe { leader });
        self.note_probe(now, due, spacing);
    }

    /// Somebody asks `leader` whether it is still there.
    pub(super) fn handle_probe(&mut self, now: Time, leader: NodeId) {
        if self.holds_leadership() {
            return self.answer_probe(now, leader);
        }
        let Some((followed, Awaited { due, until })) = self.leader_awaited() else { return };
        if followed != leader {
            return;
        }
        let spacing = spacing(due, until);
        if now < due {
            let last = self.probing.telling.asked_at.replace(now);
            self.probing.telling.in_vain = last.is_some_and(|last| now.since(last) <= spacing * 2);
            self.probing.telling.in_turn = false;
            self.timers.set(Timer::ProbeReply, now + spacing / 2);
        } else {
            self.note_probe(now, due, spacing);
            self.probing.asking.in_turn = false;
        }
    }

    /// This node leads, and somebody did not hear it; or is about to give another leader up, and
    /// need not look for a third.
    fn answer_probe(&mut self, now: Time, asked: NodeId) {
        if asked == self.life.node_id {
            self.probing.answers_owed = ANSWERS_REPEATED;
        }
        self.declare_soon(now);
    }

    /// The leader did not answer where this node could hear it: tells what was heard of it before.
    pub(super) fn send_probe_reply(&mut self, now: Time) {
        let Some((leader, Awaited { due, until })) = self.leader_awaited() else { return };
        if now >= due {
            return;
        }
        if !self.probing.telling.in_turn {
            self.probing.telling.in_turn = true;
            let wait = self.turn_to_speak(now, spacing(due, until));
            return self.timers.set(Timer::ProbeReply, now + wait);
        }
        self.probing.telling.in_vain = false;
        if let Some(newest) = self.members.newest(&leader) {
            self.send(Body::ProbeReply { leader, newest });
        }
    }

    /// Somebody has heard `leader`. Where this node has not, it need not ask any more.
    pub(super) fn handle_probe_reply(&mut self, now: Time, leader: NodeId, newest: DatagramId) {
        if self.leader != Some(leader) || self.state != State::Following {
            return;
        }
        self.probing.telling.in_vain = false;
        self.timers.clear(Timer::ProbeReply);
        if self.members.note_probe_reply(now, &leader, newest) {
            self.watch_leader();
        }
    }

    /// Whether the leader may be given up. Where it was hardly asked, it gets the time for it.
    pub(super) fn was_asked(&mut self, now: Time) -> bool {
        let Some(Awaited { due, until }) = self.awaited() else { return true };
        let missing = ASKED_AT_LEAST.saturating_sub(self.probing.asking.asked);
        let spacing = spacing(due, until);
        if missing == 0 || spacing.is_zero() {
            return true;
        }
        self.timers.set(Timer::Silence, now + spacing * (missing + 1));
        false
    }

    /// How many of those who live are better. Once a leader was asked in vain, only who was heard
    /// meanwhile counts.
    pub(super) fn better_rivals(&self, now: Time) -> usize {
        let own = self.rank();
        let since = self.probing.asking.since.unwrap_or(Time::ZERO);
        self.members.rivals_since(now, since).filter(|rival| *rival > own).count()
    }

    /// Whether nobody else can be the next leader: the last one did not answer, and of the others
    /// that could nobody was heard meanwhile.
    pub(super) fn succeeds_for_certain(&self, now: Time) -> bool {
        self.probing.asking.since.is_some() && self.better_rivals(now) == 0
    }

    /// Each of the probes that there have to be leaves the leader the time to answer.
    fn note_probe(&mut self, now: Time, due: Time, spacing: Duration) {
        self.probing.asking.asked = self.probing.asking.asked.saturating_add(1);
        self.probing.asking.since.get_or_insert(due.min(now));
        self.timers.set(Timer::Probe, now + spacing);
        if self.probing.asking.asked <= ASKED_AT_LEAST {
            self.timers.set_no_earlier(Timer::Silence, now + spacing);
        }
    }

    fn awaited(&self) -> Option<Awaited> {
        self.leader_awaited().map(|(_, awaited)| awaited)
    }

    fn leader_awaited(&self) -> Option<(NodeId, Awaited)> {
        let leader = self.leader.filter(|_| self.state == State::Following)?;
        Some((leader, self.members.awaited(&leader)?))
    }

    /// How long this node lets better ones speak first, of followers that all have the same to say.
    fn turn_to_speak(&mut self, now: Time, spacing: Duration) -> Duration {
        let own = self.rank();
        let leader = self.leader;
        let ahead = self
            .members
            .rivals(now)
            .filter(|rival| *rival > own && Some(rival.node_id()) != leader)
            .count();
        match u32::try_from(ahead) {
            Ok(ahead) if ahead < TURNS && self.is_eligible() => spacing / TURNS * ahead,
            _ => spacing + self.chance.up_to(spacing * 3),
        }
    }
}

/// Between two probes of a leader that was due at `due` and is given up at `until`.
fn spacing(due: Time, until: Time) -> Duration {
    Params::probe_spacing(until.since(due))
}
