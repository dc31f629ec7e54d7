//! The processes of hook, fence and checks: the runs of each lane, one at a time.
//!
//! A run that overruns its limit gets TERM, and [`KILL_GRACE`] later KILL, each sent to its whole
//! process group. It is over only when nothing of the group is left: what a late child still does
//! must not mix with the next run. The same holds for a run that is cut short. What a command
//! leaves behind in time, such as a daemon it started, stays.
//!
//! If an earlier life of this process left a hook running, that hook is ended first, like one that
//! overran its time limit.

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use log::Level;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::HookNode;
use super::client::ANSWER_MARGIN;
use super::group::{self, Ending, KILL_GRACE, KILL_WAIT, Progress};
use super::journal::Output;
use super::record::Record;
use super::run::{Forced, HookFinished, Lane, Lanes, Task};
use super::took_over::TookOver;
use crate::config::Config;
use crate::core::hook::{HookEvent, HookOutcome};
use crate::os::notify::NOT_INHERITED;
use crate::time::Time;

/// The commands to run, and their time limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSettings {
    /// The hook's command line for `/bin/sh -c`; without a hook every run succeeds at once.
    pub command: Option<String>,
    /// The same for the fence command, which runs if the hook for demoted overran its grace.
    pub fence: Option<String>,
    /// The same for the health check.
    pub check: Option<String>,
    /// The same for the health check of a leader.
    pub check_leader: Option<String>,
    /// How long a run of hook or fence may take before it is terminated.
    pub timeout: Duration,
    /// The same for a check.
    pub check_timeout: Duration,
}

impl From<&Config> for HookSettings {
    fn from(config: &Config) -> Self {
        HookSettings {
            command: config.hook.clone(),
            fence: config.fence.clone(),
            check: config.check.clone(),
            check_leader: config.check_leader.clone(),
            timeout: config.hook_timeout,
            check_timeout: config.check_timeout,
        }
    }
}

impl HookSettings {
    /// The time limit of a lane.
    pub const fn timeout(&self, lane: Lane) -> Duration {
        match lane {
            Lane::Hook | Lane::Fence => self.timeout,
            Lane::Check | Lane::CheckLeader => self.check_timeout,
        }
    }

    /// How long a run of hook or fence takes at the longest, until it is given up.
    pub const fn longest_run(&self) -> Duration {
        longest_run(self.timeout)
    }

    /// How long all that is left takes at the longest when the daemon stops or has died: the run in
    /// progress, `demoted`, and the fence command if `demoted` does not release.
    pub fn longest_stop(&self) -> Duration {
        let runs = if self.fence.is_some() { 3 } else { 2 };
        self.longest_run().saturating_add(ANSWER_MARGIN) * runs
    }

    /// The command of a lane.
    pub fn command(&self, lane: Lane) -> Option<&str> {
        match lane {
            Lane::Hook => self.command.as_deref(),
            Lane::Fence => self.fence.as_deref(),
            Lane::Check => self.check.as_deref(),
            Lane::CheckLeader => self.check_leader.as_deref(),
        }
    }
}

/// How long a run with this time limit takes at the longest, until it is given up.
pub(super) const fn longest_run(timeout: Duration) -> Duration {
    timeout.saturating_add(KILL_GRACE).saturating_add(KILL_WAIT)
}

/// Runs hook, fence and checks, one run at a time in each lane. Never blocks for longer than it
/// takes to write a small file.
///
/// After `start` and `cut_short`, call [`handle_child_signal`](Self::handle_child_signal) at every
/// SIGCHLD and [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout),
/// and after each of them drain [`poll_finished`](Self::poll_finished). Spurious calls are
/// harmless.
#[derive(Debug)]
pub struct HookProcess {
    settings: HookSettings,
    record: Record,
    /// A hook that an earlier life left running.
    leftover: Option<Ending>,
    slots: Lanes<Slot>,
    /// The hook that took over: only this hook can release what it holds.
    took_over: TookOver,
}

/// What a lane is doing.
#[derive(Debug, Default)]
struct Slot {
    running: Option<Running>,
    finished: Option<HookFinished>,
}

impl HookProcess {
    /// With no run in progress. Begins to end a hook that an earlier life left running and noted in
    /// the file `record`; the first run waits for that. The next life finds its own leftover in the
    /// same file.
    pub fn new(settings: HookSettings, record: PathBuf, now: Time) -> Self {
        let took_over = TookOver::read(record.with_extension("took-over"));
        let record = Record::new(record);
        HookProcess {
            settings,
            leftover: leftover(&record, now),
            record,
            slots: Lanes::default(),
            took_over,
        }
    }

    /// Whether a run is in progress in `lane`, or for the hook, whether one of an earlier life is
    /// being ended.
    pub fn is_running(&self, lane: Lane) -> bool {
        self.slots[lane].running.is_some() || (lane == Lane::Hook && self.leftover.is_some())
    }

    /// Whether a run is in progress, or one of an earlier life is being ended. A run that KILL does
    /// not end does not count.
    pub fn is_busy(&self) -> bool {
        self.leftover.as_ref().is_some_and(|leftover| !leftover.is_stuck())
            || self.running().any(|running| !running.is_stuck())
    }

