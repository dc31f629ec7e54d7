//! Nodes that are heard, and have not proven yet that they are alive.
//!
//! The table has one entry for each id, for one of its lives: the next one to be challenged. A node
//! that does not answer is challenged more and more rarely, in whichever of its lives, so a replay
//! costs the group little, however fast it comes. Every other time the latest life is challenged,
//! and else each in its turn: no life that is replayed keeps the challenge from the one that runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use crate::core::membership::MEMBERS_MAX;
use crate::time::{Time, doubled};
use crate::types::{DatagramId, Incarnation, Life, NodeId};
use crate::wire::echo::{ECHOES_MAX, Echo, Echoes};
use crate::wire::message::Message;

/// A node that was challenged so often, and has not answered, is reported.
const IN_VAIN: u32 = 4;

/// The newest datagram is kept of so many lives of one id, those that were heard last.
const LIVES_KEPT: usize = 4;

/// How long a challenged node has to answer before it is challenged again: doubling from `least` to
/// `most`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
}

impl Patience {
    fn after(self, asked: u32) -> Duration {
        doubled(self.least, asked).min(self.most)
    }
}

#[derive(Debug, Clone, Hash)]
struct UnprovenNode {
    /// The newest datagram of the life that is to be asked next.
    newest: DatagramId,
    /// The newest datagrams of lives that were heard, of the one that was heard last first.
    heard: [Option<DatagramId>; LIVES_KEPT],
    last_heard: Time,
    /// How often it was asked, in whichever of its lives, by this node or by others.
    asked: u32,
    /// When it may be asked again.
    next: Time,
    /// The life that was last asked when it was not the latest's turn.
    turn: Incarnation,
    /// Whether it has spoken since it was last asked.
    speaks: bool,
    /// Whether it was told of.
    told: bool,
}

/// What becomes of an unproven node's datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encounter {
    /// Ignored: it is old.
    Stale,
    /// Ignored: there are too many unproven nodes.
    Full,
    /// It was challenged already, and still has time to answer.
    Asked,
    /// It is to be challenged; `in_vain` once if it has not answered for long.
    Due { in_vain: bool },
}

/// The table of unproven nodes.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct UnprovenNodes(BTreeMap<NodeId, UnprovenNode>);

impl UnprovenNodes {
    /// Takes in a datagram that does not show that it is new.
    pub(crate) fn hear(&mut self, now: Time, message: &Message) -> Encounter {
        let Some(known) = self.0.get_mut(&message.sender) else {
            if !self.insert(now, message) {
                return Encounter::Full;
            }
            return Encounter::Due { in_vain: false };
        };
        let id = message.id();
        let is_news = known.is_news(id);
        known.note_heard(id);
        if is_news {
            (known.newest, known.last_heard, known.speaks) = (id, now, true);
        }
        if !known.is_due(now) {
            return if is_news { Encounter::Asked } else { Encounter::Stale };
        }
        let in_vain = known.asked >= IN_VAIN && !known.told;
        known.told |= in_vain;
        Encounter::Due { in_vain }
    }

    /// Takes in a datagram that shows that its sender is there, and is no member: it need not be
    /// asked, and the same again shows nothing.
    pub(crate) fn note_proof(&mut self, now: Time, message: &Message) {
        if !self.0.contains_key(&message.sender) {
            self.insert(now, message);
        }
        let known = self.0.get_mut(&message.sender);
        if let Some(known) = known.filter(|known| known.newest <= message.id()) {
            known.note_heard(message.id());
            let heard = known.heard;
            *known = UnprovenNode { speaks: false, heard, ..UnprovenNode::new(now, message.id()) };
        }
    }

    fn insert(&mut self, now: Time, message: &Message) -> bool {
        let has_room = self.0.len() < MEMBERS_MAX;
        if has_room {
            self.0.insert(message.sender, UnprovenNode::new(now, message.id()));
        }
        has_room
    }

    /// Whether this datagram, or a newer one of its life, was heard and meant nothing.
    pub(crate) fn has_heard(&self, message: &Message) -> bool {
        let newest = self.0.get(&message.sender).and_then(|it| it.newest_of(message.incarnation));
        newest.is_some_and(|newest| message.id() <= newest)
    }

