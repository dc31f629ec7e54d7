//! What the kernel reports about this host's network interfaces.
//!
//! This module tracks no changes. A netlink [`Monitor`] only reports *that* something changed, and
//! [`Interfaces::scan`] reads the current state again. So a lost or reordered message cannot leave
//! a wrong picture behind.

mod address;

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::libc;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket as sys;
use socket2::{Domain, Protocol, Socket, Type};

use self::address::Ipv6Flags;
pub use self::address::{Address, is_link_local};
use crate::os;

/// One network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number. An interface that is deleted and created again gets another one.
    pub index: NonZeroU32,
    /// Its addresses of both families, in the kernel's order: of IPv4 the primary ones first, of
    /// IPv6 the newest first.
    pub addresses: Vec<Address>,
    flags: InterfaceFlags,
}

impl Interface {
    /// Whether the administrator has set it up.
    pub fn is_up(&self) -> bool {
        self.flags.contains(InterfaceFlags::IFF_UP)
    }

    /// Whether it can carry packets: up, with a carrier, and done with any port authentication.
    pub fn is_running(&self) -> bool {
        self.is_up() && self.flags.contains(InterfaceFlags::IFF_RUNNING)
    }

    /// Whether it is the loopback, which reaches only this host.
    pub fn is_loopback(&self) -> bool {
        self.flags.contains(InterfaceFlags::IFF_LOOPBACK)
    }

    /// Whether the kernel routes datagrams to an IPv6 group through it. No packet is sent.
    ///
    /// # Errors
    ///
    /// `NetworkUnreachable` if there is no route; `AddrNotAvailable` while it has no address that
    /// is ready, which includes the seconds in which a new address is checked for duplicates.
    pub fn check_ipv6_route(&self, group: Ipv6Addr) -> io::Result<()> {
        let socket = Socket::new(Domain::IPV6, Type::DGRAM, Some(Protocol::UDP))?;
        socket.bind_device_by_index_v6(Some(self.index))?;
        connected_address(&socket, IpAddr::V6(group)).map(drop)
    }

    /// Whether `other` is in one of its networks: then no router is in between.
    pub fn is_near(&self, other: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.is_near(other))
    }

    /// Whether it has this address.
    fn has(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|address| address.ip == ip)
    }

    /// Whether an operator would choose it to reach `group`.
    fn suits(&self, group: IpAddr) -> bool {
        self.is_running()
            && !self.is_loopback()
            && self.flags.contains(InterfaceFlags::IFF_MULTICAST)
            && self.addresses.iter().any(|address| address.ip.is_ipv4() == group.is_ipv4())
    }
}

/// All interfaces of this host at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interfaces(Vec<Interface>);

/// Why the kernel's routes name no interface for the group, and what `interface` could be set to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RouteError(String);

impl Interfaces {
    /// Reads the interfaces, their flags and addresses from the kernel.
    ///
    /// # Errors
    ///
    /// If the kernel does not answer: out of descriptors or memory.
    pub fn scan() -> io::Result<Self> {
        Ok(Self::collect(getifaddrs()?, &Ipv6Flags::read()))
    }

    /// The interface of this name.
    pub fn get(&self, name: &str) -> Option<&Interface> {
        self.0.iter().find(|interface| interface.name == name)
    }

    /// The interface of this number.
    pub fn numbered(&self, index: NonZeroU32) -> Option<&Interface> {
        self.0.iter().find(|interface| interface.index == index)
    }

