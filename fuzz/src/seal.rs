//! Whatever happens to a sealed datagram on its way, and whatever keys its receiver has: nothing
//! counts but what ends in a tag under one of those keys, and what arrives as it was sent is judged
//! by them alone.

use std::net::{IpAddr, Ipv4Addr};

use arbitrary::Arbitrary;
use lanelect::types::{DatagramId, Incarnation, Sequence};
use lanelect::wire::auth::{KEY_LEN, Key, Keyring, TAG_LEN};
use lanelect::wire::frame::{Codec, Reject};
use lanelect::wire::message::Message;

use crate::heard::Heard;

/// Where every datagram comes from.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A datagram, and what becomes of it.
#[derive(Debug, Arbitrary)]
pub struct Journey {
    heard: Heard,
    /// The sender's key.
    key: Fill,
    /// The receiver's keys; without any it takes open datagrams alone.
    ring: Option<[Fill; 3]>,
    changes: Vec<Change>,
}

/// Names a key. There are few, so that sender and receiver have the same as often as not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Arbitrary)]
enum Fill {
    A,
    B,
    C,
    D,
}

#[derive(Debug, Arbitrary)]
enum Change {
    Flip {
        at: u16,
        mask: u8,
    },
    Cut {
        to: u16,
    },
    Append(u8),
    /// Gets the tag of another holder of a key in place of its own.
    Reseal {
        key: Fill,
    },
}

/// Sends a datagram under each key as it is, then under one of them with changes on its way.
pub fn run(Journey { heard, key, ring, changes }: Journey) {
    let answered = DatagramId { incarnation: Incarnation(1), sequence: Sequence(u64::MAX) };
    let message = heard.message(None, answered);
    let keys = ring.as_ref().map(|keys| &keys[..]);
    let receiver = codec(keys);
    for key in [Fill::A, Fill::B, Fill::C, Fill::D] {
        let expected = match keys {
            Some(keys) if keys.contains(&key) => Ok(message),
            Some(_) => Err(Reject::Forged),
            None => Err(Reject::Sealed),
        };
        let decoded = receiver.decode(SOURCE, &sealed(&message, key));
        assert_eq!(decoded.map(|it| it.message), expected, "under {key:?}");
    }
    let mut changed = sealed(&message, key);
    changes.iter().for_each(|change| change.apply_to(&mut changed));
    if let (Some(keys), Ok(message)) = (keys, receiver.decode(SOURCE, &changed)) {
        assert!(is_sealed(&changed, keys), "{message:?} counts");
    }
}

impl Change {
    fn apply_to(&self, datagram: &mut Vec<u8>) {
        match *self {
            Change::Flip { at, mask } => {
                let at = usize::from(at) % datagram.len().max(1);
                datagram.get_mut(at).into_iter().for_each(|byte| *byte ^= mask);
            }
            Change::Cut { to } => datagram.truncate(to.into()),
            Change::Append(byte) => datagram.push(byte),
            Change::Reseal { key } => {
                datagram.truncate(datagram.len().saturating_sub(TAG_LEN));
                let tag = ring_of(&[key]).tag(SOURCE, datagram);
                datagram.extend_from_slice(&tag);
            }
        }
    }
}

fn sealed(message: &Message, key: Fill) -> Vec<u8> {
    let mut datagram = Vec::new();
    codec(Some(&[key])).encode(SOURCE, message, &mut datagram).expect("a message encodes");
    datagram
}

/// Whether a datagram ends in its tag under one of `keys`.
fn is_sealed(datagram: &[u8], keys: &[Fill]) -> bool {
    let Some((bytes, tag)) = datagram.split_last_chunk::<TAG_LEN>() else { return false };
    keys.iter().any(|key| ring_of(&[*key]).tag(SOURCE, bytes) == *tag)
}

fn codec(keys: Option<&[Fill]>) -> Codec {
    Codec::new("web".parse().expect("a valid name"), keys.map(ring_of))
}

fn ring_of(keys: &[Fill]) -> Keyring {
    let keys: Vec<Key> = keys.iter().map(|fill| Key::new([*fill as u8; KEY_LEN])).collect();
    let (first, others) = keys.split_first().expect("a ring has keys");
    Keyring::new(first, others).expect("not too many keys")
}
