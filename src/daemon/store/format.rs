//! The layout of a state file.
//!
//! ```text
//! # lanelect: saved state of group "default". Do not edit: the checksum covers all lines below.
//! version = 1
//! checksum = "8e1f…"
//! term = 7
//! incarnation = 3
//! maintenance = false
//! enrolment = "none"
//! ```

use std::fmt::Write as _;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::core::persist::PersistentState;
use crate::types::GroupName;

/// Largest state file, in bytes. A larger file is not ours.
pub const STATE_MAX: u64 = 16 * 1024;

/// The layout that this version writes, and the only one that it reads.
pub(super) const VERSION: u32 = 1;

/// Bytes of the SHA-256 that the checksum keeps: it detects accidents, not forgery.
const CHECKSUM_LEN: usize = 8;

/// The lines above those that the checksum covers.
#[derive(Deserialize)]
struct Header {
    version: u32,
    checksum: String,
}

/// Why a file's content is not a valid state.
#[derive(Debug)]
pub(super) enum DecodeError {
    /// Another version of lanelect wrote it.
    Version(u32),
    /// It was changed after it was written.
    Corrupt(String),
}

/// The whole file.
pub(super) fn encode(
    group: GroupName,
    state: &PersistentState,
) -> Result<String, toml::ser::Error> {
    let body = toml::to_string(state)?;
    Ok(format!(
        "# lanelect: saved state of group {:?}. Do not edit: the checksum covers all lines below.\n\
         version = {VERSION}\n\
         checksum = \"{}\"\n\
         {body}",
        group.as_str(),
        checksum(&body),
    ))
}

/// Reads a whole file.
pub(super) fn decode(content: &[u8]) -> Result<PersistentState, DecodeError> {
    let corrupt = |found: &str| DecodeError::Corrupt(found.to_owned());
    if content.is_empty() {
        return Err(corrupt("it is empty"));
    }
    if u64::try_from(content.len()).is_ok_and(|len| len > STATE_MAX) {
        return Err(corrupt("it is too large"));
    }
    let text = std::str::from_utf8(content).map_err(|_| corrupt("it is not UTF-8 text"))?;
    let (header, body) = split_header(text).ok_or_else(|| corrupt("it has no checksum line"))?;
    let header: Header = toml::from_str(header)
        .map_err(|error| corrupt(&format!("its header is not valid: {}", error.message())))?;
    if header.version != VERSION {
        return Err(DecodeError::Version(header.version));
    }
    if header.checksum != checksum(body) {
        return Err(corrupt("its checksum does not match; it was edited or written in part"));
    }
    toml::from_str(body)
        .map_err(|error| corrupt(&format!("its content is not valid: {}", error.message())))
}

/// Splits the file after the checksum's line.
fn split_header(text: &str) -> Option<(&str, &str)> {
    let start = text.find("\nchecksum = ")? + 1;
    let end = start + text.get(start..)?.find('\n')? + 1;
    text.split_at_checked(end)
}

fn checksum(body: &str) -> String {
    Sha256::digest(body).iter().take(CHECKSUM_LEN).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::core::persist::{Ballot, Enrolment, Pledge};
    use crate::types::{Incarnation, Life, Term};

    fn group() -> GroupName {
        "blue".parse().unwrap()
    }

    fn life(name: &str) -> Life {
        Life { node_id: name.parse().unwrap(), incarnation: Incarnation(3) }
    }

    /// The state of a voter, with every field set.
    fn voted() -> PersistentState {
        PersistentState {
            revision: 0,
            term: Term(7),
            incarnation: Incarnation(3),
            maintenance: true,
            enrolment: Enrolment::Enrolled,
            ballot: Some(Ballot { term: Term(6), candidate: life("web1") }),
            pledge: Some(Pledge::new(life("web2"), Term(7), Duration::from_millis(8162))),
        }
    }

    fn state() -> impl Strategy<Value = PersistentState> {
        let enrolment = prop_oneof![
            Just(Enrolment::None),
            Just(Enrolment::Founding),
            Just(Enrolment::Enrolled)
        ];
        let name = || "[^\\s\\pC]{1,15}";
        let ballot = prop::option::of(
            (any::<u64>(), name())
                .prop_map(|(term, name)| Ballot { term: Term(term), candidate: life(&name) }),
        );
        let pledge = prop::option::of((name(), any::<u64>(), 0..u64::MAX).prop_map(
            |(name, term, micros)| {
                Pledge::new(life(&name), Term(term), Duration::from_micros(micros))
            },
        ));
        (any::<(u64, u64, bool)>(), enrolment, ballot, pledge).prop_map(
            |((term, incarnation, maintenance), enrolment, ballot, pledge)| PersistentState {
                revision: 0,
                term: Term(term),
                incarnation: Incarnation(incarnation),
                maintenance,
                enrolment,
                ballot,
                pledge,
            },
        )
    }

    #[test]
    fn people_can_read_the_file() {
        let body = "term = 7\nincarnation = 3\nmaintenance = true\nenrolment = \"enrolled\"\n\n\
                    [ballot]\nterm = 6\n\n\
                    [ballot.candidate]\nnode_id = \"web1\"\nincarnation = 3\n\n\
                    [pledge]\nterm = 7\nhold_us = 8162000\n\n\
                    [pledge.to]\nnode_id = \"web2\"\nincarnation = 3\n";
        let checksum = checksum(body);
        let expected = format!(
            "# lanelect: saved state of group \"blue\". Do not edit: the checksum covers all lines \
             below.\n\
             version = 1\nchecksum = \"{checksum}\"\n{body}"
        );
        assert_eq!(encode(group(), &voted()).unwrap(), expected);
        assert_eq!(checksum.len(), 2 * CHECKSUM_LEN);
    }

    #[test]
    fn a_field_that_was_not_written_yet_reads_as_its_default() {
        let body = "term = 7\n";
        let text = format!("\nversion = 1\nchecksum = \"{}\"\n{body}", checksum(body));
        let state = decode(text.as_bytes()).ok().unwrap();
        assert_eq!(state, PersistentState { term: Term(7), ..PersistentState::default() });
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(content in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(decode(&content).is_err());
        }

        #[test]
        fn every_state_survives(state in state()) {
            let text = encode(group(), &state).unwrap();
            prop_assert_eq!(decode(text.as_bytes()).ok(), Some(state));
        }

        #[test]
        fn a_flipped_bit_is_noticed(at in 0_usize..200, bit in 0_u32..8) {
            let text = encode(group(), &voted()).unwrap();
            let mut bytes = text.into_bytes();
            let header = bytes.iter().position(|&byte| byte == b'\n').unwrap();
            // Anything but the comment.
            let index = header + 1 + at % (bytes.len() - header - 1);
            bytes[index] ^= 1 << bit;
            prop_assert!(decode(&bytes).is_err());
        }
    }
}
