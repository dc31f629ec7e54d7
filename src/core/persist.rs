//! What must outlive the daemon.

use serde::{Deserialize, Serialize};

use crate::types::{Incarnation, Term};

/// What a node must know in its next life. It is on disk before any datagram that rests on it
/// leaves, and changes rarely: never per heartbeat.
///
/// A field that an earlier version did not write reads as its default; one that a later version
/// wrote is refused, because forgetting it could break a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PersistentState {
    /// The highest term that this node has known.
    pub term: Term,
    /// The life that wrote this; the next one takes a higher number.
    pub incarnation: Incarnation,
    /// Whether the operator took the node out of service.
    pub maintenance: bool,
}
