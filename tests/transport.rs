//! The multicast transport on real interfaces, in network namespaces of its own.
//!
//! Each test runs itself again under `unshare -Urn`, where it is root over a network that nobody
//! else sees, and is skipped with a reason where the machine forbids that.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test gives up after a real time")]

mod common;
#[path = "transport/errors.rs"]
mod errors;
#[path = "transport/peers.rs"]
mod peers;

use std::collections::HashSet;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use lanelect::control_api::InterfaceReport;
use lanelect::daemon::interfaces::{Interfaces, Monitor};
use lanelect::daemon::transport::{
    JoinCause, LinkChange, LinkEvent, Problem, REJOIN_INTERVAL, RESCAN_INTERVAL,
    RESCAN_INTERVAL_DOWN, RESCAN_PAUSE, SendFailure, Settings, Stray, TOKENS, Transport,
};
use lanelect::os::clock;
use lanelect::time::Time;
use lanelect::wire::frame::{EXTENDED_MAX, Mark};
use mio::{Events, Poll, Token};
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns, unshare};
use socket2::{Domain, InterfaceIndexOrAddress, Socket, Type};

/// How long a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

const GROUP: &str = "239.255.76.69:7669";
const GROUP_V6: &str = "[ff15::4c45]:7669";
const GROUP_LINK_LOCAL: &str = "[ff02::4c45]:7669";
const BASE: Token = Token(100);

/// Runs `body` as root of its own network namespace: the current test once more, by its name.
fn isolated(test: &str, body: impl FnOnce()) {
    common::run_inside(test, &["-Urn"], body);
}

/// The same without any capability, after the loopback was brought up.
fn isolated_unprivileged(test: &str, body: impl FnOnce()) {
    let script = "ip link set lo up && \
                  exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \"$0\" \"$@\"";
    common::run_inside(test, &["-Urn", "sh", "-c", script], body);
}

/// A network namespace.
struct Net(File);

/// Sends to the peer that has the address `to`, or by every interface and to all, as long as it may
/// leave.
fn send(
    transport: &mut Transport,
    to: Option<IpAddr>,
    datagram: &str,
    may_leave: impl Fn() -> bool,
) {
    let write = |_, buffer: &mut Vec<u8>| {
        buffer.extend_from_slice(datagram.as_bytes());
        true
    };
    transport.send(to, write, may_leave);
}

impl Net {
    /// The namespace that the test was started in, with its loopback up.
    fn first() -> Net {
        let net = Net::current();
        net.ip("link set lo up");
        net
    }

    /// A new one.
    fn another() -> Net {
        let thread = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            Net::current()
        });
        thread.join().unwrap()
    }

    fn current() -> Net {
        Net(File::open("/proc/thread-self/ns/net").unwrap())
    }

    /// Moves this thread into the namespace. Every use of one enters it first.
    fn enter(&self) {
        setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
    }

    /// A path that leads other processes to the namespace.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd())
    }

    /// Runs `ip` and returns what it prints.
    fn ip(&self, arguments: &str) -> String {
        self.enter();
        let output = Command::new("ip").args(arguments.split_whitespace()).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {arguments}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The kernel tells a carrier a moment after it is there.
    fn await_carrier(&self, interface: &str) {
        until("the carrier", || self.ip(&format!("-br link show {interface}")).contains(" UP "));
    }

    /// Addresses of IPv6 are checked for duplicates before they can be used.
    fn await_addresses(&self, interface: &str) {
        let show = format!("-6 addr show dev {interface} tentative");
        until("the addresses are checked", || self.ip(&show).is_empty());
    }

    fn packets_sent(&self, interface: &str) -> u64 {
        let shown = self.ip(&format!("-s -j link show {interface}"));
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        shown[0]["stats64"]["tx"]["packets"].as_u64().unwrap()
    }

    /// The memberships of IPv4 groups, as the kernel lists them.
    fn memberships(&self) -> String {
        self.enter();
        std::fs::read_to_string("/proc/thread-self/net/igmp").unwrap()
    }
}

/// Joins `a` and `b` by a cable: `interface` on both, with these addresses.
fn cable(a: (&Net, &str), b: (&Net, &str), interface: &str) {
    let (end, far) = (interface, b.0.path());
    a.0.ip(&format!("link add {end} type veth peer name {end} netns {far}"));
    for (net, address) in [a, b] {
        net.ip(&format!("addr add {address} dev {end} nodad"));
        net.ip(&format!("link set {end} up"));
    }
    a.0.await_carrier(end);
    b.0.await_carrier(end);
}

/// A datagram as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Arrival {
    text: String,
    source: IpAddr,
    interface: u32,
    is_routed: bool,
}

/// A transport with the least event loop around it.
struct Host<'a> {
    net: &'a Net,
    poll: Poll,
    transport: Transport,
    arrivals: Vec<Arrival>,
    /// What is not from this LAN, and why.
    strays: Vec<(IpAddr, Stray)>,
    changes: Vec<LinkChange>,
    /// Its node leads, and its hook may add addresses.
    holds: bool,
}

impl<'a> Host<'a> {
    fn new(net: &'a Net, group: &str, interfaces: &[&str]) -> Self {
        Host::with(net, settings(group, interfaces))
    }

    fn with(net: &'a Net, settings: Settings) -> Self {
        net.enter();
        let poll = Poll::new().unwrap();
        let transport = Transport::new(poll.registry(), BASE, settings).unwrap();
        let (arrivals, strays, changes) = Default::default();
        Host { net, poll, transport, arrivals, strays, changes, holds: false }
    }