    /// All of them, in the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = &Interface> {
        self.0.iter()
    }

    /// The addresses of all interfaces.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.0.iter().flat_map(|interface| &interface.addresses).map(|address| address.ip)
    }

    /// The addresses other than `own` came while this node led or its hook held.
    pub(super) fn mark_guests(&mut self, own: &BTreeSet<IpAddr>) {
        let all = self.0.iter_mut().flat_map(|interface| &mut interface.addresses);
        all.for_each(|address| address.is_guest = !own.contains(&address.ip));
    }

    /// Whether it is an address of this host, and no guest.
    pub(super) fn is_own(&self, ip: IpAddr) -> bool {
        let mut all = self.0.iter().flat_map(|interface| &interface.addresses);
        all.any(|address| address.ip == ip && !address.is_guest)
    }

    /// Whether an interface has lost an address since this scan, or is gone with its addresses.
    pub fn have_lost_any_in(&self, later: &Interfaces) -> bool {
        let is_left = |name: &str, ip| later.get(name).is_some_and(|interface| interface.has(ip));
        let mut all = self.0.iter().flat_map(|old| old.addresses.iter().map(|it| (&old.name, it)));
        all.any(|(name, address)| !is_left(name, address.ip))
    }

    /// Whether an interface has an address of the family of `other`, beside those that each host
    /// has.
    pub(super) fn use_family_of(&self, other: IpAddr) -> bool {
        let is_of_any_host = |ip: IpAddr| ip.is_loopback() || is_link_local(ip);
        self.addresses().any(|ip| ip.is_ipv4() == other.is_ipv4() && !is_of_any_host(ip))
    }

    /// The interface of the kernel's route to `group`. No packet is sent.
    ///
    /// # Errors
    ///
    /// If there is none, with the interfaces to choose from. Normal while a host starts.
    pub fn route_to(&self, group: IpAddr) -> Result<&Interface, RouteError> {
        let unreachable = |error: &io::Error| error.raw_os_error() == Some(libc::ENETUNREACH);
        let (problem, or_else) = match self.routed(group) {
            Ok(Some(interface)) if !interface.is_loopback() => return Ok(interface),
            Ok(Some(_)) => (format!("the kernel's route to {group} does not leave this host"), ""),
            Err(error) if !unreachable(&error) => {
                (format!("asking the kernel for a route to {group} failed: {error}"), "")
            }
            Ok(None) | Err(_) => {
                (format!("the kernel has no route to {group}"), ", or add a route")
            }
        };
        let choice = self.choice_for(group);
        Err(RouteError(format!("{problem}; set `interface`{choice}{or_else}")))
    }

    /// The interface of the kernel's route to a host, and the address that the kernel would send
    /// from. No packet is sent.
    ///
    /// # Errors
    ///
    /// If the kernel has no route.
    pub fn route_to_host(&self, host: IpAddr) -> io::Result<(&Interface, IpAddr)> {
        let domain = if host.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        let local = connected_address(&socket, host)?.ip();
        let owner = self.owner_of(local).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((owner, local))
    }

    /// The first interface that has this address.
    pub fn owner_of(&self, ip: IpAddr) -> Option<&Interface> {
        self.0.iter().find(|interface| interface.has(ip))
    }

    /// How advice to set `interface` ends, for `group`.
    pub(super) fn choice_for(&self, group: IpAddr) -> String {
        choice(&self.usable_for(group))
    }

    /// The owner of the local address that a socket connected to `group` gets.
    fn routed(&self, group: IpAddr) -> io::Result<Option<&Interface>> {
        let domain = if group.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        let local = connected_address(&socket, group)?;
        let scope = match local {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        Ok(self.0.iter().find(|interface| {
            interface.has(local.ip()) && (scope == 0 || scope == interface.index.get())
        }))
    }

    /// The names that `interface` could be set to for `group`.
    fn usable_for(&self, group: IpAddr) -> Vec<String> {
        let usable = self.0.iter().filter(|interface| interface.suits(group));
        usable.map(|interface| interface.name.clone()).collect()
    }

    /// Groups the entries by interface: each interface has one entry with its index, and one per
    /// address.
    fn collect(entries: impl Iterator<Item = InterfaceAddress>, flags: &Ipv6Flags) -> Self {
        let mut interfaces: Vec<Interface> = Vec::new();
        for entry in entries {
            let Some(address) = entry.address else { continue };
            let name = &entry.interface_name;
            if let Some(link) = address.as_link_addr() {
                let index = u32::try_from(link.ifindex()).ok().and_then(NonZeroU32::new);
                if let Some(index) = index {
                    let (name, flags) = (name.clone(), entry.flags);
                    interfaces.push(Interface { name, index, addresses: Vec::new(), flags });
                }
                continue;
            }
            let Some(internet) = os::address::internet(&address) else { continue };
            let ip = internet.ip();
            if let Some(owner) = labelled(&mut interfaces, name) {
                let flags = match ip {
                    IpAddr::V4(_) => 0,
                    IpAddr::V6(v6) => flags.of(owner.index.get(), v6),
                };
                owner.addresses.push(Address::new(ip, prefix_of(&entry), flags));
            }
        }
        Interfaces(interfaces)
    }
}

/// The interface of an address with this label, which is its name or begins with it: `eth0`,
/// `eth0:vip`, `eth0vip`.
fn labelled<'a>(interfaces: &'a mut [Interface], label: &str) -> Option<&'a mut Interface> {
    let fitting = interfaces.iter_mut().filter(|interface| label.starts_with(&interface.name));
    fitting.max_by_key(|interface| interface.name.len())
}

/// A netlink socket that wakes the event loop when a link or an address changes.
#[derive(Debug)]
pub struct Monitor {
    socket: OwnedFd,
}

/// Most netlink messages read at a time: more than fit the socket's queue. Only a kernel that
/// writes as fast as this process reads can reach the limit.
const DRAIN_MAX: usize = 4096;

