//! Nodes that were heard but have not yet proven that they are alive.
//!
//! The table has one entry for each id. A node that does not answer is challenged ever more rarely,
//! whichever of its lives is heard. So a fast replay costs the group little. A challenge names the
//! latest of these lives, and the running daemon answers for every life from its own on. So no
//! replayed life keeps the challenge from the running one.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use arrayvec::ArrayVec;

use crate::core::membership::MEMBERS_MAX;
use crate::core::params::Params;
use crate::time::{Time, doubled};
use crate::types::{DatagramId, Incarnation, Life, NodeId};
use crate::wire::echo::{ECHOES_MAX, Echo, Echoes};
use crate::wire::message::Message;

/// A node is reported after this many challenges without an answer.
const REPORT_AFTER: u32 = 4;

/// For each id, the newest datagrams of so many lives are kept: the latest one's, and those of the
/// lives heard last.
const LIVES_KEPT: usize = 4;

/// How long a challenged node has to answer before the next challenge. Doubles from `least` to
/// `most`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) least: Duration,
    pub(crate) most: Duration,
}

impl Patience {
    pub(crate) fn of(params: &Params) -> Self {
        let most = params.heartbeat_interval;
        let least = params.declaration_gap().clamp(Duration::from_millis(1).min(most), most);
        Patience { least, most }
    }

    fn after(self, asked: u32) -> Duration {
        doubled(self.least, asked).min(self.most)
    }
}

#[derive(Debug, Clone, Hash)]
struct UnprovenNode {
    /// The newest datagrams of several lives, at least of one; the life heard last comes first. The
    /// latest life stays as long as the node: challenges name it, and the running daemon answers
    /// for no earlier one.
    heard: ArrayVec<DatagramId, LIVES_KEPT>,
    last_heard: Time,
    /// How often it was challenged, by any node.
    asked: u32,
    /// When it may be challenged again.
    next: Time,
    /// Whether it has sent since its last challenge.
    speaks: bool,
    /// Whether its silence was reported.
    reported: bool,
}

/// How an unproven node's datagram is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encounter {
    /// Ignored: it is old.
    Stale,
    /// Ignored: there are too many unproven nodes.
    Full,
    /// Ignored: the node was challenged already, and still has time to answer.
    Asked,
    /// A challenge is due. `report`, once, if the node has not answered several.
    Due { report: bool },
}

/// The table of unproven nodes.
#[derive(Debug, Clone, Hash, Default)]
pub(crate) struct UnprovenNodes(BTreeMap<NodeId, UnprovenNode>);

impl UnprovenNodes {
    /// Receives a datagram without a proof.
    pub(crate) fn hear(&mut self, now: Time, message: &Message) -> Encounter {
        let Some(known) = self.0.get_mut(&message.sender) else {
            if !self.insert(now, message) {
                return Encounter::Full;
            }
            return Encounter::Due { report: false };
        };
        let id = message.id();
        let is_news = known.newest_of(id.incarnation).is_none_or(|newest| id > newest);
        if is_news {
            known.note_heard(id);
            (known.last_heard, known.speaks) = (now, true);
        }
        if !known.is_due(now) {
            return if is_news { Encounter::Asked } else { Encounter::Stale };
        }
        let report = known.asked >= REPORT_AFTER && !known.reported;
        known.reported |= report;
        Encounter::Due { report }
    }

