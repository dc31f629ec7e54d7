//! Every datagram of a run, kept as a network may keep it: for ever, and to come again at any time,
//! alone or as a part of what one life has said, in its order.

use std::collections::BTreeMap;
use std::rc::Rc;

use fastrand::Rng;
use lanelect::types::Incarnation;
use lanelect::wire::message::{Body, Message};

/// No more datagrams of a run are kept than these. Hardly any run sends so many.
const KEPT_MAX: usize = 200_000;

/// The longest part of a life's words that comes again at once.
const PASSAGE_MAX: usize = 40;

/// A datagram that was sent.
#[derive(Debug, Clone)]
pub struct Kept {
    /// By which host.
    pub from: usize,
    /// When, in true time.
    pub sent_at: u64,
    pub datagram: Rc<[u8]>,
}

/// What was sent, in its order.
#[derive(Default)]
pub struct Archive {
    all: Vec<Kept>,
    /// Heartbeats and declarations, as indices of `all`.
    common: Vec<usize>,
    /// All others.
    rare: Vec<usize>,
    /// What each life of a host has said, and whether it moves others: asks, promises or ends
    /// something.
    lives: BTreeMap<(usize, Incarnation), Vec<(usize, Weight)>>,
}

/// What a datagram can do to those who hear it late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    /// It says that its sender is there.
    Light,
    /// It asks for a promise, or gives one.
    Heavy,
    /// It ends what its sender led or stood for.
    End,
}

impl Weight {
    const fn of(body: &Body) -> Self {
        match body {
            Body::Resignation { .. } | Body::Farewell => Weight::End,
            Body::Declaration { .. } | Body::VoteRequest { .. } | Body::Vote { .. } => {
                Weight::Heavy
            }
            _ => Weight::Light,
        }
    }
}

impl Archive {
    /// Keeps a datagram.
    pub fn note(&mut self, message: &Message, kept: Kept) {
        if self.all.len() == KEPT_MAX {
            return;
        }
        let index = self.all.len();
        let life = (kept.from, message.incarnation);
        let body = &message.body;
        let is_common = matches!(body, Body::Heartbeat { .. } | Body::Declaration { .. });
        if is_common { &mut self.common } else { &mut self.rare }.push(index);
        self.lives.entry(life).or_default().push((index, Weight::of(body)));
        self.all.push(kept);
    }

    /// Any of those that were sent by `latest`, of one kind as often as of the other.
    pub fn choose(&self, rng: &mut Rng, latest: u64) -> Option<Kept> {
        let shelf = if rng.bool() { &self.common } else { &self.rare };
        let old = shelf.partition_point(|index| self.all[*index].sent_at <= latest);
        (old > 0).then(|| self.all[shelf[rng.usize(0..old)]].clone())
    }

    /// A part of what one life of a host has said, in its order; of the newest life more often than
    /// of another. It may be whole, with gaps, or only what moves others. Most often it ends where
    /// the life ended something.
    pub fn passage(&self, rng: &mut Rng, from: usize) -> Vec<Kept> {
        let first = (from, Incarnation(0));
        let lives: Vec<_> = self.lives.range(first..(from + 1, Incarnation(0))).collect();
        let Some(newest) = lives.last() else { return Vec::new() };
        let (_, said) = if rng.bool() { newest } else { &lives[rng.usize(0..lives.len())] };
        let ends: Vec<_> = (0..said.len()).filter(|at| said[*at].1 == Weight::End).collect();
        let end = if ends.is_empty() || rng.u8(0..4) == 0 {
            rng.usize(0..said.len())
        } else {
            ends[rng.usize(0..ends.len())]
        };
        let begin = end.saturating_sub(rng.usize(0..PASSAGE_MAX));
        let (gaps, least) = (rng.bool(), if rng.bool() { Weight::Light } else { Weight::Heavy });
        let chosen = said[begin..=end].iter().filter(|(_, weight)| {
            (least == Weight::Light || *weight != Weight::Light) && !(gaps && rng.bool())
        });
        chosen.map(|(index, _)| self.all[*index].clone()).collect()
    }
}
