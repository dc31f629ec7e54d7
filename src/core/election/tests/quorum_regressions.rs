//! Situations in which quorum mode once went wrong, each found by the simulator.

use super::*;
use crate::core::params::QuorumParams;
use crate::core::persist::Enrolment;
use crate::core::quorum::Voters;

fn quorum(voters: &[&str]) -> Params {
    let voters = Voters::new(voters.iter().map(|name| id(name))).unwrap();
    Params { quorum: Some(QuorumParams { voters, demote_grace: secs(5) }), ..Params::default() }
}

/// The second voter has nobody but the first to ask.
#[test]
fn a_group_of_one_voter_takes_in_a_second() {
    let mut lan = Lan::new();
    lan.start("a", quorum(&["a"]));
    lan.start("b", quorum(&["a"]));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    for name in ["a", "b"] {
        lan.crash(name);
        lan.start(name, quorum(&["a", "b"]));
    }
    lan.pass(secs(30));
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::Enrolled);
    assert_eq!(lan.leaders().len(), 1);
}

/// Half of the voters, and not a majority of them, answer the one that lost its disk.
#[test]
fn one_of_two_voters_that_lost_its_disk_is_enrolled_again() {
    let mut lan = Lan::settled(&["a", "b"], &quorum(&["a", "b"]));
    lan.crash("b");
    lan.host("b").disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
    lan.start("b", quorum(&["a", "b"]));
    lan.pass(secs(30));
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::Enrolled);
    assert_eq!(lan.leaders().len(), 1);
}
