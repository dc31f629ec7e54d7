//! Datagrams and frames that no daemon sent.

use std::net::Ipv4Addr;

use lanelect::types::{Incarnation, Priority, Role, Sequence, Term, TieBreak};
use lanelect::wire::auth::Keyring;
use lanelect::wire::echo::Echoes;
use lanelect::wire::frame::Codec;
use lanelect::wire::message::{Body, Flags, Message, Standing};

use super::frame::{checksum, complete_udp_checksum};

/// The group and port that daemons use unless they are told another.
pub(crate) const GROUP: (Ipv4Addr, u16) = (Ipv4Addr::new(239, 255, 76, 69), 7669);

/// The hardware address that the group has on the wire.
const GROUP_MAC: [u8; 6] = [0x01, 0x00, 0x5e, 0x7f, 0x4c, 0x45];

/// Most bytes of a packet.
const MTU: usize = 1500;

const ETHERNET_HEADER: usize = 14;
const IPV4_HEADER: usize = 20;
const MORE_FRAGMENTS: u16 = 1 << 13;

/// The first datagram of a node that leads, and is worse than any other.
pub(crate) fn declaration(sender: &str) -> Message {
    Message {
        sender: sender.parse().unwrap(),
        incarnation: Incarnation(1),
        sequence: Sequence(1),
        term: Term(1),
        standing: Standing {
            role: Role::Leader,
            priority: Priority(0),
            tie_break: TieBreak::default(),
            flags: Flags::CANDIDATE.with(Flags::ELIGIBLE, true),
            voters: None,
        },
        echoes: Echoes::NONE,
        body: Body::Declaration { interval_us: 100_000, hold_us: 0 },
    }
}

/// What encodes for a group, with the key of this one digit or without one.
pub(crate) fn codec(group: &str, digit: Option<&str>) -> Codec {
    let keyring = digit.map(|digit| Keyring::parse(&digit.repeat(64)).unwrap());
    Codec::new(group.parse().unwrap(), keyring)
}

/// A message as its datagram, from this address.
pub(crate) fn encoded(codec: &Codec, source: Ipv4Addr, message: &Message) -> Vec<u8> {
    let mut datagram = Vec::new();
    codec.encode(source.into(), message, &mut datagram).unwrap();
    datagram
}

/// What a frame says of its way, true or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope {
    /// The hardware address that it is sent from.
    pub(crate) mac: [u8; 6],
    /// The address that it is sent from.
    pub(crate) source: Ipv4Addr,
    pub(crate) ttl: u8,
}

impl Envelope {
    /// The frames that carry a datagram to the group: one, or fragments where it is too long.
    pub(crate) fn frames(&self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let ports = [GROUP.1.to_be_bytes(), GROUP.1.to_be_bytes()].concat();
        let length = u16::try_from(8 + datagram.len()).unwrap().to_be_bytes();
        let udp = [&ports[..], &length, &[0, 0], datagram].concat();
        let room = (MTU - IPV4_HEADER) / 8 * 8;
        let (last, id) = ((udp.len() - 1) / room, checksum(datagram));
        let fragment = |(number, part): (usize, &[u8])| {
            let more = if number < last { MORE_FRAGMENTS } else { 0 };
            self.packet(id, more | u16::try_from(number * room / 8).unwrap(), part)
        };
        udp.chunks(room).enumerate().map(fragment).collect()
    }

    /// A frame that carries a part of a UDP datagram.
    fn packet(&self, id: u16, fragment: u16, part: &[u8]) -> Vec<u8> {
        let length = u16::try_from(IPV4_HEADER + part.len()).unwrap().to_be_bytes();
        let mut header = vec![0x45, 0, length[0], length[1]];
        header.extend(id.to_be_bytes());
        header.extend(fragment.to_be_bytes());
        header.extend([self.ttl, 17, 0, 0]);
        header.extend(self.source.octets());
        header.extend(GROUP.0.octets());
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        let ethernet = [&GROUP_MAC[..], &self.mac, &[0x08, 0x00]].concat();
        let mut frame = [ethernet, header, part.to_vec()].concat();
        // Of fragments the checksum stays zero, which means that there is none.
        complete_udp_checksum(&mut frame);
        frame
    }
}

/// The same frame from another hardware address.
pub(crate) fn from_mac(frame: &[u8], mac: [u8; 6]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[6..12].copy_from_slice(&mac);
    frame
}

/// An IPv4 frame, sent to where another one goes.
pub(crate) fn with_way_of(other: &[u8], mut frame: Vec<u8>) -> Vec<u8> {
    let to = ETHERNET_HEADER + IPV4_HEADER - 4..ETHERNET_HEADER + IPV4_HEADER;
    frame[..6].copy_from_slice(&other[..6]);
    frame[to.clone()].copy_from_slice(&other[to]);
    let header = &mut frame[ETHERNET_HEADER..ETHERNET_HEADER + IPV4_HEADER];
    header[10..12].fill(0);
    let sum = checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    complete_udp_checksum(&mut frame);
    frame
}

/// The same IPv4 frame with another TTL.
pub(crate) fn with_ttl(frame: &[u8], ttl: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let header = &mut frame[ETHERNET_HEADER..ETHERNET_HEADER + IPV4_HEADER];
    header[8] = ttl;
    header[10..12].fill(0);
    let sum = checksum(header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::super::frame::udp_payload;
    use super::*;

    const FROM: Envelope =
        Envelope { mac: [2, 0, 0, 0, 0, 1], source: Ipv4Addr::new(10, 77, 0, 9), ttl: 255 };

    #[test]
    fn a_datagram_that_fits_is_one_frame() {
        let [frame] = &mut FROM.frames(b"hi")[..] else { panic!("more than one") };
        assert_eq!(udp_payload(frame), Some(&b"hi"[..]));
        let mut routed = with_ttl(frame, 254);
        assert_eq!(routed[22], 254);
        assert_eq!(checksum(&routed[14..34]), 0, "a header sums up to nothing");
        assert_eq!(udp_payload(&mut routed), Some(&b"hi"[..]));
    }

    #[test]
    fn a_longer_one_comes_in_pieces_that_fit() {
        let frames = FROM.frames(&[7; 3000]);
        assert_eq!(frames.len(), 3);
        assert!(frames.iter().all(|frame| frame.len() <= 14 + 1500));
        let parts: usize = frames.iter().map(|frame| frame.len() - 34).sum();
        assert_eq!(parts, 3008);
    }
}
