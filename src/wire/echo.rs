//! Echoes: the datagrams of other nodes that the sender of a datagram has received.
//!
//! A datagram that echoes another one was sent after it. An echo of a new datagram therefore proves
//! that the datagram with the echo is not a replay. The tag cannot prove that: the tag of an old
//! datagram stays valid.

use std::fmt;

use arrayvec::ArrayVec;
use serde::{Deserialize, Serialize};

use crate::types::{DatagramId, Life, NodeId};

/// Most echoes in one datagram.
pub const ECHOES_MAX: usize = 4;

/// A datagram that the sender has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Echo {
    /// Its sender.
    pub node_id: NodeId,
    /// Its incarnation and number.
    pub datagram: DatagramId,
}

impl Echo {
    /// The life that sent the datagram.
    pub const fn life(&self) -> Life {
        Life { node_id: self.node_id, incarnation: self.datagram.incarnation }
    }
}

/// Up to [`ECHOES_MAX`] echoes, at most one per node. On the wire: their number, then the echoes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "List", try_from = "List")]
pub struct Echoes([Option<Echo>; ECHOES_MAX]);

impl Echoes {
    /// No echo.
    pub const NONE: Echoes = Echoes([None; ECHOES_MAX]);

    /// Every echo, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Echo> {
        self.0.iter().flatten()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }

    /// Adds an echo at the end and removes an earlier one of the same node. Does nothing if there
    /// is no room.
    pub fn add(&mut self, echo: Echo) {
        let place = self.0.iter_mut().find(|place| match place {
            Some(taken) => taken.node_id == echo.node_id,
            None => true,
        });
        if let Some(place) = place {
            *place = Some(echo);
        }
    }

    /// Adds an echo at the end, unless there is one of the same node, or no room.
    pub fn add_missing(&mut self, echo: Echo) {
        if self.iter().all(|other| other.node_id != echo.node_id) {
            self.add(echo);
        }
    }

    /// Puts an echo first and removes an earlier one of the same node. Removes the last echo if
    /// there is no room.
    pub fn put_first(&mut self, echo: Echo) {
        let mut echoes = Echoes::NONE;
        echoes.add(echo);
        for other in self.iter().filter(|other| other.node_id != echo.node_id) {
            echoes.add(*other);
        }
        *self = echoes;
    }
}

impl FromIterator<Echo> for Echoes {
    fn from_iter<T: IntoIterator<Item = Echo>>(echoes: T) -> Self {
        let mut all = Echoes::NONE;
        for echo in echoes {
            all.add(echo);
        }
        all
    }
}

impl fmt::Debug for Echoes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// As they are on the wire.
type List = ArrayVec<Echo, ECHOES_MAX>;

impl From<Echoes> for List {
    fn from(echoes: Echoes) -> Self {
        echoes.iter().copied().collect()
    }
}

impl TryFrom<List> for Echoes {
    type Error = &'static str;

    fn try_from(list: List) -> Result<Self, Self::Error> {
        let echoes: Echoes = list.iter().copied().collect();
        let are_of_one_node = echoes.iter().count() != list.len();
        if are_of_one_node { Err("two echoes are of one node") } else { Ok(echoes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Incarnation, Sequence};

    fn echo(name: &str, sequence: u64) -> Echo {
        let datagram = DatagramId { incarnation: Incarnation(1), sequence: Sequence(sequence) };
        Echo { node_id: name.parse().unwrap(), datagram }
    }

    fn all(echoes: Echoes) -> Vec<Echo> {
        echoes.iter().copied().collect()
    }

    fn of(names: &[&str]) -> Echoes {
        names.iter().map(|name| echo(name, 1)).collect()
    }

    #[test]
    fn a_node_is_echoed_once_and_no_more_than_there_is_room_for() {
        let mut echoes = of(&["a", "b", "c"]);
        echoes.add(echo("b", 2));
        assert_eq!(all(echoes), [echo("a", 1), echo("b", 2), echo("c", 1)]);
        echoes.add(echo("d", 1));
        echoes.add(echo("e", 1));
        assert_eq!(all(echoes), [echo("a", 1), echo("b", 2), echo("c", 1), echo("d", 1)]);
    }

    #[test]
    fn the_newest_goes_first_and_the_last_makes_room() {
        let mut echoes = of(&["a", "b", "c", "d"]);
        echoes.put_first(echo("e", 7));
        assert_eq!(all(echoes), [echo("e", 7), echo("a", 1), echo("b", 1), echo("c", 1)]);
        echoes.put_first(echo("b", 9));
        assert_eq!(all(echoes), [echo("b", 9), echo("e", 7), echo("a", 1), echo("c", 1)]);
    }

    #[test]
    fn too_many_echoes_or_two_of_one_node_are_rejected() {
        let bytes = |echoes: &[Echo]| postcard::to_stdvec(echoes).unwrap();
        let read = |echoes: &[Echo]| postcard::from_bytes::<Echoes>(&bytes(echoes));
        let five: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| echo(name, 1)).into();
        assert_eq!(read(&five[..4]).unwrap(), of(&["a", "b", "c", "d"]));
        assert!(read(&five).is_err());
        assert!(read(&[echo("a", 1), echo("a", 2)]).is_err());
        assert_eq!(read(&[]).unwrap(), Echoes::NONE);
        assert_eq!(postcard::to_stdvec(&of(&["a", "b"])).unwrap(), bytes(&five[..2]));
    }
}
