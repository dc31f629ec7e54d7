//! Other programs and their processes.

use std::fs;
use std::process::Command;

use nix::unistd::Pid;

/// Whether a program is not installed, so that a test has to be skipped. Prints that.
pub fn is_missing(program: &str) -> bool {
    let missing = Command::new(program).arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: there is no {program} here");
    }
    missing
}

/// Whether the process has ended. One that waits for its parent has.
pub fn has_ended(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
}
