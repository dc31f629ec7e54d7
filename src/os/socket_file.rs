//! The file of a listening Unix socket: created without harm to other files, removed at the end.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use mio::net::{UnixListener, UnixStream};
use nix::sys::stat::{Mode, fchmod, umask};
use socket2::{Domain, SockAddr, Socket, Type};

/// The mode of the socket's directory, if this process creates it.
const DIRECTORY_MODE: u32 = 0o755;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// The socket's name, and the config key with its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purpose {
    /// As in "cannot bind the …".
    pub name: &'static str,
    /// The key of the configuration.
    pub setting: &'static str,
    /// Who may connect, as a file mode.
    pub mode: u32,
}

/// Why the socket could not be set up. Nothing was changed, except that the socket of a dead daemon
/// may have been removed.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The socket's directory is missing and cannot be created.
    #[error(
        "cannot create the directory {path} of the {}: {source}; create it for the daemon's user, \
         or set `{}` to another path",
        .purpose.name, .purpose.setting
    )]
    Directory {
        /// The socket.
        purpose: Purpose,
        /// The directory.
        path: PathBuf,
        /// What it failed with.
        source: io::Error,
    },
    /// Another process listens on the path.
    #[error(
        "cannot listen on the {} {path}: another process listens on it; stop that process, or set \
         `{}` to another path",
        .purpose.name, .purpose.setting
    )]
    InUse {
        /// The socket.
        purpose: Purpose,
        /// Where.
        path: PathBuf,
    },
    /// The path is something else, which is left alone.
    #[error(
        "cannot listen on {path}: it exists and is not a socket; remove it, or set `{}` to another \
         path",
        .purpose.setting
    )]
    NotASocket {
        /// The socket.
        purpose: Purpose,
        /// Where.
        path: PathBuf,
    },
    /// A call failed.
    #[error("cannot {doing} the {} {path}: {source}", .purpose.name)]
    Io {
        /// The socket.
        purpose: Purpose,
        /// What failed, as a verb.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What it failed with.
        source: io::Error,
    },
}

impl BindError {
    pub(crate) fn io(
        purpose: Purpose,
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> BindError {
        move |source| BindError::Io { purpose, doing, path: path.to_owned(), source }
    }
}

/// The name of a bound socket in the file system. Dropping it removes the name, unless the name now
/// belongs to another file.
///
/// Drop it before its listener: no other file can get the same inode while the listener is open.
#[derive(Debug)]
pub(crate) struct SocketFile {
    purpose: Purpose,
    path: PathBuf,
    identity: Identity,
}

/// Device and inode.
type Identity = (u64, u64);

impl SocketFile {
    /// Binds a non-blocking listener. Replaces the socket of a dead process.
    ///
    /// The check and the replacement are two steps: this does not keep apart two daemons that start
    /// on the same path at the same moment. The lock on their state does.
    pub(crate) fn bind(
        purpose: Purpose,
        path: &Path,
    ) -> Result<(SocketFile, UnixListener), BindError> {
        let place = Place { purpose, path };
        place.create_directory()?;
        place.remove_stale()?;
        let listener = place.listen()?;
        let metadata = fs::symlink_metadata(path).map_err(place.failed_to("examine"))?;
        let identity = identity(&metadata);
        Ok((SocketFile { purpose, path: path.to_owned(), identity }, listener))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the name was removed. Then no client can connect.
    pub(crate) fn is_gone(&self) -> bool {
        fs::symlink_metadata(&self.path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }
}

/// Whether a process listens on the socket at `path`, also one that is stopped. Only a connection
/// attempt shows that.
pub(crate) fn has_listener(path: &Path) -> io::Result<bool> {
    match UnixStream::connect(path) {
        Ok(_) => Ok(true),
        Err(error) => match error.kind() {
            // Its queue is full.
            ErrorKind::WouldBlock => Ok(true),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => Ok(false),
            _ => Err(error),
        },
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Purpose { name, .. } = self.purpose;
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) if identity(&metadata) == self.identity => {
                if let Err(error) = fs::remove_file(&self.path) {
                    log::warn!("cannot remove the {name} {}: {error}", self.path.display());
                }
            }
            _ => log::debug!(
                "the {name} {} now belongs to another process; not removed",
                self.path.display()
            ),
        }
    }
}

fn identity(metadata: &fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// The path for a socket.
#[derive(Clone, Copy)]
struct Place<'a> {
    purpose: Purpose,
    path: &'a Path,
}

impl Place<'_> {
    fn create_directory(self) -> Result<(), BindError> {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let Some(directory) = parent else { return Ok(()) };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(DIRECTORY_MODE);
        builder.create(directory).map_err(|source| BindError::Directory {
            purpose: self.purpose,
            path: directory.to_owned(),
            source,
        })
    }

