//! The harness itself: that it isolates, and that its switch does what it is told.

use std::env;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::harness::carrier::{Carrier, EXCLUDED};
use crate::harness::host::ip;
use crate::harness::inside::{self, isolated, run_isolated};
use crate::harness::switch::Rule;
use crate::harness::{Host, scenario, wait_for, wait_until};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 76, 1);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x4c01);
const PORT: u16 = 7000;

#[test]
fn multicast_reaches_the_other_hosts() {
    scenario(|_, [h1, h2, h3]| {
        let (a, b, c) = (Probe::new(h1), Probe::new(h2), Probe::new(h3));
        a.send("hello");
        for probe in [&b, &c] {
            assert_eq!(probe.hear(), "hello");
        }
        b.send("back");
        assert_eq!(a.hear(), "back");
    });
}

#[test]
fn ipv6_multicast_reaches_the_other_hosts() {
    scenario(|_, [h1, h2]| {
        if !h1.has_ipv6() {
            return println!("skipped: no IPv6 here");
        }
        let (a, b) = (Probe::new_v6(h1), Probe::new_v6(h2));
        a.send("hello");
        assert_eq!(b.hear(), "hello");
    });
}

#[test]
fn a_cut_host_hears_nothing_and_is_not_heard() {
    scenario(|lan, [h1, h2, h3]| {
        let (a, b, c) = (Probe::new(h1), Probe::new(h2), Probe::new(h3));
        lan.cut(h3);
        a.send("one");
        c.send("two");
        assert_eq!(b.hear(), "one");
        // Frames keep their order, so what was cut would be heard before what comes now.
        wait_until("the switch has seen both", || lan.datagrams_from(h3) == 1);
        lan.heal();
        a.send("three");
        assert_eq!(b.hear(), "three");
        assert_eq!(c.hear(), "three");
        assert_eq!(a.heard(), "");
    });
}

#[test]
fn a_deaf_host_is_heard_and_a_mute_one_hears() {
    scenario(|lan, [h1, h2, h3]| {
        let (a, b, c) = (Probe::new(h1), Probe::new(h2), Probe::new(h3));
        lan.deafen(h1);
        lan.mute(h2);
        b.send("mute");
        a.send("deaf");
        assert_eq!(b.hear(), "deaf");
        assert_eq!(c.hear(), "deaf");
        c.send("not for the deaf");
        assert_eq!(b.hear(), "not for the deaf");
        lan.heal();
        b.send("healed");
        assert_eq!(a.hear(), "healed");
    });
}

#[test]
fn a_partition_keeps_groups_together() {
    scenario(|lan, [h1, h2, h3]| {
        let (a, b, c) = (Probe::new(h1), Probe::new(h2), Probe::new(h3));
        lan.partition(&[&[h1, h2], &[h3]]);
        a.send("inside");
        assert_eq!(b.hear(), "inside");
        lan.heal();
        a.send("again");
        assert_eq!(c.hear(), "again");
    });
}

#[test]
fn frames_are_lost_duplicated_and_reordered_as_told() {
    scenario(|lan, [h1, h2]| {
        let (a, b) = (Probe::new(h1), Probe::new(h2));
        let heard_of = |rule: Rule, expected: &dyn Fn(&[usize]) -> bool| {
            lan.everywhere(&rule);
            let seen = lan.datagrams_from(h1);
            (0..100).for_each(|n: usize| a.send(&n.to_string()));
            wait_until("the switch has seen all", || lan.datagrams_from(h1) == seen + 100);
            lan.heal();
            a.send("end");
            let mut heard = Vec::new();
            let mut ended = false;
            wait_until(&format!("what is heard fits {rule:?}"), || {
                while let Some(text) = b.receive() {
                    ended |= text == "end";
                    heard.extend(text.parse::<usize>());
                }
                ended && expected(&heard)
            });
        };
        let lossy = Rule { loss: 0.5, ..Rule::default() };
        heard_of(lossy, &|heard| (20..80).contains(&heard.len()) && heard.is_sorted());
        let twice = Rule { duplicate: 1.0, ..Rule::default() };
        heard_of(twice, &|heard| heard.len() == 200);
        let slow = Rule { delay: Duration::ZERO..=Duration::from_millis(20), ..Rule::default() };
        heard_of(slow, &|heard| heard.len() == 100 && !heard.is_sorted());
    });
}

