//! The layout of a message in a datagram. The only place that decodes bytes.
//!
//! ```text
//!  1       1      2..65   2..65    1..10         1..10      1..10  1      1          1..5        1       1, 9     1..      1..
//! ┌───────┬──────┬───────┬────────┬─────────────┬──────────┬──────┬──────┬──────────┬───────────┬───────┬────────┬────────┬──────┬ ─ ─ ─ ─ ─ ┬ ─ ─ ─ ┐
//! │version│ seal │ group │ sender │ incarnation │ sequence │ term │ role │ priority │ tie-break │ flags │ voters │ echoes │ body │ extension │  tag
//! └───────┴──────┴───────┴────────┴─────────────┴──────────┴──────┴──────┴──────────┴───────────┴───────┴────────┴────────┴──────┴ ─ ─ ─ ─ ─ ┴ ─ ─ ─ ┘
//! ```
//!
//! Integers of more than a byte are postcard varints. A text is a varint length and UTF-8. `seal`
//! is 0 for an open datagram and 1 for one that ends in a 16-byte authenticator over the source
//! address and all bytes before it. A later release may append an extension, and add kinds of
//! bodies; this one skips both. See `docs/protocol.md` for the whole description.

use std::net::IpAddr;

use serde::de::DeserializeOwned;

use crate::types::{GroupName, Incarnation, Life, NAME_MAX, NodeId, Sequence, Term};
use crate::wire::auth::Keyring;
pub use crate::wire::auth::TAG_LEN;
use crate::wire::echo::{ECHOES_MAX, Echoes};
use crate::wire::message::{Body, Flags, Message, Standing};

/// The protocol version that this build speaks.
pub const VERSION: u8 = 1;

/// This release sends no longer datagrams, in bytes: two names in the header and one in the body,
/// six varints of ten bytes and two of five, the voters' digest, eleven bytes of the rest, the
/// echoes, and the authenticator.
pub const DATAGRAM_MAX: usize =
    3 * (1 + NAME_MAX) + 6 * 10 + 2 * 5 + 8 + 11 + ECHOES_MAX * ECHO_MAX + TAG_LEN;

/// No release of this version sends longer datagrams, in bytes. They fit into the smallest MTU of
/// IPv6, of 1,280 bytes, behind the headers of IPv6 and UDP.
pub const EXTENDED_MAX: usize = 1280 - 40 - 8;

/// No echo is longer than this, in bytes: a name and two varints of ten bytes.
const ECHO_MAX: usize = 1 + NAME_MAX + 2 * 10;

/// The mark of a life comes after the version and the seal.
const MARK_AT: u32 = 2;

/// The datagram carries no authenticator.
const SEAL_OPEN: u8 = 0;
/// The datagram ends in HMAC-SHA-256, truncated to [`TAG_LEN`].
const SEAL_HMAC: u8 = 1;

/// Why a datagram was dropped. The text follows "dropping datagrams from …:". All of these are
/// normal on a shared network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// Truncated, too long, or not a datagram of this protocol.
    #[error("they are malformed")]
    Malformed,
    /// Of another protocol version.
    #[error("they have an unknown protocol version")]
    Version,
    /// Of a later release, and not to be understood in part.
    #[error("they need a later release")]
    TooNew,
    /// For another group.
    #[error("they are for another group")]
    ForeignGroup,
    /// Not sealed although this node requires a key.
    #[error("they have no key, and this node requires one")]
    Unsealed,
    /// Sealed although this node has no key.
    #[error("they have a key, and this node has none")]
    Sealed,
    /// Sealed with a key that this node does not have, changed on its way, or relayed from another
    /// address.
    #[error("they have a wrong key")]
    Forged,
}

/// The bytes that all datagrams of one life have, and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The number of bytes before it.
    pub at: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Encodes and decodes the datagrams of one group.
#[derive(Debug)]
pub struct Codec {
    group: GroupName,
    keyring: Option<Keyring>,
}

impl Codec {
    /// A codec for `group`. With keys it seals datagrams, and rejects unsealed ones, as the mode of
    /// the keys says.
    pub fn new(group: GroupName, keyring: Option<Keyring>) -> Self {
        Codec { group, keyring }
    }

