//! An attacker without the key, in a group whose hosts do not all require one.

use fastrand::Rng;
use lanelect::types::{Incarnation, Role, Sequence, Term};
use lanelect::wire::echo::Echoes;
use lanelect::wire::message::{Body, Message};

use super::World;
use crate::watch::{Violation, Watch};

/// Which bodies the attacker sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repertoire {
    /// Any.
    Everything,
    /// None that asks for a promise, gives one or ends one. Quorum mode bears no such lie, and
    /// without a key any host can tell it.
    NoPromises,
}

impl<W: Watch> World<W> {
    /// Forgeries in the names of hosts that have sent something, each heard by some of the others
    /// within `latest`; at times by the host itself.
    pub fn attack(&mut self, repertoire: Repertoire, latest: u64) -> Result<(), Violation> {
        for _ in 0..self.rng.usize(1..30) {
            let from = self.rng.usize(0..self.group);
            let Some(last) = self.hosts[from].last_sent else { continue };
            let forged = self.forged(&last, repertoire);
            self.log(from, || format!("is forged: {forged:?}"));
            for to in 0..self.group {
                let hears =
                    if to == from { self.rng.u8(0..20) == 0 } else { self.rng.u8(0..4) > 0 };
                if hears {
                    let delay = self.rng.u64(0..=latest);
                    self.forge(from, to, &forged, delay)?;
                }
            }
        }
        Ok(())
    }

    fn forged(&mut self, last: &Message, repertoire: Repertoire) -> Message {
        let echoes = if self.rng.bool() { last.echoes } else { Echoes::NONE };
        let rng = &mut self.rng;
        let mut forged = Message {
            incarnation: choose_life(rng, last.incarnation),
            sequence: choose_number(rng, last.sequence),
            term: choose_term(rng, last.term),
            echoes,
            ..*last
        };
        let roles = [Role::Starting, Role::Follower, Role::Candidate, Role::Leader];
        if rng.bool() {
            forged.standing.role = roles[rng.usize(0..roles.len())];
        }
        forged.body = choose_body(rng, last, repertoire);
        forged
    }
}

fn choose_life(rng: &mut Rng, life: Incarnation) -> Incarnation {
    Incarnation(match rng.u8(0..6) {
        0 => life.0.saturating_add(rng.u64(1..1000)),
        1 => u64::MAX,
        2 => rng.u64(0..=life.0),
        _ => life.0,
    })
}

fn choose_number(rng: &mut Rng, newest: Sequence) -> Sequence {
    Sequence(match rng.u8(0..4) {
        0 => u64::MAX,
        1 => rng.u64(..),
        _ => newest.0.saturating_add(rng.u64(1..100)),
    })
}

/// An absurd one, or one within reason. What raises a group above 2^32 shuts out nodes that know
/// only low terms, for ever, as the documentation says of whoever is believed.
fn choose_term(rng: &mut Rng, term: Term) -> Term {
    Term(match rng.u8(0..8) {
        0 => u64::MAX,
        1 => (1 << 32) + rng.u64((1 << 17)..(1 << 40)),
        2 => term.0.saturating_add(rng.u64(1..1 << 17)),
        _ => term.0,
    })
}

fn choose_body(rng: &mut Rng, last: &Message, repertoire: Repertoire) -> Body {
    let most = if repertoire == Repertoire::NoPromises { 5 } else { 11 };
    let intervals = [0, 1_000, 1_000_000, u32::MAX];
    let interval_us = intervals[rng.usize(0..intervals.len())];
    let leader = last.sender;
    match rng.u8(0..most) {
        0 => Body::Heartbeat {
            interval_us,
            leader: rng.bool().then_some(leader),
            conceded: None,
            acknowledged: None,
        },
        1 => Body::Probe { leader },
        2 => Body::ProbeReply { leader, newest: last.id() },
        3 => Body::Claim,
        4 => Body::Challenge,
        5 => Body::Heartbeat {
            interval_us,
            leader: rng.bool().then_some(leader),
            conceded: Some(choose_term(rng, last.term)),
            acknowledged: None,
        },
        6 => Body::Proposal,
        7 => Body::Resignation { successor: rng.bool().then_some(leader) },
        8 => Body::Farewell,
        9 => last.body,
        _ => Body::Declaration { interval_us, hold_us: 0 },
    }
}
