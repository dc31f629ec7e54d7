//! Whether a datagram comes from a host on this LAN, according to the network layer.
//!
//! Datagrams leave with the highest possible hop count, and every router decrements it. A datagram
//! that arrives with the full count has passed no router. An attacker beyond the LAN cannot achieve
//! that, whatever else the attacker forges.
//!
//! The source must be an address that a host on this interface's link can have. It need not be in
//! one of the interface's networks. Hosts with single-address networks, or from another subnet on
//! the same wire, take part too, and the hop count already proves that they are near.

use std::net::{IpAddr, Ipv4Addr};

/// The hop count that every datagram leaves with, and must arrive with.
pub(super) const HOPS: u8 = u8::MAX;

/// Why a datagram is not accepted as one from this LAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Stray {
    /// It has passed a router, or its sender does not speak this protocol.
    #[error(
        "their TTL is {0} and not {HOPS}: they passed a router or are not from lanelect; only \
         hosts on the same LAN can be members"
    )]
    Hops(u8),
    /// It is not one of the peers, which alone may send to this host by unicast.
    #[error("this address is not in peers; add the host there, or stop it")]
    Unlisted,
    /// It has passed a router, or arrived from another network, and nothing proves who sent it.
    #[error(
        "they come by a router, or from another network than their address is in, without a key; \
         set key_file on every node, with key_mode \"require\""
    )]
    Unsigned,
    /// No host on the link can have the source address.
    #[error("no host on this LAN can have this address")]
    Source,
}

/// Checks a datagram that was sent to this host by unicast from a peer. `is_near` says whether its
/// source is in a network of the interface where it arrived: a host of any network can send to any
/// address of this host. Returns whether only its seal proves who sent it, because it has passed a
/// router or comes from another network.
pub(super) fn check_unicast(
    hops: u8,
    is_near: bool,
    source: IpAddr,
    own: IpAddr,
) -> Result<bool, Stray> {
    let is_routed = hops != HOPS || !is_near;
    if can_be_a_neighbour(source, own) { Ok(is_routed) } else { Err(Stray::Source) }
}

/// Checks a datagram that arrived with the hop count `hops` from `source` at the interface whose
/// own address is `own`.
pub(super) fn check(hops: u8, source: IpAddr, own: IpAddr) -> Result<(), Stray> {
    if hops != HOPS {
        return Err(Stray::Hops(hops));
    }
    if can_be_a_neighbour(source, own) { Ok(()) } else { Err(Stray::Source) }
}

/// Whether a host can have the address `source` on the link on which this host has `own`.
fn can_be_a_neighbour(source: IpAddr, own: IpAddr) -> bool {
    // An IPv4 address that is mapped into IPv6 never occurs on a wire.
    let is_of_the_group_s_family = source.is_ipv4() == own.is_ipv4();
    let is_broadcast = source == IpAddr::V4(Ipv4Addr::BROADCAST);
    is_of_the_group_s_family
        && !source.is_unspecified()
        && !source.is_multicast()
        && !is_broadcast
        && (!source.is_loopback() || own.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(hops: u8, source: &str, own: &str) -> Result<(), Stray> {
        check(hops, source.parse().unwrap(), own.parse().unwrap())
    }

    #[test]
    fn whatever_has_lost_a_hop_is_not_from_here() {
        for (source, own) in [("10.0.0.1", "10.0.0.2"), ("fe80::1", "fe80::2")] {
            assert_eq!(judged(255, source, own), Ok(()));
            for hops in 0..255 {
                assert_eq!(judged(hops, source, own), Err(Stray::Hops(hops)));
            }
        }
    }

    #[test]
    fn a_neighbour_has_an_address_that_a_host_can_have() {
        for (source, own) in [
            ("10.0.0.1", "10.0.0.2"),
            ("10.9.0.1", "10.0.0.2"),
            ("169.254.3.4", "10.0.0.2"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.2", "127.0.0.1"),
            ("fe80::1", "fd00::2"),
            ("2001:db8::1", "fe80::2"),
            ("10.0.0.2", "127.0.0.1"),
            ("::1", "::1"),
        ] {
            assert_eq!(judged(255, source, own), Ok(()), "{source} to {own}");
        }
        for (source, own) in [
            ("0.0.0.0", "10.0.0.2"),
            ("255.255.255.255", "10.0.0.2"),
            ("239.255.76.69", "10.0.0.2"),
            ("224.0.0.1", "10.0.0.2"),
            ("127.0.0.1", "10.0.0.2"),
            ("::", "fe80::2"),
            ("ff02::1", "fe80::2"),
            ("::1", "fe80::2"),
            ("::ffff:10.0.0.1", "fe80::2"),
        ] {
            let source = source.parse::<IpAddr>().unwrap().to_canonical().to_string();
            assert_eq!(judged(255, &source, own), Err(Stray::Source), "{source} to {own}");
        }
    }
}
