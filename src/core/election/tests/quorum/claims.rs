//! Claims of a better candidate that cannot win: each costs the leader its leadership, and two hook
//! runs, for nothing. It makes none that it knows to be in vain, and all others ever more rarely.

use super::*;

const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];

fn preempting(voters: &[&str]) -> Params {
    Params { preempt: true, ..quorum(voters) }
}

/// Its disk could not take its vote.
#[test]
fn candidate_whose_disk_hangs_does_not_claim_again_and_again() {
    let mut lan = Lan::stable(&["b", "c"], &preempting(&THREE));
    lan.start("a", preempting(&THREE));
    lan.pass(secs(20));
    lan.crash("a");
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["b"]);
    lan.start("a", Params { preempt_delay: secs(10), ..preempting(&THREE) });
    lan.pass(secs(5));
    lan.set_slow_disk("a", true);
    lan.take("b");
    lan.take("c");
    lan.pass(secs(300));
    assert!(lan.take("b").demotions().len() + lan.take("c").demotions().len() <= 1);
    assert_eq!(lan.leaders().len(), 1);
}

/// It was restarted, and has forgotten when it last renewed its pledge to the leader that is dead.
#[test]
fn candidate_that_is_pledged_to_a_third_node_waits_until_that_ends() {
    let mut lan = Lan::stable(&FIVE, &preempting(&FIVE));
    assert_eq!(lan.leaders(), ["a"]);
    lan.crash("a");
    lan.crash("b");
    lan.pass(secs(4));
    lan.start("b", preempting(&FIVE));
    while lan.leaders().is_empty() {
        lan.pass(ms(100));
    }
    assert_eq!(lan.leaders(), ["c"]);
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("c").demotions().len(), 1);
}

#[test]
fn candidate_that_hears_no_majority_claims_ever_more_rarely() {
    let mut lan = Lan::stable(&FIVE, &preempting(&FIVE));
    for other in ["c", "d", "e"] {
        lan.deaf.insert((id("a"), id(other)));
        lan.deaf.insert((id(other), id("a")));
    }
    lan.pass(secs(3600));
    assert_eq!(lan.leaders(), ["b"]);
    // After 18 s, and pauses that double from then on.
    let demotions = lan.take("b").demotions().len();
    assert!((5..=9).contains(&demotions), "{demotions} in an hour");
}
