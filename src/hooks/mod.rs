//! Running hook, fence and checks for the event loop.
//!
//! ```text
//! Hooks ── client ── protocol ── server ── process ── /bin/sh -c COMMAND
//! ```
//!
//! The server is in `lanelect hook-runner`; without `hook_socket` it is in the daemon, at the other
//! end of a socket pair. So every command runs the same way, in either process.
//!
//! The core decides on the hook runs and their order, and requests a run only after the end of the
//! previous one. This module carries them out. Fence and checks run the same way, each in its own
//! lane; [`schedule`] says when a check is due.
//!
//! [`Hooks::start`] passes a run to the client of its lane, which sends it to the server. When the
//! turn of the run has come, the server confirms it and lets [`process`] start the command. [`run`]
//! has what all of them share: what runs, and how it ended.

mod agreement;
pub mod client;
pub mod digest;
pub mod group;
mod journal;
pub mod listener;
pub mod process;
mod progress;
pub mod protocol;
mod record;
pub mod run;
pub mod runner;
pub mod schedule;
pub mod server;
mod took_over;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use mio::{Registry, Token};
use serde::{Deserialize, Serialize};

use self::agreement::Agreement;
pub use self::client::{Door, HookClient};
pub use self::digest::Digest;
pub use self::process::{HookProcess, HookSettings};
pub use self::progress::Progress;
use self::protocol::{Request, RunRequest};
pub use self::run::{Forced, HookFinished, Lane, Lanes, Task};
pub use self::server::HookServer;
use crate::config::Config;
use crate::control_api::HookReport;
use crate::core::hook::HookOutcome;
use crate::logging;
use crate::time::Time;
use crate::types::{GroupName, NodeId, Role};

/// The node that a hook runs on, as its environment describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookNode {
    /// `LANELECT_NODE_ID`.
    pub node_id: NodeId,
    /// `LANELECT_GROUP`.
    pub group: GroupName,
    /// `LANELECT_INTERFACE`: names, separated by blanks there.
    #[serde(deserialize_with = "protocol::interface_names")]
    pub interfaces: Vec<String>,
}

/// The commands as the event loop sees them, whichever process runs them. Never blocks.
///
/// After each of `start`, `cut_short` and the `handle_*`, drain
/// [`poll_finished`](Self::poll_finished) for each lane, and call
/// [`poll_timeout`](Self::poll_timeout) again. Spurious calls are harmless.
#[derive(Debug)]
pub struct Hooks {
    node: HookNode,
    settings: HookSettings,
    /// A connection for each lane, so that none waits for another.
    clients: Lanes<HookClient>,
    /// The server of the connections, unless another process serves them.
    own: Option<Box<HookServer>>,
    /// If another process serves them: whether it has the same configuration.
    agreement: Option<Box<Agreement>>,
    progress: Progress,
    /// The result of a fence run without a fence command.
    not_fenced: Option<HookFinished>,
}

impl Hooks {
    /// Commands that run in the process that the configuration names.
    ///
    /// # Errors
    ///
    /// If the event loop's registry cannot be shared.
    pub fn configured(
        config: &Config,
        node: HookNode,
        registry: &Registry,
        tokens: Lanes<Token>,
        agreement: Option<Token>,
        now: Time,
    ) -> io::Result<Self> {
        let settings = HookSettings::from(config);
        let Some(path) = &config.hook_socket else {
            return Ok(Hooks::own(settings, record::beside(&config.socket), node, now));
        };
        let agreement = agreement.map(|token| (token, now));
        Hooks::remote(path, settings, node, registry, tokens, agreement)
    }

    /// Commands that run as children of this process. The file `record` shows the next life a hook
    /// that still runs.
    pub fn own(settings: HookSettings, record: PathBuf, node: HookNode, now: Time) -> Self {
        let (connections, arrivals) = mpsc::channel();
        let server = HookServer::new(settings.clone(), record, arrivals, now);
        let mut hooks = Hooks::with(settings, node, |_| Door::Own(connections.clone()));
        hooks.own = Some(Box::new(server));
        hooks
    }

