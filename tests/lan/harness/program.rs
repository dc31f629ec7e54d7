//! Programs on a host besides its usual daemon.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{env, iter};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Host;
use super::patience::wait_until;

/// A process on a host. Dropping it kills the process.
pub(crate) struct Program(Child);

impl Program {
    /// Starts a command on a host, which appends what it prints to a file.
    pub(crate) fn start(host: &Host, mut command: Command, log: &str) -> Program {
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Program(host.run(|| command.spawn().unwrap()))
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().try_into().unwrap()), signal).unwrap();
    }

    /// Has it end in order.
    pub(crate) fn stop(mut self) {
        self.signal(Signal::SIGTERM);
        wait_until("it has ended", || self.0.try_wait().unwrap().is_some());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The search path of daemons, on which hooks find `lanelect`.
pub(crate) fn search_path() -> OsString {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let binaries = Path::new(env!("CARGO_BIN_EXE_lanelect")).parent().unwrap().to_owned();
    env::join_paths(iter::once(binaries).chain(env::split_paths(&inherited))).unwrap()
}