    /// Whether somebody was heard under this id.
    pub(crate) fn knows(&self, node_id: &NodeId) -> bool {
        self.0.contains_key(node_id)
    }

    /// Whether nobody under this id was ever asked in vain.
    pub(crate) fn may_live(&self, node_id: &NodeId) -> bool {
        self.0.get(node_id).is_none_or(|node| node.asked == 0)
    }

    /// Whether somebody is to be asked now.
    pub(crate) fn any_due(&self, now: Time) -> bool {
        self.0.values().any(|node| node.is_due(now))
    }

    /// Those who are to be asked now, as far as a datagram echoes them; they count as asked. The
    /// one under the id `urgent` comes first; then those that were asked least, and of them those
    /// that were heard last.
    pub(crate) fn ask(&mut self, now: Time, patience: Patience, urgent: NodeId) -> Echoes {
        let mut due: Vec<_> = self.0.iter_mut().filter(|(_, it)| it.is_due(now)).collect();
        due.sort_unstable_by_key(|(id, it)| (**id != urgent, it.asked, Reverse(it.last_heard)));
        let mut echoes = Echoes::NONE;
        for (node_id, node) in due.into_iter().take(ECHOES_MAX) {
            echoes.add(Echo { node_id: *node_id, datagram: node.newest });
            node.note_asked(now, patience, node.newest.incarnation);
        }
        echoes
    }

    /// Another node challenges one of these, in whichever of its lives: the group challenges an id
    /// no more often than one node would.
    pub(crate) fn note_asked(&mut self, now: Time, asked: &Echo, patience: Patience) {
        if let Some(node) = self.0.get_mut(&asked.node_id) {
            node.note_asked(now, patience, asked.datagram.incarnation);
        }
    }

    /// This life is unproven no more. Another life of it is, and is not challenged any sooner for
    /// it.
    pub(crate) fn remove(&mut self, life: Life) {
        let is_it = |node: &UnprovenNode| node.newest.incarnation == life.incarnation;
        if self.0.get(&life.node_id).is_some_and(is_it) {
            self.0.remove(&life.node_id);
        }
    }

    /// Forgets those that have been silent for `patience`.
    pub(crate) fn sweep(&mut self, now: Time, patience: Duration) {
        self.0.retain(|_, node| now.since(node.last_heard) <= patience);
    }
}

impl UnprovenNode {
    const fn new(now: Time, newest: DatagramId) -> Self {
        let mut heard = [None; LIVES_KEPT];
        heard[0] = Some(newest);
        UnprovenNode {
            newest,
            heard,
            last_heard: now,
            asked: 0,
            next: now,
            turn: newest.incarnation,
            speaks: true,
            told: false,
        }
    }

    /// The newest datagram of this life that was heard.
    fn newest_of(&self, life: Incarnation) -> Option<DatagramId> {
        self.heard.into_iter().flatten().find(|id| id.incarnation == life)
    }

    /// Takes in a datagram, whether or not its life is to be asked next.
    fn note_heard(&mut self, id: DatagramId) {
        let newest = self.newest_of(id.incarnation).map_or(id, |newest| newest.max(id));
        let others = self.heard.into_iter().flatten().filter(|it| it.incarnation != id.incarnation);
        let mut heard = [None; LIVES_KEPT];
        for (place, life) in heard.iter_mut().zip(iter::once(newest).chain(others)) {
            *place = Some(life);
        }
        self.heard = heard;
    }

    /// Whether this datagram is the one to be asked for next: a newer one of the same life, or one
    /// of a life whose turn comes before.
    fn is_news(&self, id: DatagramId) -> bool {
        if id.incarnation == self.newest.incarnation {
            return id > self.newest;
        }
        let was_asked_in_vain = self.asked > 0 && !self.speaks;
        was_asked_in_vain || self.place(id.incarnation) < self.place(self.newest.incarnation)
    }

    /// The lower it is, the sooner it is a life's turn.
    const fn place(&self, life: Incarnation) -> u64 {
        if self.asks_the_latest() {
            u64::MAX - life.0
        } else {
            // Those above the one whose turn was last come first, and it itself comes last.
            life.0.wrapping_sub(self.turn.0).wrapping_sub(1)
        }
    }

