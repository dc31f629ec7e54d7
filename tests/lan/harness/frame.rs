//! The little that the switch reads of a frame.

use std::net::IpAddr;

const ETHERNET_HEADER: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const IPV6_HEADER: usize = 40;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// Writes the checksum of an unfragmented UDP datagram; returns whether the frame holds one.
///
/// The kernel leaves the checksum to the sending hardware, which a veth is not: a frame that is
/// picked up and put back without one is dropped by whoever receives it.
pub(crate) fn complete_udp_checksum(frame: &mut [u8]) -> bool {
    match udp_datagram(frame) {
        Some((addresses, udp)) => {
            let pseudo_header = sum_words(&addresses) + u32::from(UDP) + udp.len() as u32;
            udp[6..8].fill(0);
            let sum = fold(pseudo_header + sum_words(udp));
            // Zero means "none", so the all-ones form of zero is sent instead.
            let checksum = if sum == 0xffff { sum } else { !sum };
            udp[6..8].copy_from_slice(&checksum.to_be_bytes());
            true
        }
        None => false,
    }
}

/// What an unfragmented UDP datagram carries; none where the frame holds none.
pub(crate) fn udp_payload(frame: &mut [u8]) -> Option<&[u8]> {
    udp_datagram(frame).map(|(_, udp)| &udp[UDP_HEADER..])
}

/// The same, and the address that it comes from.
pub(crate) fn udp_from(frame: &mut [u8]) -> Option<(IpAddr, &[u8])> {
    let (addresses, udp) = udp_datagram(frame)?;
    let source = match *addresses.split_at(addresses.len() / 2).0 {
        [a, b, c, d] => IpAddr::from([a, b, c, d]),
        ref octets => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?),
    };
    Some((source, &udp[UDP_HEADER..]))
}

/// The port that an unfragmented UDP datagram goes to.
pub(crate) fn udp_port(frame: &mut [u8]) -> Option<u16> {
    let (_, udp) = udp_datagram(frame)?;
    Some(u16::from_be_bytes([udp[2], udp[3]]))
}

/// The checksum that makes these bytes sum up to nothing.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    !fold(sum_words(bytes))
}

/// The two IP addresses, and the datagram with its header.
fn udp_datagram(frame: &mut [u8]) -> Option<(Vec<u8>, &mut [u8])> {
    let ether_type: [u8; 2] = frame.get(12..ETHERNET_HEADER)?.try_into().ok()?;
    let packet = frame.get_mut(ETHERNET_HEADER..)?;
    let (addresses, header) = match ether_type {
        IPV4 => ipv4_udp(packet)?,
        IPV6 => ipv6_udp(packet)?,
        _ => return None,
    };
    let udp = packet.get_mut(header..)?;
    let length = usize::from(u16::from_be_bytes(udp.get(4..6)?.try_into().ok()?));
    let udp = udp.get_mut(..length)?;
    (length >= UDP_HEADER).then_some((addresses, udp))
}

fn ipv4_udp(packet: &[u8]) -> Option<(Vec<u8>, usize)> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let more_or_offset = u16::from_be_bytes(packet.get(6..8)?.try_into().ok()?) & 0x3fff;
    let whole_udp = more_or_offset == 0 && *packet.get(9)? == UDP;
    whole_udp.then_some((packet.get(12..20)?.to_vec(), header))
}

fn ipv6_udp(packet: &[u8]) -> Option<(Vec<u8>, usize)> {
    let addresses = packet.get(8..IPV6_HEADER)?.to_vec();
    (*packet.get(6)? == UDP).then_some((addresses, IPV6_HEADER))
}

fn sum_words(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "hi" from 10.0.0.1:1 to 10.0.0.2:2, its checksum left at `checksum`.
    fn frame(checksum: [u8; 2]) -> Vec<u8> {
        let mut frame = [&[0; 12][..], &IPV4].concat();
        frame.extend([0x45, 0, 0, 30, 0, 0, 0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 1, 0, 2, 0, 10, checksum[0], checksum[1], b'h', b'i']);
        frame
    }

    #[test]
    fn a_partial_checksum_is_completed() {
        // 0a00+0001+0a00+0002 + 0011+000a + 0001+0002+000a+6869 = 7c94; its complement is 836b.
        let mut partial = frame([0xab, 0xcd]);
        assert!(complete_udp_checksum(&mut partial));
        assert_eq!(partial, frame([0x83, 0x6b]));
    }

    #[test]
    fn the_payload_is_what_follows_the_header() {
        let mut whole = frame([1, 2]);
        assert_eq!(udp_payload(&mut whole), Some(&b"hi"[..]));
        assert_eq!(udp_payload(&mut whole[..40]), None);
    }

    #[test]
    fn anything_but_a_whole_datagram_is_left_alone() {
        let whole = frame([1, 2]);
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            assert!(!complete_udp_checksum(&mut cut), "{length}");
            assert_eq!(cut, whole[..length]);
        }
        let mut fragment = whole.clone();
        fragment[ETHERNET_HEADER + 6] = 0x20;
        assert!(!complete_udp_checksum(&mut fragment));
        let mut icmp = whole;
        icmp[ETHERNET_HEADER + 9] = 1;
        assert!(!complete_udp_checksum(&mut icmp));
    }
}
