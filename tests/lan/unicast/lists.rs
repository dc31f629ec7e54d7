//! Lists of peers: names, addresses that change, hosts that are not there, and networks that carry
//! nothing but unicast.

use crate::harness::host::ip;
use crate::harness::{Host, PATIENT, quorum_scenario, scenario, wait_until};
use crate::quorum::{elect_with, voters};

use super::{MULTICAST, peers_alone, peers_at, problem, warnings};

/// The file that names of hosts are looked up in.
const NAMES: &str = "/etc/hosts";

/// What [`NAMES`] says of two hosts at these addresses.
fn names(first: &str, second: &str) -> String {
    format!("{first} h1.test\n{second} h2.test\n")
}

#[test]
fn bridge_that_drops_multicast_carries_peers() {
    scenario(|lan, [h1, h2]| {
        lan.use_bridges();
        for host in [h1, h2] {
            ip(&format!("link set {} type bridge_slave mcast_flood off", host.port(0)));
        }
        h1.start(MULTICAST);
        h2.start(MULTICAST);
        wait_until("each leads for itself", || h1.leads() && h2.leads());
        assert!(h1.member(h2).is_null() && h2.member(h1).is_null());
        h1.start(&peers_alone(&[h1, h2]));
        h2.start(&peers_alone(&[h1, h2]));
        lan.sole_leader();
    });
}

#[test]
fn hosts_with_ipv6_alone_elect_by_peers() {
    scenario(|lan, [h1, h2, h3]| {
        if !h1.has_ipv6() {
            return println!("skipped: no IPv6 here");
        }
        let addresses = [h1, h2, h3].map(|host| {
            ip(&format!("-n {} -4 addr flush dev eth0", host.name));
            format!("fd77::{}", host.number)
        });
        lan.start_led_by_first(&[h1, h2, h3], &peers_at(&addresses));
        assert_eq!(h2.member(h1)["address"], "fd77::1");
        h1.crash();
        lan.sole_leader();
    });
}

#[test]
fn peer_whose_name_gets_another_address_is_found_again() {
    scenario(|lan, [h1, h2]| {
        let [first, second] = [h1, h2].map(|host| host.address(0));
        if !h1.replace_file(NAMES, &names(&first, &second)) {
            return println!("skipped: {NAMES} cannot be replaced here");
        }
        let lines = "multicast = \"none\"\npeers = [\"h1.test\", \"h2.test\"]\n";
        lan.start_led_by_first(&[h1, h2], lines);
        let moved = "10.77.0.102";
        h2.change_address(moved);
        wait_until("h1 has lost h2", || h1.member(h2)["state"] == "gone");
        std::fs::write(NAMES, names(&first, moved)).unwrap();
        wait_until("h1 hears h2 from there", || {
            h1.member(h2)["state"] == "alive" && h1.member(h2)["address"] == moved
        });
        lan.wait_for_leader(h1);
    });
}

/// As many as a list may have. What goes to those that are not there waits for them in the kernel.
#[test]
fn list_of_hosts_that_are_dead_for_long_costs_no_leadership() {
    scenario(|lan, [h1, h2, h3]| {
        let living = [h1, h2, h3].map(|host| host.address(0));
        let dead = (100..161).map(|host| format!("10.77.0.{host}"));
        let all: Vec<String> = dead.chain(living).collect();
        assert_eq!(all.len(), lanelect::config::PEERS_MAX);
        // Twenty datagrams a second to each: what waits for the dead exceeds any send buffer.
        let settings = format!("{}{PATIENT}heartbeat_interval = \"50ms\"\n", peers_at(&all));
        lan.start_led_by_first(&[h1, h2, h3], &settings);
        let counter = |host: &Host, name: &str| host.status()["counters"][name].as_u64().unwrap();
        let sent = counter(h1, "datagrams_sent");
        wait_until("many were sent", || counter(h1, "datagrams_sent") > sent + 20_000);
        lan.assert_calm_for(200);
        for host in [h1, h2, h3] {
            assert_eq!(counter(host, "send_errors"), 0, "{}", host.status());
        }
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
        // It comes to life after all.
        h1.crash();
        lan.sole_leader();
    });
}

#[test]
fn leader_whose_queue_takes_nothing_hands_over() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], &peers_alone(&[h1, h2]));
        h1.fill_queue();
        wait_until("h2 leads, and h1 says why", || {
            h2.leads()
                && h1.follows(h2)
                && problem(h1, 1)
                    == "sending fails: the interface's queue is full (ENOBUFS: No buffer space \
                        available)"
        });
        assert_eq!(h1.hooks().last().unwrap(), "demoted interface-down");
        h1.free_queue();
        wait_until("h1 may lead again", || h1.ineligible_reason().is_empty());
        lan.wait_for_leader(h2);
    });
}

#[test]
fn list_of_this_host_alone_is_reported() {
    scenario(|lan, [h1, h2]| {
        h1.start(&peers_alone(&[h1]));
        wait_until("h1 says why it never leads", || {
            problem(h1, 0)
                == "it is this host, and no other one is listed, so nothing is sent by unicast; \
                    list every host of the group in peers"
        });
        assert_eq!(h1.ineligible_reason(), "interface-down");
        let told = "peers: lists no host but this one, which then reaches nobody and never leads; \
                    list every host of the group\n";
        assert!(warnings(h1).contains(told), "{}", warnings(h1));
        assert!(h1.log().contains(told), "{}", h1.log());
        for host in [h1, h2] {
            host.start(&peers_alone(&[h1, h2]));
        }
        lan.sole_leader();
        assert_eq!(problem(h1, 0), "");
        assert!(!warnings(h1).contains("peers: "), "{}", warnings(h1));
    });
}

#[test]
fn voter_that_was_dead_for_long_is_counted_once_it_lives() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let settings = voters(&[h1, h2, h3]) + &peers_alone(&[h1, h2, h3]);
        let (leader, others) = elect_with(lan, &[h1, h2, h3], &settings);
        let [other, dead] = others[..] else { panic!("{} voters", others.len()) };
        dead.crash();
        dead.link_down();
        lan.sole_leader();
        lan.assert_calm_for(100);
        dead.link_up();
        dead.restart();
        lan.wait_for_leader(leader);
        lan.wait_until_all_vote(&[h1, h2, h3]);
        other.stop();
        lan.wait_for_leader(leader);
        assert!(dead.follows(leader));
    });
}
