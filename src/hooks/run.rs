//! What runs: the command, and the variables of its environment; and how a run ended.
//!
//! Each command has its own lane. A lane has one run at a time, and the lanes run beside each
//! other: a slow hook delays neither the fence command nor the check.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use log::Level;
use serde::{Deserialize, Serialize};

use super::HookNode;
use crate::core::hook::{HookOutcome, HookRun, Reason};
use crate::types::{Role, Term};

/// The variables of one run.
pub(super) type Environment = Vec<(&'static str, String)>;

/// The command of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The hook.
    Hook,
    /// The fence command.
    Fence,
    /// The health check.
    Check,
    /// The health check of a leader.
    CheckLeader,
}

/// One value for each lane, in the order of [`Lane::ALL`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Lanes<T>(pub [T; Lane::ALL.len()]);

/// One run of a command. Every part is a checked type: no part can name a command or a variable, or
/// contain a line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Task {
    /// Of the hook.
    Hook(HookRun),
    /// Of the fence command.
    Fence {
        /// The term of the leadership whose hooks have not released.
        term: Term,
    },
    /// Of the health check.
    Check {
        /// `LANELECT_ROLE`: `leader` or `follower`.
        role: Role,
        /// `LANELECT_TERM`.
        term: Term,
    },
    /// Of the leader's health check.
    CheckLeader {
        /// `LANELECT_TERM`.
        term: Term,
    },
}

impl Lane {
    /// Every lane.
    pub const ALL: [Lane; 4] = [Lane::Hook, Lane::Fence, Lane::Check, Lane::CheckLeader];

    /// The lanes of the health checks.
    pub const CHECKS: [Lane; 2] = [Lane::Check, Lane::CheckLeader];

    /// Whether this is a lane of a health check.
    pub const fn is_check(self) -> bool {
        matches!(self, Lane::Check | Lane::CheckLeader)
    }

    /// The log level for a line that would be logged at `level`. A check runs every second, and its
    /// failures repeat as often. Only changes are logged at the usual level, by the module that
    /// counts.
    pub(super) fn loudness(self, level: Level) -> Level {
        match self {
            Lane::Hook | Lane::Fence => level,
            Lane::Check | Lane::CheckLeader => level.max(Level::Debug),
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Lane::Hook => "hook",
            Lane::Fence => "fence",
            Lane::Check => "check",
            Lane::CheckLeader => "check_leader",
        })
    }
}

impl<T> Lanes<T> {
    /// Calls `make` for each lane.
    pub fn of(make: impl FnMut(Lane) -> T) -> Self {
        Lanes(Lane::ALL.map(make))
    }
}

impl<T: PartialEq> Lanes<T> {
    /// The lane of this value.
    pub fn lane_of(&self, value: &T) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| self[*lane] == *value)
    }
}

impl<T> Index<Lane> for Lanes<T> {
    type Output = T;

    fn index(&self, lane: Lane) -> &T {
        &self.0[lane as usize]
    }
}

impl<T> IndexMut<Lane> for Lanes<T> {
    fn index_mut(&mut self, lane: Lane) -> &mut T {
        &mut self.0[lane as usize]
    }
}

impl Task {
    /// The lane that it runs in.
    pub const fn lane(&self) -> Lane {
        match self {
            Task::Hook(_) => Lane::Hook,
            Task::Fence { .. } => Lane::Fence,
            Task::Check { .. } => Lane::Check,
            Task::CheckLeader { .. } => Lane::CheckLeader,
        }
    }

    /// Whether `post-stop` asks for it, which cleans up for a daemon that died.
    pub(super) const fn speaks_for_dead_daemon(&self) -> bool {
        matches!(self, Task::Hook(HookRun { reason: Reason::Crashed, .. }))
    }

    /// `LANELECT_TERM`.
    pub const fn term(&self) -> Term {
        match self {
            Task::Hook(run) => run.term,
            Task::Fence { term } | Task::Check { term, .. } | Task::CheckLeader { term } => *term,
        }
    }

    /// `LANELECT_EVENT`.
    pub(super) fn event(&self) -> String {
        match self {
            Task::Hook(run) => run.event.to_string(),
            Task::Fence { .. } | Task::Check { .. } | Task::CheckLeader { .. } => {
                self.lane().to_string()
            }
        }
    }

