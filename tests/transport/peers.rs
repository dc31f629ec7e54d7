//! Peers: unicast on a link and over a router, and the addresses that it leaves with.

use std::cell::Cell;
use std::net::IpAddr;

use lanelect::config::{Config, Peer};
use lanelect::control_api::PeerReport;
use lanelect::daemon::transport::{
    LinkEvent, NAMES_PATIENCE, Problem, SendFailure, Settings, Stray,
};
use lanelect::os::clock;
use nix::errno::Errno;
use socket2::{Domain, Socket, Type};

use super::{Host, Net, address, cable, exchange, heard, isolated, send, until};

/// The peers of a configuration with this list.
fn peers(list: &[&str]) -> Vec<Peer> {
    Config::from_toml(&format!("peers = {list:?}")).unwrap().peers
}

/// Peers alone. With `requires_key` those beyond a router too.
fn by_peers(list: &[&str], requires_key: bool) -> Settings {
    let (group, interfaces, own) = (None, Vec::new(), None);
    let peers = peers(list);
    Settings { group, interfaces, own, peers, port: 7669, sends_only: false, requires_key }
}

fn report(host: &Host, peer: usize) -> PeerReport {
    host.transport.peer_reports().remove(peer)
}

/// A host that has looked at its interfaces once.
fn started<'a>(net: &'a Net, list: &[&str], requires_key: bool) -> Host<'a> {
    let mut host = Host::with(net, by_peers(list, requires_key));
    host.turn();
    host
}

/// Waits until a peer is sent to, from this address.
fn sends_from(host: &mut Host, source: &str) {
    let source = address(source);
    host.change(|event| matches!(event, LinkEvent::SendingFrom(from) if *from == source));
}

/// Waits until a peer cannot be sent to, for this reason.
fn loses(host: &mut Host, problem: &Problem) {
    host.change(|event| matches!(event, LinkEvent::Lost(lost) if lost == problem));
}

#[test]
fn listed_hosts_hear_each_other_and_nobody_else() {
    isolated("peers::listed_hosts_hear_each_other_and_nobody_else", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        two.ip("addr add 10.0.0.9/24 dev lan");
        let list = ["10.0.0.1", "10.0.0.2"];
        let mut a = started(&one, &list, false);
        let mut b = started(&two, &list, false);
        exchange(&mut a, &mut b, "hello");
        let arrival = a.arrivals.last().unwrap();
        assert_eq!((arrival.source, arrival.is_routed), (address("10.0.0.2"), false));
        assert!(a.transport.any_up());
        assert_eq!(a.transport.source_address(), Some(address("10.0.0.1")));
        assert_eq!(a.transport.interface_names(), ["lan"]);
        assert!(report(&a, 0).is_self && !report(&a, 1).is_self);

        // The stranger on the same host, whose datagrams have lost no hop either.
        let mut stranger = started(&two, &["10.0.0.1", "10.0.0.9"], false);
        until("the stranger is refused", || {
            stranger.send("strange");
            a.turn();
            a.strays.contains(&(address("10.0.0.9"), Stray::Unlisted))
        });
        assert_eq!(a.arrival("strange"), None);
    });
}

