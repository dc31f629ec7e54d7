//! The processes of the hook: its runs, one at a time, and the fence command beside them.
//!
//! A hook that an earlier life of this process left running is ended first, as one that overran its time
//! limit is.

use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use nix::unistd::Pid;

use super::HookNode;
use super::group::{self, Ending, KILL_GRACE, Progress};
use super::record::Record;
use super::run::{self, HookFinished, Running, environment, fence_environment};
use crate::config::Config;
use crate::core::hook::HookRun;
use crate::time::Time;
use crate::types::Term;

/// Which commands run, and for how long they may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSettings {
    /// The command line for `/bin/sh -c`; without one every run succeeds at once.
    pub command: Option<String>,
    /// The same for where the demote hook overran its grace.
    pub fence: Option<String>,
    /// How long a run may take before it is terminated.
    pub timeout: Duration,
}

impl From<&Config> for HookSettings {
    fn from(config: &Config) -> Self {
        HookSettings {
            command: config.hook.clone(),
            fence: config.fence.clone(),
            timeout: config.hook_timeout,
        }
    }
}

/// Runs hooks, one at a time, and the fence command. Never blocks for longer than it takes to write a small
/// file.
///
/// After `start`, `cut_short` and `fence`, call [`handle_child_signal`](Self::handle_child_signal) at every SIGCHLD and
/// [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout), and after each
/// of them drain [`poll_finished`](Self::poll_finished) and [`poll_fenced`](Self::poll_fenced). Spurious
/// calls are harmless.
#[derive(Debug)]
pub struct HookProcess {
    settings: HookSettings,
    record: Record,
    /// A hook that an earlier life left running.
    leftover: Option<Ending>,
    /// The run that starts when `leftover` has ended.
    waiting: Option<(HookRun, HookNode)>,
    running: Option<Running>,
    finished: Option<HookFinished>,
    fence: Option<Running>,
    fenced: Option<HookFinished>,
    /// Shells that KILL did not end in time; reaped when they do end.
    given_up: Vec<Child>,
}

impl HookProcess {
    /// With nothing running. Begins to end a hook that an earlier life left running, which it finds
    /// in the file `record`; the first run waits for that. The same file tells the next life.
    pub fn new(settings: HookSettings, record: PathBuf, now: Time) -> Self {
        let record = Record::new(record);
        HookProcess {
            settings,
            leftover: leftover(&record, now),
            record,
            waiting: None,
            running: None,
            finished: None,
            fence: None,
            fenced: None,
            given_up: Vec::new(),
        }
    }

    /// Whether a run of the hook is under way, or an earlier life's is being ended.
    pub fn is_running(&self) -> bool {
        self.running.is_some() || self.leftover.is_some()
    }

    /// Whether the fence command runs.
    pub const fn is_fencing(&self) -> bool {
        self.fence.is_some()
    }

    /// Whether there is a fence command at all.
    pub const fn has_fence(&self) -> bool {
        self.settings.fence.is_some()
    }

    /// Whether there is a hook to run at all.
    pub fn has_command(&self) -> bool {
        self.settings.command.is_some()
    }

    /// Takes new settings, from the next run on.
    pub fn reconfigure(&mut self, settings: HookSettings) {
        self.settings = settings;
    }

    /// Starts `run`. Only to be called when the run before is finished; a second one is dropped
    /// rather than run beside the first.
    pub fn start(&mut self, run: &HookRun, node: &HookNode, now: Time) {
        if self.running.is_some() || self.waiting.is_some() {
            log::error!("{} was asked for while another still runs: dropped", run::name(run));
        } else if self.leftover.is_some() {
            log::info!("{} waits for the end of the hook that was left running", run::name(run));
            self.waiting = Some((*run, node.clone()));
        } else {
            self.begin(run, node, now);
        }
    }