    /// Whether KILL does not end what runs in `lane`.
    pub fn is_stuck(&self, lane: Lane) -> bool {
        let leftover = self.leftover.as_ref().filter(|_| lane == Lane::Hook);
        leftover.is_some_and(Ending::is_stuck)
            || self.slots[lane].running.as_ref().is_some_and(Running::is_stuck)
    }

    /// The command that took over last, if it also runs for the events that follow: it may no
    /// longer be the configured one.
    pub const fn hook_that_took_over(&self) -> Option<&Option<String>> {
        self.took_over.command()
    }

    /// Whether there is anything to run in `lane`.
    pub fn has_command(&self, lane: Lane) -> bool {
        self.settings.command(lane).is_some()
    }

    /// How long the runs in progress take at the longest. Those that began before a reload keep
    /// their time limit.
    pub fn longest_run(&self) -> Duration {
        let limits = self.running().map(|running| longest_run(running.timeout));
        limits.fold(self.settings.longest_run(), Duration::max)
    }

    /// Applies new settings from the next run on. A different hook runs from the next `elected` or
    /// `started` on: the previous hook releases what it took.
    pub fn reconfigure(&mut self, settings: HookSettings) {
        self.settings = settings;
    }

    /// Starts `task`. Call it only if nothing runs in its lane; otherwise the task is dropped,
    /// because two runs must not overlap.
    pub fn start(&mut self, task: &Task, node: &HookNode, now: Time) {
        let lane = task.lane();
        if self.is_running(lane) {
            return log::error!("{task} was requested while another run is not finished: dropped");
        }
        let Some(command) = self.command_for(task) else {
            log::debug!("no command is configured for the {task}");
            let (outcome, exit, took) = (HookOutcome::Succeeded, Some(0), Duration::ZERO);
            self.slots[lane].finished = Some(HookFinished { outcome, exit, took, forced: None });
            return;
        };
        match Running::start(task, node, &command, self.settings.timeout(lane), now) {
            Ok(running) => {
                if lane == Lane::Hook {
                    self.note(&running);
                }
                self.slots[lane].running = Some(running);
            }
            Err(error) => {
                task.log(Level::Error, format_args!("did not run: cannot start /bin/sh: {error}"));
                self.slots[lane].finished = Some(HookFinished::not_run(Duration::ZERO));
            }
        }
    }

    fn command_for(&mut self, task: &Task) -> Option<String> {
        let configured = self.settings.command(task.lane()).map(str::to_owned);
        let Task::Hook(run) = task else { return configured };
        match run.event {
            HookEvent::Started | HookEvent::Elected => {
                self.took_over.set(configured.clone());
                configured
            }
            HookEvent::Reaffirmed | HookEvent::Demoted => {
                self.took_over.command().cloned().unwrap_or(configured)
            }
        }
    }

    /// Writes the notes again, because others have removed them.
    pub fn restore_notes(&self) {
        self.slots[Lane::Hook].running.iter().for_each(|hook| self.note(hook));
        self.took_over.restore();
    }

    /// Ends the run in `lane`: TERM now, KILL at `by`.
    pub fn cut_short(&mut self, lane: Lane, by: Time, now: Time) {
        let leftover = self.leftover.as_mut().filter(|_| lane == Lane::Hook);
        if let Some(leftover) = leftover {
            leftover.hasten(by);
        }
        if let Some(running) = &mut self.slots[lane].running {
            running.cut_short(by);
        }
        self.handle_timeout(now);
    }

    /// A SIGCHLD arrived.
    pub fn handle_child_signal(&mut self, now: Time) {
        self.handle_timeout(now);
        let own: Vec<Pid> = self.running().map(Running::group).collect();
        group::reap_strays(&own);
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        self.end_leftover(now);
        for lane in Lane::ALL {
            let slot = &mut self.slots[lane];
            let Some(running) = &mut slot.running else { continue };
            match running.advance(now) {
                Progress::Continues => {}
                Progress::Stuck => {
                    slot.finished = Some(running.result(HookOutcome::Lost, None, now));
                }
                Progress::Over => {
                    slot.finished = running.finish(now).or(slot.finished);
                    slot.running = None;
                    if lane == Lane::Hook {
                        clear_note(&self.record);
                    }
                }
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due; none while nothing runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        let leftover = self.leftover.iter().map(Ending::next_timeout);
        leftover.chain(self.running().map(Running::next_timeout)).min()
    }

    /// How the run in `lane` ended, once.
    pub fn poll_finished(&mut self, lane: Lane) -> Option<HookFinished> {
        self.slots[lane].finished.take()
    }

    fn running(&self) -> impl Iterator<Item = &Running> {
        self.slots.0.iter().filter_map(|slot| slot.running.as_ref())
    }

    fn end_leftover(&mut self, now: Time) {
        let Some(leftover) = &mut self.leftover else { return };
        if leftover.look(now) != Progress::Over {
            return;
        }
        log::info!("the hook of an earlier daemon has ended");
        self.leftover = None;
        clear_note(&self.record);
    }

    fn note(&self, hook: &Running) {
        if let Err(error) = self.record.write(hook.group()) {
            log::warn!(
                "cannot write {}: {error}; if this process is killed now, its successor may run \
                 the next hook at the same time as this one",
                self.record.path().display()
            );
        }
    }
}

/// A run in progress: `/bin/sh -c COMMAND` in a process group of its own, under a time limit.
#[derive(Debug)]
struct Running {
    task: Task,
    child: Child,
    started: Time,
    timeout: Duration,
    shell: Shell,
    /// Why and how it is being ended by force, if it is.
    ending: Option<(Forced, Ending)>,
}

/// The shell, the only process of the group that is our child for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shell {
    Running,
    /// It ended, if known with this exit status.
    Ended(Option<i32>),
}

impl Running {
    /// Starts `command` for `task` on `node`.
    fn start(
        task: &Task,
        node: &HookNode,
        command: &str,
        timeout: Duration,
        now: Time,
    ) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;

