//! Nodes that are heard, and have not shown yet that what is heard of them is new.
//!
//! One for each id, in one of its lives, which is the next to be asked. Whoever does not answer is
//! asked more and more rarely, under whichever of its lives, so what is replayed costs the group
//! little, however fast it comes. Every other time it is the latest life that is asked, and else
//! each in its turn: no life that is replayed keeps the question from the one that is there.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use crate::core::membership::MEMBERS_MAX;
use crate::time::{Time, doubled};
use crate::types::{DatagramId, Incarnation, Life, NodeId};
use crate::wire::echo::{ECHOES_MAX, Echo, Echoes};
use crate::wire::message::Message;

/// A stranger that was asked so often in vain is told of.
const IN_VAIN: u32 = 4;

/// Of so many lives under one name, those that were heard last, it is kept which datagrams were
/// heard.
const LIVES_KEPT: usize = 4;

/// How long after it was asked a stranger is asked again: doubling from `least` to `most`.
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
struct Stranger {
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
    pub(crate) fn note_shown(&mut self, now: Time, message: &Message) {
        if !self.0.contains_key(&message.sender) {
            self.insert(now, message);
        }
        if let Some(known) = self.0.get_mut(&message.sender)
            && known.newest <= message.id()
        {
            known.note_heard(message.id());
            let heard = known.heard;
            *known = Stranger { speaks: false, heard, ..Stranger::new(now, message.id()) };
        }
    }