/// A datagram to one address of this host may arrive by any of its interfaces.
#[test]
fn datagram_from_another_network_counts_as_one_that_a_router_passed_on() {
    let name = "peers::datagram_from_another_network_counts_as_one_that_a_router_passed_on";
    isolated(name, || {
        let (one, two, stranger) = (Net::first(), Net::another(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        cable((&one, "10.9.0.1/24"), (&stranger, "10.9.0.9/24"), "wan");
        one.enter();
        for interface in ["all", "wan"] {
            let filter = format!("/proc/sys/net/ipv4/conf/{interface}/rp_filter");
            std::fs::write(filter, "0").unwrap();
        }
        stranger.ip("addr add 10.0.0.2/32 dev wan");
        stranger.ip("route add 10.0.0.1 dev wan src 10.0.0.2");
        let list = ["10.0.0.1", "10.0.0.2"];
        let mut a = started(&one, &list, false);
        let mut b = started(&two, &list, false);
        heard(&mut b, &mut a, "from the peer");
        let mut forger = started(&stranger, &list, true);
        heard(&mut forger, &mut a, "forged");
        for (text, is_routed) in [("from the peer", false), ("forged", true)] {
            let arrival = a.arrival(text).unwrap();
            assert_eq!((arrival.source, arrival.is_routed), (address("10.0.0.2"), is_routed));
        }
        assert_ne!(a.arrival("forged").unwrap().interface, a.arrivals[0].interface);
    });
}

#[test]
fn peer_beyond_a_router_needs_a_key() {
    isolated("peers::peer_beyond_a_router_needs_a_key", || {
        let (one, router, two) = (Net::first(), Net::another(), Net::another());
        cable((&one, "10.1.0.1/24"), (&router, "10.1.0.254/24"), "west");
        cable((&two, "10.2.0.2/24"), (&router, "10.2.0.254/24"), "east");
        router.enter();
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        one.ip("route add default via 10.1.0.254");
        two.ip("route add default via 10.2.0.254");
        let list = ["10.1.0.1", "10.2.0.2"];
        let mut a = started(&one, &list, false);
        let mut b = started(&two, &list, true);
        loses(&mut a, &Problem::KeyRequired);
        assert!(!a.transport.any_up());
        heard(&mut b, &mut a, "sealed");
        assert!(a.arrival("sealed").unwrap().is_routed, "it has lost a hop");
        a.transport.set_requires_key(true);
        sends_from(&mut a, "10.1.0.1");
        exchange(&mut a, &mut b, "with a key");
        a.transport.set_requires_key(false);
        loses(&mut a, &Problem::KeyRequired);
    });
}

#[test]
fn peer_that_the_kernel_rejects_costs_no_other_its_datagram() {
    isolated("peers::peer_that_the_kernel_rejects_costs_no_other_its_datagram", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        two.ip("addr add 10.0.0.3/24 dev lan");
        let list = ["10.0.0.2", "10.0.0.7", "10.0.0.3", "10.0.0.1"];
        let mut a = started(&one, &list, false);
        let mut b = started(&two, &list, false);
        exchange(&mut a, &mut b, "before");
        // The kernel tells no change of a route: the next send meets it.
        one.ip("route add prohibit 10.0.0.7");
        let (sent, failed) = (a.transport.sent(), a.transport.send_errors());
        a.send("twice");
        assert_eq!((a.transport.sent() - sent, a.transport.send_errors() - failed), (2, 1));
        until("both addresses of b have it", || {
            b.turn();
            b.arrivals.iter().filter(|arrival| arrival.text == "twice").count() == 2
        });
        a.change(|event| {
            let forbidden = SendFailure::Forbidden(Errno::EACCES);
            matches!(event, LinkEvent::SendFailing(failure) if *failure == forbidden)
                || matches!(event, LinkEvent::Lost(Problem::NoRouteToPeer(_)))
        });
        assert!(a.transport.any_up());
        assert!(report(&a, 1).problem.is_some());
        assert_eq!(report(&a, 0).problem, None);
    });
}

/// Its kernel answers each datagram with an error, which belongs to no other peer.
#[test]
fn host_without_a_daemon_costs_no_other_its_datagram() {
    isolated("peers::host_without_a_daemon_costs_no_other_its_datagram", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        // The answers are not to be fewer than the datagrams.
        two.enter();
        std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0").unwrap();
        for host in 3..8 {
            two.ip(&format!("addr add 10.0.0.{host}/24 dev lan"));
        }
        let list = ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"];
        let mut a = started(&one, &list, false);
        let mut b = started(&two, &["10.0.0.1", "10.0.0.5"], false);
        exchange(&mut a, &mut b, "at first");
        a.changes.clear();
        // Local address and port, and the number of the socket.
        let socket = || {
            one.enter();
            let sockets = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap();
            let line = sockets.lines().find(|line| line.contains(" 0100000A:1DF5 ")).unwrap();
            line.split_whitespace().nth(9).unwrap().to_owned()
        };
        let before = socket();
        for number in 0..200 {
            a.send(&number.to_string());
            b.turn();
            a.turn();
        }
        until("the host with a daemon has all", || {
            b.turn();
            (0..200).all(|number| b.arrival(&number.to_string()).is_some())
        });
        assert_eq!((a.transport.send_errors(), &a.changes), (0, &Vec::new()));
        assert_eq!(socket(), before, "the socket failed");
        heard(&mut b, &mut a, "and is heard");
    });
}

