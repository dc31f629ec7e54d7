//! The note about the hook that runs, in a file beside the socket of the process that runs it.
//!
//! A process that is killed leaves its hook running. The next life must not run another hook beside
//! it, so the shell's process group is noted in a small file until the run is over. A crash of the
//! machine ends the hook as well. So the file is not synced, and lies where a restart removes it: a
//! disk that hangs delays no hook and no fence command.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::signal::killpg;
use nix::unistd::{Pid, getpgrp};
use serde::{Deserialize, Serialize};

use crate::os::process::{Stat, members};
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

/// A shell that leads its process group, distinguished from every later process and group with the
/// same number.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shell {
    pid: i32,
    /// Its session, which is that of the process that started it. So it is also the session of what
    /// the shell leaves in its group. A later group with this number has another session, unless
    /// the service that started it shares the session of this one, as under some supervisors. So
    /// a note must not stay for longer than it is needed.
    session: i32,
    /// When it was started, in clock ticks since the machine booted.
    started: u64,
    /// The boot of the machine that this refers to.
    boot: String,
}

/// The file of the note of the process that listens on `socket`. The name extends that of the
/// socket, so it is neither the socket itself nor the note of another socket.
pub(super) fn beside(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".hook");
    path.into()
}

impl Record {
    pub(super) const fn new(path: PathBuf) -> Self {
        Record { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that the hook whose shell is `pid` runs. The shell may have ended, but must not have
    /// been waited for. If that fails, no other hook is noted either.
    pub(super) fn write(&self, pid: Pid) -> io::Result<()> {
        let written = note_of(pid).and_then(|note| small_file::replace(&self.path, &note));
        if written.is_err() {
            self.clear()?;
        }
        written
    }

    /// Notes that no hook runs.
    pub(super) fn clear(&self) -> io::Result<()> {
        small_file::remove(&self.path).or_else(|_| small_file::empty(&self.path))
    }

    /// The process group of the noted hook, if anything of it still runs. A service manager that
    /// kills all of a hook may end its shell alone: the process that the shell waits for may be
    /// stuck in the kernel.
    pub(super) fn find(&self) -> io::Result<Option<Pid>> {
        // A file of another user is ignored: it could make this process, which may be privileged,
        // send signals to any process that user chooses.
        let note = small_file::read(&self.path, RECORD_MAX)?;
        let Some(note) = note.filter(|note| !note.is_empty()) else { return Ok(None) };
        let noted: Shell = serde_json::from_slice(&note)?;
        Ok(noted.group_runs()?.then_some(Pid::from_raw(noted.pid)))
    }
}

impl Shell {
    /// The process `pid`; none if there is none, or it does not lead its group.
    fn of(pid: Pid) -> io::Result<Option<Self>> {
        let leader = Stat::of(pid)?.filter(|process| process.group == pid);
        let Some(Stat { session, started, .. }) = leader else { return Ok(None) };
        Ok(Some(Shell { pid: pid.as_raw(), session, started, boot: boot()? }))
    }

    /// Whether anything still runs of the group that it leads or led.
    fn group_runs(&self) -> io::Result<bool> {
        // A signal to these numbers would not reach exactly one group.
        if self.pid <= 1 {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "it does not name the process of a hook",
            ));
        }
        let pid = Pid::from_raw(self.pid);
        let is_it = |process: Stat| process.started == self.started;
        // A hook never shares this process's group.
        if pid == getpgrp() || self.boot != boot()? || !Stat::of(pid)?.is_none_or(is_it) {
            return Ok(false);
        }
        let is_of_it = |process: &Stat| {
            let is_same = process.session == self.session && process.started >= self.started;
            is_same && !process.is_dead
        };
        let members = members(pid)?;
        if members.is_empty() && killpg(pid, None) != Err(Errno::ESRCH) {
            return Err(io::Error::other("/proc hides the processes of its group"));
        }
        Ok(members.iter().any(|(_, process)| is_of_it(process)))
    }
}

