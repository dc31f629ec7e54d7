//! What the core persists, on disk.
//!
//! One small file for each group, which people can read; `format` has its layout. It is replaced as
//! a whole: written beside, synced, renamed, and the directory synced. After a crash at any point
//! there is the old file or the new one, never a mixture. A lock on a second file keeps another
//! daemon away.
//!
//! [`Store`] waits for the disk; [`Writer`] keeps it on a thread of its own, so that nothing else
//! does.

mod format;
mod writer;

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::mem;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};

pub use self::format::STATE_MAX;
use self::format::{DecodeError, VERSION, decode, encode};
pub use self::writer::{OnFailure, RETRY_PAUSE, SAVE_LIMIT, Ticket, Writer};
use crate::core::persist::PersistentState;
use crate::os::process;
use crate::types::GroupName;

/// Why the state could not be read or written. Where not said otherwise, what is on disk did not
/// change. None of these is normal in operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory is missing and could not be created, or its name could not be synced.
    #[error("cannot create or sync the state directory {path}: {source}{}", advice(.source))]
    CreateDir {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error(
        "the state of this group is in use: {} holds the lock {path}; {}",
        process_name(*holder), how_to_end(*holder)
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, if it is known.
        holder: Option<u32>,
    },
    /// The lock file could not be opened or locked.
    #[error("cannot lock {path}: {source}{}", advice(.source))]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is there and could not be read.
    #[error("cannot read the state file {path}: {source}{}", advice(.source))]
    Read {
        /// The state file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not as it was written.
    #[error(
        "cannot use the state file {path}: it is damaged: {found}; to start without it, stop the \
         daemon and remove the file: this node then loses its term, its votes and promises, and \
         maintenance"
    )]
    Corrupt {
        /// The state file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
    /// Another version of lanelect wrote the file.
    #[error(
        "cannot use the state file {path}: it has layout version {found}, and this lanelect reads \
         only version {VERSION}; run the lanelect that wrote it, or a newer one"
    )]
    Version {
        /// The state file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The new file could not be written. What is on disk is the state from before, or, where only
    /// the directory could not be synced, the new one, which a power loss may take back.
    #[error("cannot write the state file {path}: {source}{}", advice(.source))]
    Write {
        /// The state file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Nothing is written through a link: the directory may be another user's than this process's,
/// which may be root's.
const NO_LINK: i32 = OFlag::O_NOFOLLOW.bits();

/// The state of one group on disk, locked against other daemons while this lives.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    group: GroupName,
    /// Held open for its lock.
    lock: Lock,
}

impl Store {
    /// Locks the state of `group` in `state_dir` and reads it; none where there is none yet.
    /// Creates the directory where it is missing.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn open(
        state_dir: &Path,
        group: GroupName,
    ) -> Result<(Self, Option<PersistentState>), StoreError> {
        create_dir(state_dir)?;
        let lock = lock(&state_file(state_dir, group, "lock"))?;
        let store = Store { dir: state_dir.to_owned(), group, lock };
        store.remove_leftover()?;
        let state = read(&store.path("state"))?;
        Ok((store, state))
    }

    /// Puts `state` on disk in place of what is there. When this returns without an error, a power
    /// loss no longer takes it back. Blocks for as long as the disk takes.
    ///
    /// Where the directory was removed meanwhile, it is created and locked again.
    ///
    /// # Errors
    ///
    /// See [`StoreError`].
    pub fn save(&mut self, state: &PersistentState) -> Result<(), StoreError> {
        self.hold_lock()?;
        encode(self.group, state)
            .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))
            .and_then(|content| self.replace(&content))
            .map_err(|source| StoreError::Write { path: self.path("state"), source })
    }

    /// Makes sure that the lock on the files where they are now is this store's: whoever removed
    /// the directory may have made room for another daemon.
    fn hold_lock(&mut self) -> Result<(), StoreError> {
        let path = self.path("lock");
        let failed = |source| StoreError::Lock { path: path.clone(), source };
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let held = self.lock.metadata().map(identity).map_err(failed)?;
        match fs::metadata(&path).map(identity) {
            Ok(there) if there == held => return Ok(()),
            // A disk that does not answer has removed nothing.
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        create_dir(&self.dir)?;
        self.lock = lock(&path)?;
        // Not before it has succeeded: a save that fails is tried often.
        log::warn!("the state directory {} was removed; created it again", self.dir.display());
        Ok(())
    }

    fn replace(&self, content: &str) -> io::Result<()> {
        let temporary = self.path("state.tmp");
        let result = write_synced(&temporary, content)
            .and_then(|()| fs::rename(&temporary, self.path("state")))
            .and_then(|()| sync_dir(&self.dir));
        if result.is_err() {
            // Frees the space on a full disk; where it fails, the next open tries again.
            let _ = fs::remove_file(&temporary);
        }
        result
    }

    /// Removes what a crash in the middle of a write left behind.
    fn remove_leftover(&self) -> Result<(), StoreError> {
        let path = self.path("state.tmp");
        match fs::remove_file(&path) {
            Err(source) if !is_kept_harmlessly(&source) => Err(StoreError::Write { path, source }),
            _ => Ok(()),
        }
    }

    fn path(&self, extension: &str) -> PathBuf {
        state_file(&self.dir, self.group, extension)
    }
}