    /// Receives a proof of a node that is no member. The node need not be challenged, and the same
    /// datagram proves nothing again.
    pub(crate) fn note_proof(&mut self, now: Time, message: &Message) {
        if !self.0.contains_key(&message.sender) {
            self.insert(now, message);
        }
        if let Some(known) = self.0.get_mut(&message.sender) {
            known.note_heard(message.id());
            let heard = std::mem::take(&mut known.heard);
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

    /// Whether this datagram, or a newer one of its life, was received before.
    pub(crate) fn has_heard(&self, message: &Message) -> bool {
        let newest = self.0.get(&message.sender).and_then(|it| it.newest_of(message.incarnation));
        newest.is_some_and(|newest| message.id() <= newest)
    }

    /// Whether a datagram with this id was received.
    pub(crate) fn knows(&self, node_id: &NodeId) -> bool {
        self.0.contains_key(node_id)
    }

    /// Whether this id has left no challenge unanswered.
    pub(crate) fn may_live(&self, node_id: &NodeId) -> bool {
        self.0.get(node_id).is_none_or(|node| node.asked == 0)
    }

    /// Whether a challenge is due.
    pub(crate) fn any_due(&self, now: Time) -> bool {
        self.0.values().any(|node| node.is_due(now))
    }

    /// The nodes to challenge now, as many as a datagram can echo; they count as challenged. The id
    /// `urgent` comes first, then those challenged least, and among them those heard last.
    pub(crate) fn ask(&mut self, now: Time, patience: Patience, urgent: NodeId) -> Echoes {
        let mut due: Vec<_> = self.0.iter_mut().filter(|(_, it)| it.is_due(now)).collect();
        due.sort_unstable_by_key(|(id, it)| (**id != urgent, it.asked, Reverse(it.last_heard)));
        let mut echoes = Echoes::NONE;
        for (node_id, node) in due.into_iter().take(ECHOES_MAX) {
            let Some(latest) = node.latest() else { continue };
            let echo = Echo { node_id: *node_id, datagram: latest };
            echoes.add(echo);
            node.note_asked(now, patience, &echo);
        }
        echoes
    }

    /// Another node challenges one of these, in any of its lives. So the whole group challenges an
    /// id no more often than one node would.
    pub(crate) fn note_asked(&mut self, now: Time, asked: &Echo, patience: Patience) {
        if let Some(node) = self.0.get_mut(&asked.node_id) {
            node.note_asked(now, patience, asked);
        }
    }

    /// This life has become a member. Another life of the same id stays unproven, and is not
    /// challenged any sooner.
    pub(crate) fn remove(&mut self, life: Life) {
        if let Some(node) = self.0.get_mut(&life.node_id) {
            node.forget(life.incarnation);
            if node.heard.is_empty() {
                self.0.remove(&life.node_id);
            }
        }
    }

    /// Removes the nodes that have been silent for `patience`.
    pub(crate) fn sweep(&mut self, now: Time, patience: Duration) {
        self.0.retain(|_, node| now.since(node.last_heard) <= patience);
    }
}

impl UnprovenNode {
    fn new(now: Time, newest: DatagramId) -> Self {
        UnprovenNode {
            heard: ArrayVec::from_iter([newest]),
            last_heard: now,
            asked: 0,
            next: now,
            speaks: true,
            reported: false,
        }
    }

    /// The newest received datagram of this life.
    fn newest_of(&self, life: Incarnation) -> Option<DatagramId> {
        self.heard.iter().copied().find(|id| id.incarnation == life)
    }

    /// The newest datagram of its latest life.
    fn latest(&self) -> Option<DatagramId> {
        self.heard.iter().copied().max()
    }

    fn note_heard(&mut self, id: DatagramId) {
        let newest = self.newest_of(id.incarnation).map_or(id, |newest| newest.max(id));
        self.forget(id.incarnation);
        if self.heard.is_full() {
            let latest = self.latest();
            if let Some(at) = self.heard.iter().rposition(|kept| Some(*kept) != latest) {
                self.heard.remove(at);
            }
        }
        self.heard.insert(0, newest);
    }

    fn forget(&mut self, life: Incarnation) {
        self.heard.retain(|heard| heard.incarnation != life);
    }

    fn is_due(&self, now: Time) -> bool {
        self.speaks && self.next <= now
    }

    fn note_asked(&mut self, now: Time, patience: Patience, asked: &Echo) {
        self.next = now + patience.after(self.asked);
        self.asked = self.asked.saturating_add(1);
        self.speaks &=
            self.latest().is_some_and(|latest| latest.incarnation != asked.datagram.incarnation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Priority, Role, Sequence, Term, TieBreak};
    use crate::wire::message::{Body, Flags, Standing};

    const START: Time = Time::from_millis(1_000_000);
    const PATIENCE: Patience =
        Patience { least: Duration::from_millis(25), most: Duration::from_millis(1000) };

    fn id(name: &str) -> NodeId {
        name.parse().unwrap()
    }

    fn said(name: &str, life: u64, sequence: u64) -> Message {
        let flags = Flags::default();
        let standing = Standing {
            role: Role::Follower,
            priority: Priority(1),
            tie_break: TieBreak::default(),
            flags,
            voters: None,
        };
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

    /// The ids and lives that a challenge at that time names.
    fn asked(unproven: &mut UnprovenNodes, now: Time) -> Vec<(String, u64)> {
        let echoes = unproven.ask(now, PATIENCE, id("self"));
        let life = |echo: &Echo| (echo.node_id.to_string(), echo.datagram.incarnation.0);
        echoes.iter().map(life).collect()
    }

    fn name(text: &str, life: u64) -> (String, u64) {
        (text.to_owned(), life)
    }

    #[test]
    fn urgent_node_is_challenged_first_then_the_least_challenged_then_the_last_heard() {
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
    fn datagram_that_is_not_newer_is_ignored() {
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
    fn newest_datagrams_of_several_lives_are_kept() {
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
        assert_eq!(heard(&unproven, 1), [false, false], "the life that was heard first");
        assert_eq!(heard(&unproven, 2), [true, false]);
    }

    #[test]
    fn any_life_makes_a_challenge_due_and_the_latest_one_is_named() {
        let mut unproven = UnprovenNodes::default();
        let mut now = at(0);
        for (life, sequence, latest) in [(5, 1, 5), (9, 1, 9), (5, 2, 9), (2, 1, 9), (9, 2, 9)] {
            unproven.hear(now, &said("a", life, sequence));
            assert_eq!(asked(&mut unproven, now), [name("a", latest)]);
            now += PATIENCE.most;
        }
    }

    #[test]
    fn latest_life_is_named_however_many_earlier_ones_are_heard_after_it() {
        let mut unproven = UnprovenNodes::default();
        unproven.hear(at(0), &said("a", 99, 1));
        for life in 1..=20 {
            unproven.hear(at(0), &said("a", life, 1));
        }
        assert_eq!(asked(&mut unproven, at(0)), [name("a", 99)]);
    }

    #[test]
    fn old_datagram_of_any_life_causes_no_challenge() {
        let mut unproven = UnprovenNodes::default();
        for life in [2, 4] {
            unproven.hear(at(0), &said("a", life, 5));
        }
        assert_eq!(asked(&mut unproven, at(0)), [name("a", 4)]);
        for life in [2, 4] {
            assert_eq!(unproven.hear(at(500), &said("a", life, 5)), Encounter::Stale);
        }
        assert_eq!(asked(&mut unproven, at(500)), []);
    }

    #[test]
    fn proven_node_is_not_challenged_and_a_repeated_proof_is_ignored() {
        let mut unproven = UnprovenNodes::default();
        unproven.hear(at(0), &said("a", 1, 1));
        assert_eq!(asked(&mut unproven, at(0)), [name("a", 1)]);
        unproven.note_proof(at(500), &said("a", 2, 7));
        unproven.note_proof(at(500), &said("a", 2, 6));
        unproven.note_proof(at(500), &said("b", 2, 7));
        assert!(unproven.has_heard(&said("a", 2, 7)) && unproven.has_heard(&said("b", 2, 7)));
        assert_eq!(unproven.hear(at(500), &said("a", 1, 1)), Encounter::Stale);
        assert_eq!(asked(&mut unproven, at(500)), []);
    }

    #[test]
    fn challenge_by_another_node_counts() {
        let mut unproven = UnprovenNodes::default();
        unproven.hear(at(0), &said("a", 2, 1));
        assert!(unproven.may_live(&id("a")));
        unproven.note_asked(at(0), &said("a", 2, 1).echo(), PATIENCE);
        assert!(!unproven.may_live(&id("a")));
        unproven.hear(at(10), &said("a", 2, 2));
        assert!(!unproven.any_due(at(24)));
        assert!(unproven.any_due(at(25)));
    }

    #[test]
    fn member_is_not_unproven_but_another_life_of_it_is() {
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
    fn challenge_names_no_life_that_has_become_a_member() {
        let life = |incarnation| Life { node_id: id("a"), incarnation: Incarnation(incarnation) };
        let mut unproven = UnprovenNodes::default();
        for incarnation in [3, 2] {
            unproven.hear(at(0), &said("a", incarnation, 1));
        }
        unproven.remove(life(3));
        assert_eq!(asked(&mut unproven, at(0)), [name("a", 2)]);
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