    /// The mark that identifies datagrams of `life` without decoding them, sealed or not.
    ///
    /// # Errors
    ///
    /// None in practice, as for [`encode`](Self::encode).
    pub fn mark(&self, life: Life) -> postcard::Result<Mark> {
        let bytes = postcard::to_stdvec(&(self.group, life.node_id, life.incarnation))?;
        Ok(Mark { at: MARK_AT, bytes })
    }

    /// The keys.
    pub const fn keyring(&self) -> Option<&Keyring> {
        self.keyring.as_ref()
    }

    /// Replaces the keys.
    pub fn set_keyring(&mut self, keyring: Option<Keyring>) {
        self.keyring = keyring;
    }

    /// Clears `buffer` and writes `message` into it, as a datagram with the source address
    /// `source`.
    ///
    /// # Errors
    ///
    /// None in practice: a message always fits. The error is postcard's.
    pub fn encode(
        &self,
        source: IpAddr,
        message: &Message,
        buffer: &mut Vec<u8>,
    ) -> postcard::Result<()> {
        let sealing = self.keyring.as_ref().filter(|keyring| keyring.mode().seals());
        let seal = if sealing.is_some() { SEAL_HMAC } else { SEAL_OPEN };
        buffer.clear();
        postcard::to_io(&(VERSION, seal, self.group, message), &mut *buffer)?;
        if let Some(keyring) = sealing {
            let tag = keyring.tag(source, buffer);
            buffer.extend_from_slice(&tag);
        }
        Ok(())
    }

    /// Decodes a datagram with the source address `source`.
    ///
    /// # Errors
    ///
    /// Why the datagram is rejected. The group is checked before the authenticator, because a
    /// datagram of another group with another key is not an attack.
    pub fn decode(&self, source: IpAddr, datagram: &[u8]) -> Result<Decoded, Reject> {
        let [version, seal, rest @ ..] = datagram else { return Err(Reject::Malformed) };
        if *version != VERSION {
            return Err(Reject::Version);
        }
        let (group, rest) = take::<GroupName>(rest)?;
        if group != self.group {
            return Err(Reject::ForeignGroup);
        }
        if datagram.len() > EXTENDED_MAX {
            return Err(Reject::Malformed);
        }
        Decoded::from(self.open(source, datagram, *seal, rest)?, *seal == SEAL_HMAC)
    }

    /// Checks the seal of `datagram` and removes the authenticator from `rest`, its tail.
    fn open<'a>(
        &self,
        source: IpAddr,
        datagram: &[u8],
        seal: u8,
        rest: &'a [u8],
    ) -> Result<&'a [u8], Reject> {
        match (seal, &self.keyring) {
            (SEAL_OPEN, None) => Ok(rest),
            (SEAL_OPEN, Some(keyring)) if keyring.mode().accepts_open() => Ok(rest),
            (SEAL_OPEN, Some(_)) => Err(Reject::Unsealed),
            (SEAL_HMAC, None) => Err(Reject::Sealed),
            (SEAL_HMAC, Some(keyring)) => {
                let (message, tag) = rest.split_last_chunk::<TAG_LEN>().ok_or(Reject::Malformed)?;
                let sealed = &datagram[..datagram.len() - TAG_LEN];
                if keyring.verify(source, sealed, tag) { Ok(message) } else { Err(Reject::Forged) }
            }
            _ => Err(Reject::Malformed),
        }
    }
}

/// A decoded datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// What this release knows of it.
    pub message: Message,
    /// Whether a later release has extended it: its kind is unknown, or something is appended.
    pub is_extended: bool,
    /// Whether its authenticator was checked, and is right.
    pub is_sealed: bool,
}

impl Decoded {
    fn from(bytes: &[u8], is_sealed: bool) -> Result<Self, Reject> {
        let (header, bytes) = take::<Header>(bytes)?;
        let (kind, after_kind) = take::<u32>(bytes)?;
        let is_known = kind < Body::KINDS;
        // Without its kind, no one knows where a body ends.
        let (body, extension) =
            if is_known { take::<Body>(bytes)? } else { (Body::Unknown, after_kind) };
        let is_extended = !is_known || !extension.is_empty();
        let (sender, incarnation, sequence, term, standing, echoes) = header;
        if is_extended && standing.flags.contains(Flags::CRITICAL) {
            return Err(Reject::TooNew);
        }
        let message = Message { sender, incarnation, sequence, term, standing, echoes, body };
        Ok(Decoded { message, is_extended, is_sealed })
    }
}

