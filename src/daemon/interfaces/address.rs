//! An interface's address, and whether datagrams can and should leave with it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};

use nix::libc;

/// One address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address itself.
    pub ip: IpAddr,
    /// Whether datagrams can leave with it. The kernel rejects an IPv6 address whose check for
    /// duplicates is in progress or has failed.
    pub is_ready: bool,
    /// Whether it is permanent: neither temporary, for privacy, nor about to expire.
    pub is_lasting: bool,
    /// How many of its first bits are those of its network.
    pub prefix: u32,
    /// Whether it came while this node led or its hook held: the hook may have added it. Those of a
    /// fresh scan are not.
    pub is_guest: bool,
}

impl Address {
    /// An address with these of the kernel's `IFA_F_` flags.
    pub(super) const fn new(ip: IpAddr, prefix: u32, flags: u32) -> Self {
        let tentative = flags & libc::IFA_F_TENTATIVE != 0;
        let optimistic = flags & libc::IFA_F_OPTIMISTIC != 0;
        let passing = ip.is_ipv6() && flags & (libc::IFA_F_TEMPORARY | libc::IFA_F_DEPRECATED) != 0;
        Address {
            ip,
            is_ready: optimistic || !tentative,
            is_lasting: !passing,
            prefix,
            is_guest: false,
        }
    }

    /// Whether `other` is in its network: then no router is in between.
    pub fn is_near(&self, other: IpAddr) -> bool {
        let differing = match (self.ip, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
            (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
            _ => return false,
        };
        differing.leading_zeros() >= self.prefix
    }
}

/// Whether it is an IPv6 address that is unique on its link alone.
pub const fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

/// The flags of this host's IPv6 addresses, which `getifaddrs` does not return.
#[derive(Debug, Default)]
pub(super) struct Ipv6Flags(BTreeMap<(u32, Ipv6Addr), u32>);

impl Ipv6Flags {
    /// Reads them from the kernel. None are known without IPv6 or `/proc`.
    pub(super) fn read() -> Self {
        // The thread's network namespace, which may differ from the process's.
        let table = fs::read_to_string("/proc/thread-self/net/if_inet6");
        table.map(|table| Self::parse(&table)).unwrap_or_default()
    }

    /// The flags of an address of the interface with this number; 0 if they are unknown, and the
    /// address counts as ready and permanent then.
    pub(super) fn of(&self, index: u32, address: Ipv6Addr) -> u32 {
        self.0.get(&(index, address)).copied().unwrap_or_default()
    }

    fn parse(table: &str) -> Self {
        Ipv6Flags(table.lines().filter_map(parse_line).collect())
    }
}

/// A line contains the address, the interface's number, the length of the prefix, the scope, the
/// flags, and the interface's name, all but the last in hexadecimal.
fn parse_line(line: &str) -> Option<((u32, Ipv6Addr), u32)> {
    let mut fields = line.split_whitespace();
    let address = u128::from_str_radix(fields.next()?, 16).ok()?;
    let index = u32::from_str_radix(fields.next()?, 16).ok()?;
    let flags = u32::from_str_radix(fields.nth(2)?, 16).ok()?;
    Some(((index, Ipv6Addr::from_bits(address)), flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_by_interface_and_address() {
        let flags = Ipv6Flags::parse(
            "fe800000000000003874dafffe802171 03 40 20 c0      lan\n\
             nonsense\n\
             fe800000000000003874dafffe802171 1f 40 20 80      far\n\
             fd000000000000000000000000000099 03 80 00 01      lan\n",
        );
        let link_local = "fe80::3874:daff:fe80:2171".parse().unwrap();
        assert_eq!(flags.of(3, link_local), 0xc0);
        assert_eq!(flags.of(0x1f, link_local), 0x80);
        assert_eq!(flags.of(3, "fd00::99".parse().unwrap()), 0x01);
        assert_eq!(flags.of(3, "fd00::98".parse().unwrap()), 0);
    }

    #[test]
    fn neighbour_is_in_the_network_of_an_address() {
        for (own, prefix, other, is_near) in [
            ("10.0.0.1", 24, "10.0.0.255", true),
            ("10.0.0.1", 24, "10.0.1.1", false),
            ("10.0.0.1", 32, "10.0.0.2", false),
            ("10.0.0.1", 0, "192.0.2.1", true),
            ("10.0.0.1", 8, "fd00::1", false),
            ("fd00::1", 64, "fd00::2", true),
            ("fd00::1", 64, "fd00:0:0:1::2", false),
            ("fd00::1", 128, "fd00::1", true),
        ] {
            let address = Address::new(own.parse().unwrap(), prefix, 0);
            assert_eq!(address.is_near(other.parse().unwrap()), is_near, "{own}/{prefix} {other}");
        }
    }

    #[test]
    fn flags_tell_what_an_address_is_good_for() {
        let what = |text: &str, flags| {
            let address = Address::new(text.parse().unwrap(), 64, flags);
            (address.is_ready, address.is_lasting)
        };
        assert_eq!(what("fd00::1", libc::IFA_F_PERMANENT), (true, true));
        assert_eq!(what("fd00::1", libc::IFA_F_TENTATIVE), (false, true));
        assert_eq!(what("fd00::1", libc::IFA_F_TENTATIVE | libc::IFA_F_OPTIMISTIC), (true, true));
        assert_eq!(what("fd00::1", libc::IFA_F_TEMPORARY), (true, false));
        assert_eq!(what("fd00::1", libc::IFA_F_DEPRECATED), (true, false));
    }
}