    /// One that has joined on all its interfaces.
    fn joined(net: &'a Net, group: &str, interfaces: &[&str]) -> Self {
        let mut host = Host::new(net, group, interfaces);
        until("all interfaces are up", || {
            host.turn();
            host.reports().iter().all(|report| report.up)
        });
        host.changes.clear();
        host
    }

    fn rescan(&mut self, now: Time) {
        self.net.enter();
        self.changes.extend(self.transport.rescan(now, self.holds).unwrap());
    }

    /// One turn of the event loop, a short wait included.
    fn turn(&mut self) {
        self.net.enter();
        let mut events = Events::with_capacity(16);
        self.poll.poll(&mut events, Some(Duration::from_millis(5))).unwrap();
        for event in &events {
            self.transport.handle_event(event.token());
        }
        let now = clock::now();
        if self.transport.next_rescan() <= now {
            self.rescan(now);
        }
        while self.transport.has_more() {
            self.receive();
        }
    }

    fn receive(&mut self) -> bool {
        let Some(received) = self.transport.receive() else { return false };
        match received.datagram {
            Ok(datagram) => self.arrivals.push(Arrival {
                text: String::from_utf8(datagram.to_vec()).unwrap(),
                source: received.source,
                interface: received.interface.get(),
                is_routed: received.is_routed,
            }),
            Err(stray) => self.strays.push((received.source, stray)),
        }
        true
    }

    fn send(&mut self, text: &str) {
        self.net.enter();
        send(&mut self.transport, None, text, || true);
    }

    fn reports(&self) -> Vec<InterfaceReport> {
        self.transport.reports()
    }

    fn arrival(&self, text: &str) -> Option<&Arrival> {
        self.arrivals.iter().find(|arrival| arrival.text == text)
    }

    /// Turns until a change satisfies `wanted`, and returns it.
    fn change(&mut self, wanted: impl Fn(&LinkEvent) -> bool) -> LinkChange {
        let mut found = None;
        until("the change is told", || {
            self.turn();
            found = self.changes.iter().find(|change| wanted(&change.event)).cloned();
            found.is_some()
        });
        self.changes.clear();
        found.unwrap()
    }

    /// Looks at the interfaces at once: nothing that was done to them matters.
    fn rescans_without_a_change(&mut self) {
        self.net.enter();
        assert_eq!(self.transport.rescan(clock::now(), false).unwrap(), []);
        assert_eq!(self.changes, []);
    }

    fn loses(&mut self, problem: &Problem) {
        self.change(|event| matches!(event, LinkEvent::Lost(lost) if lost == problem));
        assert!(!self.transport.any_up());
        let report = self.reports().remove(0);
        assert_eq!((report.up, report.address), (false, None));
        assert_eq!(report.problem, Some(problem.to_string()));
    }

    fn joins(&mut self, wanted: JoinCause) {
        self.change(|event| matches!(event, LinkEvent::Joined { cause, .. } if *cause == wanted));
        assert!(self.transport.any_up());
        assert_eq!(self.reports()[0].problem, None);
    }
}

/// A program on a host that sends to the group and is no lanelect.
struct Other<'a> {
    net: &'a Net,
    socket: Socket,
    group: SocketAddr,
}

impl<'a> Other<'a> {
    /// One that sends by `interface`, with so many hops.
    fn new(net: &'a Net, group: &str, interface: &str, hops: u32) -> Self {
        net.enter();
        let group: SocketAddr = group.parse().unwrap();
        let index = NonZeroU32::new(if_nametoindex(interface).unwrap()).unwrap();
        let socket = Socket::new(Domain::for_address(group), Type::DGRAM, None).unwrap();
        if group.is_ipv4() {
            socket.bind_device_by_index_v4(Some(index)).unwrap();
            socket.set_multicast_ttl_v4(hops).unwrap();
        } else {
            socket.bind_device_by_index_v6(Some(index)).unwrap();
            socket.set_multicast_hops_v6(hops).unwrap();
        }
        Other { net, socket, group }
    }

    fn send(&self, text: &str) {
        self.net.enter();
        self.socket.send_to(text.as_bytes(), &self.group.into()).unwrap();
    }
}

fn settings(group: &str, interfaces: &[&str]) -> Settings {
    let group: SocketAddr = group.parse().unwrap();
    let interfaces = interfaces.iter().map(ToString::to_string).collect();
    let (own, peers) = (None, Vec::new());
    Settings {
        group: Some(group),
        interfaces,
        own,
        peers,
        port: 7669,
        sends_only: false,
        requires_key: false,
    }
}

/// Tries until `condition` holds. The conditions themselves wait a little.
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
    }
}

/// Sends from one to the other until it is heard, and returns the first arrival.
fn heard(sender: &mut Host, receiver: &mut Host, text: &str) -> Arrival {
    until(text, || {
        sender.send(text);
        receiver.turn();
        receiver.arrival(text).is_some()
    });
    receiver.arrival(text).unwrap().clone()
}