    /// Ends the run: TERM now, KILL at `by`. One that still waits is not begun.
    pub fn cut_short(&mut self, by: Time, now: Time) {
        if let Some(leftover) = &mut self.leftover {
            leftover.hasten(by);
        }
        if let Some((run, _)) = self.waiting.take() {
            log::info!("{} is cut short before it began", run::name(&run));
            self.finished = Some(HookFinished::not_run(Duration::ZERO));
        }
        if let Some(running) = &mut self.running {
            running.cut_short(by);
        }
        self.handle_timeout(now);
    }

    /// Runs the fence command for the reign of `term`, beside the hook that may still run. Only to be
    /// called when the fence before is finished. Without a command it succeeds at once.
    pub fn fence(&mut self, term: Term, node: &HookNode, now: Time) {
        let name = run::fence_name(term);
        if self.fence.is_some() {
            log::error!("{name} was asked for while another still runs: dropped");
            return;
        }
        let Some(command) = &self.settings.fence else {
            self.fenced = Some(HookFinished::NOTHING_TO_DO);
            return;
        };
        let variables = fence_environment(term, node);
        match Running::start(command, variables, name.clone(), self.settings.timeout, now) {
            Ok(running) => self.fence = Some(running),
            Err(error) => {
                log::error!("{name} did not run: /bin/sh could not be started: {error}");
                self.fenced = Some(HookFinished::not_run(Duration::ZERO));
            }
        }
    }

