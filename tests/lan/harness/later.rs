//! What a later release would send in place of this one's datagrams, as far as version 1 lets it
//! grow: an extension after each body, and kinds of bodies that this release does not know.

use std::net::{IpAddr, Ipv4Addr};

use lanelect::types::Role;
use lanelect::wire::auth::Keyring;
use lanelect::wire::frame::{Codec, Decoded};
use lanelect::wire::message::{Body, Message};

use super::forge::{Envelope, codec, with_way_of};
use super::frame::udp_from;
use super::keys::KEY;

/// What follows each body.
const EXTENSION: &[u8] = b"of a later release";

/// A kind of body that this release does not know.
const KIND: u8 = 100;

const SEALED: u8 = 1;

/// Rewrites the frames of hosts that run a later release.
pub(crate) struct Later {
    open: Codec,
    sealed: Codec,
    keyring: Keyring,
    heartbeats: u64,
}

impl Later {
    /// For the hosts of `group`, which have no key or the one that tests give.
    pub(crate) fn new(group: &str) -> Later {
        let keyring = Keyring::parse(&KEY.repeat(64)).unwrap();
        Later { open: codec(group, None), sealed: codec(group, Some(KEY)), keyring, heartbeats: 0 }
    }

    /// The frame that a later release sends in place of this one; none for any other traffic.
    pub(crate) fn rewritten(&mut self, frame: &mut [u8]) -> Option<Vec<u8>> {
        let (source, payload) = udp_from(frame)?;
        let IpAddr::V4(address) = source else { return None };
        let decoded = [&self.open, &self.sealed]
            .into_iter()
            .find_map(|codec| codec.decode(source, payload).ok())?;
        let datagram = self.extended(address, &decoded);
        let envelope = Envelope { mac: frame[6..12].try_into().ok()?, source: address, ttl: 255 };
        Some(with_way_of(frame, envelope.frames(&datagram).pop()?))
    }

    fn extended(&mut self, source: Ipv4Addr, decoded: &Decoded) -> Vec<u8> {
        let mut datagram = self.open_datagram(source, &decoded.message);
        datagram.extend_from_slice(EXTENSION);
        if decoded.is_sealed {
            datagram[1] = SEALED;
            let tag = self.keyring.tag(source.into(), &datagram);
            datagram.extend_from_slice(&tag);
        }
        datagram
    }

    /// The datagram; of the heartbeats that only show that their sender is alive, every other one
    /// is of the unknown kind.
    fn open_datagram(&mut self, source: Ipv4Addr, message: &Message) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.heartbeats += u64::from(is_plain(message));
        let is_replaced = is_plain(message) && self.heartbeats % 2 == 0;
        let body = if is_replaced { Body::Inquiry } else { message.body };
        let message = Message { body, ..*message };
        self.open.encode(source.into(), &message, &mut datagram).unwrap();
        if is_replaced {
            // An inquiry has no more than its kind.
            *datagram.last_mut().unwrap() = KIND;
        }
        datagram
    }
}

/// Whether a heartbeat asks, acknowledges and concedes nothing.
fn is_plain(message: &Message) -> bool {
    let alone = matches!(message.body, Body::Heartbeat { conceded: None, acknowledged: None, .. });
    alone && message.standing.role != Role::Starting
}

#[cfg(test)]
mod tests {
    use super::super::forge::{declaration, encoded};
    use super::super::frame::udp_payload;
    use super::*;

    const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 9);

    fn heartbeat() -> Message {
        let mut message = declaration("h9");
        message.standing.role = Role::Follower;
        message.body =
            Body::Heartbeat { interval_us: 1, leader: None, conceded: None, acknowledged: None };
        message
    }

    /// What arrives in place of this message, sealed or open.
    fn arrives(later: &mut Later, key: Option<&str>, message: &Message) -> Decoded {
        let codec = codec("default", key);
        let envelope = Envelope { mac: [2; 6], source: SOURCE, ttl: 255 };
        let mut frame = envelope.frames(&encoded(&codec, SOURCE, message)).remove(0);
        let mut frame = later.rewritten(&mut frame).unwrap();
        codec.decode(SOURCE.into(), udp_payload(&mut frame).unwrap()).unwrap()
    }

    #[test]
    fn what_is_known_stays_and_the_rest_is_skipped() {
        let mut later = Later::new("default");
        for key in [None, Some(KEY)] {
            let decoded = arrives(&mut later, key, &declaration("h9"));
            assert_eq!(decoded.message, declaration("h9"));
            assert!(decoded.is_extended && decoded.is_sealed == key.is_some());
        }
    }

    #[test]
    fn every_other_plain_heartbeat_is_of_an_unknown_kind() {
        let mut later = Later::new("default");
        let bodies = [0; 4].map(|_| arrives(&mut later, Some(KEY), &heartbeat()).message.body);
        let plain = heartbeat().body;
        assert_eq!(bodies, [plain, Body::Unknown, plain, Body::Unknown]);
    }
}
