//! What must outlive a crash.

use serde::{Deserialize, Serialize};

use crate::types::{Incarnation, Term};

/// What the core asks to be kept on disk. Everything here changes rarely: never per heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PersistentState {
    /// The highest term this node has known.
    pub term: Term,
    /// The life that wrote this; the next one takes a higher number.
    pub incarnation: Incarnation,
    /// Whether the operator took the node out of service.
    pub maintenance: bool,
}
