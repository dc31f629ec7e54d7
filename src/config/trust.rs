//! Whether only root and this process's user can write what this process reads or runs.

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};

/// Permission bits that let group and others write.
const OTHERS_WRITE: u32 = 0o022;

/// The permission bit of a directory in which a user can replace only its own files.
const STICKY: u32 = 0o1000;

/// The owner that the kernel shows for users that are not in this user namespace.
const UNMAPPED: u32 = 65_534;

/// The owner and the permission bits of a file or directory that other users can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writable {
    /// The owner's number.
    pub owner: u32,
    /// The permission bits.
    pub mode: u32,
}

impl Writable {
    /// Of a file or directory that a user other than root and this process's user can write.
    pub(super) fn by_others(metadata: &Metadata) -> Option<Self> {
        let writable = Writable { owner: metadata.uid(), mode: metadata.mode() & 0o7777 };
        (!writable.is_owner_trusted() || writable.lets_others_write()).then_some(writable)
    }

    fn is_owner_trusted(self) -> bool {
        [0, geteuid().as_raw()].contains(&self.owner)
    }

    const fn lets_others_write(self) -> bool {
        self.mode & OTHERS_WRITE != 0
    }

    /// Of a directory in which such a user can replace a file that belongs to another one.
    fn replaceable_in(directory: &Path) -> Option<Self> {
        let writable = Writable::by_others(&fs::metadata(directory).ok()?)?;
        let trusted = writable.is_owner_trusted() || writable.owner == UNMAPPED;
        let safe = !writable.lets_others_write() || writable.mode & STICKY != 0;
        (!(trusted && safe)).then_some(writable)
    }

    /// The commands after which only root and this process's user can write the file at `path`. A
    /// wrong owner is replaced by root, because a hook-runner that is root trusts no other one.
    pub(super) fn remedy(self, path: &Path) -> String {
        let chown = (!self.is_owner_trusted()).then_some("chown root");
        let chmod = self.lets_others_write().then_some("chmod go-w");
        let command = |command| format!("{command} {}", path.display());
        [chown, chmod].into_iter().flatten().map(command).collect::<Vec<_>>().join(" && ")
    }
}

impl fmt::Display for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner {}, mode {:04o}", self.owner, self.mode)
    }
}

/// The nearest directory in which another user can replace the file at `path`, or a directory or
/// link on the way to it.
pub(super) fn replaceable(path: &Path) -> Option<(PathBuf, Writable)> {
    // The links and the directories that they lead to.
    let (real, written) = (fs::canonicalize(path).ok()?, std::path::absolute(path).ok()?);
    let directories = real.ancestors().skip(1).chain(written.ancestors().skip(1));
    directories
        .filter_map(|directory| Some((directory.to_owned(), Writable::replaceable_in(directory)?)))
        .next()
}

/// The warning for a config file that another user can write or replace, or that a hook-runner
/// rejects, if there `has_hook_runner`.
pub(super) fn warning_for_config(path: &Path, has_hook_runner: bool) -> Option<String> {
    let (file, user) = (path.display(), user_name(geteuid()));
    let metadata = fs::metadata(path).ok()?;
    if let Some(by) = Writable::by_others(&metadata) {
        return Some(format!(
            "config file {file}: other users can write it ({by}) and run any command as {user} \
             through it, and a hook-runner rejects it; run: {}",
            by.remedy(path)
        ));
    }
    if has_hook_runner && metadata.uid() != 0 {
        return Some(format!(
            "config file {file}: it belongs to {user}, and a hook-runner that is root, as that of \
             lanelect-hook@.service, rejects it; run: chown root {file}; {user} must still be \
             able to read it"
        ));
    }
    let (directory, by) = replaceable(path)?;
    Some(format!(
        "config file {file}: other users can replace it, because they can write the directory {} \
         ({by}), and run any command as {user} through it; move the file to a directory that only \
         root can write, such as /etc/lanelect",
        directory.display()
    ))
}

/// The user's name, or its number if it has no name.
pub(super) fn user_name(uid: Uid) -> String {
    User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn file_is_writable_by_others_by_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "").unwrap();
        for (mode, writable) in [(0o644, false), (0o755, false), (0o664, true), (0o602, true)] {
            set_mode(&file, mode);
            let found = Writable::by_others(&fs::metadata(&file).unwrap());
            assert_eq!(found.map(|by| by.mode), writable.then_some(mode), "{mode:o}");
        }
    }

    #[test]
    fn remedy_names_only_what_is_wrong_and_makes_root_the_owner() {
        let own = geteuid().as_raw();
        for (owner, mode, remedy) in [
            (0, 0o664, "chmod go-w /f"),
            (own, 0o602, "chmod go-w /f"),
            (4_000_000, 0o644, "chown root /f"),
            (4_000_000, 0o666, "chown root /f && chmod go-w /f"),
        ] {
            assert_eq!(Writable { owner, mode }.remedy(Path::new("/f")), remedy);
        }
    }

    #[test]
    fn file_is_replaceable_if_others_can_write_a_directory_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let (above, below) = (dir.path().join("a"), dir.path().join("a/b"));
        fs::create_dir_all(&below).unwrap();
        let file = below.join("f");
        fs::write(&file, "").unwrap();
        for directory in [&above, &below] {
            for (mode, expected) in [(0o755, false), (0o775, true), (0o1777, false)] {
                set_mode(directory, mode);
                let found = replaceable(&file).map(|(found, _)| found);
                assert_eq!(found, expected.then(|| directory.clone()), "{mode:o}");
            }
            set_mode(directory, 0o755);
        }
    }

    #[test]
    fn file_is_replaceable_through_the_link_that_leads_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let (open, safe) = (dir.path().join("open"), dir.path().join("safe"));
        for directory in [&open, &safe] {
            fs::create_dir(directory).unwrap();
            set_mode(directory, 0o755);
        }
        fs::write(safe.join("f"), "").unwrap();
        symlink(safe.join("f"), open.join("link")).unwrap();
        assert_eq!(replaceable(&open.join("link")), None);
        set_mode(&open, 0o777);
        assert_eq!(replaceable(&open.join("link")).unwrap().0, open);
        assert_eq!(replaceable(&safe.join("f")), None);
    }

    #[test]
    fn user_without_a_name_is_shown_by_its_number() {
        assert_eq!(user_name(Uid::from_raw(0)), "root");
        assert_eq!(user_name(Uid::from_raw(4_000_000_000)), "4000000000");
    }
}
