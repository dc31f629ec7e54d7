//! Members whose daemons are broken. They take part like any other, but what they tell of terms is
//! wrong.
//!
//! They tell nothing wrong in what asks for a promise, gives one or ends one: no majority protocol
//! bears a voter that lies there.

use lanelect::types::{Role, Term};
use lanelect::wire::message::{Body, Message, Standing};

use super::World;
use crate::watch::{Violation, Watch};

/// A broken member.
#[derive(Debug, Clone, Copy)]
pub struct Broken {
    /// Which host it is.
    pub host: usize,
    pub how: Lie,
    /// How many datagrams it has sent beyond those that its election asked for.
    extra: u64,
}

/// What it tells instead of what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// This term.
    Term(Term),
    /// A term above the highest one that anybody has told, in each datagram; and at once where
    /// somebody asks for votes or stands.
    Outbid,
    /// The same, and that it led in that term until it gave way.
    Concede,
}

impl Broken {
    pub const fn new(host: usize, how: Lie) -> Self {
        Broken { host, how, extra: 0 }
    }

    /// What becomes of `message`, where `highest` is the highest term that was told so far.
    fn alter(&self, message: &mut Message, highest: Term) {
        message.sequence.0 = message.sequence.0.saturating_add(self.extra);
        let promises = matches!(
            message.body,
            Body::Declaration { .. }
                | Body::Resignation { .. }
                | Body::Farewell
                | Body::VoteRequest { .. }
        );
        if promises {
            return;
        }
        message.term = match self.how {
            // A voter that tells less than it knows, when it is asked for that, breaks a promise.
            Lie::Term(term) => term.max(message.term),
            Lie::Outbid | Lie::Concede => highest.next(),
        };
        match &mut message.body {
            Body::Heartbeat { conceded, .. } if self.how == Lie::Concede => {
                *conceded = Some(message.term);
            }
            _ => {}
        }
    }
}

impl<W: Watch> World<W> {
    /// What a host puts on the wire where its election asks for `message`.
    pub(super) fn as_told(&mut self, index: usize, message: &Message) -> Message {
        let mut told = *message;
        if let Some(broken) = self.broken.iter().find(|broken| broken.host == index) {
            broken.alter(&mut told, self.highest_told);
        }
        self.highest_told = self.highest_told.max(told.highest_term());
        told
    }

    /// Whether a host's daemon is broken. It is spared its own datagrams: their numbers are not
    /// those that it knows of.
    pub(super) fn is_broken(&self, index: usize) -> bool {
        self.broken.iter().any(|broken| broken.host == index)
    }

    /// Whether a datagram is in the name of a host whose daemon is broken.
    pub(super) fn is_told_by_broken(&self, message: &Message) -> bool {
        self.broken.iter().any(|broken| self.hosts[broken.host].node_id == message.sender)
    }

    /// A host has sent `body`: those that outbid others do it now, where it asks for votes or
    /// stands; and those that concede do it after anything that another says.
    pub(super) fn provoke(&mut self, index: usize, body: &Body) -> Result<(), Violation> {
        let asks = matches!(body, Body::VoteRequest { .. } | Body::Proposal);
        if self.is_broken(index) {
            return Ok(());
        }
        for place in 0..self.broken.len() {
            let Broken { host, how, .. } = self.broken[place];
            let speaks = match how {
                Lie::Outbid => asks,
                Lie::Concede => true,
                Lie::Term(_) => false,
            };
            if let Some(beyond) = self.heartbeat_of(host).filter(|_| speaks) {
                self.broken[place].extra += 1;
                self.send(host, &beyond)?;
            }
        }
        Ok(())
    }

    /// A heartbeat with the number of what a host has sent last.
    fn heartbeat_of(&self, index: usize) -> Option<Message> {
        let host = &self.hosts[index];
        let last =
            host.last_sent.filter(|last| host.is_up() && last.incarnation == host.incarnation)?;
        let interval = host.params.heartbeat_interval * 2;
        let interval_us = u32::try_from(interval.as_micros()).unwrap_or(u32::MAX);
        let leader = host.election.as_ref()?.leader();
        let body = Body::Heartbeat { interval_us, leader, conceded: None, acknowledged: None };
        let standing = Standing { role: Role::Follower, ..last.standing };
        Some(Message { standing, body, ..last })
    }
}
