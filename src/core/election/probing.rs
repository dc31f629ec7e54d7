//! Failure detection: asking a leader that is overdue before it is given up.
//!
//! ```text
//!  declared      due                                      given up
//!     ├───────────┼──┬──┬──┬──┬──┬──┬──┬──────────────────────▶
//!                    probes, a part of the time between apart
//! ```
//!
//! From the time at which a declaration is due to the alive threshold, followers that miss it probe
//! the leader. The leader declares at once, and then twice more, because the follower that probes
//! has already lost a datagram. A follower that did hear it sends a probe reply if the leader's
//! answers stay away. So a few lost datagrams cost no leader, even with a short threshold.
//!
//! Of the followers that would probe or reply, the best one goes first, and the others count what
//! it sent as theirs. So the cost does not grow with the group. If one of the best nodes, which go
//! first in turn, was silent while the leader was probed, it is presumed failed, too.

use std::time::Duration;

use super::{Election, State};
use crate::core::membership::Awaited;
use crate::core::params::Params;
use crate::core::rank::Rank;
use crate::core::timers::{Timer, Timers};
use crate::time::Time;
use crate::types::{DatagramId, NodeId};
use crate::wire::message::{Body, Message};

/// A leader is given up only after this many probes, by any nodes. A node that was stopped for a
/// while finds its leader overdue, but has not listened.
const ASKED_AT_LEAST: u32 = 3;

/// This many nodes go first, in the order of their rank. The others follow at random, so that their
/// silence does not show that they have failed.
const TURNS: u32 = 8;

/// How many declarations a probed leader repeats.
const ANSWERS_REPEATED: u32 = 2;

/// What this node knows of an overdue leader that it probes, of a leader that it hears and others
/// miss, and of probes to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Probing {
    pub(super) asking: Asking,
    replying: Replying,
    /// How many declarations this leader still repeats soon, because a follower missed one.
    pub(super) answers_owed: u32,
}

/// The probes of an overdue leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Asking {
    /// Since when the leader has not answered; none before the first probe.
    pub(super) since: Option<Time>,
    /// The probes that this node sent or heard.
    asked: u32,
    /// Whether better nodes have had the time to probe first.
    in_turn: bool,
}

/// A probe reply that this follower owes for a leader that it hears and another node misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Replying {
    /// Which node asked last, and when.
    asked: Option<(NodeId, Time)>,
    /// Whether a node asked again after the leader had answered, so that it does not hear the
    /// leader.
    is_repeated: bool,
    /// Whether better nodes have had the time to reply first.
    in_turn: bool,
}

impl Probing {
    /// Notes a probe, of this node or another. The leader gets the time to answer each of the
    /// probes that are required.
    fn note_probe(&mut self, now: Time, due: Time, spacing: Duration, timers: &mut Timers) {
        self.asking.asked = self.asking.asked.saturating_add(1);
        self.asking.since.get_or_insert(due.min(now));
        timers.set(Timer::Probe, now + spacing);
        if self.asking.asked <= ASKED_AT_LEAST {
            timers.set_no_earlier(Timer::Silence, now + spacing);
        }
    }

    /// The probes so far did not leave this host, so silence since then shows nothing.
    pub(super) fn forget_unsent(&mut self) {
        self.asking = Asking::default();
    }

    /// Stops waiting for a declaration.
    pub(super) fn end(&mut self, timers: &mut Timers) {
        self.asking = Asking::default();
        self.replying = Replying::default();
        for timer in [Timer::Silence, Timer::Probe, Timer::ProbeReply, Timer::Claim] {
            timers.clear(timer);
        }
    }
}

impl Election {
    /// Waits for the leader's next declaration. If that is overdue, this node probes the leader,
    /// and finally gives it up.
    pub(super) fn watch_leader(&mut self) {
        self.probing.asking = Asking::default();
        if !self.probing.replying.is_repeated {
            self.timers.clear(Timer::ProbeReply);
        }
        let Some((_, Awaited { due, until })) = self.leader_awaited() else { return };
        self.timers.set(Timer::Silence, until);
        self.timers.set(Timer::Probe, due + spacing(due, until));
    }

    /// Asks the leader whether it is alive, unless a better follower does.
    pub(super) fn probe(&mut self, now: Time) {
        let Some((leader, Awaited { due, until })) = self.leader_awaited() else { return };
        let spacing = spacing(due, until);
        if !self.probing.asking.in_turn {
            self.probing.asking.in_turn = true;
            let wait = self.turn_to_speak(now, spacing);
            return self.timers.set(Timer::Probe, now + wait);
        }
        self.send(Body::Probe { leader });
        self.probing.note_probe(now, due, spacing, &mut self.timers);
    }

