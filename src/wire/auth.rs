//! Authentication of datagrams: HMAC-SHA-256 under shared keys, truncated to [`TAG_LEN`] bytes.
//!
//! A [`Keyring`] signs with its first key and accepts all of them. A group can therefore change its
//! keys without a gap: add the new key as the second on every node, then make it the first, then
//! remove the old one. This module reads no file and no random source.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

use crate::types::KeyMode;

/// A key's length in bytes; it is written as twice as many hexadecimal digits.
pub const KEY_LEN: usize = 32;

/// A tag's length in bytes: half of SHA-256's output, too long to guess in the life of a datagram.
pub const TAG_LEN: usize = 16;

/// Most keys in a [`Keyring`]. Changing keys needs two; a forged datagram costs one HMAC for each.
pub const KEYS_MAX: usize = 8;

/// What a key is applied to for its fingerprint. No datagram begins like this, whatever its source.
const FINGERPRINT: &[u8] = b"fingerprint of a lanelect key";

/// Bytes of a fingerprint: two keys that differ hardly ever share one.
const FINGERPRINT_LEN: usize = 4;

/// One shared key. Wiped from memory when dropped, and never printed by `Debug`.
#[derive(Clone)]
pub struct Key([u8; KEY_LEN]);

impl Key {
    /// The key made of these bytes, which must come from a random source.
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Key(bytes)
    }

    /// The key as [`Keyring::parse`] reads it: 64 lower-case hexadecimal digits.
    pub fn to_hex(&self) -> Zeroizing<String> {
        // Allocates the whole capacity at once: growing would leave copies that are not wiped.
        let mut hex = Zeroizing::new(String::with_capacity(2 * KEY_LEN));
        for byte in self.0 {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 2 * KEY_LEN {
            return None;
        }
        let mut key = Key([0; KEY_LEN]);
        for (byte, digits) in key.0.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = digits.iter().try_fold(0, |high, &digit| {
                let low = char::from(digit).to_digit(16)?;
                Some(high << 4 | low as u8)
            })?;
        }
        Some(key)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(redacted)")
    }
}

/// Why a text is not a list of keys. Contains line numbers, never the content of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text contains no key.
    #[error("it contains no key; create one with `lanelect keygen`")]
    Empty,
    /// A line is not a key, a blank line or a comment.
    #[error(
        "line {line} is not a key of {} hexadecimal digits; create one with `lanelect keygen`",
        2 * KEY_LEN
    )]
    Malformed {
        /// The line, counted from 1.
        line: usize,
    },
    /// There are more than [`KEYS_MAX`] keys.
    #[error("line {line} contains one key too many; keep at most {KEYS_MAX}")]
    TooMany {
        /// The line of the first key above the maximum, counted from 1.
        line: usize,
    },
}

/// The keys of a group: the first signs, all verify.
///
/// Each key's inner and outer hash are prepared once. A tag then costs one short hash.
#[derive(Clone)]
pub struct Keyring {
    mode: KeyMode,
    signing: Hmac<Sha256>,
    also_accepted: Vec<Hmac<Sha256>>,
}

impl Keyring {
    /// The keyring that signs with `signing` and also accepts the keys in `others`.
    ///
    /// # Errors
    ///
    /// [`KeyError::TooMany`] for more than [`KEYS_MAX`] keys, counting one a line.
    pub fn new(signing: &Key, others: &[Key]) -> Result<Self, KeyError> {
        if others.len() >= KEYS_MAX {
            return Err(KeyError::TooMany { line: KEYS_MAX + 1 });
        }
        Ok(Keyring {
            mode: KeyMode::default(),
            signing: prepare(signing),
            also_accepted: others.iter().map(prepare).collect(),
        })
    }

