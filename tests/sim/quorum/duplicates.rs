//! Two daemons under one voter's id.
//!
//! What is checked, in a network in which everybody hears everybody: wherever both have been heard
//! within one alive threshold, by the clock of the host that heard them, the id does not count
//! there. One that said farewell is not waited for, nor one that was not heard since the later one
//! began and has not spoken when it said it would. What comes late says nothing of who is there.

use std::collections::BTreeMap;
use std::time::Duration;

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
pub struct Duplicates {
    node_id: NodeId,
    heard: BTreeMap<(usize, Incarnation), Heard>,
}

/// What a host has heard of one life.
#[derive(Debug, Clone, Copy)]
struct Heard {
    newest: Sequence,
    /// When that came; none where it has said farewell.
    at: Option<Time>,
    /// How long it may be silent by its own account. Zero until it has given one here: what it
    /// announced before is not known.
    silence: Duration,
    /// Whether it was heard while a later one was there.
    overlaps: bool,
}

impl Duplicates {
    /// Watches `node_id` from now on.
    pub const fn of(node_id: NodeId) -> Self {
        Duplicates { node_id, heard: BTreeMap::new() }
    }

    /// A host takes a datagram in.
    pub fn note_delivery(&mut self, index: usize, local: Time, message: &Message) {
        if message.sender != self.node_id {
            return;
        }
        let ends = matches!(message.body, Body::Farewell);
        let later =
            (index, Incarnation(message.incarnation.0 + 1))..=(index, Incarnation(u64::MAX));
        let overlaps = self.heard.range(later).next().is_some();
        let unheard =
            Heard { newest: Sequence(0), at: Some(local), silence: Duration::ZERO, overlaps };
        let heard = self.heard.entry((index, message.incarnation)).or_insert(unheard);
        if let Body::Heartbeat { interval_us, .. } | Body::Declaration { interval_us, .. } =
            message.body
        {
            heard.silence = Duration::from_micros(interval_us.into()) * 5 / 4;
        }
        heard.overlaps |= overlaps;
        if message.sequence > heard.newest {
            heard.newest = message.sequence;
            heard.at = heard.at.and((!ends).then_some(local));
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
            let lately = lately.filter(|((_, life), heard)| {
                let patience =
                    if heard.overlaps { threshold } else { heard.silence.min(threshold) };
                Some(*life) != own && heard.at.is_some_and(|at| local.since(at) < patience)
            });
            let lives = lately.count() + usize::from(own.is_some());
            broken("duplicates", lives > 1 && self.counts(election, local), || {
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
