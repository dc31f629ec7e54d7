//! Why there is no answer, and what to do.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::TIMEOUT;
use crate::control_api::{Refusal, RefusalKind, group_of_socket};
use crate::types::GroupName;

/// Maximum number of other sockets that the error for a missing socket names.
const NEIGHBOURS_MAX: usize = 8;

/// Maximum number of directory entries that are searched for them.
const ENTRIES_MAX: usize = 1000;

/// Why there is no answer. Displayed, it says what failed, why, and what to do.
///
/// A program handles two kinds differently, and [`is_unreachable`](Self::is_unreachable) tells
/// them apart: a daemon that cannot be reached now, and one that this version does not understand.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no socket.
    #[error(
        "cannot reach the daemon at {socket}: there is no such socket; start the daemon{start}{near}",
        start = by_unit(.socket, |group| format!(
            " (`systemctl start lanelect@{group}`, or \
             `lanelect run --config /etc/lanelect/{group}.toml` in the foreground)"
        )),
        near = list(.others)
    )]
    Missing {
        /// The socket that was asked for.
        socket: PathBuf,
        /// Sockets next to it, of other groups' daemons perhaps.
        others: Vec<PathBuf>,
    },
    /// The path is not a socket.
    #[error(
        "cannot reach the daemon at {0}: it is not a socket; name the right one with --socket or \
         --group"
    )]
    NotASocket(PathBuf),
    /// No process listens on the socket.
    #[error(
        "cannot reach the daemon at {path}: it died and left its socket; start it again{start}, and see \
         its log for the cause{log}",
        path = .0.display(),
        start = by_unit(.0, |group| format!(" (`systemctl start lanelect@{group}`)")),
        log = by_unit(.0, |group| format!(" (`journalctl -u lanelect@{group}`)"))
    )]
    Stale(PathBuf),
    /// This user has no permission for the socket or its directory.
    #[error(
        "cannot open {0}: permission denied by its directory or a security policy; run the command \
         as root (sudo)"
    )]
    NotPermitted(PathBuf),
    /// No answer within [`TIMEOUT`].
    #[error(
        "the daemon at {path} did not answer within {seconds} s: it is stopped, hangs or is \
         overloaded; check it{unit}, and restart it if that lasts; when it goes on, it still \
         carries out what it was asked for",
        path = .0.display(),
        seconds = TIMEOUT.as_secs(),
        unit = by_unit(.0, |group| format!(" with `systemctl status lanelect@{group}`"))
    )]
    TimedOut(PathBuf),
    /// The daemon closed the connection before the answer was complete.
    #[error(
        "the daemon at {0} closed the connection without an answer: it is stopping or has too many \
         clients; try again"
    )]
    HungUp(PathBuf),
    /// The daemon ended a watch.
    #[error(
        "the daemon at {0} ended the watch: it stopped, or its output was not read fast enough; \
         start the watch again"
    )]
    WatchEnded(PathBuf),
    /// This version does not understand the answer.
    #[error(
        "cannot read the answer of the daemon at {socket}{}: lanelect {} does not understand it \
         ({what}); after an upgrade, restart the daemon",
        .daemon.as_ref().map(|version| format!(" (lanelect {version})")).unwrap_or_default(),
        env!("CARGO_PKG_VERSION")
    )]
    Incomprehensible {
        /// Its socket.
        socket: PathBuf,
        /// Its version, if the answer contains it.
        daemon: Option<String>,
        /// What is wrong with the answer.
        what: String,
    },
    /// The daemon rejected the request.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// Another system call failed.
    #[error("cannot communicate with the daemon at {socket}: {source}")]
    Io {
        /// Its socket.
        socket: PathBuf,
        /// What the call failed with.
        source: io::Error,
    },
}

impl ClientError {
    /// Whether the daemon gave no answer for now: it does not run, hangs, hung up, has too many
    /// clients, or cannot be reached by this user. A program tries again later, and acts until then
    /// as if its host did not lead. If this is false, trying again gives the same error: the
    /// versions of daemon and program do not match.
    pub const fn is_unreachable(&self) -> bool {
        match self {
            ClientError::Missing { .. }
            | ClientError::NotASocket(_)
            | ClientError::Stale(_)
            | ClientError::NotPermitted(_)
            | ClientError::TimedOut(_)
            | ClientError::HungUp(_)
            | ClientError::WatchEnded(_)
            | ClientError::Io { .. } => true,
            ClientError::Refused(refusal) => matches!(refusal.kind, RefusalKind::Busy),
            ClientError::Incomprehensible { .. } => false,
        }
    }

    /// Connecting failed.
    pub(super) fn connecting(socket: &Path, error: io::Error) -> Self {
        let path = socket.to_owned();
        match error.kind() {
            ErrorKind::NotFound => {
                ClientError::Missing { others: neighbours(socket), socket: path }
            }
            ErrorKind::ConnectionRefused if is_socket(socket) => ClientError::Stale(path),
            ErrorKind::ConnectionRefused => ClientError::NotASocket(path),
            ErrorKind::PermissionDenied => ClientError::NotPermitted(path),
            _ => ClientError::exchange(socket, error),
        }
    }

    /// Writing the request or reading the answer failed.
    pub(super) fn exchange(socket: &Path, source: io::Error) -> Self {
        let socket = socket.to_owned();
        match source.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::TimedOut(socket),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => ClientError::HungUp(socket),
            _ => ClientError::Io { socket, source },
        }
    }

    /// The line is not an answer, for the reason `what`.
    pub(super) fn incomprehensible(socket: &Path, line: &str, what: impl ToString) -> Self {
        let daemon = serde_json::from_str::<serde_json::Value>(line)
            .ok()
            .and_then(|answer| Some(answer.pointer("/status/version")?.as_str()?.to_owned()));
        let socket = socket.to_owned();
        ClientError::Incomprehensible { socket, daemon, what: what.to_string() }
    }
}

/// The commands for the unit of the daemon at this socket; nothing where it may have no unit.
fn by_unit(socket: &Path, commands: impl FnOnce(GroupName) -> String) -> String {
    group_of_socket(socket).map_or(String::new(), commands)
}

/// The end of a message, with the sockets that exist.
fn list(sockets: &[PathBuf]) -> String {
    if sockets.is_empty() {
        return String::new();
    }
    let names: Vec<_> = sockets.iter().map(|socket| socket.display().to_string()).collect();
    format!("; sockets of other daemons: {}", names.join(", "))
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// The sockets in the same directory, by name.
fn neighbours(socket: &Path) -> Vec<PathBuf> {
    let Some(directory) = socket.parent() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut sockets: Vec<PathBuf> = entries
        .take(ENTRIES_MAX)
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .collect();
    sockets.sort();
    sockets.truncate(NEIGHBOURS_MAX);
    sockets
}
