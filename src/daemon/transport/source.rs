//! Which of an interface's addresses datagrams leave with.
//!
//! The kernel prefers the newest address, which on a leader is the service address that its hook
//! has just added. The source must not change to that address, because the source identifies the
//! node to the others: one that has the address itself would not even hear them.

use std::net::{IpAddr, Ipv6Addr};

use nix::libc;

use super::change::{Problem, refused};
use crate::daemon::interfaces::{Address, Interface};

/// What datagrams through an interface, or to a peer, have left with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Known {
    /// At first, and again whenever the interface has it: what takes its place while it is gone may
    /// be an address that a hook has added.
    home: IpAddr,
    /// Most recently.
    last: IpAddr,
}

impl Known {
    /// `source` is used now.
    pub(super) fn after(before: Option<Known>, source: IpAddr) -> Self {
        Known { home: before.map_or(source, |before| before.home), last: source }
    }

    /// The one to use again, if any is among those that can be used.
    pub(super) fn among<'a>(
        self,
        usable: impl Iterator<Item = &'a Address> + Clone,
    ) -> Option<IpAddr> {
        if usable.clone().any(|address| address.ip == self.home) {
            return Some(self.home);
        }
        let last = usable.clone().find(|address| address.ip == self.last)?;
        (!is_lone(last) || usable.clone().all(is_lone)).then_some(last.ip)
    }
}

/// Whether it is in no network: most service addresses are so. Of IPv6 that says nothing, because
/// DHCP gives such addresses to hosts.
const fn is_lone(address: &Address) -> bool {
    address.ip.is_ipv4() && address.prefix == 32
}

/// The source address of datagrams to `group` through `interface`: one that is known if it can be
/// used again, else the address most likely to be the host's own.
///
/// # Errors
///
/// If no address is ready, or the kernel has no route to an IPv6 group.
pub(super) fn choose(
    interface: &Interface,
    group: IpAddr,
    known: Option<Known>,
) -> Result<IpAddr, Problem> {
    let source = pick(&interface.addresses, interface.is_loopback(), group, known)
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
    known: Option<Known>,
) -> Option<IpAddr> {
    let usable = addresses.iter().filter(|address| {
        address.is_ready
            && address.ip.is_ipv4() == group.is_ipv4()
            && (address.ip.is_loopback() || !on_loopback)
    });
    let again = known.and_then(|known| known.among(usable.clone()));
    again.or_else(|| match group {
        IpAddr::V4(_) => usable.min_by_key(|address| is_lone(address)).map(|address| address.ip),
        IpAddr::V6(group) => best_ipv6(usable, group),
    })
}

/// First an address of the group's scope, then a permanent one, and then the oldest: service
/// addresses are younger than the host's own. The kernel lists the newest first.
fn best_ipv6<'a>(
    addresses: impl DoubleEndedIterator<Item = &'a Address>,
    group: Ipv6Addr,
) -> Option<IpAddr> {
    let rank = |address: &&Address| {
        let is_link_local = matches!(address.ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
        (is_link_local != is_link_scoped(group), !address.is_lasting)
    };
    addresses.rev().min_by_key(rank).map(|address| address.ip)
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
        Address { ip: text.parse().unwrap(), is_ready: true, is_lasting: true, prefix: 24 }
    }

    /// The choice among `addresses`, which are in the kernel's order.
    fn picked(addresses: &[Address], group: &str, known: Option<&str>) -> Option<String> {
        let on_loopback = addresses.iter().any(|address| address.ip.is_loopback());
        let known = known.map(|known| Known::after(None, known.parse().unwrap()));
        pick(addresses, on_loopback, group.parse().unwrap(), known).map(|ip| ip.to_string())
    }

    fn best(addresses: &[Address], group: &str) -> Option<String> {
        picked(addresses, group, None)
    }

    #[test]
    fn the_source_is_kept_while_the_interface_has_it() {
        let eth0 = ["fe80::1", "10.0.0.1", "10.0.0.100", "fd00::99", "fd00::1"].map(address);
        let kept = |group, known| picked(&eth0, group, Some(known));
        assert_eq!(best(&eth0, "239.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(kept("239.0.0.1", "10.0.0.100").as_deref(), Some("10.0.0.100"));
        assert_eq!(kept("239.0.0.1", "10.0.0.7").as_deref(), Some("10.0.0.1"));
        assert_eq!(kept("239.0.0.1", "fe80::1").as_deref(), Some("10.0.0.1"));
        assert_eq!(kept("ff15::77", "fd00::99").as_deref(), Some("fd00::99"));
        assert_eq!(kept("ff15::77", "fe80::1").as_deref(), Some("fe80::1"));
        assert_eq!(kept("ff15::77", "fd00::7").as_deref(), Some("fd00::1"));
        assert_eq!(best(&[address("fe80::1")], "239.0.0.1"), None);
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_source_is_used_again_when_it_is_back() {
        let home = Known::after(None, ip("10.0.0.1"));
        let away = Known::after(Some(home), ip("10.0.0.100"));
        let (own, service, added) =
            (address("10.0.0.1"), address("10.0.0.100"), address("10.0.0.9"));
        assert_eq!(away.among([added, service].iter()), Some(ip("10.0.0.100")));
        assert_eq!(away.among([added, service, own].iter()), Some(ip("10.0.0.1")));
        assert_eq!(away.among([added].iter()), None);
    }

    #[test]
    fn an_address_without_a_network_is_the_last_choice() {
        let lone = |text| Address { prefix: 32, ..address(text) };
        let (service, own) = (lone("10.0.0.100"), address("10.0.0.7"));
        let away = Known { home: ip("10.0.0.1"), last: ip("10.0.0.100") };
        assert_eq!(away.among([service, lone("10.0.0.8")].iter()), Some(ip("10.0.0.100")));
        assert_eq!(away.among([service, own].iter()), None);
        let group = ip("239.0.0.1");
        assert_eq!(pick(&[service, own], false, group, Some(away)), Some(ip("10.0.0.7")));
        assert_eq!(pick(&[service], false, group, None), Some(ip("10.0.0.100")));
        // In a cloud, a host's own address may be so, too.
        let home = Known::after(None, ip("10.0.0.8"));
        assert_eq!(home.among([own, lone("10.0.0.8")].iter()), Some(ip("10.0.0.8")));
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
