//! Attackers who send by unicast: from beyond a router, or from an address that is listed.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use fastrand::Rng;
use lanelect::types::{Incarnation, Priority, Sequence, Term};
use lanelect::wire::message::Message;

use crate::harness::forge::{GROUP, codec, declaration, encoded};
use crate::harness::inside::Needs;
use crate::harness::keys::{KEY, give_key};
use crate::harness::lan::named_scenario;
use crate::harness::routed::Site;
use crate::harness::{Host, Lan, PATIENT, wait_until};
use crate::partition::wait_until_settled;

use super::{peers_at, rejected};

/// Datagrams of one attack on one host, as many at a time as the machine sends.
const FLOOD: usize = 60_000;

/// Those of them that were made up; the rest repeats them.
const FORGED: usize = 2000;

/// So many of them each host must have dropped: the rest found no room.
const DROPPED: u64 = 2000;

/// Declarations of better leaders in higher terms, in the names of the group's hosts and of others.
/// With a key that is not the group's, or without any.
fn forged(random: &mut Rng, source: &str, key: Option<&str>) -> Vec<Vec<u8>> {
    let source: Ipv4Addr = source.parse().unwrap();
    let codec = codec("default", key);
    let mut datagram = || {
        let mut message: Message = declaration(&format!("h{}", random.u8(1..9)));
        message.incarnation = Incarnation(random.u64(..));
        message.sequence = Sequence(random.u64(..));
        message.term = Term(random.u64(2..1 << 32));
        message.standing.priority = Priority(u8::MAX);
        encoded(&codec, source, &message)
    };
    (0..FORGED).map(|_| datagram()).collect()
}

/// Sends datagrams from a host to each of these addresses, without a pause.
fn flood(host: &Host, datagrams: &[Vec<u8>], to: &[String]) {
    let to: Vec<SocketAddr> =
        to.iter().map(|address| SocketAddr::new(address.parse().unwrap(), GROUP.1)).collect();
    host.run(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket2::SockRef::from(&socket).set_ttl_v4(255).unwrap();
        for datagram in datagrams.iter().cycle().take(FLOOD) {
            // What finds no room is lost, as on a wire.
            to.iter().for_each(|to| drop(socket.send_to(datagram, to)));
        }
    });
}

/// What each host says of its leader, and what its hooks have done.
fn view(lan: &Lan, hosts: [&Host; 3]) -> (String, Vec<String>) {
    let of = |host: &Host| {
        let status = host.status();
        format!("{} {} {}", status["role"], status["leader"]["node_id"], status["term"])
    };
    (lan.journal().text(), hosts.map(of).to_vec())
}

/// The group of three in three sites, and a fourth site for the attacker, whose address is listed
/// or is not.
fn attack(is_listed: bool, key: Option<&'static str>, reason: &'static str) {
    scenario_of_sites(|lan, sites, hosts, attacker| {
        let [.., own] = sites;
        let addresses: Vec<String> =
            hosts.iter().zip(sites).map(|(host, site)| site.address(host)).collect();
        let mut listed = addresses.clone();
        if is_listed {
            listed.push(own.address(attacker));
        }
        let lines = format!("{}{PATIENT}{}\n", peers_at(&listed), give_key(hosts[0], KEY));
        lan.start_led_by_first(&hosts, &lines);
        wait_until_settled(lan);
        let before = view(lan, hosts);
        let mut random = Rng::with_seed(lan.seed);
        let forged = forged(&mut random, &own.address(attacker), key);
        flood(attacker, &forged, &addresses);
        wait_until("each host has dropped its share", || {
            hosts.iter().all(|host| rejected(host, reason) > DROPPED)
        });
        lan.assert_calm_for(40);
        assert_eq!(view(lan, hosts), before);
        for host in hosts {
            assert_eq!(host.status()["members"].as_array().map(Vec::len), Some(3));
        }
        // The group is none the worse for it.
        hosts[0].crash();
        lan.sole_leader();
    });
}

fn scenario_of_sites(body: impl FnOnce(&Lan, &[Site<'_>; 4], [&Host; 3], &Host)) {
    let test = std::thread::current().name().unwrap().to_owned();
    let needs = Needs::default();
    named_scenario(needs, &test, |lan, [h1, h2, h3, attacker, r1, r2, r3, r4]| {
        // The kernel's bridge keeps up with a flood.
        lan.use_bridges();
        let sites = lan.sites([r1, r2, r3, r4]);
        for (host, site) in [h1, h2, h3, attacker].into_iter().zip(&sites) {
            site.settle(host);
        }
        body(lan, &sites, [h1, h2, h3], attacker);
    });
}

#[test]
fn flood_from_an_unlisted_host_beyond_a_router_moves_nothing() {
    attack(false, Some("f"), "source");
}

#[test]
fn flood_from_a_listed_address_without_a_key_moves_nothing() {
    attack(true, None, "auth");
}

#[test]
fn flood_from_a_listed_address_with_another_key_moves_nothing() {
    attack(true, Some("f"), "auth");
}