#[test]
fn an_interface_can_be_deleted_and_made_again() {
    scenario(|_, [h1, h2]| {
        h2.delete_interface(0);
        h2.recreate_interface(0);
        let (a, b) = (Probe::new(h1), Probe::new(h2));
        a.send("hello");
        assert_eq!(b.hear(), "hello");
    });
}

#[test]
fn a_host_has_its_own_name() {
    scenario(|_, [h1, h2]| {
        for host in [h1, h2] {
            let name = host.run(|| nix::unistd::gethostname().unwrap());
            assert_eq!(name.to_str(), Some(host.name.as_str()));
        }
    });
}

/// Runs real daemons below a namespace that stands in for the machine: one interface with the
/// route to everywhere and to the group.
#[test]
fn nothing_is_sent_on_the_machines_own_interfaces() {
    let body = |_| {
        ip("link add machine0 type veth peer name machine1");
        ip("link set machine1 addrgenmode none up");
        ip("link set machine0 addrgenmode none up");
        ip("addr add 192.0.2.1/24 dev machine0");
        ip("route add default dev machine0");
        ip("route add 224.0.0.0/4 dev machine0");
        assert_eq!(frames_sent("machine0"), 0);
        run_isolated("selftest::multicast_reaches_the_other_hosts");
        run_isolated("startup::hosts_that_start_together_end_up_with_one_leader");
        assert_eq!(frames_sent("machine0"), 0);
        // The counter would have shown it.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.send_to(b"hello", (GROUP, PORT)).unwrap();
        assert_eq!(frames_sent("machine0"), 1);
    };
    isolated(inside::test_name(&body), body);
}

fn frames_sent(interface: &str) -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = table.lines().find(|line| line.trim_start().starts_with(interface)).unwrap();
    line.split_whitespace().nth(10).unwrap().parse().unwrap()
}

/// A socket on a host that sends to the group and hears it, not itself.
struct Probe {
    socket: UdpSocket,
    group: SocketAddr,
}

impl Probe {
    fn new(host: &Host) -> Probe {
        let address = host.address(0).parse().unwrap();
        let socket = host.run(|| {
            let socket = bound(Domain::IPV4, (GROUP, PORT).into());
            socket.join_multicast_v4(&GROUP, &address).unwrap();
            socket.set_multicast_if_v4(&address).unwrap();
            socket.set_multicast_loop_v4(false).unwrap();
            socket
        });
        Probe { socket: socket.into(), group: (GROUP, PORT).into() }
    }

    fn new_v6(host: &Host) -> Probe {
        let socket = host.run(|| {
            let index = nix::net::if_::if_nametoindex("eth0").unwrap();
            let socket = bound(Domain::IPV6, (GROUP_V6, PORT).into());
            socket.join_multicast_v6(&GROUP_V6, index).unwrap();
            socket.set_multicast_if_v6(index).unwrap();
            socket.set_multicast_loop_v6(false).unwrap();
            socket
        });
        Probe { socket: socket.into(), group: (GROUP_V6, PORT).into() }
    }

    fn send(&self, text: &str) {
        self.socket.send_to(text.as_bytes(), self.group).unwrap();
    }

    /// The next datagram; waits for it.
    #[track_caller]
    fn hear(&self) -> String {
        wait_for("a datagram arrives", || self.receive())
    }

    /// The next datagram where one is there, or nothing.
    fn heard(&self) -> String {
        self.receive().unwrap_or_default()
    }

    fn receive(&self) -> Option<String> {
        let mut buffer = [0; 64];
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }
}

fn bound(domain: Domain, address: SocketAddr) -> Socket {
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket.bind(&address.into()).unwrap();
    socket
}

#[test]
fn excluded_scenarios_exist_and_have_a_reason() {
    let listed = Command::new(env::current_exe().unwrap()).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let tests: Vec<_> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    for (name, carriers, why) in EXCLUDED {
        let is_there = |test: &&str| match name.ends_with("::") {
            true => test.starts_with(name),
            false => test == name,
        };
        assert!(tests.iter().any(is_there), "there is no test {name}");
        assert!(!carriers.contains(&Carrier::Multicast) && !carriers.is_empty(), "{name}");
        assert!(why.len() > 20, "{name} needs a reason");
    }
}
