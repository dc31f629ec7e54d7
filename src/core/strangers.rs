//! Nodes that are heard, and have not shown yet that what is heard of them is new.
//!
//! One for each id, in the latest life that was heard: an older one does not displace it, unless it has
//! been asked and says nothing. Whoever does not answer is asked more and more rarely, under whichever of its
//! lives, so what is replayed costs the group little, however fast it comes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::core::membership::MEMBERS_MAX;
use crate::time::Time;
use crate::types::{Life, NodeId, Sequence};
use crate::wire::echo::{ECHOES_MAX, Echo, Echoes};
use crate::wire::message::{DatagramId, Message};

/// A stranger that was asked so often in vain is told of.
const IN_VAIN: u32 = 4;

/// From which of a life's datagrams on they were sent lately: as of the last look but one, so that
/// what crosses the network just now is among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Recent {
    from: Sequence,
    next: Sequence,
}

impl Recent {
    /// From `sequence` on, whenever that was.
    pub(crate) const fn since(sequence: Sequence) -> Self {
        Recent { from: sequence, next: sequence }
    }

    /// Only those after `newest`.
    pub(crate) const fn after(newest: Sequence) -> Self {
        Recent::since(Sequence(newest.0.saturating_add(1)))
    }

    /// Whether this datagram was sent lately.
    pub(crate) fn covers(self, sequence: Sequence) -> bool {
        sequence >= self.from
    }

    /// Time has passed, and `newest` is the newest datagram now.
    pub(crate) const fn move_on(&mut self, newest: Sequence) {
        self.from = self.next;
        self.next = newest;
    }
}

/// How long after it was asked a stranger is asked again: doubling from `least` to `most`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
}

impl Patience {
    fn after(self, asked: u32) -> Duration {
        self.least.saturating_mul(1 << asked.min(16)).min(self.most)
    }
}

#[derive(Debug, Clone, Hash)]
struct Stranger {
    newest: DatagramId,
    last_heard: Time,
    /// How often it was asked, in whichever of its lives, by this node or by others.
    asked: u32,
    /// When it may be asked again.
    next: Time,
    /// The first challenge of this node to this life.
    challenged: Option<Sequence>,
    /// Whether it has spoken since it was last asked.
    speaks: bool,
    /// Whether it was told of.
    told: bool,
}

/// What a stranger's datagram means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encounter {
    /// Nothing: it is old.
    Stale,
    /// Nothing: there are too many strangers.
    Full,
    /// It was asked already, and has the time to answer.
    Asked,
    /// It is to be asked; `in_vain` once where it has not answered for long.
    Due { in_vain: bool },
}

/// The table of strangers.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct Strangers(BTreeMap<NodeId, Stranger>);

impl Strangers {
    /// Takes in a datagram that does not show that it is new.
    pub(crate) fn hear(&mut self, now: Time, message: &Message) -> Encounter {
        let id = message.id();
        let fresh = Stranger {
            newest: id,
            last_heard: now,
            asked: 0,
            next: now,
            speaks: true,
            challenged: None,
            told: false,
        };
        let Some(known) = self.0.get_mut(&message.sender) else {
            if self.0.len() >= MEMBERS_MAX {
                return Encounter::Full;
            }
            self.0.insert(message.sender, fresh);
            return Encounter::Due { in_vain: false };
        };
        if id <= known.newest && !known.gives_way_to(now, id) {
            return Encounter::Stale;
        }
        if id.incarnation != known.newest.incarnation {
            known.challenged = None;
        }
        (known.newest, known.last_heard, known.speaks) = (id, now, true);
        if now < known.next {
            return Encounter::Asked;
        }
        let in_vain = known.asked >= IN_VAIN && !known.told;
        known.told |= in_vain;
        Encounter::Due { in_vain }
    }

    /// Whether this datagram, or a newer one of its life, was heard and meant nothing.
    pub(crate) fn has_heard(&self, message: &Message) -> bool {
        self.0.get(&message.sender).is_some_and(|stranger| {
            stranger.newest.incarnation == message.incarnation && message.id() <= stranger.newest
        })
    }

    /// Whether somebody was heard under this id.
    pub(crate) fn knows(&self, node_id: &NodeId) -> bool {
        self.0.contains_key(node_id)
    }

    /// Whether nobody under this id was ever asked in vain.
    pub(crate) fn may_live(&self, node_id: &NodeId) -> bool {
        self.0.get(node_id).is_none_or(|stranger| stranger.asked == 0)
    }

    /// Whether `message` answers a challenge of this node to this very life, as `echoed`, the newest of
    /// this node's own datagrams that it echoes, shows.
    pub(crate) fn has_answered(&self, message: &Message, echoed: Sequence) -> bool {
        self.0.get(&message.sender).is_some_and(|stranger| {
            stranger.newest.incarnation == message.incarnation
                && stranger.challenged.is_some_and(|challenge| echoed >= challenge)
        })
    }

    /// Whether somebody is to be asked now.
    pub(crate) fn any_due(&self, now: Time) -> bool {
        self.0.values().any(|stranger| stranger.is_due(now))
    }

    /// Those who are to be asked now by the datagram `challenge`, as far as it echoes them; they count as
    /// asked. Those that were asked least come first, and of them those that were heard last.
    pub(crate) fn ask(&mut self, now: Time, patience: Patience, challenge: Sequence) -> Echoes {
        let mut due: Vec<_> = self.0.iter_mut().filter(|(_, it)| it.is_due(now)).collect();
        due.sort_unstable_by_key(|(_, it)| (it.asked, Reverse(it.last_heard)));
        let mut echoes = Echoes::NONE;
        for (node_id, stranger) in due.into_iter().take(ECHOES_MAX) {
            echoes.add(Echo { node_id: *node_id, datagram: stranger.newest });
            stranger.note_asked(now, patience);
            stranger.challenged.get_or_insert(challenge);
        }
        echoes
    }

    /// Takes in that somebody else asks a stranger.
    pub(crate) fn note_asked(&mut self, now: Time, asked: &Echo, patience: Patience) {
        if let Some(stranger) = self.0.get_mut(&asked.node_id)
            && stranger.newest.incarnation == asked.datagram.incarnation
        {
            stranger.note_asked(now, patience);
        }
    }

    /// This life is no stranger any more. Returns the newest datagram that was heard of it.
    pub(crate) fn remove(&mut self, life: Life) -> Option<Sequence> {
        let newest = self.0.get(&life.node_id)?.newest;
        if newest.incarnation > life.incarnation {
            return None;
        }
        self.0.remove(&life.node_id);
        (newest.incarnation == life.incarnation).then_some(newest.sequence)
    }

    /// Forgets those that have been silent for `patience`.
    pub(crate) fn sweep(&mut self, now: Time, patience: Duration) {
        self.0.retain(|_, stranger| now.since(stranger.last_heard) <= patience);
    }
}

impl Stranger {
    /// Whether another life under its id, though it began earlier, is heard in its place: it was asked, and
    /// has said nothing since.
    fn gives_way_to(&self, now: Time, id: DatagramId) -> bool {
        let is_silent = self.asked > 0 && !self.speaks && self.next <= now;
        id.incarnation != self.newest.incarnation && is_silent
    }

    fn is_due(&self, now: Time) -> bool {
        self.speaks && self.next <= now
    }

    fn note_asked(&mut self, now: Time, patience: Patience) {
        self.next = now + patience.after(self.asked);
        self.asked = self.asked.saturating_add(1);
        self.speaks = false;
    }
}
