//! Nobody is silent for longer than it has announced. Others report it gone for that, and a voter's
//! duplicate would not be noticed.
//!
//! A daemon that was held speaks when it goes on, or an interval later if it would declare a
//! leadership that is over. One whose disk is slow may wait for that. After a forgery in its own
//! name a daemon stops without a word, as if another one used its life.

use std::time::Duration;

use lanelect::core::Election;
use lanelect::wire::message::{Body, Message};

use crate::watch::{Violation, refuse};
use crate::world::{Clock, Host};

/// What each host has announced; none where nothing is expected of it.
#[derive(Debug)]
pub struct Silence {
    announced: Vec<Option<Announced>>,
}

#[derive(Debug, Clone, Copy)]
struct Announced {
    /// How long it may say nothing.
    interval: Duration,
    /// Until when it has to speak, in true time.
    due: u64,
}

impl Silence {
    /// Of so many hosts.
    pub fn of(hosts: usize) -> Self {
        Silence { announced: vec![None; hosts] }
    }

    /// A new life begins. It has announced nothing yet.
    pub fn note_start(&mut self, index: usize) {
        self.announced[index] = None;
    }

    /// A forgery is about to be handed in. One in the host's own name may silence it.
    pub fn note_forged(&mut self, index: usize, message: &Message, election: &Election) {
        if message.sender == election.node_id() {
            self.announced[index] = None;
        }
    }

    /// A datagram leaves. All but pings and pongs are signs of life, so the interval that was
    /// announced last begins anew: one whose disk hung may resign before it declares again. By
    /// unicast an acknowledgement reaches the leader alone: the others go on waiting.
    pub fn note_sent(&mut self, index: usize, now: u64, message: &Message, host: &Host) {
        let last = self.announced[index];
        let interval = match message.body {
            Body::Heartbeat { interval_us, .. } | Body::Declaration { interval_us, .. } => {
                Some(Duration::from_micros(interval_us.into()))
            }
            Body::Ping { .. } | Body::Pong { .. } => None,
            _ => last.map(|last| last.interval),
        };
        let Some(interval) = interval else { return };
        let due = host.clock.true_time(host.local(now) + interval);
        let is_for_one = host.params.unicast && message.body.addressee().is_some();
        self.announced[index] = Some(match last.filter(|_| is_for_one) {
            Some(last) => {
                Announced { interval: interval.min(last.interval), due: due.min(last.due) }
            }
            None => Announced { interval, due },
        });
    }

    /// Nobody is overdue.
    pub fn check(&self, now: u64, hosts: &[Host]) -> Result<(), Violation> {
        for (announced, host) in self.announced.iter().zip(hosts) {
            let is_over = announced.is_some_and(|it| it.due + Clock::GRAIN < now);
            refuse(is_over && host.is_up() && !host.disk.is_busy(), || {
                format!("silence: {} says nothing for longer than it has announced", host.node_id)
            })?;
        }
        Ok(())
    }
}
