//! A node's crash plan: what `post-stop` must do in its name if its daemon dies.
//!
//! A killed daemon cannot run its demote hook or resign. So it stores the plan beforehand, and
//! updates it with each change.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Election, State};
use crate::core::hook::{HookEvent, HookRun, Reason};
use crate::core::output::Output;
use crate::time::Time;
use crate::types::{NodeId, Role, Sequence, Term};
use crate::wire::echo::Echoes;
use crate::wire::message::{Body, Flags, Message, Standing};

/// The steps after the daemon's death; the hook comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrashPlan {
    /// The demote hook; none if the hooks hold nothing.
    pub hook: Option<HookRun>,
    /// How long the hook may take before another node may lead, if it starts before the lease has
    /// expired. None in available mode, in which no node waits.
    pub grace: Option<Duration>,
    /// The end of the grace by the daemon's clock, if it has begun.
    pub grace_end: Option<Time>,
    /// The datagram to send once the hook has ended. Its sequence number is above all others of
    /// this life. None if this daemon gives way to another one, for which it would resign.
    pub resignation: Option<Message>,
}

/// The inputs of a crash plan; a change of them needs a new plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Basis {
    /// The term of the resignation.
    term: Term,
    /// The term of the hook run: of the leadership that the hooks hold. The next leader's term may
    /// be on disk already.
    held_term: Term,
    /// Whether the hooks have begun to take over and have not released everything since.
    hooks_hold: bool,
    /// How long the hook may take before another node may lead.
    grace: Option<Duration>,
    /// When that time is over, if it has begun.
    grace_end: Option<Time>,
    /// Whether there is a resignation.
    resigns: bool,
    /// The successor that the resignation names.
    planned_successor: Option<NodeId>,
}

impl Election {
    /// The plan for `post-stop` if the daemon dies now; none if there is nothing to do.
    pub fn crash_plan(&self) -> Option<CrashPlan> {
        let basis = self.crash_plan_basis()?;
        Some(CrashPlan {
            hook: basis.hooks_hold.then(|| self.last_demotion(&basis)),
            grace: basis.grace,
            grace_end: basis.grace_end,
            resignation: basis.resigns.then(|| self.last_words(&basis)),
        })
    }

    /// Requests an update of the stored crash plan if it has changed.
    pub(super) fn update_crash_plan(&mut self) {
        let basis = self.crash_plan_basis();
        if basis != self.outbox.crash_plan_basis {
            self.outbox.crash_plan_basis = basis;
            self.outbox.push(Output::UpdateCrashPlan);
        }
    }

    /// Chooses the successor that the crash plan names, with each declaration.
    pub(super) fn plan_successor(&mut self, now: Time) {
        self.outbox.planned_successor = self.choose_successor(now, None);
        self.update_crash_plan();
    }

    fn crash_plan_basis(&self) -> Option<Basis> {
        let in_office = self.state.is_in_office();
        let resigns = !self.gives_way();
        let hooks_hold = self.hooks.schedule.hold();
        let planned_successor = match self.state {
            State::HandingOver { successor: Some(successor), .. } => Some(successor),
            _ => self.outbox.planned_successor.filter(|_| in_office),
        };
        let term = self.disk.written().term;
        let held_term = self.hooks.fencing.term().unwrap_or(term);
        let grace = self.params.quorum.as_ref().map(|quorum| quorum.demote_grace);
        let grace_end = self.hooks.fencing.grace_end();
        (hooks_hold || in_office && resigns).then_some(Basis {
            term,
            held_term,
            hooks_hold,
            grace,
            grace_end,
            resigns,
            planned_successor,
        })
    }

    fn last_demotion(&self, basis: &Basis) -> HookRun {
        let leader = self.leader.filter(|leader| *leader != self.life.node_id);
        let led = self.leader == Some(self.life.node_id);
        HookRun {
            event: HookEvent::Demoted,
            reason: Reason::Crashed,
            role: Role::Follower,
            term: basis.held_term,
            leader,
            leader_address: leader.and_then(|id| Some(self.members.get(&id)?.address)),
            previous_leader: if led { self.leader } else { self.outbox.previous_leader },
        }
    }

    /// The message does not announce this node as eligible, so that no node waits for a dead one.
    fn last_words(&self, basis: &Basis) -> Message {
        let standing = Standing {
            role: Role::Follower,
            flags: Flags::default().with(Flags::CANDIDATE, self.params.candidate),
            ..self.standing()
        };
        Message {
            sender: self.life.node_id,
            incarnation: self.life.incarnation,
            sequence: Sequence(u64::MAX),
            term: basis.term,
            standing,
            echoes: Echoes::NONE,
            body: Body::Resignation { successor: basis.planned_successor },
        }
    }
}
