//! The socket that the hook-runner listens on: its own, or one that systemd opened for it.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mio::net::{UnixListener, UnixStream};
use nix::sys::stat::{Mode, fchmod};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 16;

/// Owner and group may connect.
const SOCKET_MODE: u32 = 0o660;

/// Why there is no socket to listen on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Neither a path nor a socket on standard input was given.
    #[error(
        "there is no socket to listen on: set hook_socket, or have systemd start the hook-runner \
         with a socket unit and StandardInput=socket"
    )]
    NoSocket,
    /// Someone accepts connections there.
    #[error("another hook-runner already listens on {0}: stop that one first")]
    InUse(PathBuf),
    /// It is a file of another kind, which is not for us to remove.
    #[error("{0} exists and is no socket: remove it, or set hook_socket to another path")]
    NotASocket(PathBuf),
    /// The system refused.
    #[error("cannot listen on {path}: {source}{}", advice(.source))]
    Listen {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The socket on standard input cannot be used.
    #[error("cannot listen on the socket on standard input: {0}")]
    Inherited(#[source] io::Error),
}

/// A listening Unix socket. Where it made the socket's file, it removes it when dropped.
#[derive(Debug)]
pub struct Listener {
    /// To be registered, and to accept from.
    pub socket: UnixListener,
    made: Option<PathBuf>,
}

impl Listener {
    /// The socket on standard input where there is a listening one, else one at `path`.
    ///
    /// # Errors
    ///
    /// Where neither can be listened on.
    pub fn open(path: Option<&Path>) -> Result<Self, ListenError> {
        match (inherited().map_err(ListenError::Inherited)?, path) {
            (Some(socket), _) => Ok(Listener { socket, made: None }),
            (None, Some(path)) => Listener::bind(path),
            (None, None) => Err(ListenError::NoSocket),
        }
    }

    /// A socket at `path` that its owner and its group may connect to. One that a dead process left
    /// behind there is replaced.
    ///
    /// # Errors
    ///
    /// Where the path is in use, or the system refuses.
    pub fn bind(path: &Path) -> Result<Self, ListenError> {
        remove_stale(path)?;
        let socket = bind_with_mode(path)
            .map_err(|source| ListenError::Listen { path: path.to_owned(), source })?;
        Ok(Listener { socket, made: Some(path.to_owned()) })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.made
            && let Err(error) = fs::remove_file(path)
            && error.kind() != ErrorKind::NotFound
        {
            log::warn!("the socket {} is left behind: {error}", path.display());
        }
    }
}

/// The listening Unix socket on standard input, where there is one.
fn inherited() -> io::Result<Option<UnixListener>> {
    let stdin = io::stdin();
    let socket = SockRef::from(&stdin);
    let is_unix = socket.domain().is_ok_and(|domain| domain == Domain::UNIX);
    if !is_unix || !socket.is_listener()? || socket.r#type()? != Type::STREAM {
        return Ok(None);
    }
    listener(stdin.as_fd().try_clone_to_owned()?).map(Some)
}

fn listener(socket: OwnedFd) -> io::Result<UnixListener> {
    let socket = std::os::unix::net::UnixListener::from(socket);
    socket.set_nonblocking(true)?;
    Ok(UnixListener::from_std(socket))
}

/// The mode is on the socket before it has a name, so that at no time anyone else can connect; the
/// umask may have taken from it, which is made good afterwards.
fn bind_with_mode(path: &Path) -> io::Result<UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    fchmod(&socket, Mode::from_bits_truncate(SOCKET_MODE))?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    socket.listen(BACKLOG)?;
    listener(socket.into())
}

/// Removes a socket that nobody listens on.
fn remove_stale(path: &Path) -> Result<(), ListenError> {
    let failed = |source| ListenError::Listen { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(ListenError::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(failed(error)),
        // A full backlog has a listener, too.
        Ok(_) | Err(_) => Err(ListenError::InUse(path.to_owned())),
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "; create its directory (RuntimeDirectory= in the unit)",
        ErrorKind::PermissionDenied => "; the hook-runner's user must be able to write there",
        ErrorKind::InvalidInput => "; the path may be too long, Unix sockets take 107 bytes",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn owner_and_group_may_connect_and_the_file_goes_with_the_listener() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("hook.sock");
        let listener = Listener::bind(&path).unwrap();
        assert_eq!(mode(&path), SOCKET_MODE);
        UnixStream::connect(&path).unwrap();
        listener.socket.accept().unwrap();
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_a_dead_process_left_is_replaced() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("hook.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let listener = Listener::bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        listener.socket.accept().unwrap();
    }

    #[test]
    fn a_living_socket_is_not_replaced() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("hook.sock");
        let living = Listener::bind(&path).unwrap();
        assert!(matches!(Listener::bind(&path), Err(ListenError::InUse(_))));
        // Nor one that has no time to accept.
        let crowd: Vec<_> =
            (0..BACKLOG + 5).map_while(|_| UnixStream::connect(&path).ok()).collect();
        assert!(!crowd.is_empty());
        assert!(matches!(Listener::bind(&path), Err(ListenError::InUse(_))));
        drop(living);
    }

    #[test]
    fn what_is_no_socket_is_not_removed() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("hook.sock");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(Listener::bind(&path), Err(ListenError::NotASocket(_))));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn errors_tell_what_to_do() {
        let dir = TempDir::new().unwrap();
        let message = |path: PathBuf| Listener::bind(&path).unwrap_err().to_string();
        assert!(message(dir.path().join("missing/hook.sock")).contains("RuntimeDirectory="));
        assert!(message(dir.path().join("x".repeat(200))).contains("too long"));
        assert!(ListenError::NoSocket.to_string().contains("hook_socket"));
    }
}