/// Sends both ways until both are heard.
fn exchange(a: &mut Host, b: &mut Host, text: &str) {
    heard(a, b, &format!("{text}, there"));
    heard(b, a, &format!("{text}, back"));
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn the_loopback_alone_connects_daemons_and_nothing_leaves_by_the_default_route() {
    isolated("the_loopback_alone_connects_daemons_and_nothing_leaves_by_the_default_route", || {
        let net = Net::first();
        net.ip("link add wan type veth peer name provider");
        for end in ["wan", "provider"] {
            // Without IPv6, an interface sends nothing by itself.
            net.ip(&format!("link set {end} addrgenmode none"));
            net.ip(&format!("link set {end} up"));
        }
        net.await_carrier("wan");
        net.ip("addr add 10.9.9.9/24 dev wan");
        net.ip("route add default via 10.9.9.1");

        let mut a = Host::joined(&net, GROUP, &["lo"]);
        let mut b = Host::joined(&net, GROUP, &["lo"]);
        assert_eq!(heard(&mut a, &mut b, "there").source, address("127.0.0.1"));
        assert_eq!(heard(&mut b, &mut a, "back").source, address("127.0.0.1"));
        assert!(a.arrival("there").is_some(), "one hears oneself as well");
        assert_eq!(a.transport.source_address(), Some(address("127.0.0.1")));
        assert_eq!(net.packets_sent("wan"), 0);

        // The counter does count.
        Host::joined(&net, GROUP, &["wan"]).send("away");
        assert!(net.packets_sent("wan") > 0);
    });
}

#[test]
fn what_carries_the_own_mark_is_heard_by_others_alone() {
    isolated("what_carries_the_own_mark_is_heard_by_others_alone", || {
        let net = Net::first();
        for (group, route) in [(GROUP, None), (GROUP_V6, Some("local ff15::4c45/128 dev lo"))] {
            if let Some(route) = route {
                net.ip(&format!("-6 route add {route} table local"));
            }
            let mut marked = settings(group, &["lo"]);
            marked.own = Some(Mark { at: 2, bytes: b"mine, all of it".to_vec() });
            let mut a = Host::with(&net, marked);
            let mut b = Host::joined(&net, group, &["lo"]);
            until("it has joined", || {
                a.turn();
                a.transport.any_up()
            });
            let spared = ["--mine, all of it", "++mine, all of it, and more"];
            let passed =
                ["", "--", "--mine, all of i", "--mine, all of iT", "mine, all of it", "last"];
            for text in spared.into_iter().chain(passed) {
                a.send(text);
            }
            for host in [&mut a, &mut b] {
                until("the last one is heard", || {
                    host.turn();
                    host.arrival("last").is_some()
                });
            }
            let heard = |host: &Host| -> Vec<String> {
                host.arrivals.iter().map(|arrival| arrival.text.clone()).collect()
            };
            assert_eq!(heard(&a), passed);
            assert_eq!(heard(&b), [spared.as_slice(), passed.as_slice()].concat());
        }
    });
}

/// As a copy of a virtual machine sends it: the filter is for the own datagrams that the kernel
/// returns.
#[test]
fn what_carries_the_own_mark_is_heard_if_another_host_sends_it() {
    isolated("what_carries_the_own_mark_is_heard_if_another_host_sends_it", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        for net in [&left, &right] {
            net.await_addresses("lan");
        }
        for group in [GROUP, GROUP_V6, GROUP_LINK_LOCAL] {
            let mut marked = settings(group, &["lan"]);
            marked.own = Some(Mark { at: 0, bytes: b"mine".to_vec() });
            let mut a = Host::with(&left, marked);
            until("it has joined", || {
                a.turn();
                a.transport.any_up()
            });
            let mut neighbour = Host::joined(&left, group, &["lan"]);
            let mut copy = Host::joined(&right, group, &["lan"]);
            heard(&mut a, &mut copy, "mine");
            heard(&mut a, &mut neighbour, "mine");
            heard(&mut copy, &mut a, "mine, says the copy");
            assert_eq!(a.arrival("mine"), None, "{group}: it came back");
        }
    });
}

#[test]
fn no_privilege_is_needed() {
    isolated_unprivileged("no_privilege_is_needed", || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
        let poll = Poll::new().unwrap();
        let settings = settings(GROUP, &["lo"]);
        let mut transport = Transport::new(poll.registry(), BASE, settings).unwrap();
        let changes = transport.rescan(clock::now(), false).unwrap();
        assert!(matches!(changes[0].event, LinkEvent::Joined { .. }), "{changes:?}");
        send(&mut transport, None, "mine", || true);
        assert_eq!(transport.sent(), 1);
    });
}

#[test]
fn two_hosts_hear_each_other_over_ipv4() {
    isolated("two_hosts_hear_each_other_over_ipv4", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        assert_eq!(heard(&mut a, &mut b, "there").source, address("10.0.0.1"));
        assert_eq!(heard(&mut b, &mut a, "back").source, address("10.0.0.2"));
        assert_eq!(a.transport.source_address(), Some(address("10.0.0.1")));
    });
}

#[test]
fn two_hosts_hear_each_other_over_ipv6() {
    isolated("two_hosts_hear_each_other_over_ipv6", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "fd00::1/64"), (&right, "fd00::2/64"), "lan");
        for group in [GROUP_V6, GROUP_LINK_LOCAL] {
            let mut a = Host::joined(&left, group, &["lan"]);
            let mut b = Host::joined(&right, group, &["lan"]);
            let there = heard(&mut a, &mut b, "there");
            assert_eq!(Some(there.source), a.transport.source_address(), "{group}");
            let back = heard(&mut b, &mut a, "back");
            assert_eq!(Some(back.source), b.transport.source_address(), "{group}");
        }
    });
}

