//! `lanelect announce`: announces to the hosts and switches of a LAN that an address has moved.
//!
//! Neighbours cache the hardware address of an address. The host that takes an address over sends
//! an ARP announcement (RFC 5227) for IPv4, and an unsolicited neighbour advertisement (RFC 4861)
//! for IPv6. Only addresses of the interface are announced: a hook that runs too late must not
//! redirect traffic from another host.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::libc::ARPHRD_ETHER;
use nix::sys::socket::{AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, sendto, socket};
use socket2::{Domain, Protocol, Socket, Type};

use crate::os::address;

/// How often each address is announced: a frame may be lost, and there is no acknowledgement.
const ROUNDS: usize = 3;

/// The pause between two rounds. The hook waits for all of them.
const PAUSE: Duration = Duration::from_millis(50);

const BROADCAST: Mac = [0xff; 6];
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Hosts reject an advertisement with a lower hop limit, because a router may have forwarded it.
const HOP_LIMIT: u32 = 255;

type Mac = [u8; 6];

/// Why nothing was announced.
#[derive(Debug, thiserror::Error)]
pub enum AnnounceError {
    /// The kernel does not list its interfaces.
    #[error("cannot list the interfaces: {0}")]
    Unlisted(#[source] io::Error),
    /// There is no such interface.
    #[error("cannot announce an address: there is no interface {0}")]
    NoInterface(String),
    /// The interface does not have the address.
    #[error("cannot announce {address}: {interface} does not have this address; add it first")]
    NotHeld {
        /// The interface.
        interface: String,
        /// The address.
        address: IpAddr,
    },
    /// Sending failed.
    #[error("cannot announce {address}: {source}")]
    NotSent {
        /// The address.
        address: IpAddr,
        /// Why, such as a lack of `CAP_NET_RAW`.
        source: io::Error,
    },
}

/// Announces addresses of `interface`. Does nothing on an interface without hardware addresses,
/// such as the loopback or a tunnel.
///
/// # Errors
///
/// An address is not on the interface (nothing is announced then), or sending fails.
pub fn run(interface: &str, addresses: &[IpAddr]) -> Result<(), AnnounceError> {
    let Some(port) = Port::find(interface, addresses)? else { return Ok(()) };
    for round in 0..ROUNDS {
        if round > 0 {
            pause();
        }
        for &address in addresses {
            let sent = match address {
                IpAddr::V4(address) => port.announce_ipv4(address),
                IpAddr::V6(address) => port.announce_ipv6(address),
            };
            sent.map_err(|source| AnnounceError::NotSent { address, source })?;
        }
    }
    Ok(())
}

/// An interface whose neighbours reach it by its hardware address.
struct Port {
    name: String,
    link: LinkAddr,
    mac: Mac,
}

impl Port {
    /// Finds the interface, which must have all the addresses.
    fn find(name: &str, addresses: &[IpAddr]) -> Result<Option<Port>, AnnounceError> {
        let listed = getifaddrs().map_err(|errno| AnnounceError::Unlisted(errno.into()))?;
        let entries: Vec<_> = listed.filter(|entry| entry.interface_name == name).collect();
        let link = entries
            .iter()
            .find_map(|entry| entry.address.as_ref()?.as_link_addr().copied())
            .ok_or_else(|| AnnounceError::NoInterface(name.to_string()))?;
        if let Some(&address) = addresses.iter().find(|address| !is_held(&entries, **address)) {
            return Err(AnnounceError::NotHeld { interface: name.to_string(), address });
        }
        let mac = link.addr().filter(|_| link.hatype() == ARPHRD_ETHER);
        Ok(mac.map(|mac| Port { name: name.to_string(), link, mac }))
    }

    fn announce_ipv4(&self, address: Ipv4Addr) -> io::Result<()> {
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
        let frame = arp_announcement(self.mac, address);
        sendto(socket.as_raw_fd(), &frame, &self.link, MsgFlags::empty())?;
        Ok(())
    }

    fn announce_ipv6(&self, address: Ipv6Addr) -> io::Result<()> {
        let index = u32::try_from(self.link.ifindex()).map_err(io::Error::other)?;
        let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
        socket.set_multicast_if_v6(index)?;
        socket.set_multicast_hops_v6(HOP_LIMIT)?;
        socket.bind(&SocketAddrV6::new(address, 0, 0, index).into())?;
        let advertisement = neighbour_advertisement(self.mac, address, self.is_router());
        socket.send_to(&advertisement, &SocketAddrV6::new(ALL_NODES, 0, 0, index).into())?;
        Ok(())
    }

