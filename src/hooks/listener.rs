//! The socket that the hook-runner listens on: its own, or one that systemd opened for it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mio::net::UnixListener;
use socket2::{Domain, SockRef, Type};

use crate::os::socket_file::{BindError, Purpose, SocketFile};

/// Owner and group may connect.
const SOCKET: Purpose =
    Purpose { name: "hook-runner's socket", setting: "hook_socket", mode: 0o660 };

/// How long an accept may wait in vain on a socket that systemd shares with this process.
const ACCEPT_WAIT: Duration = Duration::from_millis(1);

/// Why there is no socket to listen on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Neither a path nor a socket on standard input was given.
    #[error(
        "cannot listen for the daemon: no socket is configured; set hook_socket, or start the \
         hook-runner from a systemd socket unit with StandardInput=socket"
    )]
    NoSocket,
    /// Listening at the path failed.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The socket on standard input cannot be used.
    #[error("cannot listen on the socket on standard input: {0}")]
    Inherited(#[source] io::Error),
}

/// A listening Unix socket. If it created the socket's file, it removes the file when dropped.
#[derive(Debug)]
pub struct Listener {
    // Dropped before the socket, as SocketFile demands.
    #[expect(dead_code, reason = "held for what its drop does")]
    made: Option<SocketFile>,
    /// To be registered, and to accept from.
    pub socket: UnixListener,
}

impl Listener {
    /// The socket on standard input, if there is a listening one.
    ///
    /// # Errors
    ///
    /// If listening on it fails.
    pub fn inherited() -> Result<Option<Self>, ListenError> {
        let socket = inherited().map_err(ListenError::Inherited)?;
        Ok(socket.map(|socket| Listener { socket, made: None }))
    }

    /// A socket at `path` that its owner and its group may connect to. Replaces a socket that a
    /// dead process left behind.
    ///
    /// # Errors
    ///
    /// If there is no path, the path is in use, or the system rejects it.
    pub fn bind(path: Option<&Path>) -> Result<Self, ListenError> {
        let (file, socket) = SocketFile::bind(SOCKET, path.ok_or(ListenError::NoSocket)?)?;
        Ok(Listener { made: Some(file), socket })
    }

    /// The path that clients connect to.
    ///
    /// # Errors
    ///
    /// If it is an inherited socket without one.
    pub fn path(&self) -> Result<PathBuf, ListenError> {
        let address = self.socket.local_addr().map_err(ListenError::Inherited)?;
        let unnamed = || io::Error::other("it has no path; set ListenStream= to a path");
        let path = address.as_pathname().ok_or_else(unnamed);
        path.map(Path::to_owned).map_err(ListenError::Inherited)
    }
}

/// The listening Unix socket on standard input, if there is one.
fn inherited() -> io::Result<Option<UnixListener>> {
    let stdin = io::stdin();
    let socket = SockRef::from(&stdin);
    let is_unix = socket.domain().is_ok_and(|domain| domain == Domain::UNIX);
    if !is_unix || !socket.is_listener()? || socket.r#type()? != Type::STREAM {
        return Ok(None);
    }
    listener(stdin.as_fd().try_clone_to_owned()?).map(Some)
}

/// An accept on it never waits for long. systemd shares this socket and makes it blocking whenever
/// it starts a process for the unit, such as `ExecReload`.
fn listener(socket: OwnedFd) -> io::Result<UnixListener> {
    let socket = std::os::unix::net::UnixListener::from(socket);
    socket.set_nonblocking(true)?;
    SockRef::from(&socket).set_read_timeout(Some(ACCEPT_WAIT))?;
    Ok(UnixListener::from_std(socket))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn owner_and_group_may_connect_and_the_file_goes_with_the_listener() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("hook.sock");
        let listener = Listener::bind(Some(&path)).unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o660);
        UnixStream::connect(&path).unwrap();
        listener.socket.accept().unwrap();
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_another_process_makes_blocking_does_not_block() {
        let dir = TempDir::new().unwrap();
        let theirs = std::os::unix::net::UnixListener::bind(dir.path().join("hook.sock")).unwrap();
        let ours = listener(theirs.try_clone().unwrap().into()).unwrap();
        theirs.set_nonblocking(false).unwrap();
        assert_eq!(ours.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn errors_tell_what_to_do() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("hook.sock");
        let _living = Listener::bind(Some(&path)).unwrap();
        let message = Listener::bind(Some(&path)).unwrap_err().to_string();
        assert!(message.contains("hook-runner's socket") && message.contains("`hook_socket`"));
        assert!(ListenError::NoSocket.to_string().contains("hook_socket"));
    }
}