        let output = Output::of(task);
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(command).process_group(0);
        shell.stdin(Stdio::null()).stdout(output.stdio()).stderr(output.stdio());
        for name in NOT_INHERITED {
            shell.env_remove(name);
        }
        let child = shell.envs(task.environment(node)).spawn()?;
        task.log(Level::Debug, format_args!("starts as process {}", child.id()));
        let (task, shell, ending) = (*task, Shell::Running, None);
        Ok(Running { task, child, started: now, timeout, shell, ending })
    }

    /// The process group, which has the shell's number. A process id is positive and fits; zero or
    /// less would mean other processes than this one.
    fn group(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }

    /// Whether KILL has not ended it, which is reported as its result.
    fn is_stuck(&self) -> bool {
        self.ending.as_ref().is_some_and(|(_, ending)| ending.is_stuck())
    }

    /// Checks what has ended, then does what is due. In this order: a hook that ended in time did
    /// so even if the daemon was kept from noticing until now.
    fn advance(&mut self, now: Time) -> Progress {
        self.reap();
        let has_shell_ended = self.shell != Shell::Running;
        match &mut self.ending {
            None if has_shell_ended => Progress::Over,
            None => {
                if now >= self.started + self.timeout {
                    let limit = humantime::format_duration(self.timeout);
                    self.task.log(
                        Level::Warn,
                        format_args!("exceeded its time limit of {limit}: sending SIGTERM"),
                    );
                    self.end(Forced::Overran, now + KILL_GRACE);
                }
                Progress::Continues
            }
            Some((_, ending)) if has_shell_ended => ending.look(now),
            Some((_, ending)) => ending.advance(now),
        }
    }

    /// Sends TERM now, unless that was done, and KILL at `by`. A run that has ended by itself is
    /// left as it is.
    fn cut_short(&mut self, by: Time) {
        self.reap();
        match &mut self.ending {
            Some((_, ending)) => ending.hasten(by),
            None if self.shell == Shell::Running => {
                self.task.log(Level::Warn, "is cut short: sending SIGTERM");
                self.end(Forced::CutShort, by);
            }
            None => {}
        }
    }

    /// When [`advance`](Self::advance) is next due.
    fn next_timeout(&self) -> Time {
        self.ending
            .as_ref()
            .map_or(self.started + self.timeout, |(_, ending)| ending.next_timeout())
    }

    /// It is over. Returns how it ended, unless another result was reported before.
    fn finish(&self, now: Time) -> Option<HookFinished> {
        if self.is_stuck() {
            self.task.log(Level::Warn, "has ended");
            return None;
        }
        let (outcome, exit) = match self.shell {
            Shell::Ended(Some(0)) if self.ending.is_none() => (HookOutcome::Succeeded, Some(0)),
            // Who reads only the status must not take it for success.
            Shell::Ended(Some(0)) => (HookOutcome::Failed, Some(128 + Signal::SIGTERM as i32)),
            Shell::Ended(exit) => (HookOutcome::Failed, exit),
            Shell::Running => (HookOutcome::Failed, None),
        };
        Some(self.result(outcome, exit, now))
    }

    /// The result at `now`, which is also logged.
    fn result(&self, outcome: HookOutcome, exit: Option<i32>, now: Time) -> HookFinished {
        let forced = self.ending.as_ref().map(|(forced, _)| *forced);
        let result = HookFinished { outcome, exit, took: now.since(self.started), forced };
        result.log(&self.task);
        result
    }

    fn reap(&mut self) {
        if self.shell != Shell::Running {
            return;
        }
        match self.child.try_wait() {
            Ok(None) => {}
            Ok(Some(status)) => self.shell = Shell::Ended(exit_number(status)),
            Err(error) => {
                self.task
                    .log(Level::Error, format_args!("ended with an unknown exit status: {error}"));
                self.shell = Shell::Ended(None);
            }
        }
    }

    fn end(&mut self, forced: Forced, kill_at: Time) {
        let ending = Ending::begin(Some(self.task), self.group(), kill_at);
        self.ending = Some((forced, ending));
    }
}

/// The exit status as a shell reports it: 128 and the signal for a process that a signal ended.
fn exit_number(status: ExitStatus) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;

    status.code().or_else(|| status.signal().map(|signal| 128 + signal))
}

