//! Shared keys: reads `key_file`, and generates a new key.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::prctl;
use nix::unistd::{Uid, geteuid};
use zeroize::Zeroizing;

use super::trust::user_name;
use crate::wire::auth::{KEY_LEN, Key, KeyError, Keyring};

/// Longest key file, in bytes: enough for a full keyring and many comments.
pub const KEY_FILE_MAX: usize = 16 * 1024;

/// The permission bit that lets the owner read.
const OWNER_READS: u32 = 0o400;

/// Permission bits that give access to users other than the owner.
const OTHERS: u32 = 0o077;

/// Why the keys could not be read. The attempt changes nothing.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It could not be read, or is not UTF-8 text.
    #[error("cannot read key_file {path}: {source}{}", advice(.source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is a directory, a device or a pipe.
    #[error(
        "cannot use key_file {path}: it is not a regular file; name one that `lanelect keygen` \
             wrote"
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// Group or others have access to it. The daemon's own group counts too.
    #[error(
        "cannot use key_file {path}: users other than its owner have access (mode {mode:04o}); run: \
         {remedy}"
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What makes it this user's alone.
        remedy: String,
    },
    /// This process's user may not read it.
    #[error("cannot read key_file {path}: the user {user} has no permission; run: {remedy}")]
    Denied {
        /// The file.
        path: PathBuf,
        /// This process's user.
        user: String,
        /// What makes it this user's alone.
        remedy: String,
    },
    /// It is longer than [`KEY_FILE_MAX`] bytes.
    #[error(
        "cannot use key_file {path}: it is longer than {KEY_FILE_MAX} bytes; check that it is the \
             right file"
    )]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It contains no key, or a line that is not a key.
    #[error("cannot use key_file {path}: {source}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line at fault.
        source: KeyError,
    },
}

impl KeyFileError {
    /// Whether a restart may help, although nobody corrects anything.
    pub fn is_passing(&self) -> bool {
        matches!(self, KeyFileError::Read { source, .. } if super::error::is_passing(source))
    }
}

/// Reads the keys in the file at `path`. Never blocks: it rejects a pipe.
///
/// # Errors
///
/// A [`KeyFileError`] if the file cannot be read, if users other than its owner have access, or if
/// it does not contain keys.
pub fn load(path: &Path) -> Result<Keyring, KeyFileError> {
    hide_memory();
    let unreadable = |source| KeyFileError::Read { path: path.to_owned(), source };
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(|error| denied(path, &error).unwrap_or_else(|| unreadable(error)))?;
    // Checks the open file, not the path: the path may name another file by now.
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(KeyFileError::NotAFile { path: path.to_owned() });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS != 0 {
        let remedy = remedy(path, metadata.uid(), mode, geteuid());
        return Err(KeyFileError::Exposed { path: path.to_owned(), mode, remedy });
    }
    let text = read_secret(&mut file).map_err(unreadable)?;
    if text.len() > KEY_FILE_MAX {
        return Err(KeyFileError::TooLong { path: path.to_owned() });
    }
    let text = std::str::from_utf8(&text)
        .map_err(|_| unreadable(io::Error::other("it is not UTF-8 text")))?;
    Keyring::parse(text).map_err(|source| KeyFileError::Invalid { path: path.to_owned(), source })
}

/// A new key from the system's random source.
///
/// # Errors
///
/// The system has no random source.
#[expect(clippy::disallowed_methods, reason = "a key is to be what nobody can guess")]
pub fn generate() -> Result<Key, getrandom::Error> {
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    getrandom::fill(&mut *bytes)?;
    Ok(Key::new(*bytes))
}

/// Hides the memory of this process, which will contain keys, from core dumps and from other
/// processes of its user, such as its own hooks.
fn hide_memory() {
    if let Err(error) = prctl::set_dumpable(false) {
        log::warn!("cannot exclude the shared keys from core dumps of this process: {error}");
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "; copy it from another node, or create it with `lanelect keygen` if the group \
             has no key yet"
        }
        _ => "",
    }
}