    /// The variables that describe the run on `node` to the command.
    pub(super) fn environment(&self, node: &HookNode) -> Environment {
        let mut variables = match self {
            Task::Hook(run) => vec![
                ("LANELECT_REASON", run.reason.to_string()),
                ("LANELECT_ROLE", run.role.to_string()),
                ("LANELECT_LEADER", or_empty(run.leader)),
                ("LANELECT_LEADER_ADDRESS", or_empty(run.leader_address)),
                ("LANELECT_PREVIOUS_LEADER", or_empty(run.previous_leader)),
            ],
            Task::Fence { .. } => vec![("LANELECT_REASON", "grace-overrun".to_owned())],
            Task::Check { role, .. } => vec![("LANELECT_ROLE", role.to_string())],
            Task::CheckLeader { .. } => vec![("LANELECT_ROLE", Role::Leader.to_string())],
        };
        variables.extend([
            ("LANELECT_EVENT", self.event()),
            ("LANELECT_TERM", self.term().to_string()),
            ("LANELECT_NODE_ID", node.node_id.to_string()),
            ("LANELECT_GROUP", node.group.to_string()),
            ("LANELECT_INTERFACE", node.interfaces.join(" ")),
        ]);
        variables
    }

    /// Logs a line: the name of the run, and `predicate`.
    pub(super) fn log(&self, level: Level, predicate: impl fmt::Display) {
        log::log!(self.lane().loudness(level), "{self} {predicate}");
    }
}

/// The name in the log.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Task::Hook(HookRun { event, reason, term, .. }) => {
                write!(f, "hook for {event} ({reason}, term {term})")
            }
            Task::Fence { term } => write!(f, "fence command for term {term}"),
            Task::Check { .. } | Task::CheckLeader { .. } => self.lane().fmt(f),
        }
    }
}

/// How one run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookFinished {
    /// What the core is told.
    pub outcome: HookOutcome,
    /// The shell's exit status, or 128 and the signal that ended it; none if the command did not
    /// start or its end is not known.
    pub exit: Option<i32>,
    /// From the start to the end.
    pub took: Duration,
    /// Why it was ended by force, if it was.
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
    /// A run that began, and may not have ended, given up after `took`.
    pub const fn lost(took: Duration) -> Self {
        HookFinished { outcome: HookOutcome::Lost, exit: None, took, forced: None }
    }

    /// A run that certainly did not begin, given up after `took`.
    pub const fn not_run(took: Duration) -> Self {
        HookFinished { outcome: HookOutcome::NotRun, exit: None, took, forced: None }
    }

    /// A run that certainly did not begin, given up after it waited for its turn for `took`.
    pub const fn no_turn(took: Duration) -> Self {
        HookFinished { outcome: HookOutcome::NoTurn, exit: None, took, forced: None }
    }

    /// Logs how the run of `task` ended.
    pub(super) fn log(&self, task: &Task) {
        let took = self.took.as_millis();
        let (level, predicate) = match self.outcome {
            HookOutcome::Succeeded => (Level::Info, format!("succeeded in {took} ms")),
            HookOutcome::NotRun | HookOutcome::NoTurn => {
                (Level::Warn, format!("did not run: it could not be started within {took} ms"))
            }
            HookOutcome::Lost => {
                (Level::Error, format!("has an unknown result after {took} ms: it may still run"))
            }
            HookOutcome::Failed => {
                let cause = match self.forced {
                    Some(Forced::Overran) => " because it exceeded its time limit",
                    Some(Forced::CutShort) => " because it was cut short",
                    None => "",
                };
                let exit = self.exit.map_or(String::new(), |exit| format!(": exit status {exit}"));
                (Level::Warn, format!("failed{cause}{exit} after {took} ms"))
            }
        };
        task.log(level, predicate);
    }
}

fn or_empty(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{demoted, node};
    use super::*;

    #[test]
    fn what_is_not_known_is_empty() {
        let empty: Vec<_> = Task::Hook(demoted(9))
            .environment(&node())
            .into_iter()
            .filter_map(|(name, value)| value.is_empty().then_some(name))
            .collect();
        let expected = ["LANELECT_LEADER", "LANELECT_LEADER_ADDRESS", "LANELECT_PREVIOUS_LEADER"];
        assert_eq!(empty, expected);
    }

    #[test]
    fn each_lane_has_its_own() {
        let mut lanes = Lanes::of(|lane| lane.to_string());
        for lane in Lane::ALL {
            assert_eq!(lanes[lane], lane.to_string());
            lanes[lane].push('!');
        }
        assert!(lanes.0.iter().eq(["hook!", "fence!", "check!", "check_leader!"]));
        assert_eq!(lanes.lane_of(&"fence!".to_owned()), Some(Lane::Fence));
        assert_eq!(lanes.lane_of(&"fence".to_owned()), None);
    }

    #[test]
    fn only_of_the_check_the_log_is_told_in_a_whisper() {
        for level in [Level::Error, Level::Info] {
            assert_eq!(Lane::Hook.loudness(level), level);
            Lane::CHECKS.iter().for_each(|lane| assert_eq!(lane.loudness(level), Level::Debug));
        }
        assert_eq!(Lane::Check.loudness(Level::Trace), Level::Trace);
    }
}
