//! Which node is better: the one comparison that decides every election and every conflict.

use std::cmp::Ordering;

use sha2::{Digest, Sha256};

use crate::types::{GroupName, NodeId, Priority, TieBreak, TieBreakRule};
use crate::wire::message::{Flags, Standing};

/// A node's claim to leadership. The greater one is better.
///
/// A node that may lead is better than one that may not, or that hands over. Among those, a static
/// leader is better than any elected node. Then the higher priority wins, then the lower tie-break,
/// and then the lower id, in byte order. Ids are unique in a group, so the order is total. Each
/// node announces all of it, so every node finds the same order, whatever its own settings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rank {
    eligible: bool,
    fixed: bool,
    priority: Priority,
    tie_break: TieBreak,
    node_id: NodeId,
}

impl Rank {
    /// The rank of `node_id` by the standing that it announces.
    pub const fn new(node_id: NodeId, standing: &Standing) -> Self {
        Rank {
            eligible: standing.flags.contains(Flags::ELIGIBLE),
            fixed: standing.flags.contains(Flags::FIXED),
            priority: standing.priority,
            tie_break: standing.tie_break,
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
            .then(other.tie_break.cmp(&self.tie_break))
            .then(other.node_id.cmp(&self.node_id))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The tie-break of this node under this rule.
pub fn tie_break(rule: TieBreakRule, group: &GroupName, node_id: &NodeId) -> TieBreak {
    match rule {
        TieBreakRule::LowestId => TieBreak::default(),
        TieBreakRule::Spread => spread(group, node_id),
    }
}

/// The tie-break of a node that spreads: the first four bytes of SHA-256 over the group's name, a
/// zero byte and the node's id. So of `n` nodes each is the best one of about one group in `n`, and
/// the groups of a node that fails go to all others alike (rendezvous hashing: Thaler and
/// Ravishankar, 1998).
fn spread(group: &GroupName, node_id: &NodeId) -> TieBreak {
    let text = [group.as_str().as_bytes(), &[0], node_id.as_str().as_bytes()].concat();
    let hash = Sha256::digest(text);
    let first = hash.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte));
    // Zero follows the ids.
    TieBreak(first.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Role;

    fn rank(eligible: bool, fixed: bool, priority: u8, tie_break: u32, id: &str) -> Rank {
        let standing = Standing {
            role: Role::Follower,
            priority: Priority(priority),
            tie_break: TieBreak(tie_break),
            flags: Flags::default().with(Flags::ELIGIBLE, eligible).with(Flags::FIXED, fixed),
            voters: None,
        };
        Rank::new(id.parse().unwrap(), &standing)
    }

    /// Each row beats the next, though all later fields favour the other.
    #[test]
    fn the_first_field_that_differs_decides() {
        let best_first = [
            rank(true, true, 0, 9, "z"),
            rank(true, false, 255, 9, "z"),
            rank(true, false, 100, 0, "y"),
            rank(true, false, 100, 0, "z"),
            rank(true, false, 100, 1, "b"),
            rank(true, false, 100, 2, "a"),
            rank(true, false, 0, 0, "z"),
            rank(false, true, 255, 0, "a"),
        ];
        for pair in best_first.windows(2) {
            assert!(pair[0] > pair[1], "{pair:?}");
            assert!(pair[1] < pair[0], "{pair:?}");
        }
    }

    #[test]
    fn a_rank_equals_only_itself() {
        let of = |id| rank(true, false, 7, 3, id);
        assert_eq!(of("a").cmp(&of("a")), Ordering::Equal);
        assert_ne!(of("a"), of("b"));
    }

    /// Of 300 groups each of three nodes is the best one of about 100; the standard deviation is 8.
    #[test]
    fn groups_spread_over_the_nodes_and_those_of_one_over_the_others() {
        let ids = ["web0", "web1", "web2"].map(|id| id.parse().unwrap());
        let best = |group: usize, ids: &[NodeId]| {
            let group = format!("group{group}").parse().unwrap();
            *ids.iter().min_by_key(|id| spread(&group, id)).unwrap()
        };
        let all: Vec<_> = (0..300).map(|group| best(group, &ids)).collect();
        for id in &ids {
            let count = all.iter().filter(|best| *best == id).count();
            assert!((80..=120).contains(&count), "{id} is the best of {count}");
        }
        // Without the first node its groups go to both others, and no other group moves.
        let moved = (0..300).filter(|group| all[*group] == ids[0]);
        let (one, other): (Vec<_>, Vec<_>) =
            moved.map(|group| best(group, &ids[1..])).partition(|best| *best == ids[1]);
        assert!(one.len() >= 30 && other.len() >= 30, "{} and {}", one.len(), other.len());
        for group in (0..300).filter(|group| all[*group] != ids[0]) {
            assert_eq!(best(group, &ids[1..]), all[group]);
        }
    }
}