#[test]
fn what_a_router_may_have_passed_on_is_no_datagram_of_this_lan() {
    isolated("what_a_router_may_have_passed_on_is_no_datagram_of_this_lan", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        for net in [&left, &right] {
            net.ip("addr add fd00::1/64 dev lan nodad");
            net.await_addresses("lan");
        }
        for group in [GROUP, GROUP_V6, GROUP_LINK_LOCAL] {
            let mut a = Host::joined(&left, group, &["lan"]);
            for hops in [1, 64, 254] {
                Other::new(&right, group, "lan", hops).send("from far away");
            }
            Other::new(&right, group, "lan", 255).send("from here");
            until("the last one is heard", || {
                a.turn();
                a.arrival("from here").is_some()
            });
            assert_eq!(a.arrivals.len(), 1, "{group}: {:?}", a.arrivals);
            let strays: Vec<Stray> = a.strays.iter().map(|(_, stray)| *stray).collect();
            assert_eq!(strays, [1, 64, 254].map(Stray::Hops), "{group}");
            assert_eq!(a.strays[0].0, a.arrivals[0].source, "{group}");
        }
    });
}

#[test]
fn on_the_loopback_only_all_hops_count_too() {
    isolated("on_the_loopback_only_all_hops_count_too", || {
        let net = Net::first();
        let mut a = Host::joined(&net, GROUP, &["lo"]);
        for (hops, text) in [(64, "from somewhere"), (255, "from here")] {
            let other = Other::new(&net, GROUP, "lo", hops);
            // The kernel takes an address of the loopback for a source only where it is told to.
            other.socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST).unwrap();
            other.send(text);
        }
        until("the last one is heard", || {
            a.turn();
            a.arrival("from here").is_some()
        });
        assert_eq!(a.strays, [(address("127.0.0.1"), Stray::Hops(64))]);
    });
}

#[test]
fn what_comes_from_no_address_is_no_neighbour_s() {
    isolated("what_comes_from_no_address_is_no_neighbour_s", || {
        /// The kernel itself drops what comes from no address to another IPv4 group.
        const GROUP_OF_THE_LINK: &str = "224.0.0.77:7669";
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&left, GROUP_OF_THE_LINK, &["lan"]);
        let other = Other::new(&right, GROUP_OF_THE_LINK, "lan", 255);
        right.ip("addr flush dev lan");
        other.send("from nobody");
        right.ip("addr add 192.168.7.7/32 dev lan");
        other.send("from another subnet");
        until("the last one is heard", || {
            a.turn();
            a.arrival("from another subnet").is_some()
        });
        assert_eq!(a.arrivals[0].source, address("192.168.7.7"));
        assert_eq!(a.strays, [(address("0.0.0.0"), Stray::Source)]);
    });
}

#[test]
fn ipv6_on_the_loopback_asks_for_a_route_and_works_with_it() {
    isolated("ipv6_on_the_loopback_asks_for_a_route_and_works_with_it", || {
        let net = Net::first();
        let mut a = Host::new(&net, GROUP_V6, &["lo"]);
        let (group, interface) = (address("ff15::4c45"), "lo".to_owned());
        a.loses(&Problem::Unroutable { group, interface, kind: "local" });
        net.ip("-6 route add local ff15::4c45/128 dev lo table local");
        a.joins(JoinCause::FirstUse);
        let mut b = Host::joined(&net, GROUP_V6, &["lo"]);
        exchange(&mut a, &mut b, "over ::1");
        assert_eq!(a.transport.source_address(), Some(address("::1")));
    });
}

#[test]
fn a_missing_interface_is_waited_for() {
    isolated("a_missing_interface_is_waited_for", || {
        let (left, right) = (Net::first(), Net::another());
        let mut a = Host::new(&left, GROUP, &["lan"]);
        a.loses(&Problem::Missing);
        left.ip("link add lan type veth peer name far");
        a.loses(&Problem::Down);
        left.ip("link del lan");
        a.loses(&Problem::Missing);
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        a.joins(JoinCause::FirstUse);
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        exchange(&mut a, &mut b, "at last");
    });
}

#[test]
fn a_lost_carrier_is_noticed_and_so_is_its_return() {
    isolated("a_lost_carrier_is_noticed_and_so_is_its_return", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        for round in ["first", "second"] {
            right.ip("link set lan down");
            a.loses(&Problem::NoCarrier);
            b.loses(&Problem::Down);
            let sent = a.transport.sent();
            a.send("into the void");
            assert_eq!(a.transport.sent(), sent);
            right.ip("link set lan up");
            a.joins(JoinCause::Recovered);
            b.joins(JoinCause::Recovered);
            exchange(&mut a, &mut b, round);
        }
    });
}

#[test]
fn an_interface_that_is_created_anew_is_joined_anew() {
    isolated("an_interface_that_is_created_anew_is_joined_anew", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        let first = heard(&mut b, &mut a, "before").interface;
        // No turn in between: both see one interface turn into another.
        left.ip("link del lan");
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        a.joins(JoinCause::Recreated);
        b.joins(JoinCause::Recreated);
        exchange(&mut a, &mut b, "after");
        assert_ne!(heard(&mut b, &mut a, "number").interface, first);
    });
}

