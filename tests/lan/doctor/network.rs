//! Faults of interfaces, firewalls, addresses and keys.

use std::net::UdpSocket;

use super::{assert_found, doctor, lines};
use crate::harness::faults::can_forbid_sending;
use crate::harness::inside::Needs;
use crate::harness::keys::give_key;
use crate::harness::{dual_homed_scenario, scenario, scenario_with, wait_until};
use crate::trust::send;
use crate::unicast::MULTICAST;

fn with_nft() -> Needs {
    Needs { trial: can_forbid_sending, ..Needs::default() }
}

#[test]
fn interface_that_cannot_be_used() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h2.link_down();
        assert_found(h2, "The interface is down");
        h2.link_up();
        h2.unplug();
        assert_found(h2, "The cable is out");
        h2.replug();
        h2.rename_interface("eth0", "wan");
        assert_found(h2, "The interface does not exist");
        h2.rename_interface("wan", "eth0");
        lan.wait_for_leader(h1);
    });
}

#[test]
fn host_without_a_route_to_the_group() {
    scenario(|lan, [h1, h2]| {
        h1.start("");
        lan.sole_leader();
        let config = h2.config("");
        let lines = config.lines().filter(|line| !line.starts_with("interface ="));
        h2.write_config(&lines.collect::<Vec<_>>().join("\n"));
        h2.restart();
        assert_found(h2, "No route to the group");
        h2.start("");
        lan.wait_for_leader(h1);
    });
}

#[test]
fn port_that_another_program_has() {
    scenario(|lan, [h1, h2]| {
        h1.start("");
        lan.sole_leader();
        let taken = h2.run(|| UdpSocket::bind("0.0.0.0:7669").unwrap());
        h2.start("");
        assert_found(h2, "Another program has the port");
        drop(taken);
        lan.wait_for_leader(h1);
    });
}

#[test]
fn firewall_of_this_host() {
    scenario_with(with_nft(), |lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h2.forbid_sending();
        assert_found(h2, "The host's firewall forbids sending");
        h2.permit_sending();
        h2.drop_arrivals();
        assert_found(h2, "The host's firewall drops what arrives");
        h2.permit_sending();
        lan.sole_leader();
    });
}

/// Its firewall has nothing to do with it.
#[test]
fn group_on_another_network_of_this_host() {
    dual_homed_scenario(|lan, [h1, h2]| {
        // Peers would reach each other from network to network.
        h1.start(&format!("{MULTICAST}interface = \"eth0\""));
        h2.start(&format!("{MULTICAST}interface = \"eth1\""));
        wait_until("both lead", || h1.leads() && h2.leads());
        let found = lines(&doctor(h1, &[], &[]));
        assert!(found.iter().any(|line| line.starts_with("warn wire no datagram of")), "{found:?}");
        assert!(!found.iter().any(|line| line.starts_with("fail firewall")), "{found:?}");
        [h1, h2].iter().for_each(|host| host.start(""));
        lan.sole_leader();
    });
}

#[test]
fn host_that_does_not_hear_another() {
    scenario_with(with_nft(), |lan, [h1, h2]| {
        h1.start("");
        lan.sole_leader();
        h2.start("candidate = false");
        lan.wait_for_leader(h1);
        h2.drop_arrivals_from(h1);
        assert_found(h1, "Another host does not hear this one");
        h2.permit_sending();
        lan.sole_leader();
    });
}

#[test]
fn host_that_nothing_reaches() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        lan.cut(h2);
        assert_found(h2, "Nothing arrives from the others");
        lan.heal();
        lan.sole_leader();
    });
}

#[test]
fn hosts_with_different_keys() {
    scenario(|lan, [h1, h2]| {
        h1.start(&give_key(h1, "1"));
        h2.start("");
        assert_found(h1, "Another host has no key");
        assert_found(h2, "Only the other hosts have a key");
        h2.start(&give_key(h2, "2"));
        assert_found(h2, "Another host has another key");
        h2.start(&give_key(h2, "1"));
        lan.sole_leader();
    });
}

#[test]
fn hosts_of_different_groups_or_addresses() {
    scenario(|lan, [h1, h2, h3]| {
        h1.start("");
        h2.start("multicast = \"239.255.76.69:7670\"");
        assert_found(h1, "Another host uses another port");
        h2.start("multicast = \"239.255.76.70:7669\"");
        assert_found(h1, "Another host uses another multicast address");
        // Terms of another group are no terms of this one.
        h3.start("group = \"other\"\ncandidate = false");
        assert_found(h1, "Another host is in another group");
        [h2, h3].iter().for_each(|host| host.start(""));
        lan.sole_leader();
    });
}

#[test]
fn datagrams_from_beyond_the_lan_or_of_another_version() {
    scenario_with(with_nft(), |lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.lower_ttl();
        assert_found(h2, "A router forwards the group, or something lowers the TTL");
        h1.permit_sending();
        lan.sole_leader();
        send(h1, 255, &[9; 40]);
        assert_found(h2, "Another host speaks another version");
        lan.sole_leader();
    });
}

#[test]
fn two_hosts_with_one_id() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2], "");
        h3.start("node_id = \"h2\"");
        assert_eq!(h3.exit_status(), Some(1));
        assert_found(h2, "Another host has this node's id");
        lan.wait_for_leader(h1);
    });
}