    /// A SIGCHLD arrived.
    pub fn handle_child_signal(&mut self, now: Time) {
        self.given_up.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.handle_timeout(now);
        let running = self.running.iter().chain(&self.fence).map(|running| &running.child);
        let own: Vec<Pid> = self.given_up.iter().chain(running).map(run::pid).collect();
        group::reap_strays(&own);
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        self.end_leftover(now);
        if let Some(mut running) = self.running.take() {
            match running.advance(now) {
                Progress::Continues => self.running = Some(running),
                Progress::Over => self.finish(running, now),
            }
        }
        if let Some(mut fence) = self.fence.take() {
            match fence.advance(now) {
                Progress::Continues => self.fence = Some(fence),
                Progress::Over => self.finish_fence(fence, now),
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due; none while nothing runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        let leftover = self.leftover.iter().map(Ending::next_timeout);
        let running = self.running.iter().chain(&self.fence).map(Running::next_timeout);
        leftover.chain(running).min()
    }

    /// How the run ended, once.
    pub fn poll_finished(&mut self) -> Option<HookFinished> {
        self.finished.take()
    }

    /// How the fence command ended, once.
    pub fn poll_fenced(&mut self) -> Option<HookFinished> {
        self.fenced.take()
    }

    fn begin(&mut self, run: &HookRun, node: &HookNode, now: Time) {
        let Some(command) = &self.settings.command else {
            log::debug!("no hook to run for {} ({})", run.event, run.reason);
            self.finished = Some(HookFinished::NOTHING_TO_DO);
            return;
        };
        let (variables, name) = (environment(run, node), run::name(run));
        match Running::start(command, variables, name.clone(), self.settings.timeout, now) {
            Ok(running) => {
                self.note(&running.child);
                self.running = Some(running);
            }
            Err(error) => {
                log::error!("{name} did not run: /bin/sh could not be started: {error}");
                self.finished = Some(HookFinished::not_run(Duration::ZERO));
            }
        }
    }

    fn end_leftover(&mut self, now: Time) {
        let Some(leftover) = &mut self.leftover else { return };
        if leftover.look(now) == Progress::Continues {
            return;
        }
        log::info!("no longer waiting for the hook that was left running");
        self.leftover = None;
        self.clear_note();
        if let Some((run, node)) = self.waiting.take() {
            self.begin(&run, &node, now);
        }
    }

    fn finish(&mut self, running: Running, now: Time) {
        let finished = running.finished(now);
        run::log_end(&running.name, &finished);
        self.finished = Some(finished);
        self.clear_note();
        self.given_up.extend(running.into_survivor());
    }

    fn finish_fence(&mut self, fence: Running, now: Time) {
        let finished = fence.finished(now);
        run::log_end(&fence.name, &finished);
        self.fenced = Some(finished);
        self.given_up.extend(fence.into_survivor());
    }

    fn note(&self, shell: &Child) {
        if let Err(error) = self.record.write(run::pid(shell)) {
            log::warn!(
                "cannot note in {} that a hook runs: {error}; were this process killed now, its \
                 successor could run the next hook beside this one",
                self.record.path().display()
            );
        }
    }

    fn clear_note(&self) {
        if let Err(error) = self.record.clear() {
            // Harmless: it names a shell that is gone.
            log::debug!("cannot remove {}: {error}", self.record.path().display());
        }
    }
}

/// Begins to end the hook that is noted in `record`, where it still runs.
fn leftover(record: &Record, now: Time) -> Option<Ending> {
    match record.find() {
        Ok(Some(group)) => {
            log::warn!("a hook of an earlier life still runs as process {group}: sending TERM");
            let mut ending =
                Ending::begin("the hook that was left running".to_owned(), group, now + KILL_GRACE);
            // It is not our child: looking is the only way to see it end.
            ending.look(now);
            Some(ending)
        }
        Ok(None) => None,
        Err(error) => {
            log::warn!(
                "whether an earlier life left a hook running cannot be read in {}: {error}",
                record.path().display()
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::thread::sleep;

    use nix::sys::signal::Signal;
    use tempfile::TempDir;

    use super::super::group::KILL_WAIT;
    use super::super::run::Forced;
    use super::super::testing::{demoted, elected, node};
    use super::*;
    use crate::core::hook::HookOutcome;

    const START: Time = Time::from_millis(1_000);
    const LIMIT: Duration = Duration::from_secs(30);

    /// Waits, within reason, until `check` gives something.
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
        process.start(&elected(7), &node(), START);
        (process, dir)
    }

    /// Nothing running but what a life before left, which `dir` tells.
    fn process(command: &str, dir: &TempDir) -> HookProcess {
        HookProcess::new(settings(command), note_in(dir), START)
    }

    fn settings(command: &str) -> HookSettings {
        HookSettings { command: Some(command.to_owned()), fence: None, timeout: LIMIT }
    }

    fn note_in(dir: &TempDir) -> PathBuf {
        dir.path().join("blue.hook")
    }

    fn finish(process: &mut HookProcess, now: Time) -> HookFinished {
        wait_for("the end of the hook", || {
            process.handle_child_signal(now);
            process.poll_finished()
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

    /// The letter of the process's state; none where there is no such process.
    fn state(pid: u32) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    }

    fn is_alive(pid: u32) -> bool {
        !matches!(state(pid), None | Some('Z' | 'X'))
    }

    /// The number of the process's session.
    fn session(pid: u32) -> Option<u32> {
        let pid = Pid::from_raw(pid.cast_signed());
        nix::unistd::getsid(Some(pid)).ok().map(|session| session.as_raw().cast_unsigned())
    }

    fn log(dir: &TempDir) -> PathBuf {
        dir.path().join("log")
    }

    fn kill(pid: u32) {
        nix::sys::signal::kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
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
    fn a_hook_that_cannot_be_started_did_not_run() {
        let (mut process, _dir) = start("a command with a \0");
        assert_eq!(process.poll_finished(), Some(HookFinished::not_run(Duration::ZERO)));
        assert_eq!(process.poll_timeout(), None);
    }

    #[test]
    fn the_environment_names_the_run() {
        let (mut process, dir) = start("env | grep ^LANELECT_ | sort > $DIR/env");
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
        assert_eq!(fs::read_to_string(dir.path().join("env")).unwrap(), expected);
    }

    #[test]
    fn what_is_not_known_is_empty() {
        let empty: Vec<_> = environment(&demoted(9), &node())
            .into_iter()
            .filter_map(|(name, value)| value.is_empty().then_some(name))
            .collect();
        let expected = ["LANELECT_LEADER", "LANELECT_LEADER_ADDRESS", "LANELECT_PREVIOUS_LEADER"];
        assert_eq!(empty, expected);
    }

    #[test]
    fn a_hook_reads_nothing_and_leads_a_group_of_its_own() {
        let (mut process, dir) = start("cat > $DIR/stdin; echo $$ > $DIR/pid; exec sleep 100");
        let shell = pid_in(&dir);
        assert_eq!(fs::read(dir.path().join("stdin")).unwrap(), b"");
        let group = nix::unistd::getpgid(Some(Pid::from_raw(shell.cast_signed()))).unwrap();
        assert_eq!(group.as_raw().cast_unsigned(), shell);
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
        assert_eq!((finished.outcome, finished.exit), (HookOutcome::Failed, Some(0)));
    }

    #[test]
    fn a_hook_that_is_cut_short_gets_term_and_has_failed() {
        let (mut process, _dir) = start("exec sleep 100");
        let by = START + Duration::from_secs(2);
        process.cut_short(by, START);
        assert_eq!(process.poll_timeout(), Some(by));
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
        let (mut process, dir) =
            start("trap '' TERM; echo $$ > $DIR/pid; while :; do sleep 0.1; done");
        let shell = pid_in(&dir);
        // It has overrun its limit already: KILL would come later.
        process.handle_timeout(START + LIMIT);
        let by = START + LIMIT + Duration::from_secs(1);
        process.cut_short(by, START + LIMIT);
        assert_eq!(process.poll_timeout(), Some(by));
        assert!(is_alive(shell));
        process.handle_timeout(by);
        let finished = finish(&mut process, by);
        assert_eq!((finished.exit, finished.forced), (Some(137), Some(Forced::Overran)));
    }

    #[test]
    fn a_hook_that_is_cut_short_too_late_gets_kill_at_once() {
        let (mut process, dir) =
            start("trap '' TERM; echo $$ > $DIR/pid; while :; do sleep 0.1; done");
        pid_in(&dir);
        process.cut_short(START, START);
        assert_eq!(finish(&mut process, START).exit, Some(137));
    }

    #[test]
    fn a_hook_that_ended_before_it_was_cut_short_has_succeeded() {
        let (mut process, dir) = start("echo $$ > $DIR/pid");
        let shell = pid_in(&dir);
        wait_for("the end of the shell", || (state(shell) == Some('Z')).then_some(()));
        process.cut_short(START, START);
        let finished = process.poll_finished().unwrap();
        assert_eq!((finished.outcome, finished.forced), (HookOutcome::Succeeded, None));
        process.cut_short(START, START);
        assert_eq!(process.poll_finished(), None, "nothing runs");
    }

    #[test]
    fn a_hook_that_waits_and_is_cut_short_is_not_begun() {
        let (killed, dir) = start("trap '' TERM; echo $$ > $DIR/pid; while :; do sleep 0.1; done");
        pid_in(&dir);
        drop(killed);
        let mut process = process("echo ran > $DIR/ran", &dir);
        process.start(&elected(8), &node(), START);
        let by = START + Duration::from_secs(1);
        process.cut_short(by, START);
        assert_eq!(process.poll_finished(), Some(HookFinished::not_run(Duration::ZERO)));
        // What it waited for has no more time than it would have had.
        wait_for("the end of what was left", || {
            process.handle_timeout(by);
            (!process.is_running()).then_some(())
        });
        assert!(!dir.path().join("ran").exists());
    }

    /// Runs `fence`, in which `$DIR` stands for the directory, beside a hook that hangs.
    fn start_fence(fence: &str) -> (HookProcess, TempDir) {
        let (mut process, dir) = start("exec sleep 100");
        let fence = fence.replace("$DIR", dir.path().to_str().unwrap());
        process.reconfigure(HookSettings { fence: Some(fence), ..settings("exec sleep 100") });
        process.fence(Term(7), &node(), START);
        (process, dir)
    }

    fn finish_fence(process: &mut HookProcess, now: Time) -> HookFinished {
        wait_for("the end of the fence command", || {
            process.handle_child_signal(now);
            process.poll_fenced()
        })
    }

    #[test]
    fn the_fence_command_runs_beside_the_hook_and_is_told_what_for() {
        let (mut process, dir) = start_fence("env | grep ^LANELECT_ | sort > $DIR/env; exit 3");
        let finished = finish_fence(&mut process, START);
        assert_eq!((finished.outcome, finished.exit), (HookOutcome::Failed, Some(3)));
        let expected = "LANELECT_EVENT=fence\n\
                        LANELECT_GROUP=blue\n\
                        LANELECT_INTERFACE=eth0 bond0.7\n\
                        LANELECT_NODE_ID=web1\n\
                        LANELECT_REASON=grace-overrun\n\
                        LANELECT_TERM=7\n";
        assert_eq!(fs::read_to_string(dir.path().join("env")).unwrap(), expected);
        assert_eq!(process.poll_finished(), None);
        assert!(process.is_running() && !process.is_fencing());
    }

    #[test]
    fn a_fence_command_that_overruns_the_limit_is_ended_and_does_not_end_the_hook() {
        let (mut process, _dir) = start_fence("exec sleep 100");
        process.fence(Term(8), &node(), START);
        assert_eq!(process.poll_fenced(), None, "one at a time");
        process.handle_timeout(START + LIMIT / 2);
        assert!(process.is_fencing() && process.is_running());
        process.cut_short(START + LIMIT, START);
        finish(&mut process, START);
        assert!(process.is_fencing(), "only the hook is cut short");
        process.handle_timeout(START + LIMIT);
        let finished = finish_fence(&mut process, START + LIMIT);
        assert_eq!((finished.exit, finished.forced), (Some(128 + 15), Some(Forced::Overran)));
        assert_eq!(process.poll_timeout(), None);
    }

    #[test]
    fn a_fence_command_that_cannot_be_started_did_not_run() {
        let (mut process, _dir) = start_fence("a command with a \0");
        assert_eq!(process.poll_fenced(), Some(HookFinished::not_run(Duration::ZERO)));
    }

    #[test]
    fn a_grandchild_that_ignores_term_holds_the_run_until_it_is_killed() {
        let (mut process, dir) =
            start("sh -c 'trap \"\" TERM; echo $$ > $DIR/pid; exec sleep 100' & wait");
        let grandchild = pid_in(&dir);
        let overrun = START + LIMIT;
        process.handle_timeout(overrun);

        // From when the shell has ended, the rest of its group is looked at often.
        wait_for("the end of the shell", || {
            process.handle_child_signal(overrun);
            (process.poll_timeout()? < overrun + KILL_GRACE).then_some(())
        });
        assert_eq!(process.poll_finished(), None);
        assert!(is_alive(grandchild));

        process.handle_timeout(overrun + KILL_GRACE);
        wait_for("the end of the grandchild", || (!is_alive(grandchild)).then_some(()));
        // Where nobody reaps orphans, the dead one stays in its group until the run is given up.
        let finished = finish(&mut process, overrun + KILL_GRACE + KILL_WAIT);
        assert_eq!((finished.exit, finished.forced), (Some(128 + 15), Some(Forced::Overran)));
    }

    #[test]
    fn a_run_whose_group_outlives_kill_is_given_up() {
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
        assert_eq!(process.poll_finished(), None);
        process.handle_timeout(killed + KILL_WAIT);
        assert_eq!(process.poll_finished().unwrap().forced, Some(Forced::Overran));
        assert!(!process.is_running());
        kill(parent);
    }

    #[test]
    fn an_orphan_that_fell_to_us_is_reaped_and_its_run_is_over() {
        use std::os::unix::process::CommandExt;

        let (mut process, dir) = start("echo $$ > $DIR/pid; exec sleep 100");
        let group = pid_in(&dir).cast_signed();
        // What process 1 of a container inherits is its child, as this is ours.
        let mut orphan = Command::new("sleep").arg("100").process_group(group).spawn().unwrap();
        process.handle_timeout(START + LIMIT);
        let finished = finish(&mut process, START + LIMIT);
        assert_eq!((finished.exit, finished.forced), (Some(128 + 15), Some(Forced::Overran)));
        assert!(orphan.wait().is_err(), "it was waited for");
    }

    #[test]
    fn a_hook_that_a_killed_life_left_running_is_ended_before_the_next_one_starts() {
        let (killed, dir) = start("echo $$ > $DIR/pid; exec sleep 100");
        let left = pid_in(&dir);
        drop(killed);
        let alive = format!("if kill -0 {left}; then echo overlap; fi > {}", log(&dir).display());
        let mut process = process(&alive, &dir);
        assert!(process.is_running());
        process.start(&demoted(8), &node(), START);
        assert_eq!(process.poll_finished(), None);
        assert_eq!(finish(&mut process, START).outcome, HookOutcome::Succeeded);
        assert_eq!(fs::read_to_string(log(&dir)).unwrap(), "");
        assert!(!note_in(&dir).exists());
        assert!(!process.is_running());
    }

    #[test]
    fn a_hook_left_running_that_ignores_term_is_killed_and_the_next_run_has_all_its_time() {
        let (killed, dir) = start("trap '' TERM; echo $$ > $DIR/pid; while :; do sleep 0.1; done");
        let left = pid_in(&dir);
        drop(killed);
        let mut process = process("exec sleep 100", &dir);
        process.start(&demoted(8), &node(), START);
        process.start(&elected(9), &node(), START);
        assert!(process.poll_timeout().unwrap() < START + KILL_GRACE, "it is looked at");
        process.handle_timeout(START);
        assert!(is_alive(left));
        let later = START + KILL_GRACE;
        wait_for("the next run", || {
            process.handle_timeout(later);
            process.running.as_ref().map(drop)
        });
        assert!(!is_alive(left));
        assert_eq!(process.poll_timeout(), Some(later + LIMIT));
        assert!(process.running.as_ref().unwrap().name.contains("term 8"));
        kill(process.running.as_ref().unwrap().child.id());
        finish(&mut process, later);
    }

    #[test]
    fn what_a_hook_left_behind_on_purpose_stays_also_where_its_end_was_not_seen() {
        let (killed, dir) = start("sleep 100 & echo $! > $DIR/pid");
        let left = pid_in(&dir);
        let shell = killed.running.as_ref().unwrap().child.id();
        wait_for("the end of the shell", || (!is_alive(shell)).then_some(()));
        drop(killed);
        let mut process = process("exit 0", &dir);
        assert!(!process.is_running());
        process.start(&demoted(8), &node(), START);
        assert_eq!(finish(&mut process, START).outcome, HookOutcome::Succeeded);
        assert!(is_alive(left));
        kill(left);
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
        process.start(&elected(9), &node(), START);
        assert_eq!(finish(&mut process, START).outcome, HookOutcome::Succeeded);
    }

    #[test]
    fn a_hook_that_ended_in_time_is_not_blamed_for_being_noticed_late() {
        let (mut process, dir) = start("echo $$ > $DIR/pid");
        let shell = pid_in(&dir);
        wait_for("the end of the shell", || (state(shell) == Some('Z')).then_some(()));
        process.handle_timeout(START + LIMIT * 10);
        let finished = process.poll_finished().unwrap();
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
        let child = process.running.as_ref().unwrap().child.id();
        process.start(&demoted(8), &node(), START + LIMIT);
        assert_eq!(process.running.as_ref().unwrap().child.id(), child);
        assert_eq!(process.poll_timeout(), Some(START + LIMIT));
        kill(child);
        assert_eq!(finish(&mut process, START).exit, Some(137));
        assert_eq!(process.poll_finished(), None);
    }

    #[test]
    fn many_flips_run_one_after_the_other() {
        let (mut process, dir) = start("echo $LANELECT_EVENT $LANELECT_TERM >> $DIR/runs");
        finish(&mut process, START);
        for term in 8..=27 {
            let run = if term % 2 == 0 { demoted(term) } else { elected(term) };
            process.start(&run, &node(), START);
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