#[test]
fn a_membership_lost_unseen_is_renewed_in_time() {
    isolated("a_membership_lost_unseen_is_renewed_in_time", || {
        let (left, right) = (Net::first(), Net::another());
        let group = "454CFFEF"; // 239.255.76.69 as the kernel prints it
        let cable = || {
            let far = right.path();
            left.ip(&format!("link add lan index 77 type veth peer name lan index 77 netns {far}"));
            for (net, address) in [(&left, "10.0.0.1/24"), (&right, "10.0.0.2/24")] {
                net.ip(&format!("addr add {address} dev lan"));
                net.ip("link set lan up");
            }
            left.await_carrier("lan");
        };
        cable();
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        assert!(left.memberships().contains(group));
        // The same number again: nothing tells this interface from the one before.
        left.ip("link del lan");
        cable();
        assert!(!left.memberships().contains(group));
        left.enter();
        a.transport.rescan(clock::now() + REJOIN_INTERVAL, false).unwrap();
        assert!(left.memberships().contains(group));
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        exchange(&mut a, &mut b, "renewed");

        left.ip("link del lan");
        cable();
        left.enter();
        let soon = clock::now() + REJOIN_INTERVAL + Duration::from_secs(1);
        a.transport.announce_anew(soon);
        assert!(!left.memberships().contains(group), "it was announced just now");
        a.transport.announce_anew(soon + REJOIN_INTERVAL / 10);
        assert!(left.memberships().contains(group), "somebody fell silent");
    });
}

#[test]
fn a_changed_address_is_the_new_source() {
    isolated("a_changed_address_is_the_new_source", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        let mut b = Host::joined(&right, GROUP, &["lan"]);

        // A service address, as a hook adds it, changes nothing.
        left.ip("addr add 10.0.0.100/32 dev lan label lan:vip");
        assert_eq!(heard(&mut a, &mut b, "with a service address").source, address("10.0.0.1"));
        left.ip("addr del 10.0.0.100/32 dev lan");

        left.ip("addr add 10.1.0.1/24 dev lan");
        left.ip("addr del 10.0.0.1/24 dev lan");
        a.joins(JoinCause::Readdressed);
        assert_eq!(heard(&mut a, &mut b, "moved").source, address("10.1.0.1"));
        exchange(&mut a, &mut b, "moved");

        left.ip("addr flush dev lan");
        a.loses(&Problem::NoAddress { family: "IPv4" });
    });
}

#[test]
fn a_floating_ipv6_address_changes_nothing() {
    isolated("a_floating_ipv6_address_changes_nothing", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "fd00::1/64"), (&right, "fd00::2/64"), "lan");
        left.await_addresses("lan");
        right.await_addresses("lan");
        let add = || left.ip("addr add fd00::99/128 dev lan nodad");
        let remove = || left.ip("addr del fd00::99/128 dev lan");
        for group in [GROUP_V6, GROUP_LINK_LOCAL] {
            let mut a = Host::joined(&left, group, &["lan"]);
            let mut b = Host::joined(&right, group, &["lan"]);
            let own = a.transport.source_address().unwrap();
            assert_eq!(own == address("fd00::1"), group == GROUP_V6, "{group}: {own}");
            for round in ["first", "second"] {
                add();
                assert_eq!(heard(&mut a, &mut b, &format!("{round}, with it")).source, own);
                a.rescans_without_a_change();
                remove();
                assert_eq!(heard(&mut a, &mut b, &format!("{round}, without")).source, own);
                a.rescans_without_a_change();
            }
            // It is not taken for the host's own by a daemon that starts while it is there.
            add();
            let mut anew = Host::joined(&left, group, &["lan"]);
            assert_eq!(heard(&mut anew, &mut b, "from a second daemon").source, own);
            remove();
        }
    });
}

#[test]
fn a_changed_ipv6_address_is_the_new_source() {
    isolated("a_changed_ipv6_address_is_the_new_source", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "fd00::1/64"), (&right, "fd00::2/64"), "lan");
        let mut a = Host::joined(&left, GROUP_V6, &["lan"]);
        let mut b = Host::joined(&right, GROUP_V6, &["lan"]);
        left.ip("addr add fd00::3/64 dev lan nodad");
        left.ip("addr del fd00::1/64 dev lan");
        // Sent before any event was looked at: by no other address.
        a.send("from nowhere");
        assert_eq!((a.transport.sent(), a.transport.send_errors()), (0, 1));
        a.joins(JoinCause::Readdressed);
        assert_eq!(heard(&mut a, &mut b, "moved").source, address("fd00::3"));
    });
}

#[test]
fn an_address_that_is_still_checked_for_duplicates_is_waited_for() {
    isolated("an_address_that_is_still_checked_for_duplicates_is_waited_for", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        left.ip("addr flush dev lan");
        let mut a = Host::new(&left, GROUP_V6, &["lan"]);
        a.loses(&Problem::NoAddress { family: "IPv6" });
        left.ip("addr add fd00::1/64 dev lan");
        a.joins(JoinCause::FirstUse);
        a.send("ready");
        assert_eq!((a.transport.sent(), a.transport.send_errors()), (1, 0));
    });
}

#[test]
fn a_source_is_taken_again_after_the_carrier_was_gone() {
    isolated("a_source_is_taken_again_after_the_carrier_was_gone", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        right.ip("link set lan down");
        a.loses(&Problem::NoCarrier);
        // An address of a narrower scope comes first in the kernel's order.
        left.ip("addr add 10.0.0.99/25 dev lan scope link");
        right.ip("link set lan up");
        a.joins(JoinCause::Recovered);
        assert_eq!(a.transport.source_address(), Some(address("10.0.0.1")));
        let mut anew = Host::joined(&left, GROUP, &["lan"]);
        assert_eq!(anew.transport.source_address(), Some(address("10.0.0.99")), "it is first");
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        assert_eq!(heard(&mut a, &mut b, "as before").source, address("10.0.0.1"));
        exchange(&mut anew, &mut b, "from the other");
    });
}