/// The kernel keeps what goes to a host that does not answer, for seconds, and all that time it
/// takes room in the socket's send buffer.
#[test]
fn hosts_that_do_not_answer_cost_the_living_no_datagram() {
    isolated("peers::hosts_that_do_not_answer_cost_the_living_no_datagram", || {
        for (net, range) in [("10.0.0.", "/24"), ("fd00::", "/64")] {
            let (one, two) = (Net::first(), Net::another());
            let own = [1, 2].map(|host| format!("{net}{host}{range}"));
            cable((&one, &own[0]), (&two, &own[1]), "lan");
            let listed: Vec<_> = (10..26).chain([2]).map(|host| format!("{net}{host}")).collect();
            let list: Vec<&str> = listed.iter().map(String::as_str).collect();
            let own = format!("{net}1");
            let mut a = started(&one, &list, false);
            let mut b = started(&two, &[&own, list[16]], false);
            heard(&mut a, &mut b, "at first");
            // On a slow machine the send buffer may have been full already.
            a.rescan(clock::now());
            let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
            let before = descriptors();
            for number in 0..100 {
                a.send(&number.to_string());
                if number % 20 == 0 {
                    b.turn();
                }
            }
            until("the living host has all", || {
                b.turn();
                (0..100).all(|number| b.arrival(&number.to_string()).is_some())
            });
            assert_eq!(a.transport.send_errors(), 0);
            assert!(b.strays.is_empty(), "{:?}", b.strays);
            assert!(descriptors() > before, "the send buffer was never full");
            a.rescan(clock::now());
            assert_eq!(descriptors(), before);
            one.ip("link del lan");
        }
    });
}

#[test]
fn nothing_leaves_any_more_once_it_may_not() {
    isolated("peers::nothing_leaves_any_more_once_it_may_not", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = started(&one, &["10.0.0.7", "10.0.0.2"], false);
        let mut b = started(&two, &["10.0.0.1", "10.0.0.7"], false);
        exchange(&mut a, &mut b, "before");
        // Two calls for the one that the kernel rejects, and then one for all others.
        one.ip("route add prohibit 10.0.0.7");
        for calls in 0_u32..=3 {
            let left = Cell::new(calls);
            let may_leave = || left.replace(left.get().saturating_sub(1)) > 0;
            one.enter();
            send(&mut a.transport, None, &format!("after {calls}"), may_leave);
        }
        until("b has the last", || {
            b.turn();
            b.arrival("after 3").is_some()
        });
        let texts = b.arrivals.iter().map(|arrival| arrival.text.as_str());
        let after: Vec<_> = texts.filter(|text| text.starts_with("after")).collect();
        assert_eq!(after, ["after 3"]);
    });
}

