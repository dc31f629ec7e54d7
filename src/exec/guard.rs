//! The guard of a command: a process that kills the command's group when the supervisor has ended
//! or its time is over. It ends when no other process of the group is left.
//!
//! It is the first process of the group, so the group's number exists before the command does, and
//! no other group can get it as long as the guard lives. The supervisor sends it, a line each, the
//! times at which the group has to be dead unless a later line arrives.
//!
//! Its standard output is the supervisor's connection to the daemon, and it never writes to it. So
//! the daemon's end stays connected until both have ended.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp, getpid};
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
};
use signal_hook::flag;

use crate::os::clock::{self, Alarm};
use crate::os::{polling, process};
use crate::time::Time;

/// The command line argument that starts a guard.
pub const GUARD: &str = "exec-guard";

/// This program, also if its file was replaced.
const SELF: &str = "/proc/self/exe";

/// How long a guard may take to start.
const START: Duration = Duration::from_secs(5);

/// Time between two looks at a group that has to end: nothing tells of the end of a process that is
/// no child.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// What the group may send itself, or gets from a terminal. A guard outlives it, and does not stop.
const IGNORED: [i32; 11] = [
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2,
];

const CHANNEL: Token = Token(0);
const ALARM: Token = Token(1);

/// The supervisor's end.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    channel: UnixStream,
}

impl Guard {
    /// Starts a guard in a process group of its own, and waits until it ignores signals.
    pub(super) fn start(link: OwnedFd) -> io::Result<Self> {
        let (mut channel, theirs) = UnixStream::pair()?;
        let mut command = Command::new(SELF);
        command
            .arg0("lanelect")
            .arg(GUARD)
            .stdin(OwnedFd::from(theirs))
            .stdout(link)
            .process_group(0);
        let process = command.spawn()?;
        // It holds this end until here.
        drop(command);
        channel.set_read_timeout(Some(START))?;
        channel.read_exact(&mut [0])?;
        channel.set_nonblocking(true)?;
        Ok(Guard { process, channel })
    }

    /// The group's number.
    pub(super) fn group(&self) -> Pid {
        // The kernel gives no higher numbers.
        Pid::from_raw(i32::try_from(self.process.id()).unwrap_or(i32::MAX))
    }

    /// The group has to be dead at `deadline`.
    pub(super) fn set(&mut self, deadline: Time) {
        // A guard that cannot be told kills the group in time.
        let _ = writeln!(self.channel, "{}", deadline.as_nanos());
    }

    /// Ends a guard that is alone in its group.
    pub(super) fn dismiss(mut self) {
        // Both fail only if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }
}

/// The guard itself. Returns only with an error, and leaves nothing of its group behind.
///
/// # Errors
///
/// If it is not the first process of its group, because it was not started by `lanelect exec`, or
/// if a system call fails.
pub fn guard() -> io::Result<()> {
    if getpgrp() != getpid() {
        return Err(io::Error::other("only `lanelect exec` starts this command"));
    }
    let watched = watch();
    let ended = end_others();
    let killed = killpg(getpgrp(), Signal::SIGKILL);
    watched.and(ended).and(killed.map_err(io::Error::from))
}

/// Kills the other processes of the group, and waits for their end: if one is stuck in the kernel,
/// the daemon has to know that it lives.
fn end_others() -> io::Result<()> {
    let mut poll = Poll::new()?;
    while !kill_others(getpid()).is_empty() {
        polling::wait(&mut poll, &mut Events::with_capacity(1), Some(LOOK_INTERVAL))?;
    }
    Ok(())
}

/// Sends SIGKILL to the living processes of the group but its guard; returns them.
pub(super) fn kill_others(guard: Pid) -> Vec<Pid> {
    let others = process::others(guard, guard);
    for process in &others {
        // It may have ended.
        let _ = kill(*process, Signal::SIGKILL);
    }
    others
}

/// Returns when the group has to die.
fn watch() -> io::Result<()> {
    for signal in IGNORED {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    (&channel).write_all(b"\n")?;
    channel.set_nonblocking(true)?;
    let mut channel = mio::net::UnixStream::from_std(channel);
    let mut poll = Poll::new()?;
    poll.registry().register(&mut channel, CHANNEL, Interest::READABLE)?;
    let mut alarm = Alarm::new(poll.registry(), ALARM)?;
    let mut events = Events::with_capacity(4);
    let mut input = Vec::new();
    let mut deadline = None;
    while deadline.is_none_or(|deadline| clock::now() < deadline) {
        alarm.set(deadline)?;
        polling::wait(&mut poll, &mut events, None)?;
        alarm.acknowledge();
        if is_over(channel.read_to_end(&mut input)) {
            return Ok(());
        }
        deadline = take_last(&mut input).or(deadline);
    }
    Ok(())
}

/// Whether the supervisor has ended.
fn is_over(read: io::Result<usize>) -> bool {
    !read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted))
}

/// The time in the last whole line. What follows it stays in `input`.
fn take_last(input: &mut Vec<u8>) -> Option<Time> {
    let end = input.iter().rposition(|byte| *byte == b'\n')?;
    let lines: Vec<u8> = input.drain(..=end).collect();
    let last = lines.trim_ascii_end().rsplit(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(last).ok()?.parse().ok().map(Time::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_whole_line_counts() {
        let mut input = b"1\n22\n333\n44".to_vec();
        assert_eq!(take_last(&mut input), Some(Time::from_nanos(333)));
        assert_eq!(input, b"44");
        assert_eq!(take_last(&mut input), None);
        input.extend(b"5\n");
        assert_eq!(take_last(&mut input), Some(Time::from_nanos(445)));
        assert_eq!(take_last(&mut b"x\n".to_vec()), None);
    }

    #[test]
    fn guard_of_another_group_refuses() {
        assert!(getpgrp() == getpid() || guard().is_err());
    }
}
