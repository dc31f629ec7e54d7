//! The messages on the control socket.
//!
//! A client connects to the Unix socket, sends one [`Request`] as a line of JSON, and reads one
//! [`Response`] as a line of JSON. After `watch` the daemon first answers `{"ok":"watching"}`, then
//! sends one [`Transition`] a line until the client closes the connection. After `hold` it answers
//! `{"ok":"holding"}`, then sends a [`Grant`] or `null` a line. Lines end with `\n`.

mod report;
mod too_far;
mod why_ineligible;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::report::*;
pub use self::too_far::{TooFar, milliseconds};
pub use self::why_ineligible::why_ineligible;
use crate::core::hook::Reason;
use crate::types::{GroupName, NodeId, Role, Term};

/// Longest request line, in bytes with its line feed. The daemon answers a longer one with an error
/// and closes the connection.
pub const REQUEST_MAX: usize = 1024;

/// Longest response line that a client accepts, in bytes: room for a status with every member.
pub const RESPONSE_MAX: usize = 8 * 1024 * 1024;

/// The group that is meant if none is named.
pub const DEFAULT_GROUP: &str = "default";

/// Where control sockets are by default, one for each group.
pub const SOCKET_DIR: &str = "/run/lanelect";

/// The control socket of a group whose `socket` is not set.
pub fn default_socket(group: &GroupName) -> PathBuf {
    Path::new(SOCKET_DIR).join(format!("{group}.sock"))
}

/// The group whose default socket this is; none if it is another path.
pub fn group_of_socket(socket: &Path) -> Option<GroupName> {
    let name = socket.file_name()?.to_str()?.strip_suffix(".sock")?;
    name.parse().ok().filter(|group| default_socket(group) == socket)
}

/// What a client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The whole status.
    Status,
    /// Whether this node leads, and who does; cheaper than the status.
    IsLeader,
    /// Whether this node leads and its hook has taken over.
    IsReady,
    /// Send a ping. Members that hear it answer, and have `answered_ms` in the status then.
    Ping,
    /// One line per transition from now on.
    Watch,
    /// Lines that say until when a command of the leader may run, from now on.
    Hold,
    /// Hand the leadership over.
    Yield {
        /// The member to hand it over to; null for the best one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<NodeId>,
    },
    /// Hand the leadership over, because what this node leads for has failed.
    YieldFailed,
    /// Take the node out of service, or back in.
    Maintenance {
        /// Out of service, or back in.
        on: bool,
    },
}

impl Request {
    /// Whether this changes, delays or sends anything. If so, the client needs permission to
    /// command.
    pub const fn is_command(self) -> bool {
        match self {
            Request::Status | Request::IsLeader | Request::IsReady | Request::Watch => false,
            Request::Hold
            | Request::Ping
            | Request::Yield { .. }
            | Request::YieldFailed
            | Request::Maintenance { .. } => true,
        }
    }
}

/// The command that sends it, for people.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Request::Status => "status",
            Request::IsLeader => "is-leader",
            Request::IsReady => "is-leader --ready",
            Request::Ping => "doctor",
            Request::Watch => "watch",
            Request::Hold => "exec",
            Request::Yield { to: None } => "yield",
            Request::Yield { to: Some(successor) } => return write!(f, "yield --to {successor}"),
            Request::YieldFailed => "yield --failed",
            Request::Maintenance { on: true } => "maintenance on",
            Request::Maintenance { on: false } => "maintenance off",
        })
    }
}

/// The daemon's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// The whole status.
    Status(Box<StatusReport>),
    /// Whether this node leads, and who does.
    Leadership(Leadership),
    /// Whether this node leads and its hook has taken over.
    Readiness(Readiness),
    /// A ping was sent.
    Pinged {
        /// Within which time members answer.
        answers_within_ms: u64,
    },
    /// The command was done, or transitions follow.
    Ok(Done),
    /// The command was not done.
    Refused(Refusal),
}

/// Who leads, as one node knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leadership {
    /// The node that answers.
    pub node_id: NodeId,
    /// Whether it leads. In quorum mode: whether its lease held when it answered.
    pub leads: bool,
    /// The highest term it knows.
    pub term: Term,
    /// The leader it follows or is; null if it knows none.
    pub leader: Option<NodeId>,
}

/// Whether a node does what its leader is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// It leads, and its hook has succeeded for `elected`, and for the last `reaffirmed`. Without a
    /// hook: it leads.
    Ready,
    /// It does not lead.
    NotLeader,
    /// It leads, and its hook has yet to succeed for `elected` in this leadership.
    HookPending,
    /// It leads, and its hook failed for `elected`, or for the last `reaffirmed`.
    HookFailed,
}

/// A line after `hold`: until when a command may run that belongs to the leadership. A later grant
/// replaces it. `null` instead means that the command has to end now.
///
/// The client hangs up when its command has ended, and not before: the daemon's hook for `demoted`
/// waits for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The node that leads.
    pub node_id: NodeId,
    /// Its group.
    pub group: GroupName,
    /// The term that it leads in.
    pub term: Term,
    /// When the command has to end, unless another grant arrives before: `CLOCK_BOOTTIME` of the
    /// host, in nanoseconds.
    pub until_ns: u64,
    /// How long the command may take to end. Then it is killed.
    pub stop_within_ms: u64,
}

/// A line from the client after `hold`, once its command has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandStarted {
    /// The client's own process id. A client in another pid namespace has another one than the
    /// daemon sees, and then the next field means nothing.
    pub pid: i32,
    /// The process that lives exactly as long as anything of the command may.
    pub guard: i32,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Done {
    /// Transitions follow, one a line.
    Watching,
    /// Grants follow, one a line.
    Holding,
    /// The leader hands over.
    Yielding,
    /// The leader was already handing over; nothing changed.
    AlreadyYielding,
    /// The node is out of service.
    MaintenanceOn,
    /// The node is back in service.
    MaintenanceOff,
}

/// Why a command was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The kind, for programs.
    pub kind: RefusalKind,
    /// What failed, why, and what to do, for people.
    pub message: String,
}

impl Refusal {
    /// Of this kind, with this message.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Refusal { kind, message: message.into() }
    }
}

/// The kind of a [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// The line was not a request.
    Malformed,
    /// The peer may query but not command.
    NotPermitted,
    /// This node does not lead.
    NotLeader,
    /// The role is fixed by `static_role`.
    StaticRole,
    /// The named successor cannot take over.
    NotSuccessor,
    /// The daemon serves the maximum number of clients.
    Busy,
    /// The daemon tried and failed.
    Failed,
}

/// One line of `lanelect watch --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// Wall-clock time in milliseconds since 1970.
    pub time_ms: u64,
    /// What this node now does.
    pub role: Role,
    /// What it did before.
    pub previous_role: Role,
    /// The term of the change.
    pub term: Term,
    /// The leader it now follows or is.
    pub leader: Option<NodeId>,
    /// The leader it followed or was before.
    pub previous_leader: Option<NodeId>,
    /// The cause, if this node's leadership changed.
    pub reason: Option<Reason>,
}
