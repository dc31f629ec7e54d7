//! Who leads, and under which terms.

use std::collections::BTreeMap;

use lanelect::core::Election;
use lanelect::core::hook::{HookEvent, HookRun};
use lanelect::types::{Incarnation, NodeId, Term};
use lanelect::wire::message::Message;

use super::broken;
use crate::watch::Violation;
use crate::world::{Host, label};

/// Every leadership of a group.
#[derive(Debug, Default)]
pub struct Leaderships {
    /// Who has acted as the leader in a term.
    leaders: BTreeMap<Term, (NodeId, Incarnation)>,
    /// The highest term for which an `elected` was decided on, and the highest for which one began.
    decided: Term,
    begun: Term,
    /// `elected` hooks that began.
    pub elected: u64,
}

impl Leaderships {
    /// At every instant at most one daemon may act as the leader.
    ///
    /// This asks for more than anybody can see: of two daemons with a lease in force it lets
    /// neither be held.
    pub fn check_one(now: u64, hosts: &[Host]) -> Result<(), Violation> {
        let mut leaders = (0..hosts.len()).filter(|index| may_act(&hosts[*index], now));
        let (Some(one), Some(other)) = (leaders.next(), leaders.next()) else { return Ok(()) };
        let both_run = hosts[one].is_up() && hosts[other].is_up();
        let told = |index: usize| {
            let lease = hosts[index].election.as_ref().and_then(Election::lease_end);
            let left = lease.map(|end| end.since(hosts[index].local(now)));
            format!("{} (lease left: {left:?})", label(hosts, index))
        };
        broken("leadership", true, || {
            let what = if both_run { "lead" } else { "may lead, one of them held," };
            format!("{} and {} {what} at once", told(one), told(other))
        })
    }

    /// A leader declares itself under a lease, and in a term that is its alone.
    pub fn note_declaration(
        &mut self,
        index: usize,
        now: u64,
        message: &Message,
        hosts: &[Host],
    ) -> Result<(), Violation> {
        let id = message.sender;
        broken("leadership", !may_act(&hosts[index], now), || {
            format!("{id} declares itself without a lease")
        })?;
        self.note_leadership(message.term, (id, message.incarnation))
    }

    /// An `elected` was decided on. Their order is that of the terms; one that could not be started
    /// is decided on again.
    pub fn note_decided(&mut self, run: &HookRun, host: &Host) -> Result<(), Violation> {
        if run.event != HookEvent::Elected {
            return Ok(());
        }
        broken("terms", run.term < self.decided, || {
            format!("{} is elected in term {} after {}", host.node_id, run.term, self.decided)
        })?;
        self.decided = run.term;
        self.note_leadership(run.term, (host.node_id, host.incarnation))
    }

    /// An `elected` begins. Where nobody is held before it does, the order is the same.
    pub fn note_begun(
        &mut self,
        run: &HookRun,
        host: &Host,
        guarded: bool,
    ) -> Result<(), Violation> {
        if run.event != HookEvent::Elected {
            return Ok(());
        }
        self.elected += 1;
        broken("terms", guarded && run.term <= self.begun, || {
            format!("{}'s hook gets term {} after {}", host.node_id, run.term, self.begun)
        })?;
        self.begun = self.begun.max(run.term);
        Ok(())
    }

    fn note_leadership(&mut self, term: Term, who: (NodeId, Incarnation)) -> Result<(), Violation> {
        let first = *self.leaders.entry(term).or_insert(who);
        broken("terms", first != who, || {
            format!("{} leads in term {term}, in which {} led", who.0, first.0)
        })
    }
}

/// Whether a host's daemon may act as the leader now, held or not.
pub fn may_act(host: &Host, now: u64) -> bool {
    let Some(election) = &host.election else { return false };
    match election.lease_end() {
        Some(end) => host.local(now) < end,
        None => election.is_leader_at(host.local(now)),
    }
}