/// The fields of a [`Message`] before the body, in their order.
type Header = (NodeId, Incarnation, Sequence, Term, Standing, Echoes);

/// The sender that `datagram` claims. It is not verified, and only for log lines about rejected
/// datagrams.
pub fn alleged_sender(datagram: &[u8]) -> Option<NodeId> {
    alleged_origin(datagram).map(|(_, sender)| sender)
}

/// The group and the sender that `datagram` claims, not verified either.
pub fn alleged_origin(datagram: &[u8]) -> Option<(GroupName, NodeId)> {
    let [VERSION, _seal, rest @ ..] = datagram else { return None };
    let (group, rest) = take::<GroupName>(rest).ok()?;
    take::<NodeId>(rest).ok().map(|(sender, _)| (group, sender))
}

fn take<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), Reject> {
    postcard::take_from_bytes(bytes).map_err(|_| Reject::Malformed)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::types::{Incarnation, Priority, Role, Sequence, Term, TieBreak};
    use crate::wire::auth::{KEY_LEN, Key};
    use crate::wire::echo::Echoes;
    use crate::wire::message::{Body, Flags, Standing};

    const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn message(life: Life, sequence: u64, body: Body) -> Message {
        let flags = Flags::default();
        let standing = Standing {
            role: Role::Follower,
            priority: Priority(1),
            tie_break: TieBreak::default(),
            flags,
            voters: None,
        };
        let Life { node_id: sender, incarnation } = life;
        let sequence = Sequence(sequence);
        let (term, echoes) = (Term(1 << 40), Echoes::NONE);
        Message { sender, incarnation, sequence, term, standing, echoes, body }
    }

    fn carries(datagram: &[u8], mark: &Mark) -> bool {
        datagram.get(mark.at as usize..).is_some_and(|rest| rest.starts_with(&mark.bytes))
    }

    #[test]
    fn every_datagram_of_a_life_carries_its_mark_and_no_other_life_s_does() {
        let life = |node_id: &str, incarnation| Life {
            node_id: node_id.parse().unwrap(),
            incarnation: Incarnation(incarnation),
        };
        let own = life("web1", 300);
        let others =
            [life("web1", 301), life("web1", 300 << 7), life("web", 300), life("web10", 300)];
        let keyring = Keyring::new(&Key::new([7; KEY_LEN]), &[]).unwrap();
        for keyring in [None, Some(keyring)] {
            let codec = Codec::new("blue".parse().unwrap(), keyring);
            let mark = codec.mark(own).unwrap();
            let mut datagram = Vec::new();
            for (sequence, body) in [(1, Body::Claim), (u64::MAX, Body::Inquiry)] {
                codec.encode(SOURCE, &message(own, sequence, body), &mut datagram).unwrap();
                assert!(carries(&datagram, &mark), "{datagram:?}");
                for other in others {
                    codec.encode(SOURCE, &message(other, sequence, body), &mut datagram).unwrap();
                    assert!(!carries(&datagram, &mark), "{datagram:?}");
                }
            }
        }
    }

    #[test]
    fn claimed_sender_is_read_without_the_key() {
        let web1 = Life { node_id: "web1".parse().unwrap(), incarnation: Incarnation(300) };
        let keyring = Keyring::new(&Key::new([7; KEY_LEN]), &[]).unwrap();
        for keyring in [None, Some(keyring)] {
            let codec = Codec::new("blue".parse().unwrap(), keyring);
            let mut datagram = Vec::new();
            codec.encode(SOURCE, &message(web1, 1, Body::Claim), &mut datagram).unwrap();
            assert_eq!(alleged_sender(&datagram), Some(web1.node_id));
            let cut = datagram.len().min(2 + 5 + 4);
            assert_eq!(alleged_sender(&datagram[..cut]), None);
            datagram[0] = VERSION + 1;
            assert_eq!(alleged_sender(&datagram), None);
        }
    }
}