#[test]
fn a_send_after_the_address_went_never_uses_another_source() {
    isolated("a_send_after_the_address_went_never_uses_another_source", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        left.ip("addr flush dev lan");
        left.ip("addr add 10.7.7.7/32 dev lo");
        // Sent before any event was looked at.
        let before = a.transport.sent();
        a.send("from nowhere");
        assert_eq!((a.transport.sent(), a.transport.send_errors()), (before, 1));
    });
}

#[test]
fn only_the_configured_interface_is_heard() {
    isolated("only_the_configured_interface_is_heard", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        cable((&left, "10.1.0.1/24"), (&right, "10.1.0.2/24"), "other");
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        // Keeps the group joined on the other interface, too.
        let mut witness = Host::joined(&left, GROUP, &["other"]);
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        let mut node = Host::joined(&right, GROUP, &["other"]);
        heard(&mut node, &mut witness, "not for you");
        heard(&mut b, &mut a, "for you");
        assert_eq!(a.arrival("not for you"), None);
    });
}

#[test]
fn each_interface_carries_a_copy_even_with_one_address_on_both() {
    isolated("each_interface_carries_a_copy_even_with_one_address_on_both", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan0");
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan1");
        let mut a = Host::joined(&left, GROUP, &["lan0", "lan1"]);
        let mut b = Host::joined(&right, GROUP, &["lan0", "lan1"]);
        a.send("twice");
        assert_eq!((a.transport.sent(), a.transport.send_errors()), (2, 0));
        until("both copies arrive", || {
            b.turn();
            b.arrivals.len() >= 2
        });
        let interfaces: Vec<u32> = b.arrivals.iter().map(|arrival| arrival.interface).collect();
        assert_ne!(interfaces[0], interfaces[1]);
        assert!(b.arrivals.iter().all(|arrival| arrival.source == address("10.0.0.1")));
    });
}

#[test]
fn without_an_interface_the_kernels_route_is_found_and_kept() {
    isolated("without_an_interface_the_kernels_route_is_found_and_kept", || {
        let (left, right) = (Net::first(), Net::another());
        let mut a = Host::new(&left, GROUP, &[]);
        let no_route = a.change(|event| matches!(event, LinkEvent::Lost(Problem::NoRoute(_))));
        assert!(no_route.to_string().contains("set `interface`"), "{no_route}");

        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let choice = a.change(|event| matches!(event, LinkEvent::Lost(Problem::NoRoute(_))));
        assert!(choice.to_string().contains("set `interface` to lan"), "{choice}");

        left.ip("route add 239.0.0.0/8 dev lan");
        a.joins(JoinCause::FirstUse);
        assert_eq!(a.reports()[0].name, "lan");

        // A better route later, as of a VPN, does not move the election.
        cable((&left, "10.1.0.1/24"), (&right, "10.1.0.2/24"), "vpn");
        left.ip("route add 239.255.0.0/16 dev vpn");
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        exchange(&mut a, &mut b, "still here");
        assert_eq!(a.reports()[0].name, "lan");

        left.ip("link del lan");
        a.change(|event| matches!(event, LinkEvent::Joined { .. }));
        assert_eq!(a.reports()[0].name, "vpn");
    });
}

#[test]
fn a_route_that_moves_away_from_a_dead_interface_is_followed() {
    isolated("a_route_that_moves_away_from_a_dead_interface_is_followed", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "old");
        cable((&left, "10.1.0.1/24"), (&right, "10.1.0.2/24"), "new");
        left.ip("route add 239.0.0.0/8 dev old");
        let mut a = Host::joined(&left, GROUP, &[]);
        assert_eq!(a.reports()[0].name, "old");

        // While the route stays, so does the daemon.
        right.ip("link set old down");
        a.loses(&Problem::NoCarrier);
        right.ip("link set old up");
        a.joins(JoinCause::Recovered);
        assert_eq!(a.reports()[0].name, "old");

        right.ip("link set old down");
        a.loses(&Problem::NoCarrier);
        left.ip("route replace 239.0.0.0/8 dev new");
        a.joins(JoinCause::Rerouted);
        assert_eq!(a.reports()[0].name, "new");
        let mut b = Host::joined(&right, GROUP, &["new"]);
        exchange(&mut a, &mut b, "on the other cable");

        // The way back is a change of the network like any other.
        right.ip("link set old up");
        left.ip("route replace 239.0.0.0/8 dev old");
        exchange(&mut a, &mut b, "still there");
        assert_eq!(a.reports()[0].name, "new");

        // Without any route left, the interface that it led to is the one to look at.
        right.ip("link set new down");
        left.ip("route del 239.0.0.0/8");
        a.loses(&Problem::NoCarrier);
        assert_eq!(a.reports()[0].name, "new");
    });
}