impl Monitor {
    /// A monitor that reports under `token`.
    ///
    /// # Errors
    ///
    /// If netlink is forbidden (`RestrictAddressFamilies=` without `AF_NETLINK`), or descriptors
    /// have run out.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = sys::SockFlag::SOCK_NONBLOCK | sys::SockFlag::SOCK_CLOEXEC;
        let protocol = sys::SockProtocol::NetlinkRoute;
        let family = sys::AddressFamily::Netlink;
        let socket = sys::socket(family, sys::SockType::Raw, flags, protocol)?;
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        let address = sys::NetlinkAddr::new(0, groups.unsigned_abs());
        sys::bind(socket.as_raw_fd(), &address)?;
        let descriptor = socket.as_fd().as_raw_fd();
        registry.register(&mut SourceFd(&descriptor), token, Interest::READABLE)?;
        Ok(Monitor { socket })
    }

    /// Empties the socket. True if anything changed since the last call.
    pub fn drain(&mut self) -> bool {
        let mut message = [0; 64];
        for drained in 0..DRAIN_MAX {
            // A message is cut to the buffer, because its content does not matter. ENOBUFS reports
            // lost messages, which is a change as well.
            match sys::recv(self.socket.as_raw_fd(), &mut message, sys::MsgFlags::empty()) {
                Ok(_) | Err(Errno::ENOBUFS | Errno::EINTR) => {}
                Err(_) => return drained > 0,
            }
        }
        true
    }
}

/// The local address of `socket` after connecting it to `group`, which sends nothing.
fn connected_address(socket: &Socket, group: IpAddr) -> io::Result<SocketAddr> {
    /// Any port is valid: none is ever contacted.
    const PORT: u16 = 9;
    socket.connect(&SocketAddr::new(group, PORT).into())?;
    let local = socket.local_addr()?.as_socket();
    local.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// The length of the network's part of an address; all of it if the kernel does not say.
fn prefix_of(entry: &InterfaceAddress) -> u32 {
    let mask = entry.netmask.as_ref().and_then(os::address::internet).map(|mask| mask.ip());
    match mask {
        Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
        Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
        None => u32::MAX,
    }
}

/// How an error ends its advice to set `interface`.
fn choice(usable: &[String]) -> String {
    match usable {
        [] => " (no interface is usable now)".to_owned(),
        [only] => format!(" to {only}"),
        [several @ .., last] => format!(" to {} or {last}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, index: u32, flags: InterfaceFlags, addresses: &[&str]) -> Interface {
        Interface {
            name: name.to_owned(),
            index: NonZeroU32::new(index).unwrap(),
            addresses: addresses
                .iter()
                .map(|text| Address::new(text.parse().unwrap(), 24, 0))
                .collect(),
            flags,
        }
    }

    fn lan() -> InterfaceFlags {
        InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING | InterfaceFlags::IFF_MULTICAST
    }

    #[test]
    fn an_interface_is_worth_naming_if_it_can_reach_other_hosts() {
        let group = "239.255.76.69".parse().unwrap();
        let address = ["10.0.0.1"].as_slice();
        let interfaces = Interfaces(vec![
            interface("lo", 1, lan() | InterfaceFlags::IFF_LOOPBACK, &["127.0.0.1"]),
            interface("eth0", 2, lan(), address),
            interface("down", 3, lan() - InterfaceFlags::IFF_UP, address),
            interface("unplugged", 4, lan() - InterfaceFlags::IFF_RUNNING, address),
            interface("tun0", 5, lan() - InterfaceFlags::IFF_MULTICAST, address),
            interface("v6only", 6, lan(), &["fe80::1"]),
            interface("eth1", 7, lan(), &["10.1.0.1"]),
        ]);
        assert_eq!(interfaces.usable_for(group), ["eth0", "eth1"]);
        assert_eq!(interfaces.usable_for("ff15::1".parse().unwrap()), ["v6only"]);
    }

    #[test]
    fn a_route_error_tells_what_to_set() {
        let advice = |names: &[&str]| {
            let usable: Vec<_> = names.iter().map(ToString::to_string).collect();
            choice(&usable)
        };
        assert_eq!(advice(&["a", "b", "c"]), " to a, b or c");
        assert_eq!(advice(&["a"]), " to a");
        assert_eq!(advice(&[]), " (no interface is usable now)");
    }

    #[test]
    fn address_is_lost_if_its_interface_no_longer_has_it() {
        let host = |addresses: &[&str]| Interfaces(vec![interface("eth0", 2, lan(), addresses)]);
        let both = host(&["10.0.0.1", "10.0.0.100"]);
        assert!(!both.have_lost_any_in(&both));
        assert!(both.have_lost_any_in(&host(&["10.0.0.1"])));
        assert!(!host(&["10.0.0.1"]).have_lost_any_in(&both), "one more");
        assert!(both.have_lost_any_in(&Interfaces::default()));
        let moved = Interfaces(vec![interface("eth1", 3, lan(), &["10.0.0.1", "10.0.0.100"])]);
        assert!(both.have_lost_any_in(&moved));
    }

    #[test]
    fn this_host_has_a_loopback() {
        let interfaces = Interfaces::scan().unwrap();
        assert!(interfaces.0.iter().any(Interface::is_loopback));
        assert_eq!(interfaces.get("no-such-interface"), None);
    }
}
