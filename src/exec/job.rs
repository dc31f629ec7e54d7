//! A command with its process group, from its start to the end of the last of its processes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::guard::{Guard, LOOK_INTERVAL, kill_others};
use super::{ExecError, say};
use crate::control_api::Grant;
use crate::os::{clock, process};
use crate::time::Time;

/// From SIGKILL until it is reported that something does not end.
const KILL_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Job {
    command: Child,
    /// How the command ended; none while it runs.
    status: Option<ExitStatus>,
    guard: Guard,
    grant: Grant,
    stage: Stage,
    was_stopped: bool,
    /// What got SIGKILL last.
    killed: BTreeSet<Pid>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The command may run.
    Running,
    /// Its group got SIGTERM.
    Terminated { kill_at: Time },
    /// It got SIGKILL.
    Killed { report_at: Option<Time> },
    /// Nothing of it is left.
    Gone,
}

impl Job {
    /// Starts the command by `grant`; none if the grant is over before that. Its guard holds
    /// `link`.
    pub(super) fn start(
        command: &[OsString],
        grant: Grant,
        link: OwnedFd,
    ) -> Result<Option<Self>, ExecError> {
        let mut guard = Guard::start(link).map_err(ExecError::Guard)?;
        guard.set(dead_by(&grant));
        let (program, arguments) =
            command.split_first().map_or((None, command), |(first, rest)| (Some(first), rest));
        let program = program.cloned().unwrap_or_default();
        let mut process = Command::new(&program);
        process
            .args(arguments)
            .env("LANELECT_NODE_ID", grant.node_id.as_str())
            .env("LANELECT_GROUP", grant.group.as_str())
            .env("LANELECT_TERM", grant.term.to_string())
            .process_group(guard.group().as_raw());
        // A terminal stops a group in the background that reads from it.
        if io::stdin().is_terminal() {
            process.stdin(Stdio::null());
        }
        // A guard takes long to start on a host that is busy.
        if is_over(&grant, clock::now()) {
            guard.dismiss();
            return Ok(None);
        }
        match process.spawn() {
            Ok(command) => Ok(Some(Job {
                command,
                status: None,
                guard,
                grant,
                stage: Stage::Running,
                was_stopped: false,
                killed: BTreeSet::new(),
            })),
            Err(source) => {
                guard.dismiss();
                let program = program.to_string_lossy().into_owned();
                Err(ExecError::Program { program, source })
            }
        }
    }

    /// The process that lives as long as anything of the command may.
    pub(super) fn guard(&self) -> Pid {
        self.guard.group()
    }

    /// The command may run for longer, unless it has to end already.
    pub(super) fn renew(&mut self, grant: Grant) {
        if self.stage == Stage::Running {
            self.grant = grant;
            self.guard.set(dead_by(&grant));
        }
    }

    /// Ends the command: SIGTERM, and SIGKILL later. SIGCONT lets a stopped process end too.
    pub(super) fn stop(&mut self, now: Time) {
        if self.stage == Stage::Running {
            let begins = now.min(Time::from_nanos(self.grant.until_ns));
            let kill_at = begins + Duration::from_millis(self.grant.stop_within_ms);
            self.stage = Stage::Terminated { kill_at };
            self.was_stopped = true;
            self.signal(Signal::SIGTERM);
            self.signal(Signal::SIGCONT);
            if let Some(pid) = self.out_of_reach() {
                say(&format!(
                    "cannot end process {pid} of the command, which runs as another user: run \
                     `lanelect exec` as root, or as that user"
                ));
            }
        }
        self.advance(now);
    }

    /// Kills the command.
    pub(super) fn kill(&mut self, now: Time) {
        if matches!(self.stage, Stage::Running | Stage::Terminated { .. }) {
            self.stage = Stage::Killed { report_at: Some(now + KILL_WAIT) };
            self.kill_all();
        }
    }

    /// Whether the command has to end, or has ended.
    pub(super) fn is_ending(&self) -> bool {
        self.stage != Stage::Running
    }

    /// Whether it had to end before the command did by itself.
    pub(super) fn was_stopped(&self) -> bool {
        self.was_stopped
    }

    /// Whether the grant is over.
    pub(super) fn is_overdue(&self, now: Time) -> bool {
        self.stage == Stage::Running && is_over(&self.grant, now)
    }