/// The group's file with `extension` in `state_dir`. Escapes the slashes that a group's name may
/// contain.
fn state_file(state_dir: &Path, group: GroupName, extension: &str) -> PathBuf {
    let name = group.as_str().replace('%', "%25").replace('/', "%2F");
    state_dir.join(format!("{name}.{extension}"))
}

/// Creates the directory where it is missing, and syncs its name: otherwise a power loss could take
/// the directory, and the state with it. An earlier daemon may have been killed between the two, so
/// the name of a directory that is there is synced, too.
fn create_dir(dir: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::CreateDir { path: dir.to_owned(), source };
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    if dir.is_dir() {
        return match sync_dir(parent) {
            Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => Err(failed(error)),
            // This user may not read the parent, or its file system has nothing to sync. Then an
            // administrator made the directory.
            _ => Ok(()),
        };
    }
    create_dir(parent)?;
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    sync_dir(parent).map_err(|error| {
        // After a sync that failed, the next one may succeed and write nothing.
        let _ = fs::remove_dir(dir);
        failed(error)
    })
}

/// A locked file. `Flock` would panic if the file system refuses to unlock it, as one that fails
/// does.
#[derive(Debug)]
struct Lock(Option<Flock<File>>);

impl Lock {
    fn metadata(&self) -> io::Result<Metadata> {
        self.0.as_ref().ok_or(ErrorKind::NotFound)?.metadata()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(Err((file, _))) = self.0.take().map(Flock::unlock) {
            // It stays open, and locked, until the process ends.
            mem::forget(file);
        }
    }
}

/// Takes the lock, and writes into its file who holds it.
fn lock(path: &Path) -> Result<Lock, StoreError> {
    let failed = |source| StoreError::Lock { path: path.to_owned(), source };
    let file = open_lock(path).map_err(failed)?;
    let mut file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(file) => file,
        Err((mut file, Errno::EWOULDBLOCK)) => {
            return Err(StoreError::Locked { path: path.to_owned(), holder: holder(&mut file) });
        }
        Err((_, error)) => return Err(failed(error.into())),
    };
    // A full disk must not keep the daemon down over a courtesy.
    if let Err(error) = write_holder(&mut file) {
        log::debug!("cannot write the process id to {}: {error}", path.display());
    }
    Ok(Lock(Some(file)))
}

/// A file system that has turned read-only still locks what is on it.
fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(NO_LINK);
    match options.open(path) {
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => {
            File::open(path).map_err(|_| error)
        }
        opened => opened,
    }
}

/// Whether what could not be removed is not there, or cannot be written over either.
fn is_kept_harmlessly(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ReadOnlyFilesystem)
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

/// Who holds the lock, by what it wrote into the file. A full or read-only disk keeps the number of
/// an earlier process there.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    let named = text.trim().parse().ok()?;
    let inode = file.metadata().ok()?.ino();
    process::has_flock(named, inode).then_some(named)
}

fn process_name(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"))
}

fn how_to_end(holder: Option<u32>) -> &'static str {
    match holder {
        Some(process) if process::is_headless(process) => {
            "it was killed, and ends when its disk responds: repair the disk"
        }
        Some(_) => "stop that daemon first, or give one of the two another state_dir",
        None => {
            "stop that daemon first, or give one of the two another state_dir; one that was killed \
             while its disk hangs ends when the disk responds"
        }
    }
}