    /// Commands that the hook-runner at `path` runs. Its connections use `tokens`. If there is a
    /// token `agreement`, the hook-runner is asked whether it has the same configuration.
    ///
    /// # Errors
    ///
    /// If `registry` cannot be shared.
    pub fn remote(
        path: &Path,
        settings: HookSettings,
        node: HookNode,
        registry: &Registry,
        tokens: Lanes<Token>,
        agreement: Option<(Token, Time)>,
    ) -> io::Result<Self> {
        let registry = Arc::new(registry.try_clone()?);
        let door =
            |token| Door::Socket { path: path.to_owned(), registry: Arc::clone(&registry), token };
        let mut hooks = Hooks::with(settings, node, |lane| door(tokens[lane]));
        hooks.agreement = agreement
            .map(|(token, now)| Box::new(Agreement::new(door(token), hooks.question(), now)));
        Ok(hooks)
    }

    fn with(settings: HookSettings, node: HookNode, door: impl Fn(Lane) -> Door) -> Self {
        let client = |lane| HookClient::new(door(lane), settings.timeout(lane));
        Hooks {
            clients: Lanes::of(client),
            node,
            settings,
            own: None,
            agreement: None,
            progress: Progress::default(),
            not_fenced: None,
        }
    }

    /// What `status` reports about the hook.
    pub const fn report(&self) -> &HookReport {
        self.progress.report()
    }

    /// How far the hook has come.
    pub const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Starts `task`. Call it only after [`poll_finished`](Self::poll_finished) has returned the
    /// end of the previous run of its lane. A hook that a dead daemon left running is ended before
    /// another hook starts, by force after `orphan_grace`.
    pub fn start(&mut self, task: Task, orphan_grace: Duration, now: Time) {
        match task {
            Task::Hook(run) => {
                let output = self.may_have_hook().then(|| self.output_of(&task));
                self.progress.note_started(&run, output);
            }
            Task::Fence { term } if self.settings.fence.is_none() => {
                log::error!(
                    "NO FENCE IS CONFIGURED: the hook has not released term {term}, and nothing \
                     cuts this host off"
                );
                self.not_fenced = Some(HookFinished::not_run(Duration::ZERO));
                return;
            }
            Task::Fence { term } => {
                log::error!("FENCING THIS NODE: the fence command runs for term {term}");
            }
            Task::Check { .. } | Task::CheckLeader { .. } => {}
        }
        let (node, settings) = (self.node.clone(), self.digest());
        let request = RunRequest { task, node, settings, orphan_grace };
        self.clients[task.lane()].start(request, now);
        self.exchange(now);
    }

    /// Ends the run in `lane`, by force at `by`. Its end is reported like any other.
    pub fn cut_short(&mut self, lane: Lane, by: Time, now: Time) {
        self.clients[lane].cut_short(by, now);
        self.exchange(now);
    }

    /// Whether a run that takes over waits for the hook-runner, so that it may still be cut short
    /// before it begins.
    pub fn waits_to_take_over(&self) -> bool {
        let waiting = self.clients[Lane::Hook].waiting();
        matches!(waiting, Some(Task::Hook(run)) if run.role == Role::Leader)
    }

    /// Whether a run is in progress in `lane`.
    pub fn is_running(&self, lane: Lane) -> bool {
        self.clients[lane].is_running()
    }

    /// How the run in `lane` ended, once.
    pub fn poll_finished(&mut self, lane: Lane) -> Option<HookFinished> {
        if let Some(not_fenced) = self.not_fenced.take_if(|_| lane == Lane::Fence) {
            return Some(not_fenced);
        }
        let finished = self.clients[lane].poll_finished()?;
        match lane {
            Lane::Hook => self.progress.note_finished(&finished),
            Lane::Fence => {
                self.progress.note_fenced(&finished);
                tell_fence(finished.outcome);
            }
            Lane::Check | Lane::CheckLeader => {}
        }
        Some(finished)
    }

    /// A SIGCHLD arrived.
    pub fn handle_child_signal(&mut self, now: Time) {
        match &mut self.own {
            Some(server) => server.handle_child_signal(now),
            None => group::reap_strays(&[]),
        }
        self.exchange(now);
    }