    /// A child has ended, or time has passed.
    pub(super) fn advance(&mut self, now: Time) {
        // An error means that it was waited for.
        self.status = self.status.or(self.command.try_wait().ok().flatten());
        let guard_ended = self.guard.try_wait().map_or(true, |status| status.is_some());
        match self.stage {
            Stage::Running if guard_ended => {
                say("the guard of the command was killed: killing the command");
                self.kill(now);
            }
            // What the command leaves behind is not supervised any more.
            Stage::Running if self.status.is_some() => self.kill(now),
            Stage::Terminated { kill_at } if kill_at <= now => {
                say("the command did not end on SIGTERM: sending SIGKILL");
                self.kill(now);
            }
            Stage::Terminated { .. } if self.status.is_some() && !self.has_others() => {
                self.kill(now);
            }
            Stage::Killed { .. }
                if self.status.is_some() && guard_ended && !self.is_group_alive() =>
            {
                self.stage = Stage::Gone;
            }
            Stage::Killed { report_at } => {
                let is_new = self.kill_all();
                if report_at.is_none_or(|at| at > now) {
                    return;
                }
                if is_new {
                    // It creates processes faster than each of them can be killed.
                    self.signal(Signal::SIGKILL);
                    self.stage = Stage::Killed { report_at: Some(now + KILL_WAIT) };
                    return;
                }
                self.stage = Stage::Killed { report_at: None };
                say(&match self.out_of_reach() {
                    Some(pid) => format!(
                        "process {pid} of the command runs as another user: end it as root; \
                         waiting for it"
                    ),
                    None => "the command does not end on SIGKILL; waiting for it".to_owned(),
                });
            }
            Stage::Running | Stage::Terminated { .. } | Stage::Gone => {}
        }
    }

    /// How the command ended, once nothing of it is left.
    pub(super) fn end(&self) -> Option<ExitStatus> {
        self.status.filter(|_| self.stage == Stage::Gone)
    }

    /// When to call [`advance`](Self::advance).
    pub(super) fn poll_timeout(&self, now: Time) -> Time {
        let look = now + LOOK_INTERVAL;
        match self.stage {
            Stage::Running => Time::from_nanos(self.grant.until_ns),
            Stage::Terminated { kill_at } => kill_at.min(look),
            Stage::Killed { .. } | Stage::Gone => look,
        }
    }

    /// Whether anything of the group is left but its guard.
    fn has_others(&self) -> bool {
        process::has_others(self.guard.group(), self.guard.group())
    }

    /// A process of the group that this one may not signal. The kernel reports that only if it may
    /// signal none of them, and the guard is one.
    fn out_of_reach(&self) -> Option<Pid> {
        let group = self.guard.group();
        process::others(group, group).into_iter().find(|pid| process::is_out_of_reach(*pid))
    }

    /// Sends SIGKILL to all but the guard, which has to outlive a process that is stuck in the
    /// kernel: the daemon goes by the guard. Returns whether one did not get it the last time.
    fn kill_all(&mut self) -> bool {
        let others: BTreeSet<Pid> = kill_others(self.guard.group()).into_iter().collect();
        if others.is_empty() {
            // The guard, and what was created meanwhile. It may all have ended.
            let _ = killpg(self.guard.group(), Signal::SIGKILL);
        }
        let is_new = !others.is_subset(&self.killed);
        self.killed = others;
        is_new
    }

    fn is_group_alive(&self) -> bool {
        killpg(self.guard.group(), None) != Err(Errno::ESRCH)
            && process::is_group_alive(self.guard.group())
    }

    fn signal(&self, signal: Signal) {
        match killpg(self.guard.group(), signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => say(&format!("cannot send {signal} to the command: {error}")),
        }
    }
}

/// Whether the command must not run any more, if no other grant arrives.
pub(super) fn is_over(grant: &Grant, now: Time) -> bool {
    Time::from_nanos(grant.until_ns) <= now
}

/// When nothing of the command may be left, if no other grant arrives.
fn dead_by(grant: &Grant) -> Time {
    Time::from_nanos(grant.until_ns) + Duration::from_millis(grant.stop_within_ms)
}