    const fn asks_the_latest(&self) -> bool {
        self.asked % 2 == 0
    }

    fn is_due(&self, now: Time) -> bool {
        self.speaks && self.next <= now
    }

    fn note_asked(&mut self, now: Time, patience: Patience, life: Incarnation) {
        if !self.asks_the_latest() {
            self.turn = life;
        }
        self.next = now + patience.after(self.asked);
        self.asked = self.asked.saturating_add(1);
        self.speaks &= self.newest.incarnation != life;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Priority, Role, Sequence, Term};
    use crate::wire::message::{Body, Flags, Standing};

    const START: Time = Time::from_millis(1_000_000);
    const PATIENCE: Patience =
        Patience { least: Duration::from_millis(25), most: Duration::from_millis(1000) };

    fn id(name: &str) -> NodeId {
        name.parse().unwrap()
    }

    fn said(name: &str, life: u64, sequence: u64) -> Message {
        let flags = Flags::default();
        let standing =
            Standing { role: Role::Follower, priority: Priority(1), flags, voters: None };
        Message {
            sender: id(name),
            incarnation: Incarnation(life),
            sequence: Sequence(sequence),
            term: Term(0),
            standing,
            echoes: Echoes::NONE,
            body: Body::Proposal,
        }
    }

    fn at(millis: u64) -> Time {
        START + Duration::from_millis(millis)
    }

    /// Whom a challenge at that time asks, and in which lives.
    fn asked(unproven: &mut UnprovenNodes, now: Time) -> Vec<(String, u64)> {
        let echoes = unproven.ask(now, PATIENCE, id("self"));
        let life = |echo: &Echo| (echo.node_id.to_string(), echo.datagram.incarnation.0);
        echoes.iter().map(life).collect()
    }

    fn name(text: &str, life: u64) -> (String, u64) {
        (text.to_owned(), life)
    }

    #[test]
    fn those_that_were_asked_least_come_first_then_those_heard_last_but_the_urgent_one_before_all()
    {
        let mut unproven = UnprovenNodes::default();
        unproven.hear(at(0), &said("self", 1, 1));
        unproven.hear(at(0), &said("z", 1, 1));
        assert_eq!(asked(&mut unproven, at(0)), [name("self", 1), name("z", 1)]);
        for (number, who) in ["a", "b", "c", "d"].into_iter().enumerate() {
            unproven.hear(at(100 + number as u64), &said(who, 1, 1));
        }
        unproven.hear(at(200), &said("self", 1, 2));
        unproven.hear(at(200), &said("z", 1, 2));
        let first = [name("self", 1), name("d", 1), name("c", 1), name("b", 1)];
        assert_eq!(asked(&mut unproven, at(200)), first);
        assert_eq!(asked(&mut unproven, at(200)), [name("a", 1), name("z", 1)]);
        assert_eq!(asked(&mut unproven, at(200)), []);
    }

    #[test]
    fn what_is_not_newer_means_nothing() {
        let mut unproven = UnprovenNodes::default();
        unproven.hear(at(0), &said("a", 2, 5));
        assert_eq!(asked(&mut unproven, at(0)), [name("a", 2)]);
        for sequence in [4, 5] {
            assert!(unproven.has_heard(&said("a", 2, sequence)));
            assert_eq!(unproven.hear(at(500), &said("a", 2, sequence)), Encounter::Stale);
        }
        assert!(!unproven.has_heard(&said("a", 1, 4)) && !unproven.has_heard(&said("a", 2, 6)));
    }

    #[test]
    fn it_is_kept_of_several_lives_what_was_heard_of_each() {
        let mut unproven = UnprovenNodes::default();
        let heard = |unproven: &UnprovenNodes, life| {
            [4, 5].map(|sequence| unproven.has_heard(&said("a", life, sequence)))
        };
        for life in 1..=4 {
            for sequence in [4, 3] {
                unproven.hear(at(0), &said("a", life, sequence));
            }
        }
        assert!((1..=4).all(|life| heard(&unproven, life) == [true, false]));
        unproven.note_proof(at(0), &said("a", 4, 5));
        assert_eq!(heard(&unproven, 1), [true, false]);
        assert_eq!(heard(&unproven, 4), [true, true]);
        unproven.hear(at(0), &said("a", 5, 4));
        assert_eq!(heard(&unproven, 1), [false, false], "the one that was heard first");
        assert_eq!(heard(&unproven, 2), [true, false]);
    }