#[test]
fn datagram_to_one_host_goes_to_no_other() {
    isolated("peers::datagram_to_one_host_goes_to_no_other", || {
        let (one, two, three) = (Net::first(), Net::another(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        cable((&one, "10.0.1.1/24"), (&three, "10.0.1.3/24"), "wan");
        let mut a = started(&one, &["10.0.0.2", "10.0.1.3"], false);
        let mut b = started(&two, &["10.0.0.1"], false);
        let mut c = started(&three, &["10.0.1.1"], false);
        exchange(&mut a, &mut b, "to b");
        exchange(&mut a, &mut c, "to c");
        let mut send_to = |to, text| send(&mut a.transport, Some(address(to)), text, || true);
        send_to("10.0.1.3", "alone");
        send_to("10.0.0.9", "of a host that is not listed");
        until("both have what followed", || {
            b.turn();
            c.turn();
            [&b, &c].iter().all(|host| host.arrival("of a host that is not listed").is_some())
        });
        assert!(c.arrival("alone").is_some());
        assert_eq!(b.arrival("alone"), None);
    });
}

#[test]
fn peers_follow_cable_and_address() {
    isolated("peers::peers_follow_cable_and_address", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = started(&one, &["10.0.0.1", "10.0.0.5", "10.0.0.2"], false);
        let mut b = started(&two, &["10.0.0.1", "10.0.0.5", "10.0.0.2"], false);
        exchange(&mut a, &mut b, "at first");
        // A service address that is added later is not what datagrams leave with.
        one.ip("addr add 10.0.0.77/24 dev lan");
        two.ip("link set lan down");
        loses(&mut a, &Problem::NoCarrier);
        assert!(!a.transport.any_up());
        two.ip("link set lan up");
        sends_from(&mut a, "10.0.0.1");
        sends_from(&mut b, "10.0.0.2");
        exchange(&mut a, &mut b, "again");
        assert_eq!(a.transport.source_address(), Some(address("10.0.0.1")));
        one.ip("addr flush dev lan");
        a.change(|event| matches!(event, LinkEvent::Lost(_)));
        one.ip("addr add 10.0.0.5/24 dev lan");
        sends_from(&mut a, "10.0.0.5");
        exchange(&mut a, &mut b, "elsewhere");
        assert_eq!(b.arrival("elsewhere, there").unwrap().source, address("10.0.0.5"));
    });
}

#[test]
fn host_that_is_not_in_its_list_keeps_its_source() {
    isolated("peers::host_that_is_not_in_its_list_keeps_its_source", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = started(&one, &["10.0.0.2"], false);
        let mut b = started(&two, &["10.0.0.1"], false);
        exchange(&mut a, &mut b, "at first");
        one.ip("route replace 10.0.0.0/24 dev lan src 10.0.0.1");
        one.ip("addr add 10.0.0.77/24 dev lan");
        one.ip("route replace 10.0.0.0/24 dev lan src 10.0.0.77");
        a.rescan(clock::now());
        exchange(&mut a, &mut b, "later");
        assert_eq!(b.arrival("later, there").unwrap().source, address("10.0.0.1"));
    });
}

#[test]
fn names_become_peers_and_keep_their_last_address() {
    isolated("peers::names_become_peers_and_keep_their_last_address", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        two.ip("addr add 10.0.0.3/24 dev lan");
        let mut a = started(&one, &["two"], false);
        let mut b = started(&two, &["10.0.0.1", "10.0.0.2", "10.0.0.3"], false);
        let found = |ip: &str| Ok(vec![ip.parse::<IpAddr>().unwrap()]);
        a.transport.resolve(0, Err("no answer".to_owned()));
        loses(&mut a, &Problem::Unresolved("no answer".to_owned()));
        assert!(!a.transport.any_up() && report(&a, 0).problem.is_some());
        a.transport.resolve(0, found("10.0.0.2"));
        sends_from(&mut a, "10.0.0.1");
        heard(&mut a, &mut b, "by name");
        a.transport.resolve(0, Err("no answer".to_owned()));
        a.turn();
        heard(&mut a, &mut b, "still");
        a.transport.resolve(0, found("10.0.0.3"));
        sends_from(&mut a, "10.0.0.1");
        heard(&mut a, &mut b, "moved");
        assert_eq!(report(&a, 0).addresses, [address("10.0.0.3")]);
        // The name is this host's own.
        a.transport.resolve(0, found("10.0.0.1"));
        until("it is not sent to", || {
            a.turn();
            report(&a, 0).is_self && !a.transport.any_up()
        });
    });
}

#[test]
fn ports_that_do_not_fit_are_told() {
    isolated("peers::ports_that_do_not_fit_are_told", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        one.enter();
        let other = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        other.set_reuse_address(true).unwrap();
        other.bind(&"10.0.0.1:7669".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
        let mut a = started(&one, &["10.0.0.1", "10.0.0.2"], false);
        a.change(|event| matches!(event, LinkEvent::Lost(Problem::PortTaken { port: 7669, .. })));
        drop(other);
        let mut b = started(&two, &["10.0.0.1", "10.0.0.2"], false);
        sends_from(&mut a, "10.0.0.1");
        exchange(&mut a, &mut b, "once the port is free");
        drop(a);
        let mut a = started(&one, &["10.0.0.1:7000", "10.0.0.2"], false);
        loses(&mut a, &Problem::OwnPort(7669));
    });
}