    /// The connection of `lane` to the hook-runner is ready.
    pub fn handle_socket(&mut self, lane: Lane, now: Time) {
        self.clients[lane].handle_socket(now);
        self.exchange(now);
    }

    /// Whether the hook-runner has not confirmed yet that it has the same configuration. A node
    /// does not lead before. Only if it is another process.
    pub const fn needs_agreement(&self) -> bool {
        self.agreement.is_some()
    }

    /// The connection that asks for agreement is ready.
    pub fn handle_agreement(&mut self, now: Time) {
        if let Some(agreement) = &mut self.agreement {
            agreement.handle_socket(now);
        }
    }

    /// Whether the hook-runner has the same configuration, each time that it has answered.
    pub fn poll_agreement(&mut self) -> Option<bool> {
        self.agreement.as_mut()?.poll_verdict()
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(agreement) = &mut self.agreement {
            agreement.handle_timeout(now);
        }
        if let Some(server) = &mut self.own {
            server.handle_timeout(now);
        }
        self.clients.0.iter_mut().for_each(|client| client.handle_timeout(now));
        self.exchange(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due; none while nothing runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        let own = self.own.iter().filter_map(|server| server.poll_timeout());
        let agreement = self.agreement.iter().filter_map(|agreement| agreement.poll_timeout());
        self.clients.0.iter().filter_map(HookClient::poll_timeout).chain(own).chain(agreement).min()
    }

    /// How long all that is left takes at the longest when the daemon stops. A run that began
    /// before a reload keeps its time limit, and what follows it has the new one.
    pub fn longest_stop(&self) -> Duration {
        let lanes = [Lane::Hook, Lane::Fence];
        let limits = lanes.iter().filter_map(|lane| self.clients[*lane].time_limit());
        let excess = limits.map(|limit| limit.saturating_sub(self.settings.timeout)).max();
        self.settings.longest_stop().saturating_add(excess.unwrap_or_default())
    }

    /// Applies other commands and other time limits, from the next run on. A separate hook-runner
    /// process reads the commands from its own file, at the first request with other settings.
    pub fn reconfigure(&mut self, settings: HookSettings, now: Time) {
        self.settings = settings;
        for lane in Lane::ALL {
            self.clients[lane].set_timeout(self.settings.timeout(lane));
        }
        if let Some(server) = &mut self.own {
            server.process.reconfigure(self.settings.clone());
        }
        let question = self.question();
        if let Some(agreement) = &mut self.agreement {
            agreement.ask(question, now);
        }
    }

    /// The hook that took over last, if this process runs it.
    pub fn hook_that_took_over(&self) -> Option<&Option<String>> {
        self.own.as_ref()?.process.hook_that_took_over()
    }

    /// Writes the notes of this process again, because others have removed them.
    pub fn restore_notes(&self) {
        self.own.iter().for_each(|server| server.process.restore_notes());
    }

    /// Sets other interfaces for the environment, from the next run on; returns whether they
    /// differ.
    pub fn set_interfaces(&mut self, interfaces: Vec<String>) -> bool {
        let differ = self.node.interfaces != interfaces;
        self.node.interfaces = interfaces;
        differ
    }

    /// The interfaces in the environment of hooks.
    pub fn interfaces(&self) -> &[String] {
        &self.node.interfaces
    }

    fn digest(&self) -> Digest {
        Digest::new(&self.settings, self.node.group, self.node.node_id)
    }

    fn question(&self) -> Request {
        Request::Agree { group: self.node.group, settings: self.digest() }
    }

    /// Makes both ends of the connections within this process read what the other one sent.
    fn exchange(&mut self, now: Time) {
        if let Some(server) = &mut self.own {
            server.serve(now);
            self.clients.0.iter_mut().for_each(|client| client.handle_socket(now));
        }
        // A hook-runner that refuses a run may have another configuration now.
        let is_refused = self.clients.0.iter_mut().any(HookClient::poll_refused);
        if let Some(agreement) = self.agreement.as_mut().filter(|_| is_refused) {
            agreement.ask_again(now);
        }
    }

    /// Where the output of a run goes, for people.
    fn output_of(&self, task: &Task) -> String {
        if logging::goes_to_journal() {
            format!("journalctl -t {}", journal::identifier(task))
        } else if self.own.is_some() {
            "the log of the daemon".to_owned()
        } else {
            "the log of the hook-runner".to_owned()
        }
    }

    /// Whether a hook run has anything to do. If another process runs the commands, only that
    /// process knows.
    const fn may_have_hook(&self) -> bool {
        self.own.is_none() || self.settings.command.is_some()
    }
}

fn tell_fence(outcome: HookOutcome) {
    if outcome == HookOutcome::Succeeded {
        log::warn!("the fence command succeeded: this node is cut off");
    } else {
        log::error!("THE FENCE COMMAND DID NOT SUCCEED: two nodes may hold the leader's resources");
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Runs and nodes for the tests of the modules below.

    use std::time::Duration;

    use super::group::KILL_GRACE;
    use super::protocol::RunRequest;
    use super::{Digest, HookNode, HookSettings, Task};
    use crate::core::hook::{HookEvent, HookRun, Reason};
    use crate::types::{Role, Term};

    pub(crate) fn node() -> HookNode {
        HookNode {
            node_id: "web1".parse().unwrap(),
            group: "blue".parse().unwrap(),
            interfaces: vec!["eth0".to_owned(), "bond0.7".to_owned()],
        }
    }

    pub(crate) fn settings(command: Option<&str>) -> HookSettings {
        HookSettings {
            command: command.map(str::to_owned),
            fence: None,
            check: None,
            check_leader: None,
            timeout: Duration::from_secs(30),
            check_timeout: Duration::from_secs(1),
        }
    }

    pub(crate) fn request(run: HookRun) -> RunRequest {
        let settings = Digest::new(&settings(None), node().group, node().node_id);
        RunRequest { task: Task::Hook(run), node: node(), settings, orphan_grace: KILL_GRACE }
    }

    pub(crate) fn elected(term: u64) -> HookRun {
        HookRun {
            event: HookEvent::Elected,
            reason: Reason::Election,
            role: Role::Leader,
            term: Term(term),
            leader: Some("web1".parse().unwrap()),
            leader_address: Some("10.0.0.11".parse().unwrap()),
            previous_leader: Some("web0".parse().unwrap()),
        }
    }

    pub(crate) fn demoted(term: u64) -> HookRun {
        HookRun {
            event: HookEvent::Demoted,
            reason: Reason::BetterLeader,
            role: Role::Follower,
            term: Term(term),
            leader: None,
            leader_address: None,
            previous_leader: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sys::signal::Signal;
    use nix::unistd::Pid;
    use tempfile::TempDir;

    use super::group::{KILL_GRACE, KILL_WAIT};
    use super::testing::{demoted, elected, node, settings};
    use super::*;
    use crate::control_api::RunTimes;
    use crate::core::hook::{HookEvent, Reason};
    use crate::types::Term;

    const NOW: Time = Time::from_millis(1_000);

    fn local(command: Option<&str>) -> (Hooks, TempDir) {
        let dir = TempDir::new().unwrap();
        let command = command.map(|text| text.replace("$DIR", dir.path().to_str().unwrap()));
        (Hooks::own(settings(command.as_deref()), dir.path().join("blue.hook"), node(), NOW), dir)
    }

    #[test]
    fn no_hook_runner_is_asked_for_a_fence_that_is_not_configured() {
        let dir = TempDir::new().unwrap();
        let poll = mio::Poll::new().unwrap();
        let tokens = Lanes([Token(1), Token(2), Token(3), Token(4)]);
        let path = dir.path().join("nobody-listens");
        let mut hooks =
            Hooks::remote(&path, settings(None), node(), poll.registry(), tokens, None).unwrap();
        hooks.start(Task::Fence { term: Term(7) }, KILL_GRACE, NOW);
        assert_eq!(hooks.poll_finished(Lane::Fence).unwrap().outcome, HookOutcome::NotRun);
    }

    #[expect(clippy::disallowed_methods, reason = "a test waits for what runs beside it")]
    fn wait(hooks: &mut Hooks, now: Time) -> HookFinished {
        for _ in 0..3000 {
            hooks.handle_child_signal(now);
            if let Some(finished) = hooks.poll_finished(Lane::Hook) {
                return finished;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the hook did not end");
    }

    /// What a hook writes into the file `pid`.
    #[expect(clippy::disallowed_methods, reason = "a test waits for what runs beside it")]
    fn pid_in(dir: &TempDir) -> String {
        for _ in 0..3000 {
            let text = std::fs::read_to_string(dir.path().join("pid")).unwrap_or_default();
            if let Some(pid) = text.strip_suffix('\n') {
                return pid.to_owned();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the hook did not begin");
    }

    #[test]
    fn the_report_follows_the_run() {
        let (mut hooks, _dir) = local(Some("exit 4"));
        assert_eq!(*hooks.report(), HookReport::default());

        hooks.start(Task::Hook(elected(7)), KILL_GRACE, NOW);
        let under_way = HookReport {
            running: true,
            last_event: Some(HookEvent::Elected),
            last_reason: Some(Reason::Election),
            last_term: Some(Term(7)),
            last_start_ms: hooks.report().last_start_ms,
            output: Some("the log of the daemon".to_owned()),
            ..HookReport::default()
        };
        assert!(under_way.last_start_ms.is_some());
        assert_eq!(*hooks.report(), under_way);

        wait(&mut hooks, NOW + Duration::from_millis(12));
        let ended =
            HookReport { running: false, last_exit: Some(4), last_ms: Some(12), ..under_way };
        let failure = hooks.report().last_elected_failure;
        assert_eq!(failure.map(|run| (run.exit, run.took_ms)), Some((Some(4), 12)));
        let mut took = RunTimes::new(HookEvent::Elected);
        took.note(12);
        let ended = HookReport {
            last_exit_event: Some(HookEvent::Elected),
            elected_failures: 1,
            last_elected_failure: failure,
            run_times: vec![took],
            ..ended
        };
        assert_eq!(*hooks.report(), ended);
        assert_eq!(hooks.poll_finished(Lane::Hook), None);
    }

    #[test]
    fn stop_after_a_reload_waits_for_a_run_that_keeps_the_longer_limit() {
        let (mut hooks, _dir) = local(Some("exit 0"));
        hooks.start(Task::Hook(elected(7)), KILL_GRACE, NOW);
        let before = hooks.longest_stop();
        let old = settings(Some("exit 0"));
        let new = HookSettings { timeout: old.timeout / 10, ..old.clone() };
        hooks.reconfigure(new.clone(), NOW);
        // Only `demoted`, which follows, has the shorter one.
        assert_eq!(hooks.longest_stop(), before - (old.timeout - new.timeout));
        wait(&mut hooks, NOW);
        assert_eq!(hooks.longest_stop(), new.longest_stop());
    }

    #[test]
    fn a_hook_that_a_killed_life_left_running_is_ended_before_the_next_one_starts() {
        let (mut killed, dir) = local(Some("echo $$ > $DIR/pid; exec sleep 100"));
        killed.start(Task::Hook(elected(7)), KILL_GRACE, NOW);
        let left = pid_in(&dir);
        drop(killed);
        let command = format!("! kill -0 {left}");
        let mut hooks =
            Hooks::own(settings(Some(&command)), dir.path().join("blue.hook"), node(), NOW);
        hooks.start(Task::Hook(elected(8)), KILL_GRACE, NOW);
        assert_eq!(hooks.poll_finished(Lane::Hook), None);
        assert_eq!(wait(&mut hooks, NOW).outcome, HookOutcome::Succeeded);
    }

    #[test]
    fn a_run_that_waits_for_what_a_killed_life_left_and_is_cut_short_is_not_begun() {
        let (mut killed, dir) = local(Some("trap '' TERM; echo $$ > $DIR/pid; sleep 100; sleep 1"));
        killed.start(Task::Hook(elected(7)), KILL_GRACE, NOW);
        pid_in(&dir);
        drop(killed);
        let mut hooks =
            Hooks::own(settings(Some("exit 0")), dir.path().join("blue.hook"), node(), NOW);
        hooks.start(Task::Hook(elected(8)), Duration::from_secs(2), NOW);
        hooks.cut_short(Lane::Hook, NOW, NOW);
        assert_eq!(hooks.poll_finished(Lane::Hook), Some(HookFinished::not_run(Duration::ZERO)));
        hooks.handle_timeout(NOW + Duration::from_secs(2));
        hooks.start(Task::Hook(elected(9)), KILL_GRACE, NOW);
        assert_eq!(wait(&mut hooks, NOW).outcome, HookOutcome::Succeeded);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test waits for what runs beside it")]
    fn a_hook_that_kill_does_not_end_is_lost_and_nothing_runs_beside_it() {
        let hook = "[ $LANELECT_EVENT = elected ] || exit 0; echo $$ > $DIR/pid; \
                    exec unshare -Urpf sleep 100";
        let (mut hooks, dir) = local(Some(hook));
        hooks.start(Task::Hook(elected(7)), KILL_GRACE, NOW);
        let Some(hold) = Hold::on_child_of(&pid_in(&dir)) else { return };
        let killed = NOW + Duration::from_secs(1);
        hooks.cut_short(Lane::Hook, killed, NOW);
        hooks.handle_timeout(killed);
        hooks.handle_timeout(killed + KILL_WAIT / 2);
        assert_eq!(hooks.poll_finished(Lane::Hook), None);
        let given_up = killed + KILL_WAIT;
        hooks.handle_timeout(given_up);
        let lost = hooks.poll_finished(Lane::Hook).unwrap();
        assert_eq!((lost.outcome, lost.forced), (HookOutcome::Lost, Some(Forced::CutShort)));

        for second in 1..20 {
            hooks.start(Task::Hook(demoted(7)), KILL_GRACE, given_up);
            let finished = wait(&mut hooks, given_up + Duration::from_secs(second));
            assert_eq!(finished.outcome, HookOutcome::NoTurn, "the daemon knows at once");
        }
        drop(hold);
        let later = given_up + Duration::from_secs(20);
        let runs = (0..3000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            hooks.start(Task::Hook(demoted(7)), KILL_GRACE, later);
            wait(&mut hooks, later).outcome == HookOutcome::Succeeded
        });
        assert!(runs);
    }

    /// Keeps the first process of a process namespace from ending, whatever signal it gets. It
    /// waits until each process of the namespace is reaped, and here one has a parent outside that
    /// never reaps it.
    struct Hold(std::process::Child);

    impl Hold {
        /// The namespace whose first process is the child of `pid`; none if the system forbids it
        /// here.
        #[expect(clippy::disallowed_methods, reason = "a test waits for what runs beside it")]
        fn on_child_of(pid: &str) -> Option<Self> {
            let allowed = Command::new("unshare").args(["-Urpf", "true"]).output();
            if !allowed.is_ok_and(|output| output.status.success()) {
                eprintln!("skipped: no process namespaces here");
                return None;
            }
            let children = |pid: &str| {
                for _ in 0..3000 {
                    let path = format!("/proc/{pid}/task/{pid}/children");
                    let listed = std::fs::read_to_string(path).unwrap_or_default();
                    if let Some(child) = listed.split_whitespace().next() {
                        return child.to_owned();
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                panic!("{pid} has no child");
            };
            let first = children(pid);
            // Until then it has not entered a namespace of its own.
            while !std::fs::read_to_string(format!("/proc/{first}/cmdline"))
                .unwrap()
                .starts_with("sleep")
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            let parent = Command::new("nsenter")
                .args(["-t", &first, "-U", "-p", "--preserve-credentials", "sleep", "100"])
                .spawn()
                .unwrap();
            children(&parent.id().to_string());
            let hold = Hold(parent);
            hold.signal(Signal::SIGSTOP);
            // Until it has stopped it may still wait for its child.
            let stat = format!("/proc/{}/stat", hold.0.id());
            while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
                std::thread::sleep(Duration::from_millis(10));
            }
            Some(hold)
        }

        fn signal(&self, signal: Signal) {
            nix::sys::signal::kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
        }
    }

    impl Drop for Hold {
        fn drop(&mut self) {
            self.signal(Signal::SIGCONT);
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn another_hook_lets_go_of_nothing_that_the_one_before_it_took_over() {
        let (mut hooks, dir) = local(Some("echo old $LANELECT_EVENT >> $DIR/runs"));
        let new = format!("echo new $LANELECT_EVENT >> {}/runs", dir.path().display());
        let run = |hooks: &mut Hooks, run| {
            hooks.start(Task::Hook(run), KILL_GRACE, NOW);
            assert_eq!(wait(hooks, NOW).outcome, HookOutcome::Succeeded);
        };
        run(&mut hooks, elected(7));
        hooks.reconfigure(settings(Some(&new)), NOW);
        let took_over = hooks.hook_that_took_over().cloned().flatten();
        assert!(took_over.is_some_and(|hook| hook.starts_with("echo old")));
        run(&mut hooks, demoted(7));
        run(&mut hooks, elected(8));
        run(&mut hooks, demoted(8));
        let runs = std::fs::read_to_string(dir.path().join("runs")).unwrap();
        assert_eq!(runs, "old elected\nold demoted\nnew elected\nnew demoted\n");
    }

    #[test]
    fn what_a_hook_took_over_it_lets_go_of_after_a_restart_of_what_runs_it_too() {
        let (mut hooks, dir) = local(Some("echo old $LANELECT_EVENT >> $DIR/runs"));
        hooks.start(Task::Hook(elected(7)), KILL_GRACE, NOW);
        assert_eq!(wait(&mut hooks, NOW).outcome, HookOutcome::Succeeded);
        drop(hooks);
        let new = format!("echo new $LANELECT_EVENT >> {}/runs", dir.path().display());
        let mut hooks = Hooks::own(settings(Some(&new)), dir.path().join("blue.hook"), node(), NOW);
        for run in [demoted(7), elected(8), demoted(8)] {
            hooks.start(Task::Hook(run), KILL_GRACE, NOW);
            assert_eq!(wait(&mut hooks, NOW).outcome, HookOutcome::Succeeded);
        }
        let runs = std::fs::read_to_string(dir.path().join("runs")).unwrap();
        assert_eq!(runs, "old elected\nold demoted\nnew elected\nnew demoted\n");
    }

    #[test]
    fn without_a_hook_a_run_succeeds_and_there_is_nothing_to_report() {
        let (mut hooks, _dir) = local(None);
        hooks.start(Task::Hook(elected(7)), KILL_GRACE, NOW);
        assert_eq!(hooks.poll_finished(Lane::Hook).unwrap().outcome, HookOutcome::Succeeded);
        assert_eq!(*hooks.report(), HookReport::default());
        assert_eq!(hooks.poll_timeout(), None);
    }

    #[test]
    fn without_a_fence_command_it_did_not_run() {
        let (mut hooks, _dir) = local(None);
        hooks.start(Task::Fence { term: Term(7) }, KILL_GRACE, NOW);
        assert_eq!(hooks.poll_finished(Lane::Fence), Some(HookFinished::not_run(Duration::ZERO)));
        assert_eq!((hooks.poll_finished(Lane::Fence), hooks.poll_timeout()), (None, None));
    }

    #[test]
    fn a_new_command_counts_from_the_next_run_on() {
        let (mut hooks, _dir) = local(Some("exit 4"));
        hooks.start(Task::Hook(elected(7)), KILL_GRACE, NOW);
        let timeout = Duration::from_secs(9);
        hooks.reconfigure(HookSettings { timeout, ..settings(Some("exit 5")) }, NOW);
        assert_eq!(hooks.poll_timeout(), Some(NOW + Duration::from_secs(30)));
        assert_eq!(wait(&mut hooks, NOW).exit, Some(4));
        hooks.start(Task::Hook(elected(8)), KILL_GRACE, NOW);
        assert_eq!(hooks.poll_timeout(), Some(NOW + Duration::from_secs(9)));
        assert_eq!(wait(&mut hooks, NOW).exit, Some(5));
    }
}
