//! Hosts whose firewall drops what it does not know, with and without the shipped rules.

use std::fs;

use crate::harness::faults::can_forbid_sending;
use crate::harness::inside::Needs;
use crate::harness::{Host, Lan, scenario_with, wait_until};

/// What a package has as an example, to be included in the input chain.
const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/firewall/lanelect.nft");

fn with_nft() -> Needs {
    Needs { trial: can_forbid_sending, ..Needs::default() }
}

/// Waits until nothing of `other` has arrived at `host` for a while.
fn wait_until_lost(host: &Host, other: &Host) {
    wait_until(&format!("{} has lost {}", host.name, other.name), || {
        host.member(other)["state"] == "gone"
    });
}

/// Two hosts whose firewalls accept by the shipped rules, and which elect.
fn start_behind_firewalls(lan: &Lan, hosts: [&Host; 2]) {
    hosts.iter().for_each(|host| host.accept_only(&format!("include \"{RULES}\"")));
    lan.start_led_by_first(&hosts, "");
}

#[test]
fn hosts_that_drop_all_else_elect_by_the_shipped_rules() {
    scenario_with(with_nft(), |lan, [h1, h2]| {
        for host in [h1, h2] {
            host.accept_only("");
            host.start("");
        }
        wait_until("each leads for itself", || h1.leads() && h2.leads());
        assert!(h1.member(h2).is_null(), "h2 was heard: {}", h1.member(h2));
        for host in [h1, h2] {
            host.accept_only(&format!("include \"{RULES}\""));
        }
        lan.sole_leader();
    });
}

/// Accepts these hosts by the rules for `peers`, and without those for multicast.
fn accept_peers(host: &Host, peers: &[&Host]) {
    let rules = fs::read_to_string(RULES).unwrap();
    let (_, rules) = rules.split_once("# If your config has `peers`").unwrap();
    let addresses: Vec<_> = peers.iter().map(|peer| peer.address(0)).collect();
    let rules = rules.replace("\n#", "\n").replace("10.0.1.5, 10.0.2.7", &addresses.join(", "));
    let rules: Vec<_> = rules.lines().filter(|line| line.starts_with("ip")).collect();
    assert_eq!(rules.len(), 2);
    host.accept_only(&rules.join("\n"));
}

#[test]
fn shipped_rules_for_peers_accept_those_that_they_name() {
    scenario_with(with_nft(), |lan, [h1, h2, h3]| {
        let addresses = [h1, h2, h3].map(|host| host.address(0));
        let settings = format!("multicast = \"none\"\npeers = {addresses:?}");
        accept_peers(h1, &[h2]);
        accept_peers(h2, &[h1]);
        lan.start_led_by_first(&[h1, h2], &settings);
        h3.start(&settings);
        wait_until("h3, which has no firewall, hears the others", || h3.follows(h1));
        assert!(h1.member(h3).is_null(), "h3 was heard: {}", h1.member(h3));
        [h1, h2].into_iter().for_each(|host| accept_peers(host, &[h1, h2, h3]));
        wait_until("h1 hears h3", || h1.member(h3)["state"] == "alive");
    });
}

#[test]
fn shipped_rules_drop_what_a_router_has_forwarded() {
    scenario_with(with_nft(), |lan, [h1, h2]| {
        start_behind_firewalls(lan, [h1, h2]);
        h2.lower_ttl();
        wait_until_lost(h1, h2);
        // The daemon would drop and count it too. It has not even arrived there.
        assert_eq!(h1.status()["counters"]["rejected"]["hops"], 0);
        h1.permit_sending();
        wait_until("h1 counts it", || h1.status()["counters"]["rejected"]["hops"] != 0);
    });
}

#[test]
fn shipped_rules_drop_what_arrives_on_another_interface() {
    scenario_with(with_nft(), |lan, [h1, h2]| {
        start_behind_firewalls(lan, [h1, h2]);
        let rules = fs::read_to_string(RULES).unwrap();
        h1.accept_only(&rules.replace("\"eth0\"", "\"eth1\""));
        wait_until_lost(h1, h2);
    });
}