/// As a daemon that was killed and cannot end has the port.
#[test]
fn one_that_only_sends_needs_no_port() {
    isolated("peers::one_that_only_sends_needs_no_port", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let list = ["10.0.0.1", "10.0.0.2"];
        let _holder = started(&one, &list, false);
        let mut other = started(&two, &list, false);
        let settings = Settings { sends_only: true, ..by_peers(&list, false) };
        let mut sender = Host::with(&one, settings);
        sender.turn();
        assert_eq!(heard(&mut sender, &mut other, "the last").source, address("10.0.0.1"));
    });
}

#[test]
fn peers_work_over_ipv6() {
    isolated("peers::peers_work_over_ipv6", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "fd00::1/64"), (&two, "fd00::2/64"), "lan");
        let list = ["fd00::1", "[fd00::2]:7669"];
        let mut a = started(&one, &list, false);
        let mut b = started(&two, &list, false);
        exchange(&mut a, &mut b, "hello");
        let arrival = a.arrivals.last().unwrap();
        assert_eq!((arrival.source, arrival.is_routed), (address("fd00::2"), false));
    });
}

/// A host whose list begins with its own name, which stands for `found`, and another one hear each
/// other.
fn hear_each_other(one: &Net, two: &Net, found: &[&str]) {
    let mut a = started(one, &["one", "10.0.0.2"], false);
    let mut b = started(two, &["10.0.0.1", "10.0.0.2"], false);
    a.transport.resolve(0, Ok(found.iter().copied().map(address).collect()));
    a.rescan(clock::now());
    assert!(report(&a, 0).is_self && report(&a, 0).problem.is_none());
    exchange(&mut a, &mut b, "hello");
    assert_eq!(b.arrival("hello, there").unwrap().source, address("10.0.0.1"));
}

#[test]
fn own_name_may_stand_for_the_loopback() {
    isolated("peers::own_name_may_stand_for_the_loopback", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        hear_each_other(&one, &two, &["127.0.0.1"]);
    });
}

#[test]
fn own_name_may_stand_for_addresses_of_other_interfaces_too() {
    isolated("peers::own_name_may_stand_for_addresses_of_other_interfaces_too", || {
        let (one, two, guest) = (Net::first(), Net::another(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        cable((&one, "172.17.0.1/16"), (&guest, "172.17.0.2/16"), "bridge");
        let mut all = Vec::new();
        for host in 10..30 {
            one.ip(&format!("addr add 9.17.0.{host}/32 dev bridge"));
            all.push(format!("9.17.0.{host}"));
        }
        // Of an interface that is not there now.
        all.extend(["10.0.0.1".to_owned(), "10.9.9.9".to_owned()]);
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        hear_each_other(&one, &two, &all);
    });
}

/// A resolver of the host itself may know all of its addresses.
#[test]
fn service_address_that_the_own_name_stands_for_becomes_no_source() {
    isolated("peers::service_address_that_the_own_name_stands_for_becomes_no_source", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.11/24"), (&two, "10.0.0.12/24"), "lan");
        let mut a = started(&one, &["one", "10.0.0.12"], false);
        let mut b = started(&two, &["10.0.0.11", "10.0.0.12"], false);
        a.transport.resolve(0, Ok(vec![address("10.0.0.11")]));
        exchange(&mut a, &mut b, "before");
        a.holds = true;
        one.ip("addr add 10.0.0.10/24 dev lan");
        a.transport.resolve(0, Ok(vec![address("10.0.0.10"), address("10.0.0.11")]));
        a.rescan(clock::now());
        exchange(&mut a, &mut b, "later");
        assert_eq!(b.arrival("later, there").unwrap().source, address("10.0.0.11"));
        // Nor does it if the name stands for that address alone.
        a.transport.resolve(0, Ok(vec![address("10.0.0.10")]));
        a.rescan(clock::now());
        exchange(&mut a, &mut b, "alone");
        assert_eq!(b.arrival("alone, there").unwrap().source, address("10.0.0.11"));
        // It has stepped down, and the others expect it to send from another one.
        a.holds = false;
        one.ip("addr add 10.0.0.1/24 dev lan");
        a.transport.resolve(0, Ok(vec![address("10.0.0.1")]));
        sends_from(&mut a, "10.0.0.1");
    });
}

#[test]
fn peer_whose_name_stands_for_the_service_address_too_is_no_other_than_before() {
    let name = "peers::peer_whose_name_stands_for_the_service_address_too_is_no_other_than_before";
    isolated(name, || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = started(&one, &["two", "10.0.0.1"], false);
        let mut b = started(&two, &["10.0.0.1", "10.0.0.2"], false);
        a.transport.resolve(0, Ok(vec![address("10.0.0.2")]));
        sends_from(&mut a, "10.0.0.1");
        exchange(&mut a, &mut b, "before");
        a.holds = true;
        one.ip("addr add 10.0.0.100/24 dev lan");
        a.transport.resolve(0, Ok(vec![address("10.0.0.2"), address("10.0.0.100")]));
        a.rescan(clock::now());
        exchange(&mut a, &mut b, "later");
        assert!(!report(&a, 0).is_self && report(&a, 0).problem.is_none());
    });
}

