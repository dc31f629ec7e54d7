//! One run of a command: `/bin/sh -c COMMAND` in a process group of its own, under a time limit.
//!
//! A run that overruns its limit gets TERM, and [`KILL_GRACE`] later KILL, each sent to its whole
//! process group, and it is over only when nothing of the group is left: what a late child still
//! does must not mix with the next run. So it is with a run that is cut short. What a command
//! leaves behind in time, such as a daemon it started, is its own business and stays.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use log::Level;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::HookNode;
use super::group::{Ending, KILL_GRACE, Progress, Subject};
use super::journal::Output;
use super::task::{Environment, Task};
use crate::core::hook::HookOutcome;
use crate::os::notify::NOT_INHERITED;
use crate::time::Time;

/// How one run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookFinished {
    /// What the core is told.
    pub outcome: HookOutcome,
    /// The shell's exit status, or 128 and the signal that ended it; none where the hook did not
    /// start or its end is not known.
    pub exit: Option<i32>,
    /// From the start to the end.
    pub took: Duration,
    /// Why it was ended by force, where it was.
    pub forced: Option<Forced>,
}

/// Why a run was ended by force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forced {
    /// It overran its time limit.
    Overran,
    /// What it was for is over.
    CutShort,
}

impl HookFinished {
    /// A run that there was nothing to do for.
    pub(super) const NOTHING_TO_DO: HookFinished = HookFinished {
        outcome: HookOutcome::Succeeded,
        exit: Some(0),
        took: Duration::ZERO,
        forced: None,
    };

    /// A run that failed after `took` without an exit status.
    pub const fn failed(took: Duration) -> Self {
        HookFinished { outcome: HookOutcome::Failed, exit: None, took, forced: None }
    }

    /// A run that began, and of which nobody knows whether it has ended, given up after `took`.
    pub const fn lost(took: Duration) -> Self {
        HookFinished { outcome: HookOutcome::Lost, exit: None, took, forced: None }
    }

    /// A run that certainly did not begin, given up after `took`.
    pub const fn not_run(took: Duration) -> Self {
        HookFinished { outcome: HookOutcome::NotRun, exit: None, took, forced: None }
    }
}

/// A process id is positive and fits; zero or less would mean other processes than this one.
pub(super) fn pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX))
}

/// Tells the log how a run ended.
pub(super) fn log_end(subject: &Subject, finished: &HookFinished) {
    let took = finished.took.as_millis();
    match finished.outcome {
        HookOutcome::Succeeded => {
            subject.log(Level::Info, format_args!("succeeded in {took} ms"));
        }
        HookOutcome::NotRun => {
            subject.log(
                Level::Warn,
                format_args!("did not run: it could not be started within {took} ms"),
            );
        }
        HookOutcome::Lost => {
            subject.log(
                Level::Error,
                format_args!("has an unknown result after {took} ms: it may still run"),
            );
        }
        HookOutcome::Failed => {
            let cause = match finished.forced {
                Some(Forced::Overran) => " because it exceeded its time limit",
                Some(Forced::CutShort) => " because it was cut short",
                None => "",
            };
            let exit = finished.exit.map_or(String::new(), |exit| format!(": exit status {exit}"));
            subject.log(Level::Warn, format_args!("failed{cause}{exit} after {took} ms"));
        }
    }
}

/// A run under way: `/bin/sh -c COMMAND` in a process group of its own, under a time limit.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) subject: Subject,
    pub(super) child: Child,
    started: Time,
    timeout: Duration,
    shell: Shell,
    /// Where it is being ended by force.
    ending: Option<(Forced, Ending)>,
    /// Whether it was reported as one that KILL does not end.
    pub(super) is_lost: bool,
}

/// The shell, the only process of the group that is our child for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shell {
    Running,
    /// It ended, as far as known with this exit status.
    Ended(Option<i32>),
}

