//! Ending the process group of a run, and reaping what is left of it.

use std::fmt::Display;
use std::time::Duration;

use log::Level;
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, getpid};

use super::run::Task;
use crate::os::process;
use crate::time::Time;

/// From TERM to KILL for a group that must end.
pub const KILL_GRACE: Duration = Duration::from_secs(5);

/// From KILL until a group counts as one that KILL does not end, because it is stuck in the kernel
/// or belongs to another user. Afterwards, the time between polls.
pub const KILL_WAIT: Duration = Duration::from_secs(2);

/// Time between polls whether a group still exists: its orphans are not our children, so no signal
/// reports their end.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Most processes reaped at a time; the next call reaps more.
const REAPED_MAX: usize = 1024;

/// A process group that is being ended: TERM, then KILL. If KILL does not end it, this reports it
/// after [`KILL_WAIT`], and waits without limit: processes that still run still hold their
/// resources.
///
/// A group's number is its first process's id. The kernel reuses the id only when neither that
/// process nor the group needs it, which does not happen between two polls.
#[derive(Debug)]
pub(super) struct Ending {
    /// None for a hook that an earlier life left running.
    task: Option<Task>,
    group: Pid,
    stage: Stage,
    stage_end: Time,
    /// None until the first poll.
    next_look: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Terminated,
    Killed,
    Stuck,
}

/// Whether there is still something to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Continues,
    /// KILL has not ended it. Reported once.
    Stuck,
    Over,
}

impl Ending {
    /// Sends TERM to `group`. KILL follows at `kill_at`.
    pub(super) fn begin(task: Option<Task>, group: Pid, kill_at: Time) -> Self {
        let stage = Stage::Terminated;
        let ending = Ending { task, group, stage, stage_end: kill_at, next_look: None };
        ending.signal(Signal::SIGTERM);
        ending
    }

    /// Makes KILL follow at `kill_at`, unless it is due earlier.
    pub(super) fn hasten(&mut self, kill_at: Time) {
        if self.stage == Stage::Terminated {
            self.stage_end = self.stage_end.min(kill_at);
        }
    }

    /// Whether KILL has not ended it.
    pub(super) fn is_stuck(&self) -> bool {
        self.stage == Stage::Stuck
    }

    /// Checks whether the group still exists. If it does, takes the next step when it is due, and
    /// sets the time of the next poll.
    ///
    /// Reaps those of its processes that are our children, which orphans are if this is process 1:
    /// until then they count as living. So the caller must first wait for a child whose exit status
    /// still matters.
    pub(super) fn look(&mut self, now: Time) -> Progress {
        self.next_look = Some(now + LOOK_INTERVAL);
        reap_group(self.group);
        if killpg(self.group, None) == Err(Errno::ESRCH) {
            Progress::Over
        } else {
            self.advance(now)
        }
    }

    /// Takes the next step if it is due, without a poll.
    pub(super) fn advance(&mut self, now: Time) -> Progress {
        if now < self.stage_end {
            return Progress::Continues;
        }
        match self.stage {
            Stage::Terminated => {
                self.log(Level::Warn, "did not end on SIGTERM: sending SIGKILL");
                self.stage = Stage::Killed;
                self.stage_end = now + KILL_WAIT;
                self.signal(Signal::SIGKILL);
                Progress::Continues
            }
            Stage::Killed | Stage::Stuck if !process::is_group_alive(self.group) => {
                // Dead processes that their parents do not wait for hold nothing.
                Progress::Over
            }
            Stage::Killed | Stage::Stuck => {
                self.stage_end = now + KILL_WAIT;
                self.next_look = Some(self.stage_end);
                if self.is_stuck() {
                    return Progress::Continues;
                }
                self.stage = Stage::Stuck;
                self.log(
                    Level::Error,
                    "does not end on SIGKILL: nothing else runs in its place until it has ended",
                );
                Progress::Stuck
            }
        }
    }

    /// When to poll again, or to take the next step.
    pub(super) fn next_timeout(&self) -> Time {
        self.next_look.map_or(self.stage_end, |look| look.min(self.stage_end))
    }

    fn signal(&self, signal: Signal) {
        match killpg(self.group, signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => {
                self.log(Level::Error, format_args!("cannot be sent {signal}: {error}"));
            }
        }
    }

    fn log(&self, level: Level, predicate: impl Display) {
        match &self.task {
            Some(task) => task.log(level, predicate),
            None => log::log!(level, "hook of an earlier daemon {predicate}"),
        }
    }
}

/// Reaps the orphans that a container hands to its process 1, if this is that process; no other
/// process would. Does not reap the children in `own`: their owners wait for them.
pub(super) fn reap_strays(own: &[Pid]) {
    if getpid() != Pid::from_raw(1) {
        return;
    }
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    for _ in 0..REAPED_MAX {
        match waitid(Id::All, look).map(|status| status.pid()) {
            Ok(Some(stray)) if !own.contains(&stray) => {
                log::debug!("orphan process {stray} ended");
                let _ = waitpid(stray, Some(WaitPidFlag::WNOHANG));
            }
            // One of our own ended just now: its own signal triggers the next call.
            _ => return,
        }
    }
}

fn reap_group(group: Pid) {
    for _ in 0..REAPED_MAX {
        match waitpid(Pid::from_raw(-group.as_raw()), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return,
            // Reaped, perhaps with an exit status that has no name.
            Ok(_) | Err(_) => {}
        }
    }
}
