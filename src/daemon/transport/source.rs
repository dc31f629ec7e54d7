//! Which of an interface's addresses datagrams leave with.
//!
//! The kernel prefers the newest address, which on a leader is the service address that its hook
//! has just added. The source must not change to that address, because the source identifies the
//! node to the others: one that has the address, too, would not even hear the node.

use std::net::{IpAddr, Ipv6Addr};

use nix::libc;

use super::change::{Problem, refused};
use crate::daemon::interfaces::{Address, Interface, is_link_local};

/// How datagrams prefer one address to another, the least first: one that this host had before its
/// hook may have added some, and then the `last` one. A guest is used only if nothing else is left;
/// then rather one that does not look like a service address, as from DHCP.
pub(super) fn rank(address: &Address, last: Option<IpAddr>) -> (bool, bool, bool) {
    let in_no_network = address.ip.is_ipv4() && address.prefix == 32;
    let is_for_service = address.is_guest && (in_no_network || !address.is_lasting);
    (address.is_guest, is_for_service, Some(address.ip) != last)
}

/// The source address of datagrams to `group` through `interface`: the `last` one as long as the
/// interface has it, else the address most likely to be the host's own.
///
/// # Errors
///
/// If no address is ready, or the kernel has no route to an IPv6 group.
pub(super) fn choose(
    interface: &Interface,
    group: IpAddr,
    last: Option<IpAddr>,
) -> Result<IpAddr, Problem> {
    let source = pick(&interface.addresses, interface.is_loopback(), group, last)
        .ok_or_else(|| no_address(group))?;
    if let IpAddr::V6(group) = group {
        check_route(interface, group)?;
    }
    Ok(source)
}

fn pick(
    addresses: &[Address],
    on_loopback: bool,
    group: IpAddr,
    last: Option<IpAddr>,
) -> Option<IpAddr> {
    let usable = addresses.iter().filter(|address| {
        address.is_ready
            && address.ip.is_ipv4() == group.is_ipv4()
            && (address.ip.is_loopback() || !on_loopback)
    });
    let best = match group {
        IpAddr::V4(_) => usable.min_by_key(|address| rank(address, last)),
        IpAddr::V6(group) => best_ipv6(usable, group, last),
    };
    best.map(|address| address.ip)
}

/// Among those of the same rank, first an address of the group's scope, then a permanent one, and
/// then the oldest: service addresses are younger than the host's own. The kernel lists the newest
/// first.
fn best_ipv6<'a>(
    addresses: impl DoubleEndedIterator<Item = &'a Address>,
    group: Ipv6Addr,
    last: Option<IpAddr>,
) -> Option<&'a Address> {
    let key = |address: &&Address| {
        let fits = is_link_local(address.ip) == is_link_scoped(group);
        (rank(address, last), !fits, !address.is_lasting)
    };
    addresses.rev().min_by_key(key)
}

/// Whether routers do not forward datagrams to the group.
const fn is_link_scoped(group: Ipv6Addr) -> bool {
    /// The value of the address's scope field.
    const LINK_LOCAL: u16 = 2;
    let [first, ..] = group.segments();
    first & 0xf <= LINK_LOCAL
}

fn check_route(interface: &Interface, group: Ipv6Addr) -> Result<(), Problem> {
    interface.check_ipv6_route(group).map_err(|error| match error.raw_os_error() {
        Some(libc::ENETUNREACH) => Problem::Unroutable {
            group: group.into(),
            interface: interface.name.clone(),
            kind: if interface.is_loopback() { "local" } else { "multicast" },
        },
        Some(libc::EADDRNOTAVAIL) => no_address(group.into()),
        _ => refused(error),
    })
}