#[test]
fn what_the_kernel_refuses_is_counted_and_told_once() {
    isolated("what_the_kernel_refuses_is_counted_and_told_once", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        let too_long = "x".repeat(70_000);
        a.send(&too_long);
        let told = a.change(|event| matches!(event, LinkEvent::SendFailing(_)));
        assert_eq!(told.event, LinkEvent::SendFailing(SendFailure::Other(Errno::EMSGSIZE)));
        assert!(told.is_loss() && a.transport.any_up());
        assert!(a.reports()[0].problem.as_ref().is_some_and(|text| text.contains("EMSGSIZE")));
        for _ in 0..5 {
            a.send(&too_long);
        }
        left.enter();
        assert_eq!(a.transport.rescan(clock::now(), false).unwrap(), []);
        assert_eq!((a.transport.sent(), a.transport.send_errors()), (0, 6));

        a.send("short");
        left.enter();
        let changes = a.transport.rescan(clock::now(), false).unwrap();
        assert_eq!(changes[0].event, LinkEvent::SendRecovered);
        assert_eq!(a.reports()[0].problem, None);
    });
}

/// A program on `net` that has bound `address`, and shares it with others that want to if it
/// `shares`.
fn bind(net: &Net, address: &str, shares: bool) -> Socket {
    net.enter();
    let address: SocketAddr = address.parse().unwrap();
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
    socket.set_reuse_address(shares).unwrap();
    socket.set_reuse_port(shares).unwrap();
    socket.bind(&address.into()).unwrap();
    socket
}

#[test]
fn port_that_another_program_has_taken_is_reported_and_used_when_it_is_free() {
    isolated("port_that_another_program_has_taken_is_reported_and_used_when_it_is_free", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let port = GROUP.rsplit_once(':').unwrap().1;
        for address in [format!("0.0.0.0:{port}"), format!("[::]:{port}"), GROUP.to_owned()] {
            let taken = bind(&left, &address, false);
            let mut a = Host::new(&left, GROUP, &["lan"]);
            let holders = vec![nix::unistd::geteuid().as_raw()];
            a.loses(&Problem::PortTaken { port: port.parse().unwrap(), holders });
            drop(taken);
            a.joins(JoinCause::FirstUse);
        }
    });
}

#[test]
fn programs_that_share_the_port_take_no_datagram_away() {
    isolated("programs_that_share_the_port_take_no_datagram_away", || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan");
        let any = format!("0.0.0.0:{}", GROUP.rsplit_once(':').unwrap().1);
        let index = if_nametoindex("lan").unwrap();
        let group: SocketAddr = GROUP.parse().unwrap();
        let IpAddr::V4(group) = group.ip() else { unreachable!("an IPv4 group") };
        let listen = || {
            [&any, GROUP].map(|address| {
                let socket = bind(&left, address, true);
                let interface = InterfaceIndexOrAddress::Index(index);
                socket.join_multicast_v4_n(&group, &interface).unwrap();
                socket
            })
        };
        let early = [listen(), listen(), listen()];
        let mut a = Host::joined(&left, GROUP, &["lan"]);
        let late = [listen(), listen(), listen()];
        let mut b = Host::joined(&right, GROUP, &["lan"]);
        for number in 0..50 {
            heard(&mut b, &mut a, &format!("datagram {number}"));
        }
        drop((early, late));
    });
}

#[test]
fn a_reader_that_stops_early_is_told_that_there_is_more_from_every_interface() {
    let name = "a_reader_that_stops_early_is_told_that_there_is_more_from_every_interface";
    isolated(name, || {
        let (left, right) = (Net::first(), Net::another());
        cable((&left, "10.0.0.1/24"), (&right, "10.0.0.2/24"), "lan0");
        cable((&left, "10.1.0.1/24"), (&right, "10.1.0.2/24"), "lan1");
        let mut a = Host::joined(&left, GROUP, &["lan0", "lan1"]);
        let mut b = Host::joined(&right, GROUP, &["lan0", "lan1"]);
        for _ in 0..20 {
            a.send("one of twenty");
        }
        let mut readable = HashSet::new();
        until("both interfaces hold something", || {
            let mut events = Events::with_capacity(16);
            b.poll.poll(&mut events, Some(Duration::from_millis(5))).unwrap();
            for event in &events {
                b.transport.handle_event(event.token());
                readable.insert(event.token());
            }
            readable.contains(&Token(BASE.0 + 1)) && readable.contains(&Token(BASE.0 + 2))
        });
        assert!(b.receive() && b.receive());
        assert_ne!(b.arrivals[0].interface, b.arrivals[1].interface, "they take turns");
        assert!(b.transport.has_more());
        until("all are read", || {
            b.turn();
            b.arrivals.len() == 40
        });
        assert!(!b.transport.has_more());
    });
}

#[test]
fn a_datagram_that_is_too_long_is_recognisable_and_leaves_the_next_alone() {
    isolated("a_datagram_that_is_too_long_is_recognisable_and_leaves_the_next_alone", || {
        let net = Net::first();
        let mut a = Host::joined(&net, GROUP, &["lo"]);
        a.send(&"x".repeat(EXTENDED_MAX + 100));
        a.send(&"y".repeat(EXTENDED_MAX));
        until("both arrive", || {
            a.turn();
            a.arrivals.len() == 2
        });
        let lengths: Vec<usize> = a.arrivals.iter().map(|arrival| arrival.text.len()).collect();
        assert_eq!(lengths, [EXTENDED_MAX + 1, EXTENDED_MAX]);
    });
}

