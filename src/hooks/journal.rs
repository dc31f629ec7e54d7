//! Where a command's output goes: to the log.
//!
//! If the log is the journal, each command gets its own stream to it. Each line of output is then a
//! separate entry, marked with the event: `journalctl -t lanelect-elected`. Otherwise the command
//! shares this process's stderr.
//!
//! The journal looks up the unit of each line by the process that wrote it. A command that ends
//! soon no longer exists then. Its lines would belong to no unit, and `journalctl --unit` would not
//! show them. So the stream names the unit itself. The journal accepts that only from root.

use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use log::Level;
use socket2::{Domain, SockAddr, Socket, Type};

use super::run::Task;
use crate::logging;

/// Where the journal accepts streams, see systemd-journald.service(8).
const JOURNAL: &str = "/run/systemd/journal/stdout";

/// Where one run's output goes.
#[derive(Debug)]
pub(super) enum Output {
    /// Nowhere.
    Nothing,
    /// Where this process's log goes.
    Stderr,
    /// Into the journal, marked.
    Journal(UnixStream),
}

impl Output {
    /// A check prints every second, which would hide everything else in the log. Its output is kept
    /// only at log level debug.
    pub(super) fn of(task: &Task) -> Self {
        if task.lane().is_check() && !log::log_enabled!(Level::Debug) {
            return Output::Nothing;
        }
        if !logging::goes_to_journal() {
            return Output::Stderr;
        }
        match journal(Path::new(JOURNAL), &identifier(task), &own_unit()) {
            Ok(stream) => Output::Journal(stream),
            Err(error) => {
                log::debug!(
                    "cannot open a journal stream for the {task}: {error}; its output goes to \
                     stderr"
                );
                Output::Stderr
            }
        }
    }

    /// One of the run's two streams.
    pub(super) fn stdio(&self) -> Stdio {
        match self {
            Output::Nothing => Stdio::null(),
            Output::Stderr => Stdio::from(io::stderr()),
            Output::Journal(stream) => stream
                .try_clone()
                .map_or_else(|_| Stdio::from(io::stderr()), |stream| OwnedFd::from(stream).into()),
        }
    }
}

/// The mark of a run's lines in the journal.
pub(super) fn identifier(task: &Task) -> String {
    format!("lanelect-{}", task.event())
}

/// A stream into the journal. Never waits: a journal that is too busy to accept it is an error.
fn journal(path: &Path, identifier: &str, unit: &str) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(path)?)?;
    let mut stream = UnixStream::from(OwnedFd::from(socket));
    // After the unit: the default priority of lines, permission for lines to name one, and no
    // forwarding to other targets.
    stream.write_all(format!("{identifier}\n{unit}\n6\n1\n0\n0\n0\n").as_bytes())?;
    // A command that prints waits for the journal, and loses no lines.
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The system unit of this process; empty if it has none.
fn own_unit() -> String {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    unit_of(&groups).unwrap_or_default().to_owned()
}

/// The system unit in the text of `/proc/PID/cgroup`: the part after the slices in the hierarchy
/// that systemd uses, either the only one or the one with its name.
fn unit_of(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let named = || line.split_once(":name=systemd:").map(|(_, path)| path);
        let path = line.strip_prefix("0::").or_else(named)?;
        let unit = path.split('/').find(|part| !part.is_empty() && !part.ends_with(".slice"))?;
        // systemd adds `_` to a name that could clash with one of the kernel's own files.
        let unit = unit.strip_prefix('_').unwrap_or(unit);
        (unit.ends_with(".service") || unit.ends_with(".scope")).then_some(unit)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn what_is_printed_reaches_the_journal_behind_a_header_that_names_the_event() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("stdout");
        let listener = UnixListener::bind(&path).unwrap();
        let output = Output::Journal(journal(&path, "lanelect-elected", "web.service").unwrap());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo out; echo err >&2"]).stdout(output.stdio()).stderr(output.stdio());
        assert!(shell.status().unwrap().success());
        drop((output, shell));
        let mut taken = String::new();
        listener.accept().unwrap().0.read_to_string(&mut taken).unwrap();
        assert_eq!(taken, "lanelect-elected\nweb.service\n6\n1\n0\n0\n0\nout\nerr\n");
    }

    #[test]
    fn a_journal_that_is_not_there_or_too_busy_is_not_waited_for() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("stdout");
        assert!(journal(&path, "lanelect-elected", "").is_err());
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        listener.listen(0).unwrap();
        let first = journal(&path, "lanelect-elected", "");
        let second = journal(&path, "lanelect-elected", "").unwrap_err();
        assert!(first.is_ok());
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn unit_is_the_first_part_of_the_control_group_after_the_slices() {
        for (groups, unit) in [
            (
                "0::/system.slice/system-lanelect\\x2dhook.slice/lanelect-hook@lan0.service\n",
                Some("lanelect-hook@lan0.service"),
            ),
            ("0::/system.slice/a.service/sub\n", Some("a.service")),
            ("0::/system.slice/_cpu.service\n", Some("cpu.service")),
            ("0::/user.slice/user-0.slice/session-1.scope\n", Some("session-1.scope")),
            ("2:cpu:/x\n1:name=systemd:/system.slice/a.service\n", Some("a.service")),
            ("1:name=systemd:/\n0::/system.slice/a.service\n", Some("a.service")),
            ("0::/\n", None),
            ("0::/docker\n", None),
            ("", None),
        ] {
            assert_eq!(unit_of(groups), unit, "{groups}");
        }
    }
}
