//! Networks that lose datagrams, fall apart and come together again.

use std::time::Duration;

use crate::harness::switch::Rule;
use crate::harness::{
    BEST_SUCCEEDS, Lan, PATIENT, dual_homed_scenario, quorum_scenario, scenario, wait_until,
};

/// Waits until one host leads, all know its last term, and the hook for that has ended too.
pub(crate) fn wait_until_settled(lan: &Lan) {
    lan.sole_leader();
    lan.wait_for_one_term();
    lan.sole_leader();
}

#[test]
fn a_healed_partition_leaves_the_best_leader_reaffirmed() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], "");
        lan.partition(&[&[h1, h2], &[h3]]);
        wait_until("h3 leads alone", || h3.leads() && h3.hooks_match_role());
        assert!(h1.leads() && h2.follows(h1));
        let higher = h1.hook_term().max(h3.hook_term());

        lan.heal();
        wait_until("h1 is reaffirmed", || h1.hooks().len() > 2);
        lan.wait_for_leader(h1);
        wait_until_settled(lan);
        lan.assert_calm_for(20);
        assert_eq!(h1.hooks()[2..], ["reaffirmed conflict"]);
        assert_eq!(h3.hooks()[2..], ["demoted better-leader"]);
        assert!(h1.hook_term() > higher, "{} after {higher}", h1.hook_term());
    });
}

#[test]
fn a_follower_that_hears_nothing_leaves_one_leader_behind() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], "");
        lan.deafen(h3);
        wait_until("h3 believes it is alone", || h3.leads());
        assert!(h1.leads());
        lan.heal();
        lan.wait_for_leader(h1);
        wait_until_settled(lan);
        lan.assert_calm_for(20);
        println!("measured: {} hooks of the leader", h1.hooks().len());
    });
}

#[test]
fn a_leader_that_is_not_heard_leaves_one_leader_behind() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], "");
        lan.mute(h1);
        wait_until("another leads", || h2.leads() || h3.leads());
        lan.heal();
        wait_until_settled(lan);
        lan.assert_calm_for(20);
        println!("measured: {} hooks of the leader", h1.hooks().len());
    });
}

#[test]
fn a_cut_off_leader_is_replaced() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], BEST_SUCCEEDS);
        lan.cut(h1);
        wait_until("h2 leads h3", || h2.leads() && h3.follows(h2));
        // Whom nobody hears still leads its own side.
        assert!(h1.leads());
        lan.heal();
        lan.wait_for_leader(h1);
    });
}

#[test]
fn heavy_loss_ends_with_one_leader() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], "leader_alive_threshold = \"300ms\"");
        lan.everywhere(&Rule { loss: 0.3, ..Rule::default() });
        let sent = lan.datagrams_from(h1) + lan.datagrams_from(h2) + lan.datagrams_from(h3);
        wait_until("300 datagrams were sent through the loss", || {
            lan.datagrams_from(h1) + lan.datagrams_from(h2) + lan.datagrams_from(h3) > sent + 300
        });
        let takeovers = lan.journal().text().matches("start elected").count() - 1;
        println!("measured: {takeovers} takeovers among 300 datagrams at 30 % loss");
        lan.heal();
        lan.sole_leader();
    });
}

/// The worst network that anybody would call one: a third of the frames is lost, what arrives comes
/// twice every other time, and in any order.
fn rough() -> Rule {
    let delay = Duration::ZERO..=Duration::from_millis(150);
    Rule { loss: 0.3, duplicate: 0.5, delay, ..Rule::default() }
}

#[test]
fn loss_duplicates_and_disorder_at_once_cost_a_patient_group_nothing() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], "leader_alive_threshold = \"2s\"");
        lan.everywhere(&rough());
        lan.assert_calm_for(50);
        h1.crash();
        wait_until("another leads the third", || {
            (h2.leads() && h3.follows(h2)) || (h3.leads() && h2.follows(h3))
        });
        h1.restart();
        lan.sole_leader();
        lan.heal();
        lan.sole_leader();
    });
}

#[test]
fn loss_duplicates_and_disorder_at_once_make_no_second_leader_of_a_quorum() {
    quorum_scenario(|lan, hosts: [_; 3]| {
        let names = hosts.map(|host| host.name.as_str());
        let lines = format!("mode = \"quorum\"\nvoters = {names:?}\ndemote_grace = \"200ms\"");
        lan.everywhere(&rough());
        hosts.iter().for_each(|host| host.start(&lines));
        for _ in 0..2 {
            let leader = lan.sole_leader();
            lan.wait_until_all_vote(&hosts);
            leader.crash_under_service_manager();
            wait_until("another leads", || {
                hosts.iter().any(|host| host.is_running() && host.leads())
            });
            leader.restart();
        }
        lan.heal();
        lan.sole_leader();
    });
}

#[test]
fn duplicates_and_disorder_change_nothing() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], PATIENT);
        let delay = Duration::ZERO..=Duration::from_millis(250);
        lan.everywhere(&Rule { duplicate: 0.5, delay, ..Rule::default() });
        lan.assert_calm_for(60);
        let replayed = h2.status()["counters"]["rejected"]["replayed"].as_u64().unwrap();
        assert!(replayed > 0, "nothing was recognised as old");
    });
}

#[test]
fn with_two_interfaces_the_loss_of_one_network_changes_nothing() {
    dual_homed_scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], "");
        lan.cut_on(0, h1);
        lan.assert_calm_for(30);
        lan.heal();
        lan.cut_on(1, h1);
        lan.assert_calm_for(30);
    });
}

#[test]
fn an_ipv6_group_elects_and_fails_over() {
    scenario(|lan, [h1, h2, h3]| {
        if !h1.has_ipv6() {
            return println!("skipped: no IPv6 here");
        }
        let lines = format!("multicast = \"[ff15::4c45]:7669\"\n{BEST_SUCCEEDS}");
        lan.start_led_by_first(&[h1, h2, h3], &lines);
        h1.crash();
        lan.wait_for_leader(h2);
        let address = h3.status()["leader"]["address"].take();
        assert!(address.as_str().unwrap().contains("::2"), "{address}");
    });
}
