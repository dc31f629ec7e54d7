//! Running hook, fence and check for the event loop, in one of two ways behind one face.
//!
//! ```text
//!             ┌─ process ───────────────  /bin/sh -c COMMAND        (the daemon's own child)
//! Hooks ──────┤
//!             └─ client ──── protocol ──  lanelect hook-runner ── process ── /bin/sh -c COMMAND
//! ```
//!
//! The core decides which run of the hook happens when, and asks for the next one only when it was told how
//! the last one ended. Here it is only carried out. Fence and check go the same way, each in a lane of its
//! own; [`schedule`] says when the check is due.

pub mod client;
pub mod group;
pub mod listener;
mod output;
pub mod process;
pub mod protocol;
mod record;
pub mod run;
pub mod schedule;
pub mod task;

use std::io;

use mio::{Registry, Token};
use serde::{Deserialize, Serialize};

pub use self::client::HookClient;
pub use self::process::{HookProcess, HookSettings};
pub use self::run::{Forced, HookFinished};
pub use self::task::{Lane, Lanes, Task};
use crate::config::Config;
use crate::control_api::HookReport;
use crate::core::hook::{HookOutcome, HookRun};
use crate::daemon::store;
use crate::time::Time;
use crate::types::{GroupName, NodeId, Role, Term};

/// The node that a hook runs on, as its environment names it.
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

/// The commands as the event loop sees them, wherever they run. Never blocks.
///
/// After each of `start`, `cut_short`, `start_check`, `end_check` and the `handle_*`, drain
/// [`poll_finished`](Self::poll_finished) and [`poll_checked`](Self::poll_checked), and ask
/// [`poll_timeout`](Self::poll_timeout) anew. Spurious calls are harmless.
#[derive(Debug)]
pub struct Hooks {
    node: HookNode,
    way: Way,
    report: HookReport,
    /// The reign that the running fence command is for.
    fencing: Option<Term>,
    /// A later one, which waits for it.
    fence_next: Option<Term>,
    fences: u64,
}

#[derive(Debug)]
enum Way {
    Local(Box<HookProcess>),
    /// A connection for each lane, so that none waits for another.
    Remote(Box<Lanes<HookClient>>),
}

impl Hooks {
    /// Commands that run where the configuration says. Connections to the hook-runner show up under
    /// `tokens`.
    ///
    /// # Errors
    ///
    /// Where the event loop's registry cannot be shared.
    pub fn configured(
        config: &Config,
        node: HookNode,
        registry: &Registry,
        tokens: Lanes<Token>,
        now: Time,
    ) -> io::Result<Self> {
        let settings = HookSettings::from(config);
        let Some(path) = &config.hook_socket else {
            let record = store::path_in(&config.state_dir, config.group, "hook");
            return Ok(Hooks::local(HookProcess::new(settings, record, now), node));
        };
        let clients = Lanes::try_new(|lane| {
            let registry = registry.try_clone()?;
            Ok(HookClient::new(path.clone(), settings.timeout(lane), registry, tokens[lane]))
        });
        clients.map(|clients| Hooks::remote(clients, node))
    }

    /// Commands that run as children of this process.
    pub fn local(process: HookProcess, node: HookNode) -> Self {
        Hooks::new(Way::Local(Box::new(process)), node)
    }

    /// Commands that the hook-runner runs.
    pub fn remote(clients: Lanes<HookClient>, node: HookNode) -> Self {
        Hooks::new(Way::Remote(Box::new(clients)), node)
    }

    fn new(way: Way, node: HookNode) -> Self {
        let report = HookReport::default();
        Hooks { node, way, report, fencing: None, fence_next: None, fences: 0 }
    }

    /// What `status` tells about the hook.
    pub const fn report(&self) -> &HookReport {
        &self.report
    }

    /// Starts `run`. Only to be called when [`poll_finished`](Self::poll_finished) gave the end of
    /// the run before.
    pub fn start(&mut self, run: &HookRun, now: Time) {
        self.way.start(&Task::Hook(*run), &self.node, now);
        if self.way.may_have_command(Lane::Hook) {
            self.report.running = true;
            self.report.last_event = Some(run.event);
            self.report.last_reason = Some(run.reason);
        }
    }

    /// Ends the hook that runs, by force where it does not end by `by`. Its end is told as any other.
    pub fn cut_short(&mut self, by: Time, now: Time) {
        self.way.cut_short(Lane::Hook, by, now);
    }

    /// Runs the fence command for the reign of `term`, beside the hook that still runs.
    pub fn fence(&mut self, term: Term, now: Time) {
        self.fences += 1;
        if self.fencing.is_some() {
            log::error!("the fence command runs for term {term} once the one before has ended");
            self.fence_next = Some(term);
        } else {
            self.begin_fence(term, now);
        }
    }

    /// How often the demote hook overran its grace.
    pub const fn fences(&self) -> u64 {
        self.fences
    }

    /// Whether a fence command runs or waits to.
    pub const fn is_fencing(&self) -> bool {
        self.fencing.is_some()
    }

