//! Small files that are replaced as a whole and need not outlive a crash of the machine.
//!
//! Other users may be able to write to the same directory. Nothing is written through a link, and
//! files of other users are rejected.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

/// Replaces the content of the file at `path`, which only its owner may read. Readers see the old
/// content or the new.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = PathBuf::from(temporary);
    // A crash may have left one.
    remove(&temporary)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(content)?;
    fs::rename(&temporary, path)
}

/// Removes the file, if it exists.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Empties the file, if it exists, for one that cannot be removed: something is mounted on it, or
/// its directory is read-only. A file of another user is an error.
pub(crate) fn empty(path: &Path) -> io::Result<()> {
    open(path, File::options().write(true))?.map_or(Ok(()), |file| file.set_len(0))
}

/// Reads at most `limit` bytes; `None` if there is no file. A file of another user is an error.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open(path, File::options().read(true))? else { return Ok(None) };
    let mut content = Vec::new();
    file.take(limit).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Opens a file of this process's user; `None` if there is no file.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<Option<File>> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = match options.custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    let is_own = metadata.is_file() && metadata.uid() == geteuid().as_raw();
    // One who may write to the directory can give another file of this user a second name there.
    if !is_own || metadata.nlink() != 1 {
        return Err(io::Error::other(
            "it is not a regular file of this process's user, with no other name",
        ));
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use nix::sys::stat::Mode;
    use tempfile::TempDir;

    use super::*;

    const LIMIT: u64 = 8;

    #[test]
    fn newest_content_is_read_and_only_its_owner_may_read_it() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("file");
        assert_eq!(read(&path, LIMIT).unwrap(), None);
        for content in [&b"old"[..], b"new"] {
            replace(&path, content).unwrap();
            assert_eq!(read(&path, LIMIT).unwrap().unwrap(), content);
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(read(&path, LIMIT).unwrap(), None);
    }

    #[test]
    fn only_a_file_of_ones_own_is_emptied() {
        let dir = TempDir::new().unwrap();
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        empty(&path).unwrap();
        assert!(!path.exists());
        replace(&path, b"x").unwrap();
        symlink(&path, &link).unwrap();
        assert!(empty(&link).is_err());
        remove(&link).unwrap();
        fs::hard_link(&path, &link).unwrap();
        assert!(empty(&link).is_err());
        remove(&link).unwrap();
        assert_eq!(read(&path, LIMIT).unwrap().unwrap(), b"x");
        empty(&path).unwrap();
        assert_eq!(read(&path, LIMIT).unwrap().unwrap(), b"");
    }

    #[test]
    fn reading_stops_at_the_limit() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("file");
        replace(&path, &[b'x'; 100]).unwrap();
        assert_eq!(read(&path, LIMIT).unwrap().unwrap(), b"xxxxxxxx");
    }

    #[test]
    fn special_file_is_rejected_without_blocking() {
        let dir = TempDir::new().unwrap();
        replace(&dir.path().join("file"), b"x").unwrap();
        symlink("file", dir.path().join("link")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("pipe"), Mode::S_IRWXU).unwrap();
        for name in ["link", "pipe", "."] {
            assert!(read(&dir.path().join(name), LIMIT).is_err(), "{name}");
        }
    }

    #[test]
    fn file_of_another_user_is_rejected() {
        // Root's, for everybody else.
        assert!(geteuid().is_root() || read(Path::new("/etc/passwd"), LIMIT).is_err());
        if geteuid().is_root() {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("file");
            replace(&path, b"x").unwrap();
            chown(&path, Some(65534), None).unwrap();
            assert!(read(&path, LIMIT).is_err());
        }
    }
}
