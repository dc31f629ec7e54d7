//! Duplicate node ids: another daemon runs under the id of this node.
//!
//! The other daemon has its own life if two hosts were given one name. It has this very life if a
//! virtual machine was copied with its memory.

use std::net::IpAddr;
use std::time::Duration;

use super::Election;
use crate::core::output::{Event, StopCause};
use crate::core::params::patience_for;
use crate::time::Time;
use crate::types::{Incarnation, Role};
use crate::wire::message::{Body, Message};

/// The shortest time between two doubts, in multiples of a member's patience.
const DOUBT_PAUSE: u32 = 4;

/// What this node knows of other daemons with its id.
#[derive(Debug, Clone, Hash, Default)]
pub(super) struct Duplicates {
    /// When the last proven datagram of another daemon was received.
    heard: Option<Time>,
    /// An unproven datagram of another daemon, which may be replayed.
    doubt: Option<Doubt>,
    /// When this node last sent an objection, and to which life.
    objected: Option<(Time, Incarnation)>,
}

impl Duplicates {
    pub(super) const fn forget_doubt(&mut self) {
        self.doubt = None;
    }

    /// Whether another daemon may run that has not yet had the time to answer.
    pub(super) fn is_in_doubt(&self, now: Time) -> bool {
        self.doubt.is_some_and(|doubt| doubt.until.is_none_or(|until| now < until))
    }

    /// Another daemon may run under this node's id. The next doubt has to wait, because an attacker
    /// may replay one former life of this node after the other. A running daemon will answer.
    pub(super) fn begin_doubt(&mut self, now: Time, patience: Duration) {
        let pause = patience * DOUBT_PAUSE;
        if self.doubt.is_none_or(|last| last.since + pause <= now) {
            self.doubt = Some(Doubt { since: now, until: None });
        }
    }

    /// The other daemon was challenged: it has until then to answer.
    pub(super) fn limit_doubt(&mut self, until: Time) {
        if let Some(doubt) = &mut self.doubt {
            doubt.until.get_or_insert(until);
        }
    }
}

/// A datagram with this node's id may come from a running daemon, or may be replayed. Until that is
/// known, this node's own vote does not count.
#[derive(Debug, Clone, Copy, Hash)]
struct Doubt {
    since: Time,
    /// When its time to answer ends; none before the challenge.
    until: Option<Time>,
}

impl Election {
    /// Receives a datagram of this very life. Multicast loopback returns this node's own datagrams.
    /// If this node never used the sequence number, another daemon has a copy of its memory. The
    /// group cannot tell the two apart, so this daemon sends nothing more and stops. Its next start
    /// begins a new life.
    pub(super) fn receive_from_own_life(&mut self, now: Time, from: IpAddr, message: &Message) {
        if message.sequence > self.sent.newest {
            self.give_way(now, StopCause::LifeShared { with: from });
        }
    }

    /// Stops because of another daemon, even if this one stops already.
    fn give_way(&mut self, now: Time, cause: StopCause) {
        if !self.gives_way() {
            self.stop_because(now, cause);
            self.exclusions.stopping = Some(cause);
        }
    }

    /// Whether this daemon leaves its id, or its very life, to another one, for which all that it
    /// sent would count.
    pub(super) const fn gives_way(&self) -> bool {
        use StopCause::{LifeShared, NodeIdTaken};
        matches!(self.exclusions.stopping, Some(LifeShared { .. } | NodeIdTaken { .. }))
    }

    /// Receives a datagram of another daemon with this node's id. The one past its start-up stays;
    /// in the same state, the older life stays. The one that stays sends an objection that names
    /// the other's life. If both send one, the older life stays.
    pub(super) fn receive_from_duplicate(&mut self, now: Time, from: IpAddr, message: &Message) {
        self.duplicates.heard = Some(now);
        self.handle_challenge(now, message);
        if let Body::Objection { newcomer } = message.body {
            let began_first = self.life.incarnation < message.incarnation;
            let objected_to_it =
                self.duplicates.objected.is_some_and(|(_, life)| life == message.incarnation);
            if newcomer == self.life.incarnation && !(began_first && objected_to_it) {
                self.give_way(now, StopCause::NodeIdTaken { holder: from });
            }
            return;
        }
        let (starts, they_start) =
            (self.role() == Role::Starting, message.standing.role == Role::Starting);
        let here_first = match (starts, they_start) {
            (false, true) => true,
            (true, false) => false,
            _ => self.life.incarnation < message.incarnation,
        };
        if here_first {
            self.object(now, from, message);
        }
    }

    fn object(&mut self, now: Time, newcomer_address: IpAddr, message: &Message) {
        if !self.may_send() {
            return;
        }
        let gap = self.params.repetition_gap();
        if self.duplicates.objected.is_some_and(|(last, _)| now.since(last) < gap) {
            return;
        }
        self.duplicates.objected = Some((now, message.incarnation));
        self.notify(Event::DuplicateNodeId { newcomer: newcomer_address });
        self.replay.owe_echo(message);
        self.send(Body::Objection { newcomer: message.incarnation });
    }

    /// Whether another daemon may run under this node's id, so that its own vote does not count.
    pub(super) fn is_duplicated(&self, now: Time) -> bool {
        let interval = self.params.voter_report_interval(self.members.visible(now));
        let patience = self.params.member_patience().max(patience_for(interval));
        self.duplicates.heard.is_some_and(|heard| now.since(heard) <= patience)
            || self.duplicates.is_in_doubt(now)
    }
}
