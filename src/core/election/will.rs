//! Keeping the last will up to date.

use super::{Election, State};
use crate::core::hook::{HookEvent, HookRun, Reason};
use crate::core::output::Output;
use crate::core::will::{Estate, Will};
use crate::time::Time;
use crate::types::{Role, Sequence};
use crate::wire::echo::Echoes;
use crate::wire::message::{Body, Flags, Message, Standing};

impl Election {
    /// What is to be done in this node's name if its daemon ends now; none where nothing is.
    pub fn will(&self) -> Option<Will> {
        let estate = self.estate()?;
        Some(Will {
            hook: estate.scripts_hold.then(|| self.last_demotion(&estate)),
            grace: estate.grace,
            grace_end: estate.grace_end,
            resignation: self.last_words(&estate),
        })
    }

    /// Asks for a new will to be kept where this node's has changed.
    pub(super) fn renew_will(&mut self) {
        let estate = self.estate();
        if estate != self.outbox.bequeathed {
            self.outbox.bequeathed = estate;
            self.outbox.push(Output::Bequeath);
        }
    }

    /// Chooses whom the will names. A leader looks as often as it declares.
    pub(super) fn choose_heir(&mut self, now: Time) {
        self.outbox.heir = self.choose_successor(now, None);
        self.renew_will();
    }

    fn estate(&self) -> Option<Estate> {
        let in_office = matches!(self.state, State::Leading | State::HandingOver { .. });
        let scripts_hold = self.hooks.schedule.hold();
        let heir = match self.state {
            State::HandingOver { successor: Some(successor), .. } => Some(successor),
            _ => self.outbox.heir.filter(|_| in_office),
        };
        let term = self.disk.written().term;
        let grace = self.quorum_params().map(|quorum| quorum.demote_grace);
        let grace_end = self.hooks.grace_end();
        (in_office || scripts_hold).then_some(Estate { term, scripts_hold, grace, grace_end, heir })
    }

    fn last_demotion(&self, estate: &Estate) -> HookRun {
        let leader = self.leader.filter(|leader| *leader != self.life.node_id);
        let led = self.leader == Some(self.life.node_id);
        HookRun {
            event: HookEvent::Demoted,
            reason: Reason::Crashed,
            role: Role::Follower,
            term: estate.term,
            leader,
            leader_address: leader.and_then(|id| Some(self.members.get(&id)?.address)),
            previous_leader: if led { self.leader } else { self.outbox.previous_leader },
        }
    }

    /// A dead node does not stand: the others do not wait for it.
    fn last_words(&self, estate: &Estate) -> Message {
        let standing = Standing {
            role: Role::Follower,
            flags: Flags::default().with(Flags::CANDIDATE, self.params.candidate),
            ..self.standing()
        };
        Message {
            sender: self.life.node_id,
            incarnation: self.life.incarnation,
            sequence: Sequence(u64::MAX),
            term: estate.term,
            standing,
            echoes: Echoes::NONE,
            body: Body::Resignation { successor: estate.heir },
        }
    }
}