/// The error for a file whose owner or mode keeps this process from opening it.
fn denied(path: &Path, error: &io::Error) -> Option<KeyFileError> {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return None;
    }
    // Fails if a directory on the way denies access.
    let metadata = fs::metadata(path).ok()?;
    let own = geteuid();
    let remedy = remedy(path, metadata.uid(), metadata.mode(), own);
    // Empty: not the owner or the mode, but a security module denies access.
    let (path, user) = (path.to_owned(), user_name(own));
    (!remedy.is_empty()).then_some(KeyFileError::Denied { path, user, remedy })
}

/// The commands after which only `own` may read the file at `path`; empty if owner and mode are
/// right already. Root may read the files of any owner.
fn remedy(path: &Path, owner: u32, mode: u32, own: Uid) -> String {
    let chown = (!own.is_root() && owner != own.as_raw()).then(|| ("chown", user_name(own)));
    let chmod = match (mode & OWNER_READS != 0, mode & OTHERS == 0) {
        (true, true) => None,
        (true, false) => Some("go="),
        (false, true) => Some("u+r"),
        (false, false) => Some("u+r,go="),
    };
    let chmod = chmod.map(|change| ("chmod", change.to_owned()));
    let command = |(word, argument)| format!("{word} {argument} {}", path.display());
    [chown, chmod].into_iter().flatten().map(command).collect::<Vec<_>>().join(" && ")
}