const fn no_address(group: IpAddr) -> Problem {
    Problem::NoAddress { family: if group.is_ipv4() { "IPv4" } else { "IPv6" } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        let (is_ready, is_lasting, is_guest) = (true, true, false);
        Address { ip: text.parse().unwrap(), is_ready, is_lasting, prefix: 24, is_guest }
    }

    /// The choice among `addresses`, which are in the kernel's order.
    fn picked(addresses: &[Address], group: &str, last: Option<&str>) -> Option<String> {
        let on_loopback = addresses.iter().any(|address| address.ip.is_loopback());
        let last = last.map(|last| last.parse().unwrap());
        pick(addresses, on_loopback, group.parse().unwrap(), last).map(|ip| ip.to_string())
    }

    fn best(addresses: &[Address], group: &str) -> Option<String> {
        picked(addresses, group, None)
    }

    #[test]
    fn the_source_is_kept_while_the_interface_has_it() {
        let eth0 = ["fe80::1", "10.0.0.1", "10.0.0.100", "fd00::99", "fd00::1"].map(address);
        let kept = |group, last| picked(&eth0, group, Some(last));
        assert_eq!(best(&eth0, "239.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(kept("239.0.0.1", "10.0.0.100").as_deref(), Some("10.0.0.100"));
        assert_eq!(kept("239.0.0.1", "10.0.0.7").as_deref(), Some("10.0.0.1"));
        assert_eq!(kept("239.0.0.1", "fe80::1").as_deref(), Some("10.0.0.1"));
        assert_eq!(kept("ff15::77", "fd00::99").as_deref(), Some("fd00::99"));
        assert_eq!(kept("ff15::77", "fe80::1").as_deref(), Some("fe80::1"));
        assert_eq!(kept("ff15::77", "fd00::7").as_deref(), Some("fd00::1"));
        assert_eq!(best(&[address("fe80::1")], "239.0.0.1"), None);
    }

    #[test]
    fn a_guest_is_the_source_only_if_nothing_else_is_left() {
        let guest = |text| Address { is_guest: true, ..address(text) };
        for (group, own, service) in
            [("239.0.0.1", "10.0.0.1", "10.0.0.100"), ("ff15::77", "fd00::1", "fd00::100")]
        {
            let picked = |addresses: &[Address]| picked(addresses, group, Some(service));
            assert_eq!(picked(&[guest(service)]).as_deref(), Some(service));
            assert_eq!(picked(&[guest(service), address(own)]).as_deref(), Some(own));
            assert_eq!(picked(&[guest(own), guest(service)]).as_deref(), Some(service));
            let marked = Address { prefix: 32, is_lasting: false, ..guest(service) };
            assert_eq!(picked(&[guest(own), marked]).as_deref(), Some(own), "as from DHCP");
        }
        // In a cloud, a host's own address may be in no network.
        let lone = Address { prefix: 32, ..address("10.0.0.1") };
        assert_eq!(best(&[lone, address("10.0.0.2")], "239.0.0.1").as_deref(), Some("10.0.0.1"));
    }

    #[test]
    fn the_source_on_the_loopback_is_a_loopback_address() {
        let lo = ["10.9.9.9", "127.0.0.1", "fd00::9", "::1"].map(address);
        assert_eq!(best(&lo, "239.0.0.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(picked(&lo, "239.0.0.1", Some("10.9.9.9")).as_deref(), Some("127.0.0.1"));
        assert_eq!(best(&lo, "ff15::77").as_deref(), Some("::1"));
    }

    #[test]
    fn an_address_that_is_not_ready_is_no_source() {
        let checked = Address { is_ready: false, ..address("fd00::1") };
        assert_eq!(best(&[checked], "ff15::77"), None);
        let kept = picked(&[checked, address("fd00::2")], "ff15::77", Some("fd00::1"));
        assert_eq!(kept.as_deref(), Some("fd00::2"));
    }

    #[test]
    fn the_source_has_the_group_s_reach() {
        let addresses = [address("fd00::1"), address("fe80::1")];
        assert_eq!(best(&addresses, "ff15::77").as_deref(), Some("fd00::1"));
        assert_eq!(best(&addresses, "ff0e::77").as_deref(), Some("fd00::1"));
        assert_eq!(best(&addresses, "ff02::77").as_deref(), Some("fe80::1"));
        assert_eq!(best(&addresses[..1], "ff02::77").as_deref(), Some("fd00::1"));
        assert_eq!(best(&addresses[1..], "ff15::77").as_deref(), Some("fe80::1"));
        assert_eq!(best(&[], "ff15::77"), None);
    }

    #[test]
    fn the_oldest_lasting_address_is_the_host_s_own() {
        let passing = Address { is_lasting: false, ..address("fd00::3") };
        let addresses = [address("fd00::99"), address("fd00::1"), passing];
        assert_eq!(best(&addresses, "ff15::77").as_deref(), Some("fd00::1"));
        assert_eq!(best(&addresses[2..], "ff15::77").as_deref(), Some("fd00::3"));
    }
}
