//! The basic types of an election. Each has a type of its own, because the compiler then keeps them
//! apart.

use std::fmt;
use std::str::FromStr;

use arrayvec::ArrayString;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest node id and group name, in bytes of UTF-8.
pub const NAME_MAX: usize = 64;

/// Why a text is not a [`NodeId`] or [`GroupName`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("is empty; give 1 to {NAME_MAX} bytes")]
    Empty,
    /// It is longer than [`NAME_MAX`] bytes.
    #[error("is longer than {NAME_MAX} bytes; shorten it")]
    TooLong,
    /// It contains a blank or an invisible character.
    #[error("contains a blank or an invisible character; remove it")]
    Blank,
}

/// A validated name, stored inline so that it is `Copy` and decoding one allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Name(ArrayString<NAME_MAX>);

impl Name {
    fn parse(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || is_invisible(c)) {
            return Err(NameError::Blank);
        }
        ArrayString::from(text).map(Name).map_err(|_| NameError::TooLong)
    }
}

/// Whether a character only changes how those around it are shown. With such a character one name
/// could look like another, or turn a line of the log around.
pub(crate) const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 to {NAME_MAX} bytes of text without blanks and invisible characters")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Name, E> {
        Name::parse(text).map_err(E::custom)
    }
}

/// A public newtype around [`Name`], with the same conversions for each.
macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(Name);

        impl $type {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0.0
            }
        }

        impl FromStr for $type {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Name::parse(text).map($type)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(NameVisitor).map($type)
            }
        }
    };
}

name_type! {
    /// A node's name: 1 to 64 bytes of UTF-8 without blanks and invisible characters, unique in its
    /// group. Ordered by its bytes, as ties in priority are broken.
    NodeId
}

name_type! {
    /// An election group's name, under the same rules as [`NodeId`].
    GroupName
}

/// The number of a leadership. It grows with every change of leadership that a node takes part in,
/// and is the fencing token that hooks get.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Term(pub u64);

impl Term {
    /// The term above this one. Saturates: there is no term above the last.
    #[must_use]
    pub const fn next(self) -> Term {
        Term(self.0.saturating_add(1))
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The priority of a node: 0 to 255, the highest leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Priority(pub u8);

impl Default for Priority {
    fn default() -> Self {
        Priority(100)
    }
}

/// What decides between nodes of equal priority: the lower one is better, and of equal ones the
/// lower id. Zero follows the rule [`TieBreakRule::LowestId`], every other number
/// [`TieBreakRule::Spread`]. So nodes with different rules still agree on the order: a node that
/// follows the ids is better than one that spreads.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct TieBreak(pub u32);

impl TieBreak {
    /// The rule that it follows.
    pub const fn rule(self) -> TieBreakRule {
        match self.0 {
            0 => TieBreakRule::LowestId,
            _ => TieBreakRule::Spread,
        }
    }
}

/// The key `tie_break`: how a group orders nodes of equal priority. The same on every node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TieBreakRule {
    /// By id: the lowest is the best node of every group.
    #[default]
    LowestId,
    /// By a hash of group and id: each group has an order of its own.
    Spread,
}

impl fmt::Display for TieBreakRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            TieBreakRule::LowestId => "lowest-id",
            TieBreakRule::Spread => "spread",
        })
    }
}

/// One life of a node's daemon. A later life has a higher number, which shows that datagrams of an
/// earlier one are old.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

/// One life of one node, to which a voter makes a promise. Two daemons with one id are two lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Life {
    /// Whose.
    pub node_id: NodeId,
    /// Which.
    pub incarnation: Incarnation,
}

/// A datagram's number within its sender's [`Incarnation`]; the first is 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Sequence(pub u64);

/// The id of one datagram of a known sender. An answer uses it to name what it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DatagramId {
    /// The sender's life.
    pub incarnation: Incarnation,
    /// Its number within that life.
    pub sequence: Sequence,
}

/// The role of a node in the election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Waiting until the membership is stable or a leader is found.
    Starting,
    /// Following a leader, or waiting for one.
    Follower,
    /// A candidate in the current election.
    Candidate,
    /// Leading.
    Leader,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Starting => "starting",
            Role::Follower => "follower",
            Role::Candidate => "candidate",
            Role::Leader => "leader",
        })
    }
}

/// How a node uses its keys. A group without keys gets them, or loses them, one step at a time and
/// host by host: each step understands the one before and the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyMode {
    /// Seals nothing, and accepts datagrams with and without a key.
    Accept,
    /// Seals its datagrams, and accepts those of others with and without a key.
    Prefer,
    /// Seals its datagrams, and accepts none without a key. Only this protects the group.
    #[default]
    Require,
}

impl KeyMode {
    /// Whether a node seals its datagrams.
    pub const fn seals(self) -> bool {
        matches!(self, KeyMode::Prefer | KeyMode::Require)
    }

    /// Whether a node accepts datagrams that are not sealed.
    pub const fn accepts_open(self) -> bool {
        matches!(self, KeyMode::Accept | KeyMode::Prefer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_1_to_64_bytes_without_blanks_and_invisible_characters() {
        assert_eq!("web1".parse::<NodeId>().unwrap().as_str(), "web1");
        assert!("é".repeat(32).parse::<NodeId>().is_ok());
        assert_eq!("".parse::<NodeId>(), Err(NameError::Empty));
        assert_eq!("x".repeat(65).parse::<NodeId>(), Err(NameError::TooLong));
        for bad in [
            "a b",
            "a\tb",
            "a\u{7f}",
            "a\u{a0}b",
            "\n",
            "web\u{202e}1",
            "\u{feff}web1",
            "web\u{200b}1",
        ] {
            assert_eq!(bad.parse::<NodeId>(), Err(NameError::Blank), "{bad:?}");
        }
    }

    #[test]
    fn ids_order_by_their_bytes() {
        let id = |text: &str| text.parse::<NodeId>().unwrap();
        assert!(id("a10") < id("a9"));
        assert!(id("B") < id("a"));
        assert!(id("ab") < id("abc"));
        assert!(id("z") < id("é"));
    }

    #[test]
    fn a_name_survives_json_with_escapes() {
        let id: NodeId = serde_json::from_str(r#""w\u0065b""#).unwrap();
        assert_eq!(id.as_str(), "web");
        assert_eq!(serde_json::to_string(&id).unwrap(), r#""web""#);
        assert!(serde_json::from_str::<NodeId>(r#""a b""#).is_err());
    }

    #[test]
    fn the_last_term_has_none_above_it() {
        assert_eq!(Term(7).next(), Term(8));
        assert_eq!(Term(u64::MAX).next(), Term(u64::MAX));
    }
}