    /// Removes a socket on which no process listens.
    fn remove_stale(self) -> Result<(), BindError> {
        match fs::symlink_metadata(self.path) {
            Ok(metadata) if metadata.file_type().is_socket() => {}
            Ok(_) => return Err(self.not_a_socket()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(self.failed_to("examine")(error)),
        }
        if has_listener(self.path).map_err(self.failed_to("probe"))? {
            return Err(self.in_use());
        }
        let Purpose { name, .. } = self.purpose;
        log::info!("removing the {name} {} of a process that died", self.path.display());
        fs::remove_file(self.path).map_err(self.failed_to("remove the stale"))
    }

    fn listen(self) -> Result<UnixListener, BindError> {
        self.bind_with_mode().map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => self.in_use(),
            _ => self.failed_to("bind")(error),
        })
    }

    /// Sets the mode before the socket has a name: no other user can connect in between, and no
    /// call uses the name, which the directory's owner can change.
    fn bind_with_mode(self) -> io::Result<UnixListener> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        fchmod(&socket, Mode::from_bits_truncate(self.purpose.mode))?;
        let address = SockAddr::unix(self.path)?;
        without_umask(|| socket.bind(&address))?;
        socket.listen(BACKLOG)?;
        Ok(UnixListener::from_std(socket.into()))
    }

    fn in_use(self) -> BindError {
        BindError::InUse { purpose: self.purpose, path: self.path.to_owned() }
    }

    fn not_a_socket(self) -> BindError {
        BindError::NotASocket { purpose: self.purpose, path: self.path.to_owned() }
    }

    fn failed_to(self, doing: &'static str) -> impl FnOnce(io::Error) -> BindError {
        BindError::io(self.purpose, doing, self.path)
    }
}

/// Runs `create`, which creates one file, without a umask. The umask belongs to the process, so
/// files that another thread creates meanwhile are affected too. The daemon's other threads set
/// narrow modes themselves.
fn without_umask<T>(create: impl FnOnce() -> T) -> T {
    /// Two at the same time could leave the process without its umask.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = umask(Mode::empty());
    let created = create();
    umask(before);
    created
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net;

    const PURPOSE: Purpose = Purpose { name: "test socket", setting: "socket", mode: 0o666 };

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn it_makes_the_directory_opens_the_socket_to_everyone_and_removes_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/x.sock");
        let (file, _listener) = SocketFile::bind(PURPOSE, &path).unwrap();
        assert_eq!(mode(&path), 0o666);
        net::UnixStream::connect(&path).unwrap();
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.sock");
        // Bound, and deaf even while a process that another test starts holds a copy of it.
        let bound = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        bound.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        let (_file, _listener) = SocketFile::bind(PURPOSE, &path).unwrap();
        net::UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_live_socket_is_left_alone_even_with_a_full_queue() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.sock");
        let live = net::UnixListener::bind(&path).unwrap();
        assert!(matches!(SocketFile::bind(PURPOSE, &path), Err(BindError::InUse { .. })));
        live.accept().unwrap();

        nix::sys::socket::listen(&live, nix::sys::socket::Backlog::new(0).unwrap()).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match UnixStream::connect(&path) {
                Ok(stream) if waiting.len() < 16 => waiting.push(stream),
                Ok(_) => break false,
                Err(error) => break error.kind() == ErrorKind::WouldBlock,
            }
        };
        assert!(full);
        assert!(matches!(SocketFile::bind(PURPOSE, &path), Err(BindError::InUse { .. })));
        assert!(path.exists());
    }

    #[test]
    fn file_that_is_not_a_socket_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(SocketFile::bind(PURPOSE, &file), Err(BindError::NotASocket { .. })));
        assert_eq!(fs::read(&file).unwrap(), b"precious");

        let directory = home.path().join("directory");
        fs::create_dir(&directory).unwrap();
        assert!(matches!(SocketFile::bind(PURPOSE, &directory), Err(BindError::NotASocket { .. })));

        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.path().join("elsewhere"), &link).unwrap();
        assert!(matches!(SocketFile::bind(PURPOSE, &link), Err(BindError::NotASocket { .. })));
        assert!(!home.path().join("elsewhere").exists());
    }

    #[test]
    fn directory_that_cannot_be_created_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let error = SocketFile::bind(PURPOSE, &home.path().join("file/x.sock")).unwrap_err();
        assert!(matches!(error, BindError::Directory { .. }), "{error}");
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let error = SocketFile::bind(PURPOSE, &home.path().join("x".repeat(200))).unwrap_err();
        assert!(error.to_string().contains("cannot bind"), "{error}");
    }

    #[test]
    fn another_file_under_its_name_is_not_removed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.sock");
        let (file, _listener) = SocketFile::bind(PURPOSE, &path).unwrap();
        fs::remove_file(&path).unwrap();
        let _successor = net::UnixListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists(), "the successor's socket stays");
    }
}
