//! The disk of the state: whether it can be written, and how long a sync takes.
//!
//! A process of its own finds out. If the disk hangs, that process waits in the kernel, where no
//! signal ends it. The doctor itself, with a thread that waits so, could not end either.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::process;
use crate::core::params::Mode;
use crate::os::clock;

const TOPIC: &str = "disk";

/// The command line argument that has a process measure.
const MEASURE: &str = "disk-sync";

/// This program, also if its file was replaced.
const SELF: &str = "/proc/self/exe";

/// The slowest of so many counts.
const ROUNDS: usize = 3;

/// As much as a state has.
const CONTENT: [u8; 256] = [b'\n'; 256];

/// In available mode nothing waits for the disk but the answer to `maintenance`.
const SLOW: Duration = Duration::from_secs(1);

/// What was measured.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) directory: PathBuf,
    /// Why the daemon could not save its state.
    pub(super) failure: Option<String>,
    pub(super) look: Look,
    pub(super) mode: Mode,
    /// The election's `leader_alive_threshold`, if it is known.
    pub(super) threshold: Option<Duration>,
}

/// What a look at the disk came to.
#[derive(Debug)]
pub(super) enum Look {
    Done(Measured),
    /// It takes longer than [`process::LIMIT`].
    Hangs,
    /// Nothing is known.
    Failed(io::Error),
}

/// The answer of the process that measures.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// How long a sync took; or the system's number of the error.
    sync_us: Result<u64, i32>,
    /// Whether the file system is lost with the next boot.
    is_volatile: bool,
}

/// Has a process measure this directory.
pub(super) fn look(directory: &Path) -> Look {
    let mut command = Command::new(SELF);
    command.arg0("lanelect").arg(MEASURE).arg(directory);
    let measured = process::run(command)
        .and_then(|answer| serde_json::from_str(&answer).map_err(io::Error::from));
    match measured {
        Ok(measured) => Look::Done(measured),
        Err(error) if error.kind() == ErrorKind::TimedOut => Look::Hangs,
        Err(error) => Look::Failed(error),
    }
}

/// What `look` has a process measure, as it prints it.
pub fn measure(directory: &Path) -> String {
    let took = time_sync(directory).map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    let sync_us = took.map_err(|error| error.raw_os_error().unwrap_or_default());
    let is_volatile = statfs(directory).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC);
    serde_json::to_string(&Measured { sync_us, is_volatile }).unwrap_or_default() + "\n"
}

/// Writes, syncs and removes a small file in `directory`, as the daemon saves its state.
fn time_sync(directory: &Path) -> io::Result<Duration> {
    let path = directory.join(format!(".lanelect-doctor.{}", std::process::id()));
    let mut slowest = Duration::ZERO;
    for _ in 0..ROUNDS {
        let started = clock::now();
        let written = write(&path).and_then(|()| File::open(directory)?.sync_all());
        let took = clock::now().since(started);
        match fs::remove_file(&path) {
            // It was not created.
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => written?,
        }
        slowest = slowest.max(took);
        if slowest >= SLOW {
            // That is known now, and the time is limited.
            break;
        }
    }
    Ok(slowest)
}

fn write(path: &Path) -> io::Result<()> {
    // Another user may own the directory: no link is followed.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&CONTENT)?;
    file.sync_all()
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    match (&facts.failure, &facts.look) {
        (Some(why), Look::Done(_) | Look::Failed(_)) => {
            findings.push(Finding::fail(TOPIC, format!("the daemon cannot save its state: {why}")));
        }
        // Its own finding has a remedy.
        (_, Look::Hangs) | (None, _) => findings.push(sync(facts)),
    }
    let is_volatile = matches!(facts.look, Look::Done(Measured { is_volatile: true, .. }));
    if is_volatile && facts.mode == Mode::Quorum {
        let text = format!(
            "{} is in memory: this voter loses its votes whenever the host boots",
            facts.directory.display()
        );
        findings.push(Finding::warn(TOPIC, text).remedy("put state_dir on a disk"));
    }
    findings
}

