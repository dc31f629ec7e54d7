//! The directory that holds everything the demo writes, and that goes away with it.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Most names that are tried where leftovers of killed demos have taken the first ones.
const NAMES_MAX: u32 = 100;

/// Nobody else has any business in it.
const MODE: u32 = 0o700;

/// A new directory. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub(super) struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    /// Makes a directory called `name`, or `name` with a number, in `parent`.
    ///
    /// # Errors
    ///
    /// Where it cannot be made, or all names are taken.
    pub(super) fn create(parent: &Path, name: &str) -> io::Result<Self> {
        let numbered = (1..NAMES_MAX).map(|number| format!("{name}-{number}"));
        for candidate in std::iter::once(name.to_owned()).chain(numbered) {
            let path = parent.join(candidate);
            // Never takes over what exists, so nobody else can have put anything in it.
            match DirBuilder::new().mode(MODE).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                created => return created.map(|()| ScratchDirectory(path)),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // Nothing is left to do about it where this fails, and nobody to tell.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_is_new_private_and_gone_in_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let first = ScratchDirectory::create(parent.path(), "demo").unwrap();
        let second = ScratchDirectory::create(parent.path(), "demo").unwrap();
        assert_ne!(first.path(), second.path());
        for directory in [&first, &second] {
            assert_eq!(fs::metadata(directory.path()).unwrap().permissions().mode() & 0o777, MODE);
            fs::create_dir(directory.path().join("inner")).unwrap();
            fs::write(directory.path().join("inner/file"), "x").unwrap();
        }
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_parent_that_is_not_there_is_an_error() {
        let parent = tempfile::tempdir().unwrap();
        let error = ScratchDirectory::create(&parent.path().join("gone"), "demo").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
