//! What must hold of whole daemons, as those around them see it: datagrams, hook runs, answers and
//! grants.

use std::collections::BTreeMap;

use crate::core::hook::{HookEvent, HookRun};
use crate::core::persist::{Ballot, PersistentState};
use crate::time::Time;
use crate::types::{DatagramId, Life, NodeId, Term};
use crate::wire::message::{Body, Message};

/// What is known of a host's hooks, over all lives of its daemon.
#[derive(Debug, Clone, Default)]
pub(super) struct HookHistory {
    pub(super) last: Option<HookEvent>,
    /// Whether the last run is known to have succeeded.
    pub(super) succeeded: bool,
    /// Whether no hook of this life of the daemon has begun.
    pub(super) is_new_life: bool,
    /// Whether the terms may begin anew with the next life, because the disk refused them.
    pub(super) has_lost_terms: bool,
    term: Term,
}

/// What was seen of a group.
#[derive(Debug, Default)]
pub(super) struct Guarantees {
    /// Whether there is never more than one leader.
    pub(super) quorum: bool,
    /// The highest term in which a node was seen to lead, and that node.
    leader: Option<(Term, NodeId)>,
    /// Until when commands were allowed to run, by whom, and in which term.
    grants: Vec<(NodeId, Term, Time)>,
    /// Who asked for votes, with what, and in which term. Other votes promise nothing.
    vote_requests: BTreeMap<(NodeId, DatagramId), Term>,
    pub(super) leaderships: u64,
    pub(super) observations: u64,
}

impl Guarantees {
    /// A node shows that it leads. In quorum mode nobody else does from now on in a lower term, and
    /// no command of anybody else runs.
    pub(super) fn note_leader(&mut self, now: Time, node_id: NodeId, term: Term, how: &str) {
        self.observations += 1;
        if let Some((latest, leader)) = self.leader.filter(|_| self.quorum) {
            let is_old = term < latest || (term == latest && node_id != leader);
            assert!(!is_old, "{node_id} {how} in term {term}, after {leader} led in term {latest}");
        }
        if self.leader.is_none_or(|(latest, _)| term > latest) {
            self.leader = Some((term, node_id));
            self.leaderships += 1;
        }
        let granted = self.grants.iter().find(|(holder, of, until)| {
            *holder != node_id && *of < term && *until > now && self.quorum
        });
        assert_eq!(granted, None, "{node_id} {how} in term {term} while a grant runs");
    }

    /// A command may run until then.
    pub(super) fn note_grant(&mut self, now: Time, node_id: NodeId, term: Term, until: Time) {
        self.note_leader(now, node_id, term, "lets a command run");
        self.grants.retain(|(holder, ..)| *holder != node_id);
        self.grants.push((node_id, term, until));
    }

    /// Until when a command of this node may run.
    pub(super) fn granted_until(&self, node_id: NodeId) -> Option<Time> {
        self.grants.iter().find(|(holder, ..)| *holder == node_id).map(|(.., until)| *until)
    }

    /// A node sends this with that state on its disk, if its disk works.
    pub(super) fn note_sent(
        &mut self,
        now: Time,
        message: &Message,
        disk: Option<&PersistentState>,
    ) {
        let (sender, term) = (message.sender, message.term);
        if matches!(message.body, Body::Declaration { .. }) {
            self.note_leader(now, sender, term, "declares");
        }
        let Some(disk) = disk else { return };
        assert!(term <= disk.term, "{sender} tells term {term}, and has {} on disk", disk.term);
        match message.body {
            Body::VoteRequest { .. } => {
                self.vote_requests.insert((sender, message.id()), term);
            }
            Body::Vote { candidate, request, granted: true } => {
                let Some(of) = self.vote_requests.get(&(candidate, request)) else { return };
                let candidate = Life { node_id: candidate, incarnation: request.incarnation };
                let told = Some(Ballot { term: *of, candidate });
                assert_eq!(disk.ballot, told, "{sender} gives a vote that is not on its disk");
            }
            Body::Heartbeat { leader: Some(leader), acknowledged: Some(of), .. } => {
                let pledged = disk.pledge.map(|pledge| (pledge.to.node_id, pledge.to.incarnation));
                assert_eq!(
                    pledged,
                    Some((leader, of.incarnation)),
                    "{sender} promises what is not on its disk"
                );
            }
            _ => {}
        }
    }

    /// A host's hook begins. Its runs alternate, and their terms only grow.
    pub(super) fn note_hook(node_id: NodeId, run: &HookRun, history: &mut HookHistory) {
        use HookEvent::{Demoted, Elected, Reaffirmed, Started};
        // One whose end the daemon did not learn is repeated.
        let fits = match run.event {
            Started => history.is_new_life || history.last == Some(Started),
            Elected => matches!(history.last, Some(Started | Demoted)),
            Reaffirmed => matches!(history.last, Some(Elected | Reaffirmed)),
            Demoted => matches!(history.last, Some(Elected | Reaffirmed | Demoted)),
        };
        assert!(fits, "{node_id} runs {} after {:?}", run.event, history.last);
        let begins_anew = run.event == Started && history.has_lost_terms;
        let grows = run.term >= history.term || begins_anew;
        assert!(grows, "{node_id} runs {run:?} after term {}", history.term);
        *history = HookHistory {
            last: Some(run.event),
            // `demoted` may have a term that is not on a slow disk yet, and a crash forgets that.
            term: if run.event == Demoted { history.term } else { run.term },
            succeeded: false,
            is_new_life: false,
            has_lost_terms: history.has_lost_terms,
        };
    }
}