    /// Starts the check of a node of this role. Only to be called when
    /// [`poll_checked`](Self::poll_checked) gave the end of the check before.
    pub fn start_check(&mut self, role: Role, term: Term, now: Time) {
        self.way.start(&Task::Check { role, term }, &self.node, now);
    }

    /// Ends the check that runs, by force where it does not end by `by`. Its end is told as any other.
    pub fn end_check(&mut self, by: Time, now: Time) {
        self.way.cut_short(Lane::Check, by, now);
    }

    /// Whether a check is under way.
    pub fn is_checking(&self) -> bool {
        self.way.is_running(Lane::Check)
    }

    /// A SIGCHLD arrived.
    pub fn handle_child_signal(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(process) => process.handle_child_signal(now),
            Way::Remote(_) => group::reap_strays(&[]),
        }
        self.note_fenced(now);
    }

    /// The connection of `lane` to the hook-runner is ready.
    pub fn handle_socket(&mut self, lane: Lane, now: Time) {
        if let Way::Remote(clients) = &mut self.way {
            clients[lane].handle_socket(now);
        }
        self.note_fenced(now);
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(process) => process.handle_timeout(now),
            Way::Remote(clients) => {
                clients.iter_mut().for_each(|client| client.handle_timeout(now));
            }
        }
        self.note_fenced(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due; none while nothing runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        match &self.way {
            Way::Local(process) => process.poll_timeout(),
            Way::Remote(clients) => clients.iter().filter_map(HookClient::poll_timeout).min(),
        }
    }

    /// How the run of the hook ended, once.
    pub fn poll_finished(&mut self) -> Option<HookFinished> {
        let finished = self.way.poll_finished(Lane::Hook)?;
        if self.report.running {
            self.report.running = false;
            self.report.last_exit = finished.exit;
            self.report.last_ms = u64::try_from(finished.took.as_millis()).ok();
        }
        Some(finished)
    }

    /// How the check ended, once.
    pub fn poll_checked(&mut self) -> Option<HookFinished> {
        self.way.poll_finished(Lane::Check)
    }

    /// Takes other commands and other time limits, from the next run on. The hook-runner's commands are
    /// in its own configuration: there only the time limits count.
    pub fn reconfigure(&mut self, settings: HookSettings) {
        match &mut self.way {
            Way::Local(process) => process.reconfigure(settings),
            Way::Remote(clients) => {
                for lane in Lane::ALL {
                    clients[lane].set_timeout(settings.timeout(lane));
                }
            }
        }
    }

    /// Takes other interfaces for the environment, from the next run on; returns whether they are.
    pub fn set_interfaces(&mut self, interfaces: Vec<String>) -> bool {
        let differ = self.node.interfaces != interfaces;
        self.node.interfaces = interfaces;
        differ
    }

    /// The interfaces that hooks are told of.
    pub fn interfaces(&self) -> &[String] {
        &self.node.interfaces
    }

    fn begin_fence(&mut self, term: Term, now: Time) {
        if !self.way.may_have_command(Lane::Fence) {
            return log::error!(
                "NO FENCE IS CONFIGURED: nothing ends what the scripts of term {term} still hold"
            );
        }
        log::error!("FENCING THIS NODE: the fence command runs for term {term}");
        self.way.start(&Task::Fence { term }, &self.node, now);
        self.fencing = Some(term);
        self.note_fenced(now);
    }

    /// Tells how the fence command ended, and runs the next one that waits.
    fn note_fenced(&mut self, now: Time) {
        let Some(term) = self.fencing else { return };
        let Some(finished) = self.way.poll_finished(Lane::Fence) else { return };
        self.fencing = None;
        match finished.outcome {
            HookOutcome::Succeeded => log::warn!("this node is fenced off after term {term}"),
            HookOutcome::Failed | HookOutcome::Lost | HookOutcome::NotRun => log::error!(
                "THE FENCE COMMAND FAILED: what the scripts of term {term} hold, another node may hold too"
            ),
        }
        if let Some(next) = self.fence_next.take() {
            self.begin_fence(next, now);
        }
    }
}

impl Way {
    fn start(&mut self, task: &Task, node: &HookNode, now: Time) {
        match self {
            Way::Local(process) => process.start(task, node, now),
            Way::Remote(clients) => clients[task.lane()].start(task, node, now),
        }
    }

    fn cut_short(&mut self, lane: Lane, by: Time, now: Time) {
        match self {
            Way::Local(process) => process.cut_short(lane, by, now),
            Way::Remote(clients) => clients[lane].cut_short(by, now),
        }
    }

    fn is_running(&self, lane: Lane) -> bool {
        match self {
            Way::Local(process) => process.is_running(lane),
            Way::Remote(clients) => clients[lane].is_running(),
        }
    }

    fn poll_finished(&mut self, lane: Lane) -> Option<HookFinished> {
        match self {
            Way::Local(process) => process.poll_finished(lane),
            Way::Remote(clients) => clients[lane].poll_finished(),
        }
    }

