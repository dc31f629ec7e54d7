//! What a node takes from the network, and what it says of the rest.

mod flood;
pub(crate) mod hostile;
mod nonsense;
mod replay;
pub(crate) mod rotation;

use std::net::Ipv4Addr;

use lanelect::types::Sequence;
use lanelect::wire::message::Message;
use socket2::{Domain, Socket, Type};

use crate::harness::forge::{self, GROUP};
use crate::harness::keys::give_key;
use crate::harness::{Host, scenario, wait_until};

pub(crate) fn rejected(host: &Host, reason: &str) -> u64 {
    host.status()["counters"]["rejected"][reason].as_u64().unwrap_or_default()
}

fn times_told(host: &Host, words: &str) -> usize {
    host.log().matches(words).count()
}

/// Waits until each of two hosts, which do not hear each other, has said `words` of the other, and
/// checks that the datagrams that follow are counted and not told again.
#[track_caller]
fn each_tells_of_the_other_once(told: [(&Host, &str); 2]) {
    for (host, words) in told {
        wait_until(&format!("{} says: {words}", host.name), || times_told(host, words) > 0);
        let counted = rejected(host, "auth");
        let more = || rejected(host, "auth") >= counted + 20;
        wait_until("the like of it keeps coming and is counted", more);
        assert_eq!(times_told(host, words), 1, "{}", host.log());
        assert_eq!(times_told(host, "dropping datagrams from"), 1, "{}", host.log());
        assert_eq!(rejected(host, "malformed"), 0, "{}", host.log());
    }
}

/// A declaration of `web9`, as a daemon of a group without keys sends it.
fn declaration(sequence: u64) -> Vec<u8> {
    let message = Message { sequence: Sequence(sequence), ..forge::declaration("web9") };
    forge::encoded(&forge::codec("default", None), Ipv4Addr::LOCALHOST, &message)
}

/// Sends a datagram from a host to all others, with this TTL.
pub(crate) fn send(host: &Host, ttl: u32, datagram: &[u8]) {
    let own: Ipv4Addr = host.address(0).parse().unwrap();
    let others = host.others_at();
    host.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.set_multicast_if_v4(&own).unwrap();
        socket.set_multicast_ttl_v4(ttl).unwrap();
        socket.set_ttl_v4(ttl).unwrap();
        for to in others {
            socket.send_to(datagram, &to.into()).unwrap();
        }
    });
}

#[test]
fn a_node_with_a_key_and_one_without_name_each_other() {
    scenario(|lan, [h1, h2]| {
        h1.start(&give_key(h1, "1"));
        h2.start("");
        each_tells_of_the_other_once([
            (h1, "dropping datagrams from h2 at 10.77.0.2: they have no key"),
            (
                h2,
                "dropping datagrams from h1 at 10.77.0.1: they have a key, and this node has none",
            ),
        ]);
        assert!(h1.leads() && h2.leads(), "neither counts the other");
        assert_eq!(times_told(h1, "key_file is not set"), 0);
        assert_eq!(times_told(h2, "key_file is not set: datagrams are not authenticated"), 1);

        h2.start(&give_key(h2, "1"));
        lan.sole_leader();
    });
}

#[test]
fn nodes_with_different_keys_are_told_apart_from_nodes_without() {
    scenario(|_, [h1, h2]| {
        h1.start(&give_key(h1, "1"));
        h2.start(&give_key(h2, "2"));
        each_tells_of_the_other_once([
            (
                h1,
                "dropping datagrams from h2 at 10.77.0.2: they have a key that this node does not \
                 have",
            ),
            (
                h2,
                "dropping datagrams from h1 at 10.77.0.1: they have a key that this node does not \
                 have",
            ),
        ]);
    });
}

#[test]
fn a_mix_that_outlasts_a_reload_is_told_again() {
    scenario(|lan, [h1, h2]| {
        h1.start(&give_key(h1, "1"));
        h2.start(&give_key(h2, "2"));
        let told = |times| move || times_told(h1, "h2 at 10.77.0.2: they have a key") == times;
        wait_until("it is told", told(1));
        h1.reload();
        wait_until("it is told again", told(2));
        give_key(h1, "2");
        h1.reload();
        lan.sole_leader();
        assert!(told(2)(), "{}", h1.log());
    });
}

#[test]
fn groups_with_one_key_on_one_address_do_not_meet() {
    scenario(|_, [h1, h2]| {
        for (host, group) in [(h1, "web"), (h2, "db")] {
            host.start(&format!("group = {group:?}\n{}", give_key(host, "1")));
        }
        for host in [h1, h2] {
            wait_until("it leads its own group and hears the other", || {
                host.leads() && rejected(host, "foreign_group") > 20
            });
            let counters = &host.status()["counters"]["rejected"];
            assert!(counters["auth"] == 0 && counters["malformed"] == 0, "{counters}");
            assert_eq!(host.status()["members"].as_array().map(Vec::len), Some(1));
        }
    });
}

#[test]
fn a_leader_beyond_a_router_is_none() {
    scenario(|lan, [h1, h2]| {
        h1.start("");
        lan.sole_leader();
        for (sequence, ttl) in [(1, 1), (2, 64), (3, 254)] {
            send(h2, ttl, &declaration(sequence));
        }
        wait_until("they are counted", || rejected(h1, "hops") == 3);
        assert_eq!(times_told(h1, "datagrams from 10.77.0.2: their TTL is 1 "), 1, "{}", h1.log());
        let members = || h1.status()["members"].as_array().map(Vec::len);
        assert_eq!(members(), Some(1));
        // The very same is a member where it comes from the LAN.
        send(h2, 255, &declaration(4));
        wait_until("it is seen", || members() == Some(2));
        assert_eq!(rejected(h1, "hops"), 3);
    });
}