    /// Each life speaks whenever it may, and that of number 6 only once.
    #[test]
    fn every_other_time_it_is_the_latest_life_that_is_asked_and_else_each_in_its_turn() {
        let mut unproven = UnprovenNodes::default();
        let mut lives = Vec::new();
        unproven.hear(at(0), &said("a", 6, 1));
        for round in 0..9 {
            for sequence in 0..3 {
                for life in [2, 8, 4] {
                    unproven.hear(at(round * 1000), &said("a", life, round * 3 + sequence));
                }
            }
            lives.extend(asked(&mut unproven, at(round * 1000)));
        }
        let lives: Vec<_> = lives.into_iter().map(|(_, life)| life).collect();
        assert_eq!(lives, [8, 8, 8, 2, 8, 4, 8, 8, 8]);
    }

    #[test]
    fn a_life_that_was_asked_and_is_silent_gives_way_to_any_other() {
        let mut unproven = UnprovenNodes::default();
        let mut now = at(0);
        for (life, sequence) in [(9, 1), (5, 1), (9, 2), (5, 2), (5, 3)] {
            unproven.hear(now, &said("a", life, sequence));
            assert_eq!(asked(&mut unproven, now), [name("a", life)]);
            now += PATIENCE.most;
        }
    }

    #[test]
    fn whoever_has_shown_that_it_is_there_is_not_asked_and_shows_nothing_by_the_same_again() {
        let mut unproven = UnprovenNodes::default();
        unproven.hear(at(0), &said("a", 1, 1));
        assert_eq!(asked(&mut unproven, at(0)), [name("a", 1)]);
        unproven.note_proof(at(500), &said("a", 2, 7));
        unproven.note_proof(at(500), &said("a", 2, 6));
        unproven.note_proof(at(500), &said("b", 2, 7));
        assert!(unproven.has_heard(&said("a", 2, 7)) && unproven.has_heard(&said("b", 2, 7)));
        assert_eq!(unproven.hear(at(500), &said("a", 1, 2)), Encounter::Stale);
        assert_eq!(asked(&mut unproven, at(500)), []);
    }

    #[test]
    fn whom_somebody_else_asks_counts_as_asked_in_whichever_life() {
        let mut unproven = UnprovenNodes::default();
        unproven.hear(at(0), &said("a", 2, 1));
        assert!(unproven.may_live(&id("a")));
        let asks = |life| said("a", life, 1).echo();
        unproven.note_asked(at(0), &asks(1), PATIENCE);
        assert!(!unproven.any_due(at(0)) && !unproven.may_live(&id("a")));
        assert!(unproven.any_due(at(25)), "this life was not asked");
        unproven.note_asked(at(25), &asks(2), PATIENCE);
        assert!(!unproven.any_due(at(1000)));
    }

    #[test]
    fn who_becomes_known_is_no_unproven_node_but_another_life_of_it_is() {
        let life = |incarnation| Life { node_id: id("a"), incarnation: Incarnation(incarnation) };
        let mut unproven = UnprovenNodes::default();
        unproven.hear(at(0), &said("a", 2, 7));
        for other in [1, 3] {
            unproven.remove(life(other));
            assert!(unproven.knows(&id("a")));
        }
        unproven.remove(life(2));
        assert!(!unproven.knows(&id("a")));
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_silent() {
        let mut unproven = UnprovenNodes::default();
        for number in 0..MEMBERS_MAX {
            unproven.hear(at(0), &said(&format!("n{number}"), 1, 1));
        }
        assert_eq!(unproven.hear(at(0), &said("new", 1, 1)), Encounter::Full);
        unproven.hear(at(5), &said("n7", 1, 2));
        unproven.sweep(at(1001), PATIENCE.most);
        assert!(unproven.knows(&id("n7")) && !unproven.knows(&id("n8")));
        assert_eq!(unproven.0.len(), 1);
    }
}
