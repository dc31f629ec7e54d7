//! Runs a program that only looks, for a limited time.

use std::io::{self, ErrorKind};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a program may take. It may ask a service manager that hangs.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// What the program prints if it succeeds in time.
pub(super) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    run(command).ok()
}

/// What the command prints if it succeeds. One that takes longer than [`LIMIT`] has timed out, and
/// is left behind: if it is stuck in the kernel, nothing ends it.
pub(super) fn run(mut command: Command) -> io::Result<String> {
    command.env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
    let (sender, result) = mpsc::channel();
    let run = move || {
        // The receiver may have given up.
        let _ = sender.send(command.output());
    };
    thread::Builder::new().name("look".to_owned()).spawn(run)?;
    let output = result.recv_timeout(LIMIT).map_err(|_| ErrorKind::TimedOut)??;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(output.status.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_program_that_succeeds_is_returned() {
        assert_eq!(output("echo", &["a b"]).as_deref(), Some("a b\n"));
        assert_eq!(output("false", &[]), None);
        assert_eq!(output("no-such-program", &[]), None);
    }
}