    /// Whether this host is a router on this interface. Without the flag in its advertisements, its
    /// neighbours stop using it as one.
    fn is_router(&self) -> bool {
        let forwarding = format!("/proc/sys/net/ipv6/conf/{}/forwarding", self.name);
        fs::read_to_string(forwarding).is_ok_and(|value| value.trim() == "1")
    }
}

fn is_held(entries: &[InterfaceAddress], wanted: IpAddr) -> bool {
    let held = entries.iter().filter_map(|entry| address::internet(entry.address.as_ref()?));
    held.map(|held| held.ip()).any(|held| held == wanted)
}

#[expect(clippy::disallowed_methods, reason = "a command that has nothing else to do meanwhile")]
fn pause() {
    thread::sleep(PAUSE);
}

/// ```text
///  0                       6                      12
/// +-----------------------+----------------------+------+
/// | to everyone           | from `mac`           | ARP  |
/// +------+------+---+---+-+----+-----------------+------+
/// | link | IPv4 | 6 | 4 | asks |
/// +------+------+---+---+------+-------------+-------------+
/// | sender: `mac`              | `address`   | nobody's MAC, `address`
/// +----------------------------+-------------+-------------
/// ```
fn arp_announcement(mac: Mac, address: Ipv4Addr) -> [u8; 42] {
    let mut frame = [0; 42];
    frame[0..6].copy_from_slice(&BROADCAST);
    frame[6..12].copy_from_slice(&mac);
    frame[12..22].copy_from_slice(&[0x08, 0x06, 0x00, 0x01, 0x08, 0x00, 6, 4, 0x00, 0x01]);
    frame[22..28].copy_from_slice(&mac);
    frame[28..32].copy_from_slice(&address.octets());
    // The target hardware address stays zero: no answer is expected.
    frame[38..42].copy_from_slice(&address.octets());
    frame
}

/// ```text
///  0      1      2          4       5                8
/// +------+------+----------+-------+----------------+---------------+------+------+---------+
/// | 136  |  0   | checksum | flags | reserved       | `address`, 16 | 2    | 1    | `mac`   |
/// +------+------+----------+-------+----------------+---------------+------+------+---------+
/// ```
///
/// The kernel fills in the checksum.
fn neighbour_advertisement(mac: Mac, address: Ipv6Addr, is_router: bool) -> [u8; 32] {
    const ADVERTISEMENT: u8 = 136;
    const ROUTER: u8 = 0x80;
    const OVERRIDE: u8 = 0x20;
    const TARGET_LINK_ADDRESS: u8 = 2;
    let mut message = [0; 32];
    message[0] = ADVERTISEMENT;
    message[4] = if is_router { ROUTER | OVERRIDE } else { OVERRIDE };
    message[8..24].copy_from_slice(&address.octets());
    message[24] = TARGET_LINK_ADDRESS;
    // In units of eight octets.
    message[25] = 1;
    message[26..32].copy_from_slice(&mac);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = [2, 0, 0, 0, 0, 7];

    #[test]
    fn arp_is_asked_of_everyone_about_the_sender_s_own_address() {
        let expected = [
            &[0xff; 6][..],
            &MAC,
            &[0x08, 0x06],
            &[0x00, 0x01, 0x08, 0x00, 6, 4, 0x00, 0x01],
            &MAC,
            &[10, 0, 0, 100],
            &[0; 6],
            &[10, 0, 0, 100],
        ];
        assert_eq!(arp_announcement(MAC, Ipv4Addr::new(10, 0, 0, 100))[..], expected.concat());
    }

    #[test]
    fn advertisement_overrides_the_neighbours_cache_and_has_the_router_flag() {
        let address: Ipv6Addr = "2001:db8::100".parse().unwrap();
        let expected = |flags| {
            [&[136, 0, 0, 0, flags, 0, 0, 0][..], &address.octets(), &[2, 1], &MAC].concat()
        };
        assert_eq!(neighbour_advertisement(MAC, address, false)[..], expected(0x20));
        assert_eq!(neighbour_advertisement(MAC, address, true)[..], expected(0xa0));
    }

    #[test]
    fn address_that_the_interface_does_not_have_is_not_announced() {
        let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
        let elsewhere: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
        assert!(run("lo", &[loopback]).is_ok());
        let error = run("lo", &[loopback, elsewhere]).unwrap_err();
        assert!(matches!(error, AnnounceError::NotHeld { address, .. } if address == elsewhere));
        let error = run("no-such-one", &[loopback]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot announce an address: there is no interface no-such-one"
        );
    }
}
