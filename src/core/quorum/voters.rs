//! The set of voters.

use sha2::{Digest, Sha256};

use crate::types::NodeId;
use crate::wire::message::VotersDigest;

/// Most voters of a group. Five survive two failures; more cost datagrams and gain little.
pub const VOTERS_MAX: usize = 31;

/// Why a list of ids is no set of voters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VotersError {
    /// The list is empty.
    #[error("names no node; list the node_id of every voter")]
    Empty,
    /// The list has an id twice.
    #[error("names {0} twice; name it once")]
    Twice(NodeId),
    /// The list has more than [`VOTERS_MAX`] ids.
    #[error(
        "names more than {VOTERS_MAX} nodes; five are enough, and other nodes follow without a vote"
    )]
    TooMany,
}

/// The voters of a group. Nodes with different sets do not count each other's votes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Voters {
    /// In byte order, without duplicates, at least one.
    ids: Vec<NodeId>,
    digest: VotersDigest,
}

impl Voters {
    /// The set of these nodes, in any order.
    ///
    /// # Errors
    ///
    /// If the set is empty, too large, or has a node twice.
    pub fn new(ids: impl IntoIterator<Item = NodeId>) -> Result<Self, VotersError> {
        let mut ids: Vec<_> = ids.into_iter().take(VOTERS_MAX + 1).collect();
        ids.sort_unstable();
        if let Some((id, _)) = ids.iter().zip(ids.iter().skip(1)).find(|(a, b)| a == b) {
            return Err(VotersError::Twice(*id));
        }
        match ids.len() {
            0 => Err(VotersError::Empty),
            1..=VOTERS_MAX => Ok(Voters { digest: digest(&ids), ids }),
            _ => Err(VotersError::TooMany),
        }
    }

    /// Their ids, in byte order.
    pub fn ids(&self) -> &[NodeId] {
        &self.ids
    }

    /// Whether `node_id` votes.
    pub fn contains(&self, node_id: &NodeId) -> bool {
        self.ids.binary_search(node_id).is_ok()
    }

    /// How many make a majority. Any two majorities share a voter.
    pub fn needed(&self) -> usize {
        self.ids.len() / 2 + 1
    }

    /// How many other voters must testify to a voter without its state: a majority. So one of them
    /// has voted in every term that was won with its vote, under these voters or a set that differs
    /// by one. Of two voters there is only one other.
    pub fn needed_to_testify(&self) -> usize {
        if self.ids.len() == 2 { 1 } else { self.needed() }
    }

    /// The digest of the set, as datagrams carry it.
    pub const fn digest(&self) -> VotersDigest {
        self.digest
    }
}

/// The zero byte separates the ids, because no id contains one.
fn digest(ids: &[NodeId]) -> VotersDigest {
    let mut hash = Sha256::new();
    for id in ids {
        hash.update(id.as_str());
        hash.update([0]);
    }
    let mut digest = VotersDigest([0; 8]);
    for (short, long) in digest.0.iter_mut().zip(hash.finalize()) {
        *short = long;
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<NodeId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    fn voters(names: &[&str]) -> Voters {
        Voters::new(ids(names)).unwrap()
    }

    #[test]
    fn two_majorities_share_a_voter_and_one_fewer_is_none() {
        for (count, needed) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (31, 16)] {
            let names: Vec<_> = (0..count).map(|n| format!("n{n}").parse().unwrap()).collect();
            assert_eq!(Voters::new(names).unwrap().needed(), needed);
            assert!(2 * needed > count);
        }
    }

    /// Sets of voters as bits: voter `i` is in the set where bit `i` is 1.
    type Bits = u32;

    const fn all(count: u32) -> Bits {
        (1 << count) - 1
    }

    fn subsets(of: Bits) -> impl Iterator<Item = Bits> {
        (0..=of).filter(move |bits| bits & !of == 0)
    }

    fn subsets_of_size(of: Bits, size: usize) -> Vec<Bits> {
        subsets(of).filter(|bits| bits.count_ones() as usize == size).collect()
    }

    fn fewer_than_half(lost: Bits, of: Bits) -> bool {
        2 * (lost & of).count_ones() < of.count_ones()
    }

    fn of_size(set: Bits) -> Voters {
        Voters::new((0..set.count_ones()).map(|n| format!("n{n}").parse().unwrap())).unwrap()
    }

    /// Checks that one of the voters that testify to a `forgetful` one under `current` has voted in
    /// every term that was won under `earlier`. Voters that are in only one of the two sets may
    /// forget at another time.
    fn check_testimonies(earlier: Bits, current: Bits, forgetful: Bits) {
        let testifying = of_size(current).needed_to_testify();
        let remember = current & !forgetful;
        assert!(remember.count_ones() as usize >= testifying, "{forgetful:b} never vote again");
        for majority in subsets_of_size(earlier, of_size(earlier).needed()) {
            for testify in subsets_of_size(remember, testifying) {
                let what = format!("{majority:b} of {earlier:b}, {testify:b} of {current:b}");
                assert!(majority & testify != 0, "{what}, {forgetful:b} forget");
            }
        }
    }

    /// The same for every choice of forgetful voters: fewer than half of either set.
    fn check_all_forgetful(earlier: Bits, current: Bits) {
        for forgetful in subsets(earlier | current).filter(|forgetful| forgetful & current != 0) {
            if fewer_than_half(forgetful, earlier) && fewer_than_half(forgetful, current) {
                check_testimonies(earlier, current, forgetful);
            }
        }
    }

    #[test]
    fn testifying_voters_know_every_term_won_before_or_since_the_last_change() {
        for count in 1..=7 {
            check_all_forgetful(all(count), all(count));
            check_all_forgetful(all(count + 1), all(count));
            check_all_forgetful(all(count), all(count + 1));
        }
    }

    #[test]
    fn lone_voter_can_enrol_a_second() {
        check_testimonies(0b1, 0b11, 0b10);
    }

    #[test]
    fn the_order_in_which_they_are_named_does_not_matter() {
        assert_eq!(voters(&["c", "a", "b"]), voters(&["a", "b", "c"]));
        assert_eq!(voters(&["b", "a"]).ids(), ids(&["a", "b"]));
        assert!(voters(&["b", "a"]).contains(&"a".parse().unwrap()));
        assert!(!voters(&["b", "a"]).contains(&"c".parse().unwrap()));
    }

    #[test]
    fn every_other_set_has_another_digest() {
        let sets: [&[&str]; 5] = [&["a"], &["a", "b"], &["ab"], &["a", "b", "c"], &["a", "bc"]];
        for (at, set) in sets.iter().enumerate() {
            for other in &sets[at + 1..] {
                assert_ne!(voters(set).digest(), voters(other).digest());
            }
        }
    }

    #[test]
    fn invalid_set_is_refused() {
        assert_eq!(Voters::new(ids(&[])), Err(VotersError::Empty));
        assert_eq!(Voters::new(ids(&["b", "a", "b"])), Err(VotersError::Twice(ids(&["b"])[0])));
        let many = (0..=VOTERS_MAX).map(|n| format!("n{n}").parse().unwrap());
        assert_eq!(Voters::new(many), Err(VotersError::TooMany));
    }
}