/// Begins to end the hook that is noted in `record`, if it still runs.
fn leftover(record: &Record, now: Time) -> Option<Ending> {
    match record.find() {
        Ok(Some(group)) => {
            log::warn!(
                "a hook of an earlier daemon still runs as process {group}: sending SIGTERM"
            );
            let mut ending = Ending::begin(None, group, now + KILL_GRACE);
            // It is not our child, so no signal reports its end: it must be polled.
            ending.look(now);
            Some(ending)
        }
        Ok(None) => {
            // It would name a later group with the same number, too.
            clear_note(record);
            None
        }
        Err(error) => {
            log::warn!(
                "cannot read {}: {error}; a hook of an earlier daemon may still run",
                record.path().display()
            );
            None
        }
    }
}

fn clear_note(record: &Record) {
    if let Err(error) = record.clear() {
        log::warn!(
            "cannot remove or empty {}: {error}; the next start of this process may end what this \
             hook run has left running",
            record.path().display()
        );
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::thread::sleep;

    use tempfile::TempDir;

    use super::super::testing::{demoted, elected, node};
    use super::*;
    use crate::types::{Role, Term};

    const START: Time = Time::from_millis(1_000);
    const LIMIT: Duration = Duration::from_secs(30);
    const CHECK_LIMIT: Duration = Duration::from_secs(1);

    /// A hook that only KILL ends. It writes its process id.
    const IGNORES_TERM: &str = "trap '' TERM; echo $$ > $DIR/pid; while :; do sleep 0.1; done";

    const CHECK: Task = Task::Check { role: Role::Follower, term: Term(7) };

    /// Waits, within limits, until `check` returns something.
    #[expect(clippy::disallowed_methods, reason = "a test waits for what runs beside it")]
    fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
        for _ in 0..3000 {
            if let Some(found) = check() {
                return found;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("waited in vain for {what}");
    }

    /// Starts `command`, in which `$DIR` stands for a new directory.
    fn start(command: &str) -> (HookProcess, TempDir) {
        let dir = TempDir::new().unwrap();
        let command = command.replace("$DIR", dir.path().to_str().unwrap());
        let mut process = process(&command, &dir);
        process.start(&Task::Hook(elected(7)), &node(), START);
        (process, dir)
    }

    /// Nothing running but a hook that an earlier life left and noted in `dir`.
    fn process(command: &str, dir: &TempDir) -> HookProcess {
        HookProcess::new(settings(command), note_in(dir), START)
    }

    fn settings(command: &str) -> HookSettings {
        HookSettings {
            command: Some(command.to_owned()),
            fence: None,
            check: None,
            check_leader: None,
            timeout: LIMIT,
            check_timeout: CHECK_LIMIT,
        }
    }

    fn note_in(dir: &TempDir) -> PathBuf {
        dir.path().join("blue.hook")
    }

    fn finish(process: &mut HookProcess, now: Time) -> HookFinished {
        wait_for("the end of the hook", || {
            process.handle_child_signal(now);
            process.poll_finished(Lane::Hook)
        })
    }

    fn run(command: &str) -> HookFinished {
        finish(&mut start(command).0, START)
    }

    /// The process id that a hook writes into the file `pid`.
    fn pid_in(dir: &TempDir) -> u32 {
        let path = dir.path().join("pid");
        wait_for("a process id", || {
            fs::read_to_string(&path).ok()?.strip_suffix('\n')?.parse().ok()
        })
    }

    /// The letter of the process's state; none if there is no such process.
    fn state(pid: u32) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    fn is_alive(pid: u32) -> bool {
        !matches!(state(pid), None | Some('Z' | 'X'))
    }

    /// The number of the process's session.
    fn session(pid: u32) -> Option<u32> {
        let pid = Pid::from_raw(pid as i32);
        nix::unistd::getsid(Some(pid)).ok().map(|session| session.as_raw() as u32)
    }

    /// The lines of the file `env` that a command received beyond the environment of these tests.
    fn told(dir: &TempDir) -> String {
        let variables = fs::read_to_string(dir.path().join("env")).unwrap();
        let is_new = |line: &&str| {
            let name = line.split('=').next().unwrap_or_default();
            name.starts_with("LANELECT_") && std::env::var_os(name).is_none()
        };
        variables.split_inclusive('\n').filter(is_new).collect()
    }

    fn kill(pid: u32) {
        nix::sys::signal::kill(Pid::from_raw(pid as i32), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn the_outcome_is_the_exit_status() {
        let ended = |outcome, exit| HookFinished {
            outcome,
            exit: Some(exit),
            took: Duration::ZERO,
            forced: None,
        };
        assert_eq!(run("exit 0"), ended(HookOutcome::Succeeded, 0));
        assert_eq!(run("exit 3"), ended(HookOutcome::Failed, 3));
        assert_eq!(run("kill -9 $$"), ended(HookOutcome::Failed, 137));
        assert_eq!(run("/nonexistent/script"), ended(HookOutcome::Failed, 127));
    }

    #[test]
    fn longest_run_counts_a_run_that_goes_by_an_earlier_limit() {
        let (mut process, _dir) = start("exit 0");
        let settings = HookSettings { timeout: LIMIT / 10, ..settings("exit 0") };
        process.reconfigure(settings.clone());
        assert_eq!(process.longest_run(), LIMIT + KILL_GRACE + KILL_WAIT);
        finish(&mut process, START);
        assert_eq!(process.longest_run(), settings.longest_run());
    }

    #[test]
    fn a_hook_that_cannot_be_started_did_not_run() {
        let (mut process, _dir) = start("a command with a \0");
        assert_eq!(process.poll_finished(Lane::Hook), Some(HookFinished::not_run(Duration::ZERO)));
        assert_eq!(process.poll_timeout(), None);
    }

    #[test]
    fn notes_that_others_have_removed_are_written_again() {
        let (process, dir) = start("echo $$ > $DIR/pid; exec sleep 100");
        let shell = pid_in(&dir);
        let took_over = process.record.path().with_extension("took-over");
        let noted = fs::read(&took_over).unwrap();
        for note in [process.record.path(), &took_over] {
            fs::remove_file(note).unwrap();
        }
        process.restore_notes();
        assert_eq!(process.record.find().unwrap(), Some(Pid::from_raw(shell as i32)));
        assert_eq!(fs::read(&took_over).unwrap(), noted);
        kill(shell);
    }

    #[test]
    fn the_environment_names_the_run() {
        let (mut process, dir) = start("env | sort > $DIR/env");
        finish(&mut process, START);
        let expected = "LANELECT_EVENT=elected\n\
                        LANELECT_GROUP=blue\n\
                        LANELECT_INTERFACE=eth0 bond0.7\n\
                        LANELECT_LEADER=web1\n\
                        LANELECT_LEADER_ADDRESS=10.0.0.11\n\
                        LANELECT_NODE_ID=web1\n\
                        LANELECT_PREVIOUS_LEADER=web0\n\
                        LANELECT_REASON=election\n\
                        LANELECT_ROLE=leader\n\
                        LANELECT_TERM=7\n";
        assert_eq!(told(&dir), expected);
    }

    #[test]
    fn a_hook_reads_nothing_and_leads_a_group_of_its_own() {
        let (mut process, dir) = start("cat > $DIR/stdin; echo $$ > $DIR/pid; exec sleep 100");
        let shell = pid_in(&dir);
        assert_eq!(fs::read(dir.path().join("stdin")).unwrap(), b"");
        let group = nix::unistd::getpgid(Some(Pid::from_raw(shell as i32))).unwrap();
        assert_eq!(group.as_raw() as u32, shell);
        kill(shell);
        finish(&mut process, START);
    }

    #[test]
    fn a_hook_that_overruns_gets_term_and_its_run_ends_with_it() {
        let (mut process, _dir) = start("exec sleep 100");
        assert_eq!(process.poll_timeout(), Some(START + LIMIT));
        process.handle_timeout(START + LIMIT);
        let finished = finish(&mut process, START + LIMIT);
        let expected = HookFinished {
            outcome: HookOutcome::Failed,
            exit: Some(128 + 15),
            took: LIMIT,
            forced: Some(Forced::Overran),
        };
        assert_eq!(finished, expected);
        assert_eq!(process.poll_timeout(), None);
    }

    #[test]
    fn a_hook_that_exits_with_success_only_on_term_has_failed() {
        let (mut process, dir) =
            start("trap 'exit 0' TERM; echo $$ > $DIR/pid; while :; do sleep 0.1; done");
        pid_in(&dir);
        process.handle_timeout(START + LIMIT);
        let finished = finish(&mut process, START + LIMIT);
        assert_eq!((finished.outcome, finished.exit), (HookOutcome::Failed, Some(128 + 15)));
    }

    #[test]
    fn a_hook_that_is_cut_short_gets_term_and_has_failed() {
        let (mut process, _dir) = start("exec sleep 100");
        let by = START + Duration::from_secs(2);
        process.cut_short(Lane::Hook, by, START);
        let finished = finish(&mut process, START);
        let expected = HookFinished {
            outcome: HookOutcome::Failed,
            exit: Some(128 + 15),
            took: Duration::ZERO,
            forced: Some(Forced::CutShort),
        };
        assert_eq!(finished, expected);
    }

    #[test]
    fn a_hook_that_is_cut_short_and_ignores_term_gets_kill_in_time() {
        let (mut process, dir) = start(IGNORES_TERM);
        let shell = pid_in(&dir);
        let by = START + Duration::from_secs(2);
        process.cut_short(Lane::Hook, by, START);
        assert_eq!(process.poll_timeout(), Some(by));
        assert!(is_alive(shell));
        process.handle_timeout(by);
        let finished = finish(&mut process, by);
        assert_eq!((finished.exit, finished.forced), (Some(137), Some(Forced::CutShort)));
    }

    #[test]
    fn a_hook_that_overran_and_is_cut_short_gets_kill_in_time() {
        let (mut process, dir) = start(IGNORES_TERM);
        let shell = pid_in(&dir);
        // It has overrun its limit already: KILL would come later.
        process.handle_timeout(START + LIMIT);
        let by = START + LIMIT + Duration::from_secs(1);
        process.cut_short(Lane::Hook, by, START + LIMIT);
        assert_eq!(process.poll_timeout(), Some(by));
        assert!(is_alive(shell));
        process.handle_timeout(by);
        let finished = finish(&mut process, by);
        assert_eq!((finished.exit, finished.forced), (Some(137), Some(Forced::Overran)));
    }

    #[test]
    fn a_hook_that_is_cut_short_too_late_gets_kill_at_once() {
        let (mut process, dir) = start(IGNORES_TERM);
        pid_in(&dir);
        process.cut_short(Lane::Hook, START, START);
        assert_eq!(finish(&mut process, START).exit, Some(137));
    }

    #[test]
    fn a_hook_that_ended_before_it_was_cut_short_has_succeeded() {
        let (mut process, dir) = start("echo $$ > $DIR/pid");
        let shell = pid_in(&dir);
        wait_for("the end of the shell", || (state(shell) == Some('Z')).then_some(()));
        process.cut_short(Lane::Hook, START, START);
        let finished = process.poll_finished(Lane::Hook).unwrap();
        assert_eq!((finished.outcome, finished.forced), (HookOutcome::Succeeded, None));
        process.cut_short(Lane::Hook, START, START);
        assert_eq!(process.poll_finished(Lane::Hook), None, "nothing runs");
    }

    /// Runs `fence`, in which `$DIR` stands for the directory, beside a hook that hangs.
    fn start_fence(fence: &str) -> (HookProcess, TempDir) {
        let (mut process, dir) = start("exec sleep 100");
        let fence = fence.replace("$DIR", dir.path().to_str().unwrap());
        process.reconfigure(HookSettings { fence: Some(fence), ..settings("exec sleep 100") });
        process.start(&Task::Fence { term: Term(7) }, &node(), START);
        (process, dir)
    }

    fn finish_fence(process: &mut HookProcess, now: Time) -> HookFinished {
        wait_for("the end of the fence command", || {
            process.handle_child_signal(now);
            process.poll_finished(Lane::Fence)
        })
    }

    #[test]
    fn the_fence_command_runs_beside_the_hook_and_is_told_what_for() {
        let (mut process, dir) = start_fence("env | sort > $DIR/env; exit 3");
        let finished = finish_fence(&mut process, START);
        assert_eq!((finished.outcome, finished.exit), (HookOutcome::Failed, Some(3)));
        let expected = "LANELECT_EVENT=fence\n\
                        LANELECT_GROUP=blue\n\
                        LANELECT_INTERFACE=eth0 bond0.7\n\
                        LANELECT_NODE_ID=web1\n\
                        LANELECT_REASON=grace-overrun\n\
                        LANELECT_TERM=7\n";
        assert_eq!(told(&dir), expected);
        assert_eq!(process.poll_finished(Lane::Hook), None);
        assert!(process.is_running(Lane::Hook) && !process.is_running(Lane::Fence));
    }

    #[test]
    fn a_fence_command_that_overruns_the_limit_is_ended_and_does_not_end_the_hook() {
        let (mut process, _dir) = start_fence("exec sleep 100");
        process.start(&Task::Fence { term: Term(8) }, &node(), START);
        assert_eq!(process.poll_finished(Lane::Fence), None, "one at a time");
        process.handle_timeout(START + LIMIT / 2);
        assert!(process.is_running(Lane::Fence) && process.is_running(Lane::Hook));
        process.cut_short(Lane::Hook, START + LIMIT, START);
        finish(&mut process, START);
        assert!(process.is_running(Lane::Fence), "only the hook is cut short");
        process.handle_timeout(START + LIMIT);
        let finished = finish_fence(&mut process, START + LIMIT);
        assert_eq!((finished.exit, finished.forced), (Some(128 + 15), Some(Forced::Overran)));
        assert_eq!(process.poll_timeout(), None);
    }

    #[test]
    fn a_fence_command_that_cannot_be_started_did_not_run() {
        let (mut process, _dir) = start_fence("a command with a \0");
        assert_eq!(process.poll_finished(Lane::Fence), Some(HookFinished::not_run(Duration::ZERO)));
    }

    /// Runs `check`, in which `$DIR` stands for the directory, beside a hook that hangs.
    fn start_check(check: &str) -> (HookProcess, TempDir) {
        let (mut process, dir) = start("exec sleep 100");
        let check = check.replace("$DIR", dir.path().to_str().unwrap());
        process.reconfigure(HookSettings { check: Some(check), ..settings("exec sleep 100") });
        process.start(&CHECK, &node(), START);
        (process, dir)
    }

    fn finish_check(process: &mut HookProcess, now: Time) -> HookFinished {
        wait_for("the end of the check", || {
            process.handle_child_signal(now);
            process.poll_finished(Lane::Check)
        })
    }

    #[test]
    fn the_check_runs_beside_the_hook_leaves_no_note_and_is_told_of_its_node() {
        let (mut process, dir) = start_check("env | sort > $DIR/env; exit 3");
        let note = fs::read(note_in(&dir)).unwrap();
        let finished = finish_check(&mut process, START);
        assert_eq!((finished.outcome, finished.exit), (HookOutcome::Failed, Some(3)));
        let expected = "LANELECT_EVENT=check\n\
                        LANELECT_GROUP=blue\n\
                        LANELECT_INTERFACE=eth0 bond0.7\n\
                        LANELECT_NODE_ID=web1\n\
                        LANELECT_ROLE=follower\n\
                        LANELECT_TERM=7\n";
        assert_eq!(told(&dir), expected);
        assert!(process.is_running(Lane::Hook) && !process.is_running(Lane::Check));
        assert_eq!(fs::read(note_in(&dir)).unwrap(), note, "the hook's, as before");
    }

    #[test]
    fn a_check_has_a_limit_of_its_own_and_is_waited_for_until_nothing_is_left_of_it() {
        let (mut process, dir) =
            start_check("sh -c 'trap \"\" TERM; echo $$ > $DIR/pid; exec sleep 100' & wait");
        let grandchild = pid_in(&dir);
        let overrun = START + CHECK_LIMIT;
        assert_eq!(process.poll_timeout(), Some(overrun));
        process.handle_timeout(overrun);
        process.handle_timeout(overrun + KILL_GRACE / 2);
        process.handle_child_signal(overrun + KILL_GRACE / 2);
        assert!(is_alive(grandchild));
        assert_eq!(process.poll_finished(Lane::Check), None);
        process.handle_timeout(overrun + KILL_GRACE);
        let finished = finish_check(&mut process, overrun + KILL_GRACE);
        assert_eq!((finished.exit, finished.forced), (Some(128 + 15), Some(Forced::Overran)));
        assert!(!is_alive(grandchild));
        assert!(process.is_running(Lane::Hook));
    }

    #[test]
    fn a_grandchild_that_ignores_term_holds_the_run_until_it_is_killed() {
        let (mut process, dir) =
            start("sh -c 'trap \"\" TERM; echo $$ > $DIR/pid; exec sleep 100' & wait");
        let grandchild = pid_in(&dir);
        let overrun = START + LIMIT;
        process.handle_timeout(overrun);

        // From the shell's end on, the rest of its group is polled often.
        wait_for("the end of the shell", || {
            process.handle_child_signal(overrun);
            (process.poll_timeout()? < overrun + KILL_GRACE).then_some(())
        });
        assert_eq!(process.poll_finished(Lane::Hook), None);
        assert!(is_alive(grandchild));

        process.handle_timeout(overrun + KILL_GRACE);
        wait_for("the end of the grandchild", || (!is_alive(grandchild)).then_some(()));
        // If no process reaps orphans, the dead one stays in its group until the run times out.
        let finished = finish(&mut process, overrun + KILL_GRACE + KILL_WAIT);
        assert_eq!((finished.exit, finished.forced), (Some(128 + 15), Some(Forced::Overran)));
    }

    #[test]
    fn a_run_of_which_only_the_dead_are_left_is_over() {
        // A process whose parent left the group without ever waiting for it stays there, dead.
        let (mut process, dir) = start(
            "sh -c 'echo $$ > $DIR/pid; sleep 100 & echo $! > $DIR/unreaped; \
             exec setsid sleep 100' & wait",
        );
        let parent = pid_in(&dir);
        let unreaped = wait_for("the process", || {
            fs::read_to_string(dir.path().join("unreaped")).ok()?.trim_end().parse().ok()
        });
        wait_for("the parent's leave", || (session(parent) == Some(parent)).then_some(()));
        let killed = START + LIMIT + KILL_GRACE;
        process.handle_timeout(START + LIMIT);
        wait_for("the end of the shell", || {
            process.handle_child_signal(START + LIMIT);
            (process.poll_timeout()? < killed).then_some(())
        });
        wait_for("the end of the process", || (!is_alive(unreaped)).then_some(()));
        process.handle_timeout(killed);
        assert_eq!(process.poll_finished(Lane::Hook), None);
        process.handle_timeout(killed + KILL_WAIT);
        let finished = process.poll_finished(Lane::Hook).unwrap();
        assert_eq!(finished.outcome, HookOutcome::Failed);
        assert_eq!(finished.forced, Some(Forced::Overran));
        assert!(!process.is_running(Lane::Hook));
        kill(parent);
    }

    #[test]
    fn an_orphan_that_fell_to_us_is_reaped_and_its_run_is_over() {
        use std::os::unix::process::CommandExt;

        let (mut process, dir) = start("echo $$ > $DIR/pid; exec sleep 100");
        let group = pid_in(&dir) as i32;
        // Process 1 of a container inherits orphans as its children: this child stands for one.
        let mut orphan = Command::new("sleep").arg("100").process_group(group).spawn().unwrap();
        process.handle_timeout(START + LIMIT);
        let finished = finish(&mut process, START + LIMIT);
        assert_eq!((finished.exit, finished.forced), (Some(128 + 15), Some(Forced::Overran)));
        assert!(orphan.wait().is_err(), "it was waited for");
    }

    #[test]
    fn a_hook_that_a_killed_life_left_running_is_ended_and_nothing_begins_beside_it() {
        let (killed, dir) = start(IGNORES_TERM);
        let left = pid_in(&dir);
        drop(killed);
        let mut process = process("exit 0", &dir);
        assert!(process.poll_timeout().unwrap() < START + KILL_GRACE, "it is looked at");
        process.start(&Task::Hook(elected(8)), &node(), START);
        assert_eq!(process.poll_finished(Lane::Hook), None);
        assert!(process.is_running(Lane::Hook) && is_alive(left));
        // A caller that waits for the lane may shorten its time.
        let later = START + KILL_GRACE / 2;
        process.cut_short(Lane::Hook, later, START);
        wait_for("its end", || {
            process.handle_timeout(later);
            (!process.is_running(Lane::Hook)).then_some(())
        });
        assert!(!is_alive(left) && !note_in(&dir).exists());
        process.start(&Task::Hook(elected(8)), &node(), later);
        assert_eq!(finish(&mut process, later).outcome, HookOutcome::Succeeded);
    }

    #[test]
    fn what_a_hook_left_behind_is_ended_where_its_end_was_not_seen() {
        let (killed, dir) = start("sleep 100 & echo $! > $DIR/pid");
        let left = pid_in(&dir);
        let shell = killed.slots[Lane::Hook].running.as_ref().unwrap().child.id();
        wait_for("the end of the shell", || (!is_alive(shell)).then_some(()));
        drop(killed);
        let mut process = process("exit 0", &dir);
        assert!(process.is_running(Lane::Hook));
        wait_for("its end", || {
            process.handle_timeout(START);
            (!process.is_running(Lane::Hook)).then_some(())
        });
        assert!(!is_alive(left) && !note_in(&dir).exists());
    }

    #[test]
    fn the_note_of_a_hook_of_which_nothing_is_left_goes() {
        let (killed, dir) = start("echo $$ > $DIR/pid; exec sleep 100");
        let shell = pid_in(&dir);
        drop(killed);
        kill(shell);
        wait_for("its end", || (!is_alive(shell)).then_some(()));
        assert!(note_in(&dir).exists());
        assert!(!process("exit 0", &dir).is_running(Lane::Hook));
        assert!(!note_in(&dir).exists());
    }

    #[test]
    fn a_run_is_noted_while_it_lasts_and_goes_on_where_that_fails() {
        let (mut process, dir) = start("while [ ! -e $DIR/go ]; do sleep 0.05; done");
        assert!(note_in(&dir).exists());
        fs::write(dir.path().join("go"), "").unwrap();
        finish(&mut process, START);
        assert!(!note_in(&dir).exists());

        let mut process =
            HookProcess::new(settings("exit 0"), dir.path().join("none/blue.hook"), START);
        process.start(&Task::Hook(elected(9)), &node(), START);
        assert_eq!(finish(&mut process, START).outcome, HookOutcome::Succeeded);
    }

    #[test]
    fn a_hook_that_ended_in_time_is_not_blamed_for_being_noticed_late() {
        let (mut process, dir) = start("echo $$ > $DIR/pid");
        let shell = pid_in(&dir);
        wait_for("the end of the shell", || (state(shell) == Some('Z')).then_some(()));
        process.handle_timeout(START + LIMIT * 10);
        let finished = process.poll_finished(Lane::Hook).unwrap();
        assert_eq!((finished.outcome, finished.forced), (HookOutcome::Succeeded, None));
    }

    #[test]
    fn what_a_hook_leaves_running_in_time_is_left_alone() {
        let (mut process, dir) = start("sleep 100 & echo $! > $DIR/pid");
        let finished = finish(&mut process, START);
        let left = pid_in(&dir);
        assert_eq!(finished.outcome, HookOutcome::Succeeded);
        process.handle_timeout(START + LIMIT * 10);
        assert!(is_alive(left));
        kill(left);
    }

    #[test]
    fn a_second_run_is_dropped_while_one_is_under_way() {
        let (mut process, _dir) = start("exec sleep 100");
        let child = process.slots[Lane::Hook].running.as_ref().unwrap().child.id();
        process.start(&Task::Hook(demoted(8)), &node(), START + LIMIT);
        assert_eq!(process.slots[Lane::Hook].running.as_ref().unwrap().child.id(), child);
        assert_eq!(process.poll_timeout(), Some(START + LIMIT));
        kill(child);
        assert_eq!(finish(&mut process, START).exit, Some(137));
        assert_eq!(process.poll_finished(Lane::Hook), None);
    }

    #[test]
    fn many_flips_run_one_after_the_other() {
        let (mut process, dir) = start("echo $LANELECT_EVENT $LANELECT_TERM >> $DIR/runs");
        finish(&mut process, START);
        for term in 8..=27 {
            let run = if term % 2 == 0 { demoted(term) } else { elected(term) };
            process.start(&Task::Hook(run), &node(), START);
            assert_eq!(finish(&mut process, START).outcome, HookOutcome::Succeeded);
        }
        let expected: Vec<_> = (7..=27)
            .map(|term| format!("{} {term}", if term % 2 == 0 { "demoted" } else { "elected" }))
            .collect();
        assert_eq!(lines(&dir.path().join("runs")), expected);
    }

    fn lines(path: &Path) -> Vec<String> {
        fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}