    /// Reads keys as hexadecimal digits, one a line. Blank lines and lines that start with `#` are
    /// skipped, and so are blanks around a key.
    ///
    /// # Errors
    ///
    /// A [`KeyError`] with the number of the first wrong line, never its content.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut keys = Vec::with_capacity(KEYS_MAX);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = number + 1;
            let key = Key::from_hex(line).ok_or(KeyError::Malformed { line: number })?;
            if keys.len() == KEYS_MAX {
                return Err(KeyError::TooMany { line: number });
            }
            keys.push(key);
        }
        let (signing, others) = keys.split_first().ok_or(KeyError::Empty)?;
        Keyring::new(signing, others)
    }

    /// The same keys, used as `mode` says. Without this, datagrams without a key are rejected.
    #[must_use]
    pub fn with_mode(self, mode: KeyMode) -> Self {
        Keyring { mode, ..self }
    }

    /// How these keys are used.
    pub const fn mode(&self) -> KeyMode {
        self.mode
    }

    /// A short hash of the key that signs, in hexadecimal digits: for people who compare hosts. It
    /// is an HMAC of a fixed text, and shows nothing of the key.
    pub fn fingerprint(&self) -> String {
        let hashed = self.signing.clone().chain_update(FINGERPRINT).finalize().into_bytes();
        hashed.iter().take(FINGERPRINT_LEN).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The tag that proves that a holder of the first key sent `bytes` from `source`.
    pub fn tag(&self, source: IpAddr, bytes: &[u8]) -> [u8; TAG_LEN] {
        let hashed = self.signing.clone().chain_update(octets(source)).chain_update(bytes);
        let full = hashed.finalize().into_bytes();
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&full[..TAG_LEN]);
        tag
    }

    /// Whether `tag` is the tag of `bytes` from `source` under one of the keys.
    ///
    /// `bytes` must be the received bytes, not a re-encoding. The time that this takes shows which
    /// key matched, but nothing about a tag that does not match.
    pub fn verify(&self, source: IpAddr, bytes: &[u8], tag: &[u8; TAG_LEN]) -> bool {
        let source = octets(source);
        std::iter::once(&self.signing).chain(&self.also_accepted).any(|key| {
            let hashed = key.clone().chain_update(source).chain_update(bytes);
            hashed.verify_truncated_left(tag).is_ok()
        })
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} keys, redacted)", 1 + self.also_accepted.len())
    }
}

