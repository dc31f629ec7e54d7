//! Two daemons under one voter's id.
//!
//! What is checked, in a network in which everybody hears everybody: wherever both have been heard
//! within one alive threshold, by the clock of the host that heard them, the id does not count
//! there. One that said farewell is not waited for, and what comes late says nothing of who is there.

use std::collections::BTreeMap;

use lanelect::core::Election;
use lanelect::core::status::VoterStanding;
use lanelect::time::Time;
use lanelect::types::{Incarnation, NodeId, Sequence};
use lanelect::wire::message::{Body, Message};

use super::broken;
use crate::watch::Violation;
use crate::world::Host;

/// The id that is watched, and which of its lives were heard where.
#[derive(Debug)]
pub struct Clones {
    node_id: NodeId,
    /// The newest number, and when it came; none where it has said farewell.
    heard: BTreeMap<(usize, Incarnation), (Sequence, Option<Time>)>,
}

impl Clones {
    /// Watches `node_id` from now on.
    pub const fn of(node_id: NodeId) -> Self {
        Clones { node_id, heard: BTreeMap::new() }
    }

    /// A host takes a datagram in.
    pub fn note_delivery(&mut self, index: usize, local: Time, message: &Message) {
        if message.sender != self.node_id {
            return;
        }
        let ends = matches!(message.body, Body::Farewell { .. });
        let heard = self.heard.entry((index, message.incarnation));
        let heard = heard.or_insert((Sequence(0), Some(local)));
        if message.sequence > heard.0 {
            *heard = (message.sequence, heard.1.and((!ends).then_some(local)));
        }
    }

    /// Nobody counts the id while it has heard both.
    pub fn check(&self, now: u64, hosts: &[Host]) -> Result<(), Violation> {
        for (index, host) in hosts.iter().enumerate() {
            let Some(election) = host.election.as_ref().filter(|_| host.is_up()) else { continue };
            let local = host.local(now);
            let threshold = election.params().leader_alive_threshold;
            let own = (host.node_id == self.node_id).then_some(host.incarnation);
            let lately = self.heard.range((index, Incarnation(0))..=(index, Incarnation(u64::MAX)));
            let lately = lately.filter(|((_, life), (_, at))| {
                Some(*life) != own && at.is_some_and(|at| local.since(at) < threshold)
            });
            let lives = lately.count() + usize::from(own.is_some());
            broken("clones", lives > 1 && self.counts(election, local), || {
                format!("{} counts {}, under which it hears {lives}", host.node_id, self.node_id)
            })?;
        }
        Ok(())
    }

    fn counts(&self, election: &Election, local: Time) -> bool {
        let quorum = election.status(local).quorum;
        quorum.is_some_and(|quorum| {
            let it = quorum.voters.iter().find(|voter| voter.node_id == self.node_id);
            it.is_some_and(|voter| voter.standing == VoterStanding::Counts)
        })
    }
}