/// Reads at most one byte more than [`KEY_FILE_MAX`], into memory that is wiped afterwards.
fn read_secret(file: &mut impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    // Allocates the whole capacity at once: growing would leave copies that are not wiped.
    let mut bytes = Zeroizing::new(vec![0; KEY_FILE_MAX + 1]);
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::IoSliceMut;
    use std::net::Ipv4Addr;
    use std::os::unix::fs::PermissionsExt;

    use nix::sys::uio::{RemoteIoVec, process_vm_readv};
    use nix::unistd::getpid;

    use super::*;

    fn key_file(content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn a_generated_key_can_be_read_back() {
        let key = generate().unwrap();
        let (_dir, path) = key_file(key.to_hex().as_bytes(), 0o600);
        let ring = load(&path).unwrap();
        let tag = |ring: &Keyring| ring.tag(Ipv4Addr::LOCALHOST.into(), b"x");
        assert_eq!(tag(&ring), tag(&Keyring::new(&key, &[]).unwrap()));
        assert_ne!(*key.to_hex(), *generate().unwrap().to_hex());
    }

    #[test]
    fn process_with_keys_hides_its_memory() {
        let (_dir, path) = key_file(generate().unwrap().to_hex().as_bytes(), 0o600);
        load(&path).unwrap();
        assert!(!prctl::get_dumpable().unwrap());
    }

    /// The `len` bytes of memory at `start`, also of what has been dropped.
    fn memory<T>(start: *const T, len: usize) -> Vec<u8> {
        let base = start.expose_provenance();
        let mut bytes = vec![0; len];
        let local = &mut [IoSliceMut::new(&mut bytes)];
        assert_eq!(process_vm_readv(getpid(), local, &[RemoteIoVec { base, len }]), Ok(len));
        bytes
    }

    #[test]
    fn dropped_keys_are_wiped() {
        let size = size_of::<Keyring>();
        let ring = |byte| Keyring::new(&Key::new([byte; KEY_LEN]), &[]).unwrap();
        let mut rings = vec![ring(1), ring(1), ring(2)];
        let before = memory(rings.as_ptr(), 3 * size);
        // Drops each where it is, and writes nothing else there.
        rings.clear();
        let after = memory(rings.as_ptr(), size);
        let of_key = |at: &usize| {
            let [one, same, other] = [0, 1, 2].map(|ring| before[ring * size + at]);
            one == same && one != other
        };
        let secret: Vec<_> = (0..size).filter(of_key).collect();
        assert!(secret.len() >= KEY_LEN, "both halves of a prepared key are in it");
        assert!(secret.iter().all(|&at| after[at] == 0), "{secret:?} of {after:?}");
    }

    #[test]
    fn file_with_access_for_others_is_rejected_with_the_command_to_run() {
        let hex = generate().unwrap().to_hex();
        for mode in [0o640, 0o604, 0o620, 0o601, 0o644, 0o666] {
            let (_dir, path) = key_file(hex.as_bytes(), mode);
            let error = load(&path).unwrap_err();
            assert!(matches!(error, KeyFileError::Exposed { mode: told, .. } if told == mode));
            assert!(error.to_string().contains(&format!("chmod go= {}", path.display())));
            assert!(!error.to_string().contains(hex.as_str()));
        }
    }

    #[test]
    fn command_to_run_names_the_daemons_user() {
        /// A user without a name.
        const DAEMON: Uid = Uid::from_raw(4_000_000_000);
        let (path, root) = (Path::new("/etc/k"), Uid::from_raw(0));
        let mended = |owner: Uid, mode, own| remedy(path, owner.as_raw(), mode, own);
        assert_eq!(mended(root, 0o600, DAEMON), "chown 4000000000 /etc/k");
        assert_eq!(mended(root, 0o640, DAEMON), "chown 4000000000 /etc/k && chmod go= /etc/k");
        assert_eq!(mended(DAEMON, 0o644, DAEMON), "chmod go= /etc/k");
        assert_eq!(mended(DAEMON, 0o200, DAEMON), "chmod u+r /etc/k");
        assert_eq!(mended(DAEMON, 0o060, DAEMON), "chmod u+r,go= /etc/k");
        assert_eq!(mended(DAEMON, 0o400, DAEMON), "");
        assert_eq!(mended(DAEMON, 0o644, root), "chmod go= /etc/k", "root reads it anyway");
    }

    #[test]
    fn file_that_this_user_cannot_open_is_rejected_with_the_command_to_run() {
        let (_dir, path) = key_file(generate().unwrap().to_hex().as_bytes(), 0o200);
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let error = denied(&path, &refused).unwrap();
        assert!(matches!(error, KeyFileError::Denied { .. }));
        assert!(error.to_string().ends_with(&format!("run: chmod u+r {}", path.display())));
        // Root may read it; other users get the same error.
        match load(&path) {
            Ok(_) => assert!(geteuid().is_root()),
            Err(refusal) => assert_eq!(refusal.to_string(), error.to_string()),
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        assert!(denied(&path, &refused).is_none(), "it is neither the owner nor the mode");
        assert!(denied(&path, &io::ErrorKind::NotFound.into()).is_none());
    }

    #[test]
    fn file_without_keys_is_rejected() {
        let (_dir, empty) = key_file(b"# none yet\n", 0o600);
        let error = load(&empty).unwrap_err();
        assert!(matches!(error, KeyFileError::Invalid { source: KeyError::Empty, .. }));
        let (_dir, long) = key_file(&[b'\n'; KEY_FILE_MAX + 1], 0o600);
        assert!(matches!(load(&long).unwrap_err(), KeyFileError::TooLong { .. }));
        let (_dir, binary) = key_file(&[0xff; 64], 0o600);
        assert!(matches!(load(&binary).unwrap_err(), KeyFileError::Read { .. }));
    }

    #[test]
    fn special_file_is_rejected_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(load(dir.path()).unwrap_err(), KeyFileError::NotAFile { .. }));
        assert!(matches!(load(&dir.path().join("no")).unwrap_err(), KeyFileError::Read { .. }));
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert!(matches!(load(&pipe).unwrap_err(), KeyFileError::NotAFile { .. }));
    }
}
