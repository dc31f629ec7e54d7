//! Datagrams that were sent, kept so that they can come again long after.

use std::collections::VecDeque;
use std::rc::Rc;

use fastrand::Rng;

/// The newest so many datagrams, and by whom they were sent.
#[derive(Default)]
pub struct Archive {
    /// How many are kept.
    pub capacity: usize,
    datagrams: VecDeque<(usize, Rc<[u8]>)>,
}

impl Archive {
    /// Keeps a datagram.
    pub fn note(&mut self, from: usize, datagram: &Rc<[u8]>) {
        if self.capacity == 0 {
            return;
        }
        if self.datagrams.len() == self.capacity {
            self.datagrams.pop_front();
        }
        self.datagrams.push_back((from, datagram.clone()));
    }

    /// Any of them.
    pub fn choose(&self, rng: &mut Rng) -> Option<(usize, Rc<[u8]>)> {
        let count = self.datagrams.len();
        (count > 0).then(|| self.datagrams[rng.usize(0..count)].clone())
    }
}