    /// Whether a run is more than a formality. What the hook-runner has to run only it knows.
    fn may_have_command(&self, lane: Lane) -> bool {
        match self {
            Way::Local(process) => process.has_command(lane),
            Way::Remote(_) => true,
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Runs and nodes for the tests of the modules below.

    use super::HookNode;
    use crate::core::hook::{HookEvent, HookRun, Reason};
    use crate::types::{Role, Term};

    pub(crate) fn node() -> HookNode {
        HookNode {
            node_id: "web1".parse().unwrap(),
            group: "blue".parse().unwrap(),
            interfaces: vec!["eth0".to_owned(), "bond0.7".to_owned()],
        }
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
    use std::time::Duration;

    use tempfile::TempDir;

    use super::testing::{elected, node};
    use super::*;
    use crate::core::hook::{HookEvent, HookOutcome, Reason};

    const NOW: Time = Time::from_millis(1_000);

    fn settings(command: Option<&str>) -> HookSettings {
        HookSettings {
            command: command.map(str::to_owned),
            fence: None,
            check: None,
            timeout: Duration::from_secs(30),
            check_timeout: Duration::from_secs(1),
        }
    }

    fn local(command: Option<&str>) -> (Hooks, TempDir) {
        let dir = TempDir::new().unwrap();
        let process = HookProcess::new(settings(command), dir.path().join("blue.hook"), NOW);
        (Hooks::local(process, node()), dir)
    }

    #[expect(clippy::disallowed_methods, reason = "a test waits for what runs beside it")]
    fn wait(hooks: &mut Hooks, now: Time) -> HookFinished {
        for _ in 0..3000 {
            hooks.handle_child_signal(now);
            if let Some(finished) = hooks.poll_finished() {
                return finished;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the hook did not end");
    }

    #[test]
    fn the_report_follows_the_run() {
        let (mut hooks, _dir) = local(Some("exit 4"));
        assert_eq!(*hooks.report(), HookReport::default());

        hooks.start(&elected(7), NOW);
        let under_way = HookReport {
            running: true,
            last_event: Some(HookEvent::Elected),
            last_reason: Some(Reason::Election),
            ..HookReport::default()
        };
        assert_eq!(*hooks.report(), under_way);

        wait(&mut hooks, NOW + Duration::from_millis(12));
        let ended =
            HookReport { running: false, last_exit: Some(4), last_ms: Some(12), ..under_way };
        assert_eq!(*hooks.report(), ended);
        assert_eq!(hooks.poll_finished(), None);
    }

    #[test]
    fn without_a_hook_a_run_succeeds_and_there_is_nothing_to_report() {
        let (mut hooks, _dir) = local(None);
        hooks.start(&elected(7), NOW);
        assert_eq!(hooks.poll_finished().unwrap().outcome, HookOutcome::Succeeded);
        assert_eq!(*hooks.report(), HookReport::default());
        assert_eq!(hooks.poll_timeout(), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test waits for what runs beside it")]
    fn a_fence_that_is_due_while_one_runs_follows_it() {
        let (mut hooks, dir) = local(None);
        let path = dir.path().display();
        let fence = format!(
            "echo $LANELECT_TERM >> {path}/fenced; while [ ! -e {path}/go ]; do sleep 0.05; done"
        );
        hooks.reconfigure(HookSettings { fence: Some(fence), ..settings(None) });
        let fenced = || std::fs::read_to_string(dir.path().join("fenced")).unwrap_or_default();
        for term in [7, 8, 9] {
            hooks.fence(Term(term), NOW);
        }
        assert_eq!(hooks.fences(), 3);
        std::fs::write(dir.path().join("go"), "").unwrap();
        for _ in 0..3000 {
            hooks.handle_child_signal(NOW);
            if hooks.fencing.is_none() {
                assert_eq!(fenced(), "7\n9\n", "the newest of those that waited");
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the fence did not end");
    }

    #[test]
    fn without_a_fence_command_an_overrun_is_counted_and_nothing_runs() {
        let (mut hooks, _dir) = local(None);
        hooks.fence(Term(7), NOW);
        hooks.fence(Term(8), NOW);
        assert_eq!((hooks.fences(), hooks.fencing), (2, None));
        assert_eq!(hooks.poll_timeout(), None);
    }

    #[test]
    fn a_new_command_counts_from_the_next_run_on() {
        let (mut hooks, _dir) = local(Some("exit 4"));
        hooks.start(&elected(7), NOW);
        let timeout = Duration::from_secs(9);
        hooks.reconfigure(HookSettings { timeout, ..settings(Some("exit 5")) });
        assert_eq!(hooks.poll_timeout(), Some(NOW + Duration::from_secs(30)));
        assert_eq!(wait(&mut hooks, NOW).exit, Some(4));
        hooks.start(&elected(8), NOW);
        assert_eq!(hooks.poll_timeout(), Some(NOW + Duration::from_secs(9)));
        assert_eq!(wait(&mut hooks, NOW).exit, Some(5));
    }
}