impl Running {
    /// Starts `command` for `task` on `node`.
    pub(super) fn start(
        task: &Task,
        node: &HookNode,
        command: &str,
        timeout: Duration,
        now: Time,
    ) -> io::Result<Self> {
        let child = spawn(command, task.environment(node), &Output::of(task))?;
        let subject = Subject::from(task);
        subject.log(Level::Debug, format_args!("starts as process {}", child.id()));
        let (shell, ending, is_lost) = (Shell::Running, None, false);
        Ok(Running { subject, child, started: now, timeout, shell, ending, is_lost })
    }

    /// Looks what ended, then does what is due. In this order: a hook that ended in time did so
    /// even where the daemon was kept from noticing until now.
    pub(super) fn advance(&mut self, now: Time) -> Progress {
        self.reap();
        let has_shell_ended = self.shell != Shell::Running;
        match &mut self.ending {
            None if has_shell_ended => Progress::Over,
            None => {
                if now >= self.started + self.timeout {
                    self.overrun(now);
                }
                Progress::Continues
            }
            Some((_, ending)) if has_shell_ended => ending.look(now),
            Some((_, ending)) => ending.advance(now),
        }
    }

    /// Sends TERM now, unless that was done, and KILL at `by`. A run that has ended by itself is
    /// left at that.
    pub(super) fn cut_short(&mut self, by: Time) {
        self.reap();
        match &mut self.ending {
            Some((_, ending)) => ending.hasten(by),
            None if self.shell == Shell::Running => {
                self.subject.log(Level::Warn, "is cut short: sending SIGTERM");
                self.end(Forced::CutShort, by);
            }
            None => {}
        }
    }

    /// When [`advance`](Self::advance) is next due.
    pub(super) fn next_timeout(&self) -> Time {
        self.ending
            .as_ref()
            .map_or(self.started + self.timeout, |(_, ending)| ending.next_timeout())
    }

    /// What is reported of it where KILL does not end it.
    pub(super) fn lost(&self, now: Time) -> HookFinished {
        let forced = self.ending.as_ref().map(|(forced, _)| *forced);
        HookFinished { forced, ..HookFinished::lost(now.since(self.started)) }
    }

    /// How it ended, once it is over.
    pub(super) fn finished(&self, now: Time) -> HookFinished {
        let exit = match self.shell {
            Shell::Running => None,
            Shell::Ended(exit) => exit,
        };
        let forced = self.ending.as_ref().map(|(forced, _)| *forced);
        let outcome = match (exit, forced) {
            (Some(0), None) => HookOutcome::Succeeded,
            _ => HookOutcome::Failed,
        };
        HookFinished { outcome, exit, took: now.since(self.started), forced }
    }

    fn reap(&mut self) {
        if self.shell == Shell::Running {
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => self.shell = Shell::Ended(exit_number(status)),
                Err(error) => {
                    self.subject.log(
                        Level::Error,
                        format_args!("ended with an unknown exit status: {error}"),
                    );
                    self.shell = Shell::Ended(None);
                }
            }
        }
    }

    fn overrun(&mut self, now: Time) {
        let limit = humantime::format_duration(self.timeout);
        self.subject
            .log(Level::Warn, format_args!("exceeded its time limit of {limit}: sending SIGTERM"));
        self.end(Forced::Overran, now + KILL_GRACE);
    }

    fn end(&mut self, forced: Forced, kill_at: Time) {
        let ending = Ending::begin(self.subject.clone(), pid(&self.child), kill_at);
        self.ending = Some((forced, ending));
    }
}

fn spawn(command: &str, variables: Environment, output: &Output) -> io::Result<Child> {
    use std::os::unix::process::CommandExt;

    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).process_group(0);
    shell.stdin(Stdio::null()).stdout(output.stdio()).stderr(output.stdio());
    for name in NOT_INHERITED {
        shell.env_remove(name);
    }
    shell.envs(variables).spawn()
}

/// The exit status as a shell would tell it: 128 and the signal for a process that one ended.
fn exit_number(status: ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;

    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}
