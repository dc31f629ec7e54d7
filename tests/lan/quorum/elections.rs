//! Three voters that lose their leader in every way there is.

use super::{count, elect, elect_with, voters, voters_with_grace, without};
use crate::harness::{quorum_scenario, wait_for, wait_until};

#[test]
fn three_voters_elect_one_leader() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (leader, _) = elect(lan, &[h1, h2, h3]);
        lan.assert_calm_for(60);
        assert_eq!(leader.hooks(), ["started startup", "elected election"]);
        assert_eq!(count(lan, "elected"), 1);
        let status = leader.status();
        assert_eq!(status["mode"], "quorum");
        assert_eq!(status["quorum"]["voters"], serde_json::json!(["h1", "h2", "h3"]));
        assert_eq!(status["quorum"]["needed"], 2);
        assert_eq!(status["quorum"]["reachable"], 3);
        let lease = status["quorum"]["lease_ms"].as_u64().unwrap();
        assert!((1..=2000).contains(&lease), "{lease} ms of a lease of 2 s");
    });
}

#[test]
fn a_killed_leader_is_replaced_once_its_hooks_have_let_go() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (leader, others) = elect(lan, &[h1, h2, h3]);
        leader.slow_hook_on("demoted", "0.3");
        leader.crash_under_service_manager();
        lan.sole_leader_of(&others);
        assert_eq!(leader.hooks().last().unwrap(), "demoted crashed");
        leader.restart();
        lan.sole_leader();
        assert_eq!(count(lan, "elected"), 2, "its return changes nothing");
    });
}

#[test]
fn a_leader_killed_in_its_elected_hook_is_cleaned_up_after() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let hosts = [h1, h2, h3];
        hosts.iter().for_each(|host| host.slow_hook_on("elected", "30"));
        hosts.iter().for_each(|host| host.start(&voters(&hosts)));
        let elected = |text: &str| text.contains("elected");
        let leader = wait_for("an elected hook runs", || {
            hosts.into_iter().find(|host| host.hooks().last().is_some_and(|h| elected(h)))
        });
        hosts.iter().for_each(|host| host.slow_hook_on("elected", "0"));
        leader.crash_under_service_manager();
        lan.sole_leader_of(&without(&hosts, leader));
    });
}

#[test]
fn a_cut_off_leader_demotes_before_its_successor_is_elected() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let hosts = [h1, h2, h3];
        let (leader, others) = elect_with(lan, &hosts, &voters_with_grace(&hosts, "4s"));
        leader.slow_hook_on("demoted", "0.7");
        lan.cut(leader);
        let successor = lan.sole_leader_of(&others);
        assert_eq!(leader.hooks().last().unwrap(), "demoted lease-lost");
        assert!(!leader.leads());
        let journal = lan.journal();
        let demoted = journal.position(&format!("{} end demoted lease-lost", leader.name));
        let elected = journal.position(&format!("{} start elected", successor.name));
        assert!(demoted < elected);
        lan.heal();
        lan.wait_for_leader(successor);
        lan.assert_calm_for(30);
    });
}

#[test]
fn an_orderly_stop_hands_over() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (leader, others) = elect(lan, &[h1, h2, h3]);
        leader.slow_hook_on("demoted", "0.3");
        assert_eq!(leader.stop(), Some(0));
        lan.sole_leader_of(&others);
        assert_eq!(leader.hooks().last().unwrap(), "demoted shutdown");
    });
}

#[test]
fn yield_moves_the_leadership() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (leader, others) = elect(lan, &[h1, h2, h3]);
        assert_eq!(leader.command(&["yield"]), Some(0));
        wait_until("another leads", || others.iter().any(|host| host.leads()));
        lan.sole_leader();
        assert_eq!(leader.hooks().last().unwrap(), "demoted yield");
        lan.assert_calm_for(30);
        assert_eq!(count(lan, "elected"), 2);
    });
}

#[test]
fn two_voters_have_no_leader_when_one_is_dead() {
    quorum_scenario(|lan, [h1, h2]| {
        let (leader, others) = elect(lan, &[h1, h2]);
        leader.crash_under_service_manager();
        lan.assert_leaderless_for(&others, 30);
        wait_until("it counts alone", || others[0].status()["quorum"]["reachable"] == 1);
        leader.restart();
        lan.sole_leader();
        assert_eq!(count(lan, "elected"), 2);
    });
}
