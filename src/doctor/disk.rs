//! The disk of the state: whether it can be written, and how long a sync takes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use nix::sys::statfs::{TMPFS_MAGIC, statfs};

use super::finding::Finding;
use crate::core::params::Mode;
use crate::os::clock;

const TOPIC: &str = "disk";

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
    pub(super) sync: io::Result<Duration>,
    /// Whether it is in memory.
    pub(super) is_volatile: bool,
    pub(super) mode: Mode,
    /// The election's `leader_alive_threshold`, if it is known.
    pub(super) threshold: Option<Duration>,
}

/// Writes, syncs and removes a small file in `directory`, as the daemon saves its state.
pub(super) fn measure(directory: &Path) -> io::Result<Duration> {
    let path = directory.join(format!(".lanelect-doctor.{}", process::id()));
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
    }
    Ok(slowest)
}

fn write(path: &Path) -> io::Result<()> {
    // Another user may own the directory: no link is followed.
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&CONTENT)?;
    file.sync_all()
}

/// Whether the file system is lost with the next boot.
pub(super) fn is_volatile(directory: &Path) -> bool {
    statfs(directory).is_ok_and(|file_system| file_system.filesystem_type() == TMPFS_MAGIC)
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(why) = &facts.failure {
        findings.push(Finding::fail(TOPIC, format!("the daemon cannot save its state: {why}")));
    } else {
        findings.push(sync(facts));
    }
    if facts.is_volatile && facts.mode == Mode::Quorum {
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
    let took = match &facts.sync {
        Ok(took) => *took,
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
    use super::*;

    fn facts(mode: Mode, sync: io::Result<Duration>) -> Facts {
        Facts {
            directory: "/var/lib/lanelect".into(),
            failure: None,
            sync,
            is_volatile: false,
            mode,
            threshold: Some(Duration::from_millis(875)),
        }
    }

    fn line(mode: Mode, millis: u64) -> String {
        judge(&facts(mode, Ok(Duration::from_millis(millis))))[0].line(0)
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
        let first = |kind: ErrorKind| judge(&facts(Mode::Available, Err(kind.into())))[0].line(0);
        assert!(first(ErrorKind::StorageFull).starts_with("fail     disk  cannot write to"));
        assert!(first(ErrorKind::PermissionDenied).starts_with("unknown  disk  this user may not"));
        let failure = Some("no space left".to_owned());
        let failed = Facts { failure, ..facts(Mode::Quorum, Ok(Duration::ZERO)) };
        assert!(judge(&failed)[0].line(0).contains("cannot save its state: no space left"));
        let volatile = Facts { is_volatile: true, ..facts(Mode::Quorum, Ok(Duration::ZERO)) };
        assert!(judge(&volatile)[1].line(0).contains("is in memory"));
    }

    #[test]
    fn measuring_leaves_nothing_behind() {
        let home = tempfile::tempdir().unwrap();
        assert!(measure(home.path()).is_ok());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
        let missing = measure(&home.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
