//! Which node is better: the one comparison that decides every election and every conflict.

use std::cmp::Ordering;

use crate::types::{NodeId, Priority};
use crate::wire::message::{Flags, Standing};

/// A node's claim to leadership. The greater one is better.
///
/// A node that may lead is better than one that may not, or that hands over. Among those, a static
/// leader is better than any elected node. Then the higher priority wins, and then the lower id, in
/// byte order. Ids are unique in a group, so the order is total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    eligible: bool,
    fixed: bool,
    priority: Priority,
    node_id: NodeId,
}

impl Rank {
    /// The rank of `node_id` by the standing that it announces.
    pub const fn new(node_id: NodeId, standing: &Standing) -> Self {
        Rank {
            eligible: standing.flags.contains(Flags::ELIGIBLE),
            fixed: standing.flags.contains(Flags::FIXED),
            priority: standing.priority,
            node_id,
        }
    }

    /// The id of the ranked node.
    pub const fn node_id(self) -> NodeId {
        self.node_id
    }

    /// Whether the node is a static leader.
    pub const fn is_fixed(self) -> bool {
        self.fixed
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        self.eligible
            .cmp(&other.eligible)
            .then(self.fixed.cmp(&other.fixed))
            .then(self.priority.cmp(&other.priority))
            .then(other.node_id.cmp(&self.node_id))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Role;

    fn rank(eligible: bool, fixed: bool, priority: u8, id: &str) -> Rank {
        let flags = Flags::default().with(Flags::ELIGIBLE, eligible).with(Flags::FIXED, fixed);
        let standing =
            Standing { role: Role::Follower, priority: Priority(priority), flags, voters: None };
        Rank::new(id.parse().unwrap(), &standing)
    }

    /// Each row beats the next, though all later fields favour the other.
    #[test]
    fn the_first_field_that_differs_decides() {
        let best_first = [
            rank(true, true, 0, "z"),
            rank(true, false, 255, "z"),
            rank(true, false, 100, "a"),
            rank(true, false, 100, "b"),
            rank(true, false, 0, "z"),
            rank(false, true, 255, "a"),
        ];
        for pair in best_first.windows(2) {
            assert!(pair[0] > pair[1], "{pair:?}");
            assert!(pair[1] < pair[0], "{pair:?}");
        }
    }

    #[test]
    fn a_rank_equals_only_itself() {
        assert_eq!(rank(true, false, 7, "a").cmp(&rank(true, false, 7, "a")), Ordering::Equal);
        assert_ne!(rank(true, false, 7, "a"), rank(true, false, 7, "b"));
    }
}
