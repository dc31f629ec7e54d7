//! The control socket's place in the file system: taken without harm, given back at the end.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use mio::net::{UnixListener, UnixStream};

/// Everybody may connect: queries are for everyone, and commands are checked by the peer's
/// credentials.
const SOCKET_MODE: u32 = 0o666;

/// Of the socket's directory where it has to be made.
const DIRECTORY_MODE: u32 = 0o755;

/// Why the control socket could not be set up. Nothing that existed before was changed, except that
/// a dead daemon's socket may be gone.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The socket's directory is missing and cannot be made.
    #[error(
        "cannot create the control socket's directory {}: {source}; create it for the daemon's \
         user, or set `socket` to a path elsewhere",
        .path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What it failed with.
        source: io::Error,
    },
    /// Another daemon answers there.
    #[error(
        "another daemon already listens on the control socket {}; stop it first, or give this one \
         another `group` or `socket`",
        .0.display()
    )]
    InUse(PathBuf),
    /// Something else is there, and is left alone.
    #[error(
        "{} exists and is not a socket; move it away, or set `socket` to a path elsewhere",
        .0.display()
    )]
    NotASocket(PathBuf),
    /// A call failed.
    #[error("cannot {doing} the control socket {}: {source}", .path.display())]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The socket.
        path: PathBuf,
        /// What it failed with.
        source: io::Error,
    },
}

impl BindError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BindError {
        move |source| BindError::Io { doing, path: path.to_owned(), source }
    }
}

/// The name of a bound socket in the file system. Dropping it removes the name, unless it has come
/// to mean another file.
///
/// Drop it before its listener: as long as that is open, no other file can get the same inode.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

/// Device and inode.
type Identity = (u64, u64);

impl SocketFile {
    /// Binds a non-blocking listener, in place of a dead daemon's socket if need be.
    ///
    /// Looking and replacing are two steps: two daemons started on the same path in the same
    /// instant are not kept apart here.
    pub(super) fn bind(path: &Path) -> Result<(SocketFile, UnixListener), BindError> {
        create_directory(path)?;
        remove_stale(path)?;
        let listener = UnixListener::bind(path).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => BindError::InUse(path.to_owned()),
            _ => BindError::io("bind", path)(error),
        })?;
        let metadata = fs::symlink_metadata(path).map_err(BindError::io("examine", path))?;
        let file = SocketFile { path: path.to_owned(), identity: identity(&metadata) };
        fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))
            .map_err(BindError::io("open to everyone", path))?;
        Ok((file, listener))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) if identity(&metadata) == self.identity => {
                if let Err(error) = fs::remove_file(&self.path) {
                    log::warn!("cannot remove the control socket {:?}: {error}", self.path);
                }
            }
            _ => log::debug!("the control socket {:?} is no longer ours to remove", self.path),
        }
    }
}

fn identity(metadata: &fs::Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

fn create_directory(socket: &Path) -> Result<(), BindError> {
    let Some(directory) = socket.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(directory)
        .map_err(|source| BindError::Directory { path: directory.to_owned(), source })
}

/// Removes a socket that nobody listens on. Only connecting tells.
fn remove_stale(path: &Path) -> Result<(), BindError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {}
        Ok(_) => return Err(BindError::NotASocket(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(BindError::io("examine", path)(error)),
    }
    match UnixStream::connect(path) {
        // A full queue of connections is the sign of a listener too, though a busy one.
        Ok(_) => Err(BindError::InUse(path.to_owned())),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(BindError::InUse(path.to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            log::info!("removing the control socket {path:?} that a dead daemon left behind");
            fs::remove_file(path).map_err(BindError::io("remove the stale", path))
        }
        Err(error) => Err(BindError::io("probe", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn it_makes_the_directory_opens_the_socket_to_everyone_and_removes_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/x.sock");
        let (file, _listener) = SocketFile::bind(&path).unwrap();
        assert_eq!(mode(&path), 0o666);
        net::UnixStream::connect(&path).unwrap();
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.sock");
        drop(net::UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a dead daemon leaves its socket behind");
        let (_file, _listener) = SocketFile::bind(&path).unwrap();
        net::UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_live_socket_is_left_alone_even_with_a_full_queue() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.sock");
        let live = net::UnixListener::bind(&path).unwrap();
        assert!(matches!(SocketFile::bind(&path), Err(BindError::InUse(_))));
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
        assert!(matches!(SocketFile::bind(&path), Err(BindError::InUse(_))));
        assert!(path.exists());
    }

    #[test]
    fn whatever_is_no_socket_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(SocketFile::bind(&file), Err(BindError::NotASocket(_))));
        assert_eq!(fs::read(&file).unwrap(), b"precious");

        let directory = home.path().join("directory");
        fs::create_dir(&directory).unwrap();
        assert!(matches!(SocketFile::bind(&directory), Err(BindError::NotASocket(_))));

        let link = home.path().join("link");
        std::os::unix::fs::symlink(home.path().join("elsewhere"), &link).unwrap();
        assert!(matches!(SocketFile::bind(&link), Err(BindError::NotASocket(_))));
        assert!(!home.path().join("elsewhere").exists());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let error = SocketFile::bind(&home.path().join("file/x.sock")).unwrap_err();
        assert!(matches!(error, BindError::Directory { .. }), "{error}");
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let error = SocketFile::bind(&home.path().join("x".repeat(200))).unwrap_err();
        assert!(error.to_string().contains("cannot bind"), "{error}");
    }

    #[test]
    fn another_file_under_its_name_is_not_removed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("x.sock");
        let (file, _listener) = SocketFile::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _successor = net::UnixListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists(), "the successor's socket stays");
    }
}
