//! How a daemon of the demo comes to life: as a process that dies with the demo.
//!
//! A process can ask the kernel for a signal when its parent dies, and keeps that wish over `exec`.
//! So the demo starts `lanelect demo` again with [`DEMO_PID`] set, and that process makes the wish
//! and becomes `lanelect run`: the daemons end even where SIGKILL ends the demo.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::os::notify::NOT_INHERITED;

/// The config file in the daemon's directory, which is also its working directory.
pub(super) const CONFIG: &str = "lanelect.toml";

/// What the daemon prints, in its directory.
pub(super) const LOG: &str = "daemon.log";

/// Set, to the demo's process id, only for the processes that are to become daemons.
const DEMO_PID: &str = "LANELECT_DEMO_PID";

/// Starts the daemon whose [`CONFIG`] is in `directory`. The calling thread counts as its parent
/// and must live as long as the demo.
///
/// # Errors
///
/// Where the process cannot be started or its log not be opened.
pub(super) fn spawn(directory: &Path) -> io::Result<Child> {
    let log = File::options().create(true).append(true).open(directory.join(LOG))?;
    command(&env::current_exe()?)
        .current_dir(directory)
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C on a terminal is for the demo, which then ends its daemons in its own way.
        .process_group(0)
        .spawn()
}

/// The demo that this process is to serve as a daemon; none where it is a demo itself.
pub(super) fn parent() -> Option<OsString> {
    env::var_os(DEMO_PID)
}

/// Becomes the daemon. Returns only where that fails.
pub(super) fn become_daemon(demo: &OsStr) -> ExitCode {
    let complain = |what: &str, why: &dyn std::fmt::Display| {
        // The demo finds it in the log; where even that is gone, the exit status still tells.
        let _ = writeln!(io::stderr(), "cannot {what}: {why}");
    };
    if let Err(errno) = prctl::set_pdeathsig(Signal::SIGKILL) {
        complain("die with the demo", &errno);
    }
    // It may have died before the wish was made.
    if getppid().to_string().as_str() != demo {
        return ExitCode::FAILURE;
    }
    let error = match env::current_exe() {
        Ok(lanelect) => {
            Command::new(lanelect).args(["run", "--config", CONFIG]).env_remove(DEMO_PID).exec()
        }
        Err(error) => error,
    };
    complain("run the daemon", &error);
    ExitCode::FAILURE
}

/// The demo started once more, to become a daemon.
fn command(lanelect: &Path) -> Command {
    let mut command = Command::new(lanelect);
    for variable in NOT_INHERITED {
        command.env_remove(variable);
    }
    command.arg("demo").env(DEMO_PID, std::process::id().to_string()).stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_of_the_demo_is_not_told_what_is_for_the_demo_alone() {
        let command = command(Path::new("lanelect"));
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "FDSTORE"] {
            assert!(command.get_envs().any(|set| set == (OsStr::new(name), None)), "{name}");
        }
    }
}
