//! Datagrams that were sent, kept so that they can come again long after.

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;
use lanelect::wire::message::Body;

/// A datagram that was sent.
#[derive(Debug, Clone)]
pub struct Kept {
    /// By which host.
    pub from: usize,
    /// When, in true time.
    pub sent_at: u64,
    pub datagram: Rc<[u8]>,
}

/// The newest so many datagrams of either kind.
#[derive(Default)]
pub struct Archive {
    /// How many are kept.
    pub capacity: usize,
    /// Heartbeats and declarations.
    common: VecDeque<Kept>,
    /// All others.
    rare: VecDeque<Kept>,
}

impl Archive {
    /// Keeps a datagram.
    pub fn note(&mut self, body: &Body, kept: Kept) {
        if self.capacity == 0 {
            return;
        }
        let is_common = matches!(body, Body::Heartbeat { .. } | Body::Declaration { .. });
        let shelf = if is_common { &mut self.common } else { &mut self.rare };
        if shelf.len() == self.capacity {
            shelf.pop_front();
        }
        shelf.push_back(kept);
    }

    /// Any of those that were sent by `latest`, of one kind as often as of the other.
    pub fn choose(&self, rng: &mut Rng, latest: u64) -> Option<Kept> {
        let shelf = if rng.bool() { &self.common } else { &self.rare };
        let old = shelf.partition_point(|kept| kept.sent_at <= latest);
        (old > 0).then(|| shelf[rng.usize(0..old)].clone())
    }
}