/// The bytes of an address for the hash. An IPv4 address is mapped to IPv6.
const fn octets(source: IpAddr) -> [u8; 16] {
    match source {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn prepare(key: &Key) -> Hmac<Sha256> {
    // HMAC pads a key with zeros to the block size of its hash.
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block[..KEY_LEN].copy_from_slice(&key.0);
    let prepared = Hmac::new(&block);
    block.as_mut_slice().zeroize();
    prepared
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    fn key(fill: u8) -> Key {
        Key::new([fill; KEY_LEN])
    }

    fn ring(fills: &[u8]) -> Keyring {
        let text: Vec<_> = fills.iter().map(|&fill| key(fill).to_hex().to_string()).collect();
        Keyring::parse(&text.join("\n")).unwrap()
    }

    #[test]
    fn fingerprint_depends_on_the_key_that_signs_alone() {
        let (one, two) = (Key::new([1; KEY_LEN]), Key::new([2; KEY_LEN]));
        let fingerprint =
            |signing: &Key, others: &[Key]| Keyring::new(signing, others).unwrap().fingerprint();
        assert_eq!(fingerprint(&one, &[]).len(), 8);
        assert_eq!(fingerprint(&one, &[]), fingerprint(&one, std::slice::from_ref(&two)));
        assert_ne!(fingerprint(&one, &[]), fingerprint(&two, &[]));
    }

    #[test]
    fn the_tag_is_the_first_half_of_hmac_sha_256() {
        // Computed independently: HMAC-SHA-256 of ::ffff:10.0.0.1 and "lanelect" under the bytes 0
        // to 31.
        let bytes: [u8; KEY_LEN] = std::array::from_fn(|i| i as u8);
        let ring = Keyring::new(&Key::new(bytes), &[]).unwrap();
        let expected = [
            0x96, 0x00, 0xaf, 0x47, 0x9c, 0x67, 0x13, 0x27, 0x2e, 0xf6, 0xd7, 0x79, 0x49, 0x7f,
            0x84, 0xf6,
        ];
        assert_eq!(ring.tag(SOURCE, b"lanelect"), expected);
        assert!(ring.verify(SOURCE, b"lanelect", &expected));
    }

    #[test]
    fn every_flipped_bit_of_message_or_tag_is_noticed() {
        let ring = ring(&[1]);
        let message = *b"a datagram";
        let tag = ring.tag(SOURCE, &message);
        assert!(ring.verify(SOURCE, &message, &tag));
        for bit in 0..8 * message.len() {
            let mut forged = message;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!ring.verify(SOURCE, &forged, &tag), "bit {bit} of the message");
        }
        for bit in 0..8 * TAG_LEN {
            let mut forged = tag;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!ring.verify(SOURCE, &message, &forged), "bit {bit} of the tag");
        }
    }

    #[test]
    fn tag_is_valid_for_one_source_only() {
        let ring = ring(&[1]);
        let tag = ring.tag(SOURCE, b"a datagram");
        for other in ["10.0.0.2", "::1", "fe80::1"] {
            assert!(!ring.verify(other.parse().unwrap(), b"a datagram", &tag), "{other}");
        }
    }

    #[test]
    fn the_first_key_signs_and_all_verify_so_that_keys_change_without_a_gap() {
        let (old, both, turned, new) = (ring(&[1]), ring(&[1, 2]), ring(&[2, 1]), ring(&[2]));
        for (sender, receiver) in
            [(&old, &both), (&both, &turned), (&turned, &both), (&turned, &new)]
        {
            assert!(receiver.verify(SOURCE, b"x", &sender.tag(SOURCE, b"x")));
        }
        assert!(!new.verify(SOURCE, b"x", &both.tag(SOURCE, b"x")), "the second key must not sign");
        assert!(!old.verify(SOURCE, b"x", &new.tag(SOURCE, b"x")));
    }

    #[test]
    fn a_key_file_may_have_comments_blank_lines_and_blanks_around_keys() {
        let hex = key(0xab).to_hex();
        let text = format!("# ours\r\n\r\n  {}  \r\n#end", hex.to_uppercase());
        assert!(Keyring::parse(&text).unwrap().verify(
            SOURCE,
            b"x",
            &ring(&[0xab]).tag(SOURCE, b"x")
        ));
    }

    #[test]
    fn errors_name_the_line_and_never_its_content() {
        let good = key(7).to_hex().to_string();
        assert_eq!(Keyring::parse("\n# nothing\n").unwrap_err(), KeyError::Empty);
        let short = &good[1..];
        let signed = format!("+{}", &good[1..]);
        let wide = "é".repeat(KEY_LEN);
        for bad in
            [short, &format!("{good}0"), &signed, &wide, &"g".repeat(64), &format!("{good} x")]
        {
            let error = Keyring::parse(&format!("{good}\n\n{bad}\n")).unwrap_err();
            assert_eq!(error, KeyError::Malformed { line: 3 }, "{bad}");
            assert!(!error.to_string().contains(bad));
        }
    }

    #[test]
    fn a_keyring_is_bounded() {
        let line = format!("{}\n", *key(7).to_hex());
        assert!(Keyring::parse(&line.repeat(KEYS_MAX)).is_ok());
        let error = Keyring::parse(&line.repeat(KEYS_MAX + 1)).unwrap_err();
        assert_eq!(error, KeyError::TooMany { line: KEYS_MAX + 1 });
        let nine = [const { Key::new([0; KEY_LEN]) }; KEYS_MAX];
        assert!(Keyring::new(&key(1), &nine).is_err());
    }

    #[test]
    fn debug_output_contains_no_secret() {
        assert_eq!(format!("{:?}", key(7)), "Key(redacted)");
        assert_eq!(format!("{:?}", ring(&[7, 8])), "Keyring(2 keys, redacted)");
    }
}
