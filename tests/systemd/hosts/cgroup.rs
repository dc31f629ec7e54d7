//! A control group for the hosts of a site, and in it one for each.
//!
//! The kernel keeps empty control groups for ever. Those of a test that was killed are removed by
//! the next one, which knows them by the lock that nobody holds any more.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

/// What the names of all sites' control groups begin with.
const PREFIX: &str = "lanelect-hosts-";

/// A site's control group; gone when this is, and so nothing may run in it then.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dir: PathBuf,
    _lock: Flock<File>,
}

impl Cgroup {
    /// A control group of a name that no other has, where `root` has them mounted.
    pub(crate) fn new(root: &Path) -> Cgroup {
        remove_abandoned(root);
        loop {
            let dir = root.join(format!("{PREFIX}{:08x}", getrandom::u32().unwrap()));
            fs::create_dir(&dir).unwrap();
            // Somebody else may take it for abandoned until it is locked.
            if let Some(lock) = try_lock(&dir).filter(|_| dir.exists()) {
                return Cgroup { dir, _lock: lock };
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Makes the host's control group.
    pub(crate) fn create(&self, host: &str) {
        fs::create_dir(self.dir.join(host)).unwrap();
    }

    /// Removes the host's control group and all that its system manager has made there.
    pub(crate) fn remove(&self, host: &str) {
        remove(&self.dir.join(host)).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Where something still runs in it, the next site removes it.
        let _ = remove(&self.dir);
    }
}

fn remove_abandoned(root: &Path) {
    for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let lock = if ours { try_lock(&entry.path()) } else { None };
        if lock.is_some() {
            let _ = remove(&entry.path());
        }
    }
}

/// Nothing where another process holds the lock, or the directory is gone.
fn try_lock(dir: &Path) -> Option<Flock<File>> {
    Flock::lock(File::open(dir).ok()?, FlockArg::LockExclusiveNonblock).ok()
}

/// Control groups are removed as directories from the innermost on; their files cannot be.
fn remove(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(dir)
}