    fn insert(&mut self, now: Time, message: &Message) -> bool {
        let has_room = self.0.len() < MEMBERS_MAX;
        if has_room {
            self.0.insert(message.sender, Stranger::new(now, message.id()));
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
        self.0.get(node_id).is_none_or(|stranger| stranger.asked == 0)
    }

    /// Whether somebody is to be asked now.
    pub(crate) fn any_due(&self, now: Time) -> bool {
        self.0.values().any(|stranger| stranger.is_due(now))
    }

    /// Those who are to be asked now, as far as a datagram echoes them; they count as asked. The
    /// one under the id `urgent` comes first; then those that were asked least, and of them those
    /// that were heard last.
    pub(crate) fn ask(&mut self, now: Time, patience: Patience, urgent: NodeId) -> Echoes {
        let mut due: Vec<_> = self.0.iter_mut().filter(|(_, it)| it.is_due(now)).collect();
        due.sort_unstable_by_key(|(id, it)| (**id != urgent, it.asked, Reverse(it.last_heard)));
        let mut echoes = Echoes::NONE;
        for (node_id, stranger) in due.into_iter().take(ECHOES_MAX) {
            echoes.add(Echo { node_id: *node_id, datagram: stranger.newest });
            stranger.note_asked(now, patience, stranger.newest.incarnation);
        }
        echoes
    }

    /// Takes in that somebody else asks a stranger, in whichever of its lives: the group asks for a
    /// name no more often than one node would.
    pub(crate) fn note_asked(&mut self, now: Time, asked: &Echo, patience: Patience) {
        if let Some(stranger) = self.0.get_mut(&asked.node_id) {
            stranger.note_asked(now, patience, asked.datagram.incarnation);
        }
    }

    /// This life is no stranger any more. Another life of it is, and is not asked any sooner for
    /// it.
    pub(crate) fn remove(&mut self, life: Life) {
        let is_it = |stranger: &Stranger| stranger.newest.incarnation == life.incarnation;
        if self.0.get(&life.node_id).is_some_and(is_it) {
            self.0.remove(&life.node_id);
        }
    }

    /// Forgets those that have been silent for `patience`.
    pub(crate) fn sweep(&mut self, now: Time, patience: Duration) {
        self.0.retain(|_, stranger| now.since(stranger.last_heard) <= patience);
    }
}

impl Stranger {
    const fn new(now: Time, newest: DatagramId) -> Self {
        let mut heard = [None; LIVES_KEPT];
        heard[0] = Some(newest);
        Stranger {
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
        self.asked.is_multiple_of(2)
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
    fn asked(strangers: &mut Strangers, now: Time) -> Vec<(String, u64)> {
        let echoes = strangers.ask(now, PATIENCE, id("self"));
        let life = |echo: &Echo| (echo.node_id.to_string(), echo.datagram.incarnation.0);
        echoes.iter().map(life).collect()
    }

    fn name(text: &str, life: u64) -> (String, u64) {
        (text.to_owned(), life)
    }

    #[test]
    fn those_that_were_asked_least_come_first_then_those_heard_last_but_the_urgent_one_before_all()
    {
        let mut strangers = Strangers::default();
        strangers.hear(at(0), &said("self", 1, 1));
        strangers.hear(at(0), &said("z", 1, 1));
        assert_eq!(asked(&mut strangers, at(0)), [name("self", 1), name("z", 1)]);
        for (number, who) in ["a", "b", "c", "d"].into_iter().enumerate() {
            strangers.hear(at(100 + number as u64), &said(who, 1, 1));
        }
        strangers.hear(at(200), &said("self", 1, 2));
        strangers.hear(at(200), &said("z", 1, 2));
        let first = [name("self", 1), name("d", 1), name("c", 1), name("b", 1)];
        assert_eq!(asked(&mut strangers, at(200)), first);
        assert_eq!(asked(&mut strangers, at(200)), [name("a", 1), name("z", 1)]);
        assert_eq!(asked(&mut strangers, at(200)), []);
    }

    #[test]
    fn what_is_not_newer_means_nothing() {
        let mut strangers = Strangers::default();
        strangers.hear(at(0), &said("a", 2, 5));
        assert_eq!(asked(&mut strangers, at(0)), [name("a", 2)]);
        for sequence in [4, 5] {
            assert!(strangers.has_heard(&said("a", 2, sequence)));
            assert_eq!(strangers.hear(at(500), &said("a", 2, sequence)), Encounter::Stale);
        }
        assert!(!strangers.has_heard(&said("a", 1, 4)) && !strangers.has_heard(&said("a", 2, 6)));
    }

    #[test]
    fn it_is_kept_of_several_lives_what_was_heard_of_each() {
        let mut strangers = Strangers::default();
        let heard = |strangers: &Strangers, life| {
            [4, 5].map(|sequence| strangers.has_heard(&said("a", life, sequence)))
        };
        for life in 1..=4 {
            for sequence in [4, 3] {
                strangers.hear(at(0), &said("a", life, sequence));
            }
        }
        assert!((1..=4).all(|life| heard(&strangers, life) == [true, false]));
        strangers.note_shown(at(0), &said("a", 4, 5));
        assert_eq!(heard(&strangers, 1), [true, false]);
        assert_eq!(heard(&strangers, 4), [true, true]);
        strangers.hear(at(0), &said("a", 5, 4));
        assert_eq!(heard(&strangers, 1), [false, false], "the one that was heard first");
        assert_eq!(heard(&strangers, 2), [true, false]);
    }

    /// Each life speaks whenever it may, and that of number 6 only once.
    #[test]
    fn every_other_time_it_is_the_latest_life_that_is_asked_and_else_each_in_its_turn() {
        let mut strangers = Strangers::default();
        let mut lives = Vec::new();
        strangers.hear(at(0), &said("a", 6, 1));
        for round in 0..9 {
            for sequence in 0..3 {
                for life in [2, 8, 4] {
                    strangers.hear(at(round * 1000), &said("a", life, round * 3 + sequence));
                }
            }
            lives.extend(asked(&mut strangers, at(round * 1000)));
        }
        let lives: Vec<_> = lives.into_iter().map(|(_, life)| life).collect();
        assert_eq!(lives, [8, 8, 8, 2, 8, 4, 8, 8, 8]);
    }

    #[test]
    fn a_life_that_was_asked_and_is_silent_gives_way_to_any_other() {
        let mut strangers = Strangers::default();
        let mut now = at(0);
        for (life, sequence) in [(9, 1), (5, 1), (9, 2), (5, 2), (5, 3)] {
            strangers.hear(now, &said("a", life, sequence));
            assert_eq!(asked(&mut strangers, now), [name("a", life)]);
            now += PATIENCE.most;
        }
    }

    #[test]
    fn whoever_has_shown_that_it_is_there_is_not_asked_and_shows_nothing_by_the_same_again() {
        let mut strangers = Strangers::default();
        strangers.hear(at(0), &said("a", 1, 1));
        assert_eq!(asked(&mut strangers, at(0)), [name("a", 1)]);
        strangers.note_shown(at(500), &said("a", 2, 7));
        strangers.note_shown(at(500), &said("a", 2, 6));
        strangers.note_shown(at(500), &said("b", 2, 7));
        assert!(strangers.has_heard(&said("a", 2, 7)) && strangers.has_heard(&said("b", 2, 7)));
        assert_eq!(strangers.hear(at(500), &said("a", 1, 2)), Encounter::Stale);
        assert_eq!(asked(&mut strangers, at(500)), []);
    }

    #[test]
    fn whom_somebody_else_asks_counts_as_asked_in_whichever_life() {
        let mut strangers = Strangers::default();
        strangers.hear(at(0), &said("a", 2, 1));
        assert!(strangers.may_live(&id("a")));
        let asks = |life| said("a", life, 1).echo();
        strangers.note_asked(at(0), &asks(1), PATIENCE);
        assert!(!strangers.any_due(at(0)) && !strangers.may_live(&id("a")));
        assert!(strangers.any_due(at(25)), "this life was not asked");
        strangers.note_asked(at(25), &asks(2), PATIENCE);
        assert!(!strangers.any_due(at(1000)));
    }

    #[test]
    fn who_becomes_known_is_no_stranger_but_another_life_of_it_is() {
        let life = |incarnation| Life { node_id: id("a"), incarnation: Incarnation(incarnation) };
        let mut strangers = Strangers::default();
        strangers.hear(at(0), &said("a", 2, 7));
        for other in [1, 3] {
            strangers.remove(life(other));
            assert!(strangers.knows(&id("a")));
        }
        strangers.remove(life(2));
        assert!(!strangers.knows(&id("a")));
    }

    #[test]
    fn the_table_is_bounded_and_forgets_the_silent() {
        let mut strangers = Strangers::default();
        for number in 0..MEMBERS_MAX {
            strangers.hear(at(0), &said(&format!("n{number}"), 1, 1));
        }
        assert_eq!(strangers.hear(at(0), &said("new", 1, 1)), Encounter::Full);
        strangers.hear(at(5), &said("n7", 1, 2));
        strangers.sweep(at(1001), PATIENCE.most);
        assert!(strangers.knows(&id("n7")) && !strangers.knows(&id("n8")));
        assert_eq!(strangers.0.len(), 1);
    }
}