    /// A node asks `leader` whether it is alive.
    pub(super) fn handle_probe(&mut self, now: Time, probe: &Message, leader: NodeId) {
        if self.holds_leadership() {
            // If the probe is for another leader, its sender should follow this one.
            if leader == self.life.node_id {
                self.probing.answers_owed = ANSWERS_REPEATED;
            }
            return self.declare_to(now, probe);
        }
        let Some((followed, Awaited { due, until })) = self.leader_awaited() else { return };
        if followed != leader {
            return;
        }
        let spacing = spacing(due, until);
        if now < due {
            // The same node may probe more rarely than this one would, by other settings.
            let from = probe.sender;
            let last = self.probing.replying.asked.replace((from, now));
            self.probing.replying.is_repeated =
                last.is_some_and(|(last, at)| last == from || now.since(at) <= spacing * 2);
            if self.timers.get(Timer::ProbeReply).is_none() {
                self.probing.replying.in_turn = false;
                self.timers.set(Timer::ProbeReply, now + spacing / 2);
            }
        } else {
            self.probing.note_probe(now, due, spacing, &mut self.timers);
            self.probing.asking.in_turn = false;
        }
    }

    /// The leader did not answer within this node's hearing. Reports the leader's last datagram
    /// instead. Only a node that heard that itself does: otherwise each one in a chain would hold
    /// the next to a leader that has failed.
    pub(super) fn send_probe_reply(&mut self, now: Time) {
        let Some((leader, Awaited { due, until })) = self.leader_awaited() else { return };
        if now >= due || !self.members.hears(&leader) {
            return;
        }
        if !self.probing.replying.in_turn {
            self.probing.replying.in_turn = true;
            let wait = self.turn_to_speak(now, spacing(due, until));
            return self.timers.set(Timer::ProbeReply, now + wait);
        }
        self.probing.replying.is_repeated = false;
        if let Some(newest) = self.members.newest(&leader) {
            self.send(Body::ProbeReply { leader, newest });
        }
    }

    /// Another node has heard `leader`. If this node has not, it may stop probing.
    pub(super) fn handle_probe_reply(&mut self, now: Time, leader: NodeId, newest: DatagramId) {
        if self.leader != Some(leader) || self.state != State::Following {
            return;
        }
        self.probing.replying.is_repeated = false;
        self.timers.clear(Timer::ProbeReply);
        if self.members.note_probe_reply(now, &leader, newest) {
            self.watch_leader();
        }
    }

    /// Whether the leader was probed often enough to give it up. If not, it gets more time.
    pub(super) fn was_asked(&mut self, now: Time) -> bool {
        let Some((_, Awaited { due, until })) = self.leader_awaited() else { return true };
        let missing = ASKED_AT_LEAST.saturating_sub(self.probing.asking.asked);
        let spacing = spacing(due, until);
        if missing == 0 || spacing.is_zero() {
            return true;
        }
        self.timers.set(Timer::Silence, now + spacing * (missing + 1));
        false
    }

    /// How many visible nodes are better. After unanswered probes, those with a turn to probe count
    /// only if they were heard meanwhile.
    pub(super) fn better_rivals(&self, now: Time) -> usize {
        let own = self.rank();
        let mut better: Vec<(Rank, Time)> =
            self.members.rivals_heard(now).filter(|(rival, _)| *rival > own).collect();
        let Some(since) = self.probing.asking.since else { return better.len() };
        if better.len() > TURNS as usize {
            better.select_nth_unstable_by(TURNS as usize, |(a, _), (b, _)| b.cmp(a));
        }
        let (in_turn, others) = better.split_at(better.len().min(TURNS as usize));
        others.len() + in_turn.iter().filter(|(_, heard)| *heard >= since).count()
    }

    /// Whether no other node can be the next leader: the last one did not answer, and each better
    /// node had a turn to probe it, but was not heard meanwhile.
    pub(super) fn succeeds_for_certain(&self, now: Time) -> bool {
        self.probing.asking.since.is_some() && self.better_rivals(now) == 0
    }

    fn leader_awaited(&self) -> Option<(NodeId, Awaited)> {
        let leader = self.leader.filter(|_| self.state == State::Following)?;
        Some((leader, self.members.awaited(&leader)?))
    }

    /// How long this node lets better followers go first, because all of them would send the same.
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

/// The time between two probes of a leader that was due at `due` and is given up at `until`.
fn spacing(due: Time, until: Time) -> Duration {
    Params::probe_spacing(until.since(due))
}
