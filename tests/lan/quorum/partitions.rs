//! Five voters, split in every way there is.

use super::{count, elect, without};
use crate::harness::{Host, Lan, quorum_scenario, wait_until};

/// The leader with one other; the remaining three.
fn split<'a>(leader: &'a Host, others: &[&'a Host]) -> ([&'a Host; 2], [&'a Host; 3]) {
    ([leader, others[0]], [others[1], others[2], others[3]])
}

#[test]
fn only_the_majority_of_a_split_has_a_leader() {
    quorum_scenario(|lan, hosts: [_; 5]| {
        let (old, others) = elect(lan, &hosts);
        let (minority, majority) = split(old, &others);
        lan.partition(&[&minority, &majority]);
        let leader = lan.sole_leader_of(&majority);
        lan.assert_leaderless_for(&minority, 20);
        assert_eq!(old.hooks().last().unwrap(), "demoted lease-lost");
        wait_until("they count each other", || {
            minority.iter().all(|host| host.status()["quorum"]["reachable"] == 2)
        });

        let before = lan.journal().text();
        lan.heal();
        lan.wait_for_leader(leader);
        lan.assert_calm_for(50);
        assert_eq!(lan.journal().text(), before, "the returning minority disturbed the leader");
    });
}

#[test]
fn a_returning_minority_without_the_leader_changes_nothing() {
    quorum_scenario(|lan, hosts: [_; 5]| {
        let (leader, others) = elect(lan, &hosts);
        let (minority, majority) = ([others[0], others[1]], [leader, others[2], others[3]]);
        let term = leader.status()["term"].take();
        lan.partition(&[&minority, &majority]);
        lan.assert_leaderless_for(&minority, 30);
        lan.heal();
        lan.wait_for_leader(leader);
        lan.assert_calm_for(50);
        assert_eq!(count(lan, "elected"), 1);
        assert_eq!(hosts.map(|host| host.status()["term"].take()), [0; 5].map(|_| term.clone()));
    });
}

#[test]
fn a_split_without_a_majority_has_no_leader_anywhere() {
    quorum_scenario(|lan, hosts: [_; 5]| {
        let (old, others) = elect(lan, &hosts);
        lan.partition(&[&[old, others[0]], &[others[1], others[2]], &[others[3]]]);
        wait_until("the leader has demoted", || {
            old.hooks().last().unwrap() == "demoted lease-lost"
        });
        // All of them: each has lost the other groups' voters.
        lan.assert_leaderless_for(&hosts, 20);
        assert_eq!(count(lan, "elected"), 1);
        lan.heal();
        lan.sole_leader();
        assert_eq!(count(lan, "elected"), 2);
    });
}

#[test]
fn a_leader_that_hears_nobody_demotes_and_one_that_nobody_hears_too() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (mut leader, _) = elect(lan, &[h1, h2, h3]);
        let hosts = [h1, h2, h3];
        for cut in [Lan::deafen, Lan::mute] {
            let others = without(&hosts, leader);
            cut(lan, leader);
            wait_until("it demotes", || leader.hooks().last().unwrap() == "demoted lease-lost");
            let successor = lan.sole_leader_of(&others);
            lan.heal();
            lan.wait_for_leader(successor);
            leader = successor;
        }
    });
}
