//! A leader whose process stands still for longer than its lease.

use super::{elect, without};
use crate::harness::claims::{Claim, contradictions};
use crate::harness::patience::now;
use crate::harness::{scenario, wait_until};

/// The hooks are not checked across hosts: a sleeper's hooks are its watchdog's to stop.
#[test]
fn a_leader_that_slept_through_its_lease_says_nothing_as_leader() {
    scenario(|lan, hosts: [_; 3]| {
        let (mut leader, _) = elect(lan, &hosts);
        for _ in 0..3 {
            leader.pause();
            let successor = lan.sole_leader_of(&without(&hosts, leader));
            // The sleeper's clients wait for their answers until it wakes; more ask after that.
            let clients = lan.interrogate();
            wait_until("the others have answered often", || clients.answers() >= 20);
            let woken = now();
            leader.resume();
            let answered = clients.answers();
            wait_until("clients got answers", || clients.answers() >= answered + 50);
            lan.wait_for_leader(successor);

            let said = [lan.claims(), clients.claims()].concat();
            let late = |claim: &&Claim| claim.host == leader.number && claim.by > woken;
            let late: Vec<_> = said.iter().filter(late).map(ToString::to_string).collect();
            assert!(late.is_empty(), "{} led on after it woke: {late:#?}", leader.name);
            assert_eq!(contradictions(&said), "");
            leader = successor;
        }
    });
}

/// Between the decision to send and the last look at the clock there may be any time.
#[test]
fn a_leader_that_is_held_up_before_it_sends_does_not_send() {
    scenario(|lan, hosts: [_; 3]| {
        hosts.iter().for_each(|host| host.prepare_to_hold_sends());
        let (leader, others) = elect(lan, &hosts);
        leader.hold_sends();
        let successor = lan.sole_leader_of(&others);
        leader.release_sends();
        lan.wait_for_leader(successor);
        assert_eq!(contradictions(&lan.claims()), "");
    });
}
