//! Who votes: witnesses, other followers, and groups whose voters change or disagree.

use super::{count, elect, elect_with, voters, without};
use crate::harness::{Host, quorum_scenario, wait_until};

#[test]
fn a_witness_votes_and_never_leads() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let hosts = [h1, h2, h3];
        h3.start(&(voters(&hosts) + "candidate = false\npriority = 200\n"));
        [h1, h2].iter().for_each(|host| host.start(&voters(&hosts)));
        let leader = lan.sole_leader();
        lan.wait_until_all_vote(&hosts);
        leader.crash_under_service_manager();
        let survivors = without(&hosts, leader);
        let successor = lan.sole_leader_of(&survivors);
        assert_ne!(successor.name, "h3");
        assert_eq!(h3.ineligible_reason(), "observer");

        // Without the other candidate the witness has nobody to vote for.
        successor.crash_under_service_manager();
        lan.assert_leaderless_for(&[h3], 10);
    });
}

#[test]
fn a_node_without_a_vote_follows_and_never_leads() {
    quorum_scenario(|lan, [h1, h2, h3, h4]| {
        let voting = [h1, h2, h3];
        h4.start(&(voters(&voting) + "priority = 200\n"));
        let (leader, others) = elect(lan, &voting);
        lan.wait_for_leader(leader);
        assert_eq!(h4.ineligible_reason(), "not-voter");
        wait_until("it counts their votes", || h4.counted_votes() == 3);

        // It makes no majority either.
        others.iter().for_each(|host| host.crash_under_service_manager());
        lan.assert_leaderless_for(&[leader, h4], 20);
        others.iter().for_each(|host| host.restart());
        lan.sole_leader();
    });
}

#[test]
fn a_node_that_names_other_voters_is_reported_and_does_not_count() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let hosts = [h1, h2, h3];
        let (leader, others) = elect(lan, &hosts);
        let astray = others[0];
        astray.start(&voters(&[astray, leader]));
        wait_until("the leader reports it", || {
            leader.status()["quorum"]["disagreeing"] == serde_json::json!([astray.name])
        });
        wait_until("it reports the leader", || {
            let quorum = astray.status()["quorum"].take();
            quorum["disagreeing"].as_array().is_some_and(|names| names.len() == 2)
        });
        let line = |name: &str| format!("member {name} is in quorum mode with other voters");
        assert!(leader.log().contains(&line(&astray.name)), "{}", leader.log());
        assert!(astray.log().contains(&line(&leader.name)), "{}", astray.log());

        // Two of three still make a majority, but not with the one astray.
        assert!(leader.leads());
        others[1].crash_under_service_manager();
        wait_until("the lease ends", || leader.hooks().last().unwrap() == "demoted lease-lost");
        astray.start(&voters(&hosts));
        lan.sole_leader();
    });
}

#[test]
fn a_voter_is_added_by_a_rolling_restart_with_one_handover() {
    quorum_scenario(|lan, [h1, h2, h3, h4]| {
        let (leader, others) = elect(lan, &[h1, h2, h3]);
        let all = [h1, h2, h3, h4];
        let lines = voters(&all);
        h4.start(&lines);
        others[0].start(&lines);
        wait_until("both follow the new list", || {
            let reachable = |host: &Host| host.status()["quorum"]["reachable"].take();
            reachable(others[0]) == 1 && !h4.status().is_null()
        });
        assert!(leader.leads(), "two of the three old voters still make a majority");
        leader.start(&lines);
        // The new one counts once a majority of the four tells it what it may have forgotten.
        others[1].start(&lines);
        lan.sole_leader();
        assert_eq!(count(lan, "elected"), 2);
        assert_eq!(count(lan, "demoted"), 1);
        assert_eq!(count(lan, "demoted shutdown"), 1);
        lan.wait_until_all_vote(&all);
    });
}

#[test]
fn a_rolling_restart_of_the_followers_costs_no_lease() {
    quorum_scenario(|lan, hosts: [_; 3]| {
        let (leader, others) = elect_with(lan, &hosts, &voters(&hosts));
        for _ in 0..2 {
            for follower in &others {
                follower.restart();
                lan.wait_until_all_vote(&hosts);
            }
        }
        lan.wait_for_leader(leader);
        assert_eq!(leader.hooks(), ["started startup", "elected election"]);
        assert_eq!(count(lan, "elected"), 1);
    });
}