#[test]
fn rescans_are_frequent_while_nothing_is_up_and_rare_afterwards() {
    isolated("rescans_are_frequent_while_nothing_is_up_and_rare_afterwards", || {
        let net = Net::first();
        net.enter();
        let poll = Poll::new().unwrap();
        let interfaces = settings(GROUP, &["lan"]);
        let mut transport = Transport::new(poll.registry(), BASE, interfaces).unwrap();
        assert_eq!(transport.next_rescan(), Time::ZERO);
        let now = clock::now();
        transport.rescan(now, false).unwrap();
        assert_eq!(transport.next_rescan(), now + RESCAN_INTERVAL_DOWN);
        assert_eq!(transport.rescan(now, false).unwrap(), [], "nothing is told twice");

        net.ip("link add lan type bridge");
        transport.handle_event(BASE);
        assert_eq!(transport.next_rescan(), now + RESCAN_PAUSE);

        net.ip("link del lan");
        cable((&net, "10.0.0.1/24"), (&Net::another(), "10.0.0.2/24"), "lan");
        net.enter();
        transport.handle_event(BASE);
        let mut now = now;
        // The kernel reports the carrier a little later.
        until("the interface is up", || {
            now += RESCAN_INTERVAL_DOWN;
            transport.rescan(now, false).unwrap();
            transport.any_up()
        });
        assert_eq!(transport.next_rescan(), now + RESCAN_INTERVAL);
    });
}

#[test]
fn events_of_others_are_harmless() {
    let poll = Poll::new().unwrap();
    let interfaces = settings(GROUP, &["no-such-if"]);
    let mut transport = Transport::new(poll.registry(), BASE, interfaces).unwrap();
    for token in BASE.0 - 1..=BASE.0 + TOKENS {
        transport.handle_event(Token(token));
    }
    assert!(!transport.has_more());
}

#[test]
fn the_monitor_survives_more_changes_than_its_queue_holds() {
    isolated("the_monitor_survives_more_changes_than_its_queue_holds", || {
        let net = Net::first();
        let poll = Poll::new().unwrap();
        let mut monitor = Monitor::new(poll.registry(), BASE).unwrap();
        assert!(!monitor.drain());
        let batch: String = (0..4_000)
            .map(|n| format!("addr add 10.0.{}.{}/32 dev lo\n", n / 250, n % 250))
            .collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), batch).unwrap();
        net.ip(&format!("-batch {}", file.path().display()));
        let sockets = std::fs::read_to_string("/proc/thread-self/net/netlink").unwrap();
        let drops = sockets.lines().skip(1).filter_map(|line| line.split_whitespace().nth(8));
        assert!(drops.clone().any(|count| count != "0"), "the queue did not overflow: {sockets}");
        assert!(monitor.drain());
        assert!(!monitor.drain());
        net.ip("addr del 10.0.0.1/32 dev lo");
        assert!(monitor.drain());
    });
}

/// A leader's service address stays meanwhile.
#[test]
fn the_own_address_is_the_source_again_when_it_is_back() {
    isolated("the_own_address_is_the_source_again_when_it_is_back", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&one, GROUP, &["lan"]);
        a.holds = true;
        one.ip("addr add 10.0.0.100/25 dev lan");
        one.ip("addr del 10.0.0.1/24 dev lan");
        a.joins(JoinCause::Readdressed);
        assert_eq!(a.transport.source_address(), Some(address("10.0.0.100")));
        one.ip("addr add 10.0.0.1/24 dev lan");
        a.joins(JoinCause::Readdressed);
        assert_eq!(a.transport.source_address(), Some(address("10.0.0.1")));
    });
}

/// As when the lease of a leader's address has ended.
#[test]
fn another_own_address_is_the_source_and_not_a_service_address() {
    isolated("another_own_address_is_the_source_and_not_a_service_address", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&one, GROUP, &["lan"]);
        a.holds = true;
        one.ip("addr add 10.0.0.100/32 dev lan");
        one.ip("addr del 10.0.0.1/24 dev lan");
        a.joins(JoinCause::Readdressed);
        one.ip("addr add 10.0.0.7/24 dev lan");
        a.joins(JoinCause::Readdressed);
        assert_eq!(a.transport.source_address(), Some(address("10.0.0.7")));
    });
}

/// Such as that of the server which clients knew before there were two.
#[test]
fn a_former_own_address_may_become_the_service_address() {
    isolated("a_former_own_address_may_become_the_service_address", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.10/24"), (&two, "10.0.0.2/24"), "lan");
        let mut a = Host::joined(&one, GROUP, &["lan"]);
        one.ip("addr del 10.0.0.10/24 dev lan");
        one.ip("addr add 10.0.0.11/24 dev lan");
        a.change(|event| {
            matches!(event, LinkEvent::Joined { endpoint, .. }
            if endpoint.address == address("10.0.0.11"))
        });
        a.holds = true;
        one.ip("addr add 10.0.0.10/24 dev lan");
        a.rescan(clock::now());
        assert_eq!(a.transport.source_address(), Some(address("10.0.0.11")));
    });
}

#[test]
fn an_address_is_its_interface_s_whatever_label_it_has() {
    isolated("an_address_is_its_interface_s_whatever_label_it_has", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        for (host, label) in [(100, "lanvip"), (101, "lan:vip")] {
            one.ip(&format!("addr add 10.0.0.{host}/32 dev lan label {label}"));
        }
        one.enter();
        let interfaces = Interfaces::scan().unwrap();
        let lan: Vec<_> = interfaces.get("lan").unwrap().addresses.iter().map(|it| it.ip).collect();
        for host in ["10.0.0.1", "10.0.0.100", "10.0.0.101"] {
            assert!(lan.contains(&address(host)), "{lan:?}");
        }
    });
}
