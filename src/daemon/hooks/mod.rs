//! Running the hook for the event loop, in one of two ways behind one face.
//!
//! ```text
//!             ┌─ process ───────────────  /bin/sh -c COMMAND        (the daemon's own child)
//! Hooks ──────┤
//!             └─ client ──── protocol ──  lanelect hook-runner ── process ── /bin/sh -c COMMAND
//! ```
//!
//! The core decides which run happens when, and asks for the next one only when it was told how the
//! last one ended. Here it is only carried out. The fence command goes the same way, beside the hook.

pub mod client;
pub mod group;
pub mod listener;
pub mod process;
pub mod protocol;
mod record;
pub mod run;

use std::io;

use mio::{Registry, Token};
use serde::{Deserialize, Serialize};

pub use self::client::HookClient;
pub use self::process::{HookProcess, HookSettings};
pub use self::run::{Forced, HookFinished};
use crate::config::Config;
use crate::control_api::HookReport;
use crate::core::hook::{HookOutcome, HookRun};
use crate::daemon::store;
use crate::time::Time;
use crate::types::{GroupName, NodeId, Term};

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

/// The hook as the event loop sees it, wherever it runs. Never blocks.
///
/// After each of `start`, `cut_short` and the `handle_*`, drain [`poll_finished`](Self::poll_finished) and ask
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

/// Under which tokens the connections to the hook-runner show up.
#[derive(Debug, Clone, Copy)]
pub struct Tokens {
    /// The hook's.
    pub hook: Token,
    /// The fence command's.
    pub fence: Token,
}

#[derive(Debug)]
enum Way {
    Local(Box<HookProcess>),
    Remote { hook: Box<HookClient>, fence: Box<HookClient> },
}

impl Hooks {
    /// Hooks that run where the configuration says.
    ///
    /// # Errors
    ///
    /// Where the event loop's registry cannot be shared.
    pub fn configured(
        config: &Config,
        node: HookNode,
        registry: &Registry,
        tokens: Tokens,
        now: Time,
    ) -> io::Result<Self> {
        let Some(path) = &config.hook_socket else {
            let record = store::path_in(&config.state_dir, config.group, "hook");
            let process = HookProcess::new(HookSettings::from(config), record, now);
            return Ok(Hooks::local(process, node));
        };
        let client = |token| -> io::Result<HookClient> {
            let registry = registry.try_clone()?;
            Ok(HookClient::new(path.clone(), config.hook_timeout, registry, token))
        };
        Ok(Hooks::remote(client(tokens.hook)?, client(tokens.fence)?, node))
    }

    /// Hooks that run as children of this process.
    pub fn local(process: HookProcess, node: HookNode) -> Self {
        Hooks::new(Way::Local(Box::new(process)), node)
    }

    /// Hooks that the hook-runner runs. The second connection is for the fence command, which waits for
    /// no hook.
    pub fn remote(hook: HookClient, fence: HookClient, node: HookNode) -> Self {
        Hooks::new(Way::Remote { hook: Box::new(hook), fence: Box::new(fence) }, node)
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
        match &mut self.way {
            Way::Local(process) => process.start(run, &self.node, now),
            Way::Remote { hook, .. } => hook.start(run, &self.node, now),
        }
        if self.is_configured() {
            self.report.running = true;
            self.report.last_event = Some(run.event);
            self.report.last_reason = Some(run.reason);
        }
    }

    /// Ends the hook that runs, by force where it does not end by `by`. Its end is told as any other.
    pub fn cut_short(&mut self, by: Time, now: Time) {
        match &mut self.way {
            Way::Local(process) => process.cut_short(by, now),
            Way::Remote { hook, .. } => hook.cut_short(by, now),
        }
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

    /// A SIGCHLD arrived.
    pub fn handle_child_signal(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(process) => process.handle_child_signal(now),
            Way::Remote { .. } => group::reap_strays(&[]),
        }
        self.note_fenced(now);
    }

    /// The hook's connection to the hook-runner is ready.
    pub fn handle_socket(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(_) => {}
            Way::Remote { hook, .. } => hook.handle_socket(now),
        }
    }

    /// Whether a fence command runs or waits to.
    pub const fn is_fencing(&self) -> bool {
        self.fencing.is_some()
    }

    /// The fence command's connection to the hook-runner is ready.
    pub fn handle_fence_socket(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(_) => {}
            Way::Remote { fence, .. } => fence.handle_socket(now),
        }
        self.note_fenced(now);
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(process) => process.handle_timeout(now),
            Way::Remote { hook, fence } => {
                hook.handle_timeout(now);
                fence.handle_timeout(now);
            }
        }
        self.note_fenced(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due; none while nothing runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        match &self.way {
            Way::Local(process) => process.poll_timeout(),
            Way::Remote { hook, fence } => {
                [hook.poll_timeout(), fence.poll_timeout()].into_iter().flatten().min()
            }
        }
    }

    /// How the run ended, once.
    pub fn poll_finished(&mut self) -> Option<HookFinished> {
        let finished = match &mut self.way {
            Way::Local(process) => process.poll_finished(),
            Way::Remote { hook, .. } => hook.poll_finished(),
        }?;
        if self.report.running {
            self.report.running = false;
            self.report.last_exit = finished.exit;
            self.report.last_ms = u64::try_from(finished.took.as_millis()).ok();
        }
        Some(finished)
    }

    /// Takes other commands and another time limit, from the next run on. The hook-runner's commands are
    /// in its own configuration: there only the time limit counts.
    pub fn reconfigure(&mut self, settings: HookSettings) {
        match &mut self.way {
            Way::Local(process) => process.reconfigure(settings),
            Way::Remote { hook, fence } => {
                hook.set_timeout(settings.timeout);
                fence.set_timeout(settings.timeout);
            }
        }
    }

    /// Takes other interfaces for the environment, from the next run on.
    pub fn set_interfaces(&mut self, interfaces: Vec<String>) {
        self.node.interfaces = interfaces;
    }

    /// Whether a run is more than a formality. What the hook-runner has to run only it knows.
    fn is_configured(&self) -> bool {
        match &self.way {
            Way::Local(process) => process.has_command(),
            Way::Remote { .. } => true,
        }
    }

    fn begin_fence(&mut self, term: Term, now: Time) {
        match &mut self.way {
            Way::Local(process) if !process.has_fence() => {
                return log::error!(
                    "NO FENCE IS CONFIGURED: nothing ends what the scripts of term {term} still hold"
                );
            }
            Way::Local(process) => process.fence(term, &self.node, now),
            Way::Remote { fence, .. } => fence.fence(term, &self.node, now),
        }
        log::error!("FENCING THIS NODE: the fence command runs for term {term}");
        self.fencing = Some(term);
        self.note_fenced(now);
    }

    /// Tells how the fence command ended, and runs the next one that waits.
    fn note_fenced(&mut self, now: Time) {
        let ended = match &mut self.way {
            Way::Local(process) => process.poll_fenced(),
            Way::Remote { fence, .. } => fence.poll_finished(),
        };
        let (Some(finished), Some(term)) = (ended, self.fencing) else { return };
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
        let command = command.map(str::to_owned);
        HookSettings { command, fence: None, timeout: Duration::from_secs(30) }
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