fn note_of(shell: Pid) -> io::Result<Vec<u8>> {
    let unseen = || io::Error::new(ErrorKind::NotFound, "/proc does not show the hook's shell");
    Ok(serde_json::to_vec(&Shell::of(shell)?.ok_or_else(unseen)?)?)
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string(BOOT_ID)?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::Permissions;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::geteuid;
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
    fn each_socket_has_a_note_of_its_own() {
        let sockets = ["/run/web.hook", "/run/web.sock", "/run/web.socket", "/run/web"];
        let notes = sockets.map(|socket| beside(Path::new(socket)));
        assert_eq!(notes[0], Path::new("/run/web.hook.hook"));
        let distinct = BTreeSet::from_iter(&notes);
        assert_eq!(distinct.len(), sockets.len());
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
    fn a_note_that_cannot_be_removed_is_emptied_and_names_nothing() {
        let (record, dir) = record();
        let sleeper = Sleeper::start();
        record.write(sleeper.pid()).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o500)).unwrap();
        record.clear().unwrap();
        assert_eq!(record.find().unwrap(), None);
        assert_eq!(record.path().exists(), !geteuid().is_root(), "root removes it all the same");
        small_file::empty(record.path()).or_else(|_| fs::write(record.path(), "")).unwrap();
        assert_eq!(record.find().unwrap(), None);
        fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_note_of_this_processs_own_group_is_not_believed() {
        let (record, _dir) = record();
        let sleeper = Sleeper::start();
        record.write(sleeper.pid()).unwrap();
        let own = getpgrp();
        let Some(leader) = Stat::of(own).unwrap() else { return };
        rewrite(&record, |shell| {
            shell.pid = own.as_raw();
            (shell.session, shell.started) = (leader.session, leader.started);
        });
        assert_eq!(record.find().unwrap(), None);
    }

    #[test]
    fn a_hook_that_cannot_be_noted_leaves_no_note() {
        let (record, _dir) = record();
        let sleeper = Sleeper::start();
        record.write(sleeper.pid()).unwrap();
        // It does not lead its group.
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let unseen = record.write(Pid::from_raw(child.id() as i32)).unwrap_err();
        assert_eq!(unseen.kind(), ErrorKind::NotFound);
        assert!(!record.path().exists());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_got_the_number_later_is_not_the_hook() {
        let (record, _dir) = record();
        let sleeper = Sleeper::start();
        let changes: [fn(&mut Shell); 3] = [
            |shell| shell.started -= 1,
            |shell| shell.session += 1,
            |shell| shell.boot = "another".to_owned(),
        ];
        for change in changes {
            record.write(sleeper.pid()).unwrap();
            rewrite(&record, change);
            assert_eq!(record.find().unwrap(), None);
        }
    }

    #[test]
    fn what_a_shell_leaves_in_its_group_is_found_and_what_got_its_number_later_is_not() {
        let (record, _dir) = record();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 100 & echo $!; wait"]).process_group(0).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let pid = Pid::from_raw(shell.id() as i32);
        record.write(pid).unwrap();
        let mut child = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut child).unwrap();
        let child = Pid::from_raw(child.trim_end().parse().unwrap());
        // A dead shell that was not waited for, and then none.
        shell.kill().unwrap();
        assert_eq!(record.find().unwrap(), Some(pid));
        shell.wait().unwrap();
        assert_eq!(record.find().unwrap(), Some(pid));
        let changes: [fn(&mut Shell); 3] = [
            |shell| shell.started += 1 << 20,
            |shell| shell.session += 1,
            |shell| shell.boot = "another".to_owned(),
        ];
        let note = fs::read(record.path()).unwrap();
        for change in changes {
            rewrite(&record, change);
            assert_eq!(record.find().unwrap(), None);
            fs::write(record.path(), &note).unwrap();
        }
        kill(child, Signal::SIGKILL).unwrap();
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