fn sync(facts: &Facts) -> Finding {
    let directory = facts.directory.display();
    let measured = match &facts.look {
        Look::Done(measured) => measured.sync_us.map_err(io::Error::from_raw_os_error),
        Look::Hangs => {
            let seconds = process::LIMIT.as_secs();
            let text = format!(
                "a sync in {directory} did not end within {seconds} s: the disk hangs, or the \
                 server that the directory is on does not answer"
            );
            return Finding::fail(TOPIC, text)
                .remedy("look into the kernel's log (dmesg), and repair the disk");
        }
        Look::Failed(error) => {
            let text = format!("how long a sync in {directory} takes is not known: {error}");
            return Finding::unknown(TOPIC, text);
        }
    };
    let took = match measured {
        Ok(micros) => Duration::from_micros(micros),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let text =
                format!("this user may not write to {directory}, so its sync is not measured");
            return Finding::unknown(TOPIC, text).remedy("run the doctor as root");
        }
        Err(error) => {
            return Finding::fail(TOPIC, format!("cannot write to {directory}: {error}"))
                .remedy("repair the disk, or set another state_dir and restart the daemon");
        }
    };
    let text = format!("a sync in {directory} took {} ms", took.as_millis());
    let limit = match facts.mode {
        Mode::Available => SLOW,
        Mode::Quorum => facts.threshold.map_or(SLOW, |threshold| threshold / 2),
    };
    let slower = format!("{text}, and must take well under {} ms", limit.as_millis());
    let remedy = match facts.mode {
        Mode::Available => "put state_dir on a faster disk",
        Mode::Quorum => "put state_dir on a faster disk, or raise heartbeat_interval",
    };
    match facts.mode {
        Mode::Quorum if took >= limit => Finding::fail(TOPIC, slower).remedy(remedy),
        Mode::Quorum if took >= limit / 2 => Finding::warn(TOPIC, slower).remedy(remedy),
        Mode::Available if took >= limit => Finding::warn(TOPIC, slower).remedy(remedy),
        _ => Finding::ok(TOPIC, text),
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;

    fn facts(mode: Mode, look: Look) -> Facts {
        Facts {
            directory: "/var/lib/lanelect".into(),
            failure: None,
            look,
            mode,
            threshold: Some(Duration::from_millis(875)),
        }
    }

    fn done(sync_us: Result<u64, i32>) -> Look {
        Look::Done(Measured { sync_us, is_volatile: false })
    }

    fn line(mode: Mode, millis: u64) -> String {
        judge(&facts(mode, done(Ok(millis * 1000))))[0].line(0)
    }

    #[test]
    fn slow_sync_is_a_fault_where_votes_wait_for_it() {
        assert!(
            line(Mode::Quorum, 3).starts_with("ok       disk  a sync in /var/lib/lanelect took 3")
        );
        assert!(line(Mode::Quorum, 219).starts_with("warn     disk  a sync"));
        let slow = line(Mode::Quorum, 500);
        assert!(slow.contains("took 500 ms, and must take well under 437 ms"), "{slow}");
        assert!(slow.starts_with("fail"), "{slow}");
        assert!(line(Mode::Available, 500).starts_with("ok"));
        assert!(line(Mode::Available, 1000).starts_with("warn"));
    }

    #[test]
    fn disk_that_cannot_be_written_is_a_fault_and_one_of_another_user_is_not_known() {
        let first =
            |error: Errno| judge(&facts(Mode::Available, done(Err(error as i32))))[0].line(0);
        assert!(first(Errno::ENOSPC).starts_with("fail     disk  cannot write to"));
        assert!(first(Errno::EACCES).starts_with("unknown  disk  this user may not"));
        let failure = Some("no space left".to_owned());
        let failed = Facts { failure, ..facts(Mode::Quorum, done(Ok(0))) };
        assert!(judge(&failed)[0].line(0).contains("cannot save its state: no space left"));
        let volatile = Look::Done(Measured { sync_us: Ok(0), is_volatile: true });
        assert!(judge(&facts(Mode::Quorum, volatile))[1].line(0).contains("is in memory"));
    }

    #[test]
    fn disk_that_hangs_is_a_fault_in_either_mode() {
        for mode in [Mode::Available, Mode::Quorum] {
            let told = judge(&facts(mode, Look::Hangs))[0].line(0);
            assert!(told.starts_with("fail     disk  a sync in /var/lib/lanelect did not end"));
        }
        let failed = judge(&facts(Mode::Quorum, Look::Failed(ErrorKind::NotFound.into())));
        assert!(failed[0].line(0).starts_with("unknown  disk  how long a sync in"), "{failed:?}");
    }

    #[test]
    fn measuring_leaves_nothing_behind() {
        let measured = |directory: &Path| {
            serde_json::from_str::<Measured>(&measure(directory)).unwrap().sync_us
        };
        let home = tempfile::tempdir().unwrap();
        assert!(measured(home.path()).is_ok());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        assert_eq!(measured(&home.path().join("missing")), Err(Errno::ENOENT as i32));
    }
}
