//! Running the hook for the event loop, in one of two ways behind one face.
//!
//! ```text
//!             ┌─ process ───────────────  /bin/sh -c COMMAND        (the daemon's own child)
//! Hooks ──────┤
//!             └─ client ──── protocol ──  lanelect hook-runner ── process ── /bin/sh -c COMMAND
//! ```
//!
//! The core decides which run happens when, and asks for the next one only when it was told how the
//! last one ended. Here it is only carried out.

pub mod client;
pub mod group;
pub mod listener;
pub mod process;
pub mod protocol;
mod record;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::client::HookClient;
pub use self::process::{HookFinished, HookProcess, HookSettings};
use crate::control_api::HookReport;
use crate::core::hook::HookRun;
use crate::time::Time;
use crate::types::{GroupName, NodeId};

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
/// After each of `start` and the `handle_*`, drain [`poll_finished`](Self::poll_finished) and ask
/// [`poll_timeout`](Self::poll_timeout) anew. Spurious calls are harmless.
#[derive(Debug)]
pub struct Hooks {
    node: HookNode,
    way: Way,
    report: HookReport,
}

#[derive(Debug)]
enum Way {
    Local(HookProcess),
    Remote(HookClient),
}

impl Hooks {
    /// Hooks that run as children of this process.
    pub fn local(process: HookProcess, node: HookNode) -> Self {
        Hooks { node, way: Way::Local(process), report: HookReport::default() }
    }

    /// Hooks that the hook-runner runs.
    pub fn remote(client: HookClient, node: HookNode) -> Self {
        Hooks { node, way: Way::Remote(client), report: HookReport::default() }
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
            Way::Remote(client) => client.start(run, &self.node, now),
        }
        if self.is_configured() {
            self.report.running = true;
            self.report.last_event = Some(run.event);
            self.report.last_reason = Some(run.reason);
        }
    }

    /// A SIGCHLD arrived.
    pub fn handle_child_signal(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(process) => process.handle_child_signal(now),
            Way::Remote(_) => group::reap_strays(&[]),
        }
    }

    /// The connection to the hook-runner is ready.
    pub fn handle_socket(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(_) => {}
            Way::Remote(client) => client.handle_socket(now),
        }
    }

    /// The time of [`poll_timeout`](Self::poll_timeout) came.
    pub fn handle_timeout(&mut self, now: Time) {
        match &mut self.way {
            Way::Local(process) => process.handle_timeout(now),
            Way::Remote(client) => client.handle_timeout(now),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is next due; none while nothing runs.
    pub fn poll_timeout(&self) -> Option<Time> {
        match &self.way {
            Way::Local(process) => process.poll_timeout(),
            Way::Remote(client) => client.poll_timeout(),
        }
    }

    /// How the run ended, once.
    pub fn poll_finished(&mut self) -> Option<HookFinished> {
        let finished = match &mut self.way {
            Way::Local(process) => process.poll_finished(),
            Way::Remote(client) => client.poll_finished(),
        }?;
        if self.report.running {
            self.report.running = false;
            self.report.last_exit = finished.exit;
            self.report.last_ms = u64::try_from(finished.took.as_millis()).ok();
        }
        Some(finished)
    }

    /// Takes another command and time limit, from the next run on. The hook-runner's command is in
    /// its own configuration: there only the time limit counts.
    pub fn reconfigure(&mut self, command: Option<String>, timeout: Duration) {
        match &mut self.way {
            Way::Local(process) => process.reconfigure(HookSettings { command, timeout }),
            Way::Remote(client) => client.set_timeout(timeout),
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
    use tempfile::TempDir;

    use super::testing::{elected, node};
    use super::*;
    use crate::core::hook::{HookEvent, HookOutcome, Reason};

    const NOW: Time = Time::from_millis(1_000);

    fn local(command: Option<&str>) -> (Hooks, TempDir) {
        let dir = TempDir::new().unwrap();
        let command = command.map(str::to_owned);
        let settings = HookSettings { command, timeout: Duration::from_secs(30) };
        let process = HookProcess::new(settings, dir.path().join("blue.hook"), NOW);
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
    fn a_new_command_counts_from_the_next_run_on() {
        let (mut hooks, _dir) = local(Some("exit 4"));
        hooks.start(&elected(7), NOW);
        hooks.reconfigure(Some("exit 5".to_owned()), Duration::from_secs(9));
        assert_eq!(hooks.poll_timeout(), Some(NOW + Duration::from_secs(30)));
        assert_eq!(wait(&mut hooks, NOW).exit, Some(4));
        hooks.start(&elected(8), NOW);
        assert_eq!(hooks.poll_timeout(), Some(NOW + Duration::from_secs(9)));
        assert_eq!(wait(&mut hooks, NOW).exit, Some(5));
    }
}
