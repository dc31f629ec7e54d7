//! The note on disk about the hook that runs.
//!
//! A process that is killed leaves its hook running. The next life must not run another hook beside
//! it, so the shell is noted in a small file while it runs. The file is not synced: a crash of the
//! machine, which may lose it, ends the hook as well.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::os::process::Stat;
use crate::os::small_file;

/// Largest note, in bytes. A larger file is not ours.
const RECORD_MAX: u64 = 1024;

/// Where the kernel shows the id of the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The file of the note.
#[derive(Debug)]
pub(super) struct Record {
    path: PathBuf,
}

/// A shell that leads its process group, distinguished from every later process with the same
/// number.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shell {
    pid: i32,
    /// When it was started, in clock ticks since the machine booted.
    started: u64,
    /// The boot of the machine that this refers to.
    boot: String,
}

impl Record {
    pub(super) const fn new(path: PathBuf) -> Self {
        Record { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the hook whose shell is `pid` runs, unless it has ended already. The shell must
    /// not have been waited for.
    pub(super) fn write(&self, pid: Pid) -> io::Result<()> {
        let Some(shell) = Shell::living(pid)? else { return self.clear() };
        let note = serde_json::to_vec(&shell)?;
        small_file::replace(&self.path, &note)
    }

    /// Notes that no hook runs.
    pub(super) fn clear(&self) -> io::Result<()> {
        small_file::remove(&self.path)
    }

    /// The shell of the noted hook, if it still runs. If the shell has ended, it may have left
    /// processes in its group on purpose, and its number may now belong to another process.
    pub(super) fn find(&self) -> io::Result<Option<Pid>> {
        // A file of another user is ignored: it could make this process, which may be privileged,
        // send signals to any process that user chooses.
        let Some(note) = small_file::read(&self.path, RECORD_MAX)? else { return Ok(None) };
        let noted: Shell = serde_json::from_slice(&note)?;
        let pid = Pid::from_raw(noted.pid);
        Ok((Shell::living(pid)? == Some(noted)).then_some(pid))
    }
}

impl Shell {
    /// The process `pid`; none if it has ended or does not lead its group.
    fn living(pid: Pid) -> io::Result<Option<Self>> {
        // A signal to these numbers would not reach exactly one group.
        if pid.as_raw() <= 1 {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "it does not name the process of a hook",
            ));
        }
        let Some(process) = Stat::of(pid)? else { return Ok(None) };
        if process.is_dead || process.group != pid {
            return Ok(None);
        }
        let boot = fs::read_to_string(BOOT_ID)?.trim_end().to_owned();
        Ok(Some(Shell { pid: pid.as_raw(), started: process.started, boot }))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use tempfile::TempDir;

    use super::*;

    fn record() -> (Record, TempDir) {
        let dir = TempDir::new().unwrap();
        (Record::new(dir.path().join("blue.hook")), dir)
    }

    /// A process that leads a group; killed when dropped.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Self {
            Sleeper(Command::new("sleep").arg("100").process_group(0).spawn().unwrap())
        }

        fn pid(&self) -> Pid {
            Pid::from_raw(self.0.id() as i32)
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn rewrite(record: &Record, change: impl FnOnce(&mut Shell)) {
        let mut shell = serde_json::from_slice(&fs::read(record.path()).unwrap()).unwrap();
        change(&mut shell);
        fs::write(record.path(), serde_json::to_vec(&shell).unwrap()).unwrap();
    }

    #[test]
    fn a_hook_that_runs_is_found_until_the_note_is_cleared() {
        let (record, _dir) = record();
        assert_eq!(record.find().unwrap(), None);
        let sleeper = Sleeper::start();
        record.write(sleeper.pid()).unwrap();
        assert_eq!(record.find().unwrap(), Some(sleeper.pid()));
        record.clear().unwrap();
        assert_eq!(record.find().unwrap(), None);
        record.clear().unwrap();
    }

    #[test]
    fn a_process_that_got_the_number_later_is_not_the_hook() {
        let (record, _dir) = record();
        let sleeper = Sleeper::start();
        let changes: [fn(&mut Shell); 2] =
            [|shell| shell.started -= 1, |shell| shell.boot = "another".to_owned()];
        for change in changes {
            record.write(sleeper.pid()).unwrap();
            rewrite(&record, change);
            assert_eq!(record.find().unwrap(), None);
        }
    }

    #[test]
    fn a_note_can_name_one_group_only() {
        let (record, _dir) = record();
        let sleeper = Sleeper::start();
        for number in [i32::MIN, -sleeper.pid().as_raw(), -1, 0, 1] {
            record.write(sleeper.pid()).unwrap();
            rewrite(&record, |shell| shell.pid = number);
            assert_eq!(record.find().unwrap_err().kind(), ErrorKind::InvalidData, "{number}");
        }
    }

    #[test]
    fn a_link_and_rubbish_are_not_believed() {
        let (record, dir) = record();
        let sleeper = Sleeper::start();
        record.write(sleeper.pid()).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::rename(record.path(), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, record.path()).unwrap();
        assert!(record.find().is_err());
        record.clear().unwrap();
        fs::write(record.path(), "rubbish").unwrap();
        assert!(record.find().is_err());
    }

    #[test]
    fn what_is_in_the_way_of_a_new_note_is_replaced_and_not_written_through() {
        let (record, dir) = record();
        let victim = dir.path().join("victim");
        fs::write(&victim, "kept").unwrap();
        for name in ["blue.hook", "blue.hook.tmp"] {
            std::os::unix::fs::symlink(&victim, dir.path().join(name)).unwrap();
        }
        let sleeper = Sleeper::start();
        record.write(sleeper.pid()).unwrap();
        assert_eq!(record.find().unwrap(), Some(sleeper.pid()));
        assert_eq!(fs::read_to_string(victim).unwrap(), "kept");
    }
}
