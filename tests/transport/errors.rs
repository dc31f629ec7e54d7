//! ICMP errors that a stranger on the LAN sends.

use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

use super::{GROUP, GROUP_LINK_LOCAL, GROUP_V6, Host, Net, address, cable, isolated, until};

/// The protocol number of UDP.
const UDP: u8 = 17;

/// A stranger that reports to `victim` that a datagram could not be delivered which left with the
/// group's address and port as its source. No host ever sends such a datagram, but the kernel gives
/// the error to the socket that is bound there.
struct Stranger<'a> {
    net: &'a Net,
    socket: Socket,
    victim: SocketAddr,
    error: Vec<u8>,
}

impl<'a> Stranger<'a> {
    fn new(net: &'a Net, group: &str, victim: &str) -> Self {
        net.enter();
        let (group, victim): (SocketAddr, _) = (group.parse().unwrap(), address(victim));
        let protocol = if group.is_ipv4() { Protocol::ICMPV4 } else { Protocol::ICMPV6 };
        let socket = Socket::new(Domain::for_address(group), Type::RAW, Some(protocol)).unwrap();
        let error = port_unreachable(&quote(group, victim), group.is_ipv4());
        Stranger { net, socket, victim: SocketAddr::new(victim, 0), error }
    }

    fn send(&self) {
        self.net.enter();
        self.socket.send_to(&self.error, &self.victim.into()).unwrap();
    }
}

/// The beginning of a datagram from `source` to its port at `to`.
fn quote(source: SocketAddr, to: IpAddr) -> Vec<u8> {
    let mut header = match (source.ip(), to) {
        (IpAddr::V4(source), IpAddr::V4(to)) => {
            let start = [0x45, 0, 0, 28, 0, 0, 0, 0, 255, UDP, 0, 0];
            [start.as_slice(), &source.octets(), &to.octets()].concat()
        }
        (IpAddr::V6(source), IpAddr::V6(to)) => {
            let start = [0x60, 0, 0, 0, 0, 8, UDP, 255];
            [start.as_slice(), &source.octets(), &to.octets()].concat()
        }
        _ => unreachable!("one family"),
    };
    let port = source.port().to_be_bytes();
    header.extend([port, port, 8u16.to_be_bytes(), [0, 0]].concat());
    header
}

fn port_unreachable(quote: &[u8], is_ipv4: bool) -> Vec<u8> {
    let (kind, code) = if is_ipv4 { (3, 3) } else { (1, 4) };
    let mut error = [&[kind, code, 0, 0, 0, 0, 0, 0], quote].concat();
    // That of ICMPv6 the kernel computes.
    if is_ipv4 {
        let words = error.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
        error[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    error
}

/// The number of the socket on the group's port.
fn socket_of(net: &Net) -> String {
    net.enter();
    let tables = ["udp", "udp6"].map(|table| format!("/proc/thread-self/net/{table}"));
    let sockets = tables.map(|table| std::fs::read_to_string(table).unwrap()).concat();
    let line = sockets.lines().find(|line| line.contains(":1DF5 ")).unwrap();
    line.split_whitespace().nth(9).unwrap().to_owned()
}

#[test]
fn forged_icmp_error_for_the_group_costs_neither_socket_nor_datagram() {
    isolated("errors::forged_icmp_error_for_the_group_costs_neither_socket_nor_datagram", || {
        let (one, two) = (Net::first(), Net::another());
        cable((&one, "10.0.0.1/24"), (&two, "10.0.0.2/24"), "lan");
        for (net, own) in [(&one, "fd00::1/64"), (&two, "fd00::2/64")] {
            net.ip(&format!("addr add {own} dev lan nodad"));
            net.await_addresses("lan");
        }
        let victims = [(GROUP, "10.0.0.1"), (GROUP_V6, "fd00::1"), (GROUP_LINK_LOCAL, "fd00::1")];
        for (group, victim) in victims {
            let mut a = Host::joined(&one, group, &["lan"]);
            let mut b = Host::joined(&two, group, &["lan"]);
            let stranger = Stranger::new(&two, group, victim);
            let before = socket_of(&one);
            for number in 0..200 {
                stranger.send();
                a.send(&number.to_string());
                b.turn();
                a.turn();
            }
            until("the other host has all", || {
                b.turn();
                (0..200).all(|number| b.arrival(&number.to_string()).is_some())
            });
            assert_eq!((a.transport.send_errors(), &a.changes), (0, &Vec::new()), "{group}");
            assert_eq!(socket_of(&one), before, "{group}: the socket was replaced");
        }
    });
}
