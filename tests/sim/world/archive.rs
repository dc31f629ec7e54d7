//! Datagrams that were sent, kept so that they can come again long after.

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;
use lanelect::wire::message::Body;

/// The newest so many datagrams of either kind, and by whom they were sent.
#[derive(Default)]
pub struct Archive {
    /// How many are kept.
    pub capacity: usize,
    /// Heartbeats and declarations.
    common: VecDeque<(usize, Rc<[u8]>)>,
    /// All others.
    rare: VecDeque<(usize, Rc<[u8]>)>,
}

impl Archive {
    /// Keeps a datagram.
    pub fn note(&mut self, from: usize, body: &Body, datagram: &Rc<[u8]>) {
        if self.capacity == 0 {
            return;
        }
        let is_common = matches!(body, Body::Heartbeat { .. } | Body::Declaration { .. });
        let kept = if is_common { &mut self.common } else { &mut self.rare };
        if kept.len() == self.capacity {
            kept.pop_front();
        }
        kept.push_back((from, datagram.clone()));
    }

    /// Any of them, of one kind as often as of the other.
    pub fn choose(&self, rng: &mut Rng) -> Option<(usize, Rc<[u8]>)> {
        let kept = if rng.bool() { &self.common } else { &self.rare };
        (!kept.is_empty()).then(|| kept[rng.usize(0..kept.len())].clone())
    }
}