fn write_synced(path: &Path, content: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(NO_LINK);
    let mut file = options.open(path)?;
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

pub(in crate::daemon) fn read(path: &Path) -> Result<Option<PersistentState>, StoreError> {
    let failed = |source| StoreError::Read { path: path.to_owned(), source };
    // Not even a pipe that nobody writes into is waited for.
    let file = match File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut content = Vec::new();
    file.take(STATE_MAX + 1).read_to_end(&mut content).map_err(failed)?;
    decode(&content).map(Some).map_err(|error| match error {
        DecodeError::Version(found) => StoreError::Version { path: path.to_owned(), found },
        DecodeError::Corrupt(found) => StoreError::Corrupt { path: path.to_owned(), found },
    })
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "; give it to the daemon's user (StateDirectory= in the unit, or chown), or set \
             state_dir to a directory of that user"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; free some space there, or set state_dir to a directory on another file system"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "; set state_dir to a directory on a writable file system (with ProtectSystem=strict \
             in the unit, StateDirectory= makes one)"
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "; remove the file that is in the way, or set state_dir to another path"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;
    use crate::core::persist::Enrolment;
    use crate::types::{Incarnation, Term};

    const STATE: PersistentState = PersistentState {
        revision: 0,
        term: Term(7),
        incarnation: Incarnation(3),
        maintenance: true,
        enrolment: Enrolment::Enrolled,
        ballot: None,
        pledge: None,
    };

    /// Tells the test's second process where its file system is.
    const TINY_VARIABLE: &str = "TEST_STORE_TINY_DIR";

    fn group() -> GroupName {
        "blue".parse().unwrap()
    }

    /// A directory in which the state of group blue was saved.
    fn saved() -> TempDir {
        let dir = TempDir::new().unwrap();
        let (mut store, before) = Store::open(dir.path(), group()).unwrap();
        assert_eq!(before, None);
        store.save(&STATE).unwrap();
        dir
    }

    /// Opens what was open before, once the lock is free: a process that another test forks in this
    /// very moment has it too, until it executes its program.
    fn open_again(dir: &Path) -> Result<(Store, Option<PersistentState>), StoreError> {
        loop {
            match Store::open(dir, group()) {
                Err(StoreError::Locked { .. }) => std::thread::yield_now(),
                opened => return opened,
            }
        }
    }

    fn load(dir: &Path) -> Result<Option<PersistentState>, StoreError> {
        open_again(dir).map(|(_, state)| state)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_saved_last_is_read_back() {
        let dir = saved();
        assert_eq!(load(dir.path()).unwrap(), Some(STATE));
        let (mut store, _) = open_again(dir.path()).unwrap();
        let last = PersistentState {
            term: Term(u64::MAX),
            incarnation: Incarnation(u64::MAX),
            maintenance: false,
            ..PersistentState::default()
        };
        store.save(&STATE).unwrap();
        store.save(&last).unwrap();
        drop(store);
        assert_eq!(load(dir.path()).unwrap(), Some(last));
        assert_eq!(names(dir.path()), ["blue.lock", "blue.state"]);
    }

    #[test]
    fn only_the_owner_can_read_what_was_created() {
        let parent = TempDir::new().unwrap();
        let dir = parent.path().join("state/lanelect");
        let (mut store, _) = Store::open(&dir, group()).unwrap();
        store.save(&STATE).unwrap();
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join("blue.state")), 0o600);
        assert_eq!(mode(&dir.join("blue.lock")), 0o600);
    }

    #[test]
    fn a_group_name_is_no_path() {
        let dir = TempDir::new().unwrap();
        let name = |group: &str| state_file(Path::new("/d"), group.parse().unwrap(), "state");
        assert_eq!(name("../../etc"), Path::new("/d/..%2F..%2Fetc.state"));
        assert_ne!(name("a/b"), name("a%2Fb"));
        Store::open(dir.path(), "../x".parse().unwrap()).unwrap().0.save(&STATE).unwrap();
        assert_eq!(names(dir.path()), ["..%2Fx.lock", "..%2Fx.state"]);
    }

    #[test]
    fn groups_share_a_directory() {
        let dir = saved();
        let _blue = open_again(dir.path()).unwrap();
        let (_green, state) = Store::open(dir.path(), "green".parse().unwrap()).unwrap();
        assert_eq!(state, None);
    }

    #[test]
    fn two_daemons_do_not_share_a_state() {
        let dir = saved();
        let first = open_again(dir.path()).unwrap();
        let error = Store::open(dir.path(), group()).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Locked { .. }));
        let holder = format!("process {}", std::process::id());
        assert!(error.to_string().contains(&holder), "{error}");
        drop(first);
        assert_eq!(load(dir.path()).unwrap(), Some(STATE));
    }

    #[test]
    fn a_lock_file_with_rubbish_in_it_is_a_lock_file() {
        let dir = saved();
        fs::write(dir.path().join("blue.lock"), [0xff; 100]).unwrap();
        let foreign = File::open(dir.path().join("blue.lock")).unwrap();
        let foreign = Flock::lock(foreign, FlockArg::LockExclusive).unwrap();
        let error = Store::open(dir.path(), group()).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
        drop(foreign);
        load(dir.path()).unwrap();
    }

    #[test]
    fn process_that_does_not_hold_the_lock_is_not_named() {
        // Started before the lock is taken, or it might have that too for a moment.
        let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
        let dir = saved();
        let _held = open_again(dir.path()).unwrap();
        let refusal = |named: u32| {
            fs::write(dir.path().join("blue.lock"), format!("{named}\n")).unwrap();
            Store::open(dir.path(), group()).map(|_| ()).unwrap_err().to_string()
        };
        let others = refusal(other.id());
        other.kill().unwrap();
        other.wait().unwrap();
        for told in [others, refusal(other.id()), refusal(u32::MAX)] {
            assert!(told.contains("another process holds"), "{told}");
        }
        assert!(refusal(std::process::id()).contains("stop that daemon first"));
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let dir = saved();
        let precious = dir.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        let (mut store, _) = open_again(dir.path()).unwrap();
        std::os::unix::fs::symlink(&precious, dir.path().join("blue.state.tmp")).unwrap();
        let error = store.save(&STATE).unwrap_err();
        assert!(matches!(error, StoreError::Write { .. }), "{error}");
        store.save(&STATE).unwrap();
        drop(store);

        let lock = dir.path().join("blue.lock");
        fs::remove_file(&lock).unwrap();
        std::os::unix::fs::symlink(&precious, &lock).unwrap();
        let error = Store::open(dir.path(), group()).unwrap_err();
        assert!(matches!(error, StoreError::Lock { .. }), "{error}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    }

    #[test]
    fn a_pipe_in_place_of_the_file_is_damage_and_not_waited_for() {
        let dir = TempDir::new().unwrap();
        let pipe = dir.path().join("blue.state");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(load(dir.path()), Err(StoreError::Corrupt { .. })));
    }

    #[test]
    fn a_file_cut_short_anywhere_is_recognised() {
        let dir = saved();
        let path = dir.path().join("blue.state");
        let whole = fs::read(&path).unwrap();
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            let error = load(dir.path()).unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{len}: {error}");
        }
    }

    #[test]
    fn a_damaged_file_is_reported_with_what_to_do() {
        let dir = saved();
        let path = dir.path().join("blue.state");
        let whole = fs::read_to_string(&path).unwrap();
        let report = |content: &[u8]| {
            fs::write(&path, content).unwrap();
            load(dir.path()).unwrap_err().to_string()
        };
        assert!(report(b"").contains("it is empty"));
        assert!(report(&[0xff, 0xfe]).contains("not UTF-8 text"));
        assert!(report(whole.replace("term = 7", "term = 6").as_bytes()).contains("checksum"));
        let oversized = whole + &"#".repeat(usize::try_from(STATE_MAX).unwrap());
        let text = report(oversized.as_bytes());
        assert!(text.contains("too large"), "{text}");
        assert!(text.contains("stop the daemon and remove the file"), "{text}");
        assert!(text.contains("blue.state"), "{text}");
        // Nothing was repaired behind the operator's back.
        assert_eq!(fs::read_to_string(&path).unwrap(), oversized);
    }

    #[test]
    fn another_version_is_not_mistaken_for_damage() {
        let dir = saved();
        let path = dir.path().join("blue.state");
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, whole.replace("version = 1", "version = 2")).unwrap();
        let error = load(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Version { found: 2, .. }), "{error}");
    }

    #[test]
    fn what_a_crash_left_half_written_is_removed() {
        let dir = saved();
        fs::write(dir.path().join("blue.state.tmp"), "version = 1\nche").unwrap();
        assert_eq!(load(dir.path()).unwrap(), Some(STATE));
        assert_eq!(names(dir.path()), ["blue.lock", "blue.state"]);
    }

    #[test]
    fn a_directory_that_was_removed_is_created_and_locked_anew() {
        let parent = TempDir::new().unwrap();
        let dir = parent.path().join("lanelect");
        let (mut store, _) = Store::open(&dir, group()).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        store.save(&STATE).unwrap();
        let second = Store::open(&dir, group());
        assert!(matches!(second, Err(StoreError::Locked { .. })));
        drop(store);
        assert_eq!(load(&dir).unwrap(), Some(STATE));
    }

    #[test]
    fn a_directory_that_another_daemon_took_over_is_left_to_it() {
        let parent = TempDir::new().unwrap();
        let dir = parent.path().join("lanelect");
        let (mut store, _) = Store::open(&dir, group()).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let (mut other, _) = Store::open(&dir, group()).unwrap();
        let theirs = PersistentState { term: Term(8), ..STATE };
        other.save(&theirs).unwrap();
        let error = store.save(&STATE).unwrap_err();
        assert!(matches!(error, StoreError::Locked { .. }), "{error}");
        drop((store, other));
        assert_eq!(load(&dir).unwrap(), Some(theirs));
    }

    #[test]
    fn a_path_that_is_no_directory_is_reported() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "").unwrap();
        for state_dir in [path.clone(), path.join("below")] {
            let error = load(&state_dir).unwrap_err();
            assert!(matches!(error, StoreError::CreateDir { .. }), "{error}");
            assert!(error.to_string().contains("remove the file that is in the way"), "{error}");
        }
    }

    #[test]
    fn a_save_that_fails_leaves_the_old_state_and_no_leftover() {
        let dir = saved();
        let (mut store, _) = open_again(dir.path()).unwrap();
        // A directory in the place of the file makes the rename fail.
        let path = dir.path().join("blue.state");
        fs::rename(&path, dir.path().join("kept")).unwrap();
        fs::create_dir_all(path.join("in-the-way")).unwrap();
        let error = store.save(&PersistentState::default()).unwrap_err();
        assert!(matches!(error, StoreError::Write { .. }), "{error}");
        assert_eq!(names(dir.path()), ["blue.lock", "blue.state", "kept"]);
    }

    #[test]
    fn a_directory_of_someone_else_is_reported_with_what_to_do() {
        let dir = saved();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).unwrap();
        let is_root = nix::unistd::geteuid().is_root();
        let result = open_again(dir.path()).and_then(|(mut store, _)| store.save(&STATE));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        // No permission stops root.
        assert_eq!(result.is_ok(), is_root);
        if let Err(error) = result {
            assert!(error.to_string().contains("StateDirectory="), "{error}");
        }
    }

    #[test]
    #[ignore = "the process that the next test starts in a file system of its own"]
    fn in_a_tiny_file_system() {
        let Some(dir) = std::env::var_os(TINY_VARIABLE).map(PathBuf::from) else { return };
        let (mut store, _) = Store::open(&dir, group()).unwrap();
        store.save(&STATE).unwrap();
        let next = PersistentState { term: Term(8), ..STATE };

        let filler = dir.join("filler");
        let error = fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let error = store.save(&next).unwrap_err().to_string();
        assert!(error.contains("free some space"), "{error}");
        assert_eq!(read(&dir.join("blue.state")).unwrap(), Some(STATE));
        fs::remove_file(&filler).unwrap();
        store.save(&next).unwrap();
        drop(store);

        let remount = ["-o", "remount,ro"];
        assert!(Command::new("mount").args(remount).arg(&dir).status().unwrap().success());
        let (mut store, state) = Store::open(&dir, group()).unwrap();
        assert_eq!(state, Some(next), "it can be read and locked");
        assert!(matches!(Store::open(&dir, group()), Err(StoreError::Locked { .. })));
        let error = store.save(&STATE).unwrap_err().to_string();
        assert!(error.contains("writable file system"), "{error}");
        assert_eq!(read(&dir.join("blue.state")).unwrap(), Some(next));
        let error = Store::open(&dir, "red".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("writable file system"), "nothing to lock: {error}");
    }

    #[test]
    fn a_full_or_read_only_file_system_keeps_the_old_state() {
        let dir = TempDir::new().unwrap();
        let exe = std::env::current_exe().unwrap();
        let script = "mount -t tmpfs -o size=16k none \"$1\" && \
                      exec \"$0\" --exact --ignored \"$2\"";
        let output = Command::new("unshare")
            .args(["-Urm", "sh", "-c", script])
            .arg(exe)
            .arg(dir.path())
            .arg("daemon::store::tests::in_a_tiny_file_system")
            .env(TINY_VARIABLE, dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.starts_with("unshare:") || errors.starts_with("mount:") {
            eprintln!("skipped, this host has no user namespaces: {errors}");
            return;
        }
        assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
    }

    #[test]
    fn every_failure_of_the_system_comes_with_advice() {
        for kind in [
            ErrorKind::PermissionDenied,
            ErrorKind::StorageFull,
            ErrorKind::ReadOnlyFilesystem,
            ErrorKind::NotADirectory,
        ] {
            assert!(advice(&kind.into()).contains("state_dir"), "{kind:?}");
        }
    }
}