#[test]
fn address_of_a_family_that_this_host_does_not_use_is_no_problem() {
    isolated("peers::address_of_a_family_that_this_host_does_not_use_is_no_problem", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = started(&one, &["two"], false);
        let both = ["10.0.0.2", "2001:db8::2"].map(address);
        a.transport.resolve(0, Ok(both.to_vec()));
        sends_from(&mut a, "10.0.0.1");
        assert_eq!((report(&a, 0).problem, report(&a, 0).up), (None, true));
        // Alone, it is one.
        a.transport.resolve(0, Ok(both[1..].to_vec()));
        a.change(|event| matches!(event, LinkEvent::Lost(Problem::NoRouteToPeer(_))));
    });
}

/// The name server may be out of reach at first, as the peers are.
#[test]
fn nothing_is_up_before_each_peer_s_name_has_an_address() {
    isolated("peers::nothing_is_up_before_each_peer_s_name_has_an_address", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let now = clock::now();
        for finds in [true, false] {
            let mut a = started(&one, &["two", "10.0.0.2"], false);
            assert!(report(&a, 1).up && !a.transport.any_up());
            assert_eq!(report(&a, 0).problem, Some(Problem::LookingUp.to_string()));
            a.transport.resolve(0, Err("no answer".to_owned()));
            a.rescan(now);
            assert!(!a.transport.any_up(), "it may be a leader's");
            let later = if finds { now } else { now + 2 * NAMES_PATIENCE };
            if finds {
                a.transport.resolve(0, Ok(vec![address("10.0.0.2")]));
            }
            a.rescan(later);
            assert!(a.transport.any_up(), "{finds}");
        }
    });
}

#[test]
fn interfaces_to_the_peers_are_named_while_none_leads_to_the_group() {
    isolated("peers::interfaces_to_the_peers_are_named_while_none_leads_to_the_group", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let group = "239.255.76.69:7669".parse().ok();
        let settings = Settings { group, ..by_peers(&["10.0.0.1", "10.0.0.2"], false) };
        let mut a = Host::with(&one, settings);
        a.turn();
        assert!(a.transport.any_up() && a.transport.reports()[0].problem.is_some());
        assert_eq!(a.transport.interface_names(), ["lan"]);
    });
}

#[test]
fn unlisted_host_sends_from_its_own_address_again_when_it_is_back() {
    isolated("peers::unlisted_host_sends_from_its_own_address_again_when_it_is_back", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = started(&one, &["10.0.0.2"], false);
        a.holds = true;
        sends_from(&mut a, "10.0.0.1");
        one.ip("addr add 10.0.0.100/25 dev lan");
        one.ip("addr del 10.0.0.1/24 dev lan");
        sends_from(&mut a, "10.0.0.100");
        one.ip("addr add 10.0.0.1/24 dev lan");
        sends_from(&mut a, "10.0.0.1");
    });
}
