//! Nobody is silent for longer than it has announced. Others report it gone for that, and a voter's
//! duplicate would not be noticed.
//!
//! A daemon that was held speaks when it goes on. One whose disk is slow may wait for that. After a
//! forgery in its own name a daemon stops without a word, as if another one used its life.

use std::time::Duration;

use lanelect::core::Election;
use lanelect::wire::message::{Body, Message};

use crate::watch::{Violation, refuse};
use crate::world::{Clock, Host};

/// Until when each host has to speak, in true time; none where nothing is expected of it.
#[derive(Debug)]
pub struct Silence {
    due: Vec<Option<u64>>,
}

impl Silence {
    /// Of so many hosts.
    pub fn of(hosts: usize) -> Self {
        Silence { due: vec![None; hosts] }
    }

    /// A new life begins. It has announced nothing yet.
    pub fn note_start(&mut self, index: usize) {
        self.due[index] = None;
    }

    /// A forgery is about to be handed in. One in the host's own name may silence it.
    pub fn note_forged(&mut self, index: usize, message: &Message, election: &Election) {
        if message.sender == election.node_id() {
            self.due[index] = None;
        }
    }

    /// A datagram leaves. By unicast an acknowledgement reaches the leader alone: the others go on
    /// waiting.
    pub fn note_sent(&mut self, index: usize, now: u64, message: &Message, host: &Host) {
        let (Body::Heartbeat { interval_us, .. } | Body::Declaration { interval_us, .. }) =
            message.body
        else {
            return;
        };
        let interval = Duration::from_micros(interval_us.into());
        let due = host.clock.true_time(host.local(now) + interval);
        let is_for_one = host.params.unicast && message.body.addressee().is_some();
        let waited_for = self.due[index].filter(|_| is_for_one);
        self.due[index] = Some(waited_for.map_or(due, |other| other.min(due)));
    }

    /// Nobody is overdue.
    pub fn check(&self, now: u64, hosts: &[Host]) -> Result<(), Violation> {
        for (due, host) in self.due.iter().zip(hosts) {
            let is_over = due.is_some_and(|due| due + Clock::GRAIN < now);
            refuse(is_over && host.is_up() && !host.disk.is_busy(), || {
                format!("silence: {} says nothing for longer than it has announced", host.node_id)
            })?;
        }
        Ok(())
    }
}
