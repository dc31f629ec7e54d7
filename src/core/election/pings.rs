//! Pings: an administrator asks which members hear this node. The election takes no notice.
//!
//! Whom this node hears, it knows from their datagrams. Who hears this node, they have to say.

use std::time::Duration;

use super::Election;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{DatagramId, NodeId};
use crate::wire::message::{Body, Message};

/// A ping that this node answers soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owed {
    asker: NodeId,
    ping: DatagramId,
}

impl Election {
    /// Asks every member whether it hears this node. Those that do have
    /// [`answered`](crate::core::status::MemberStatus::answered) in the status within the time that
    /// this returns. Sends at most one ping in a heartbeat interval.
    pub fn ping(&mut self, now: Time) -> Duration {
        self.act(now, |election| {
            let gap = election.params.heartbeat_interval;
            if election.sent.pinged.is_none_or(|last| now.since(last) >= gap) {
                election.sent.pinged = Some(now);
                election.send(Body::Ping);
            }
            election.pong_within(now)
        })
    }

    /// Answers later, so that a group does not answer all at once, and one ping at a time, so that
    /// pings cannot make this node send much. Whoever asks meanwhile asks again.
    pub(super) fn handle_ping(&mut self, now: Time, message: &Message) {
        if self.timers.get(Timer::Pong).is_none() {
            self.pong = Some(Owed { asker: message.sender, ping: message.id() });
            let most = self.pong_within(now);
            let wait = most / 2 + self.chance.up_to(most / 2);
            self.timers.set(Timer::Pong, now + wait);
        }
    }

    /// Within which time members answer: as seldom as they send heartbeats, so that a large group
    /// sends no more pongs than a small one.
    fn pong_within(&self, now: Time) -> Duration {
        self.params.report_interval(self.members.visible(now))
    }

    pub(super) fn answer_ping(&mut self) {
        if let Some(Owed { asker, ping }) = self.pong.take() {
            self.send(Body::Pong { asker, ping });
        }
    }

    /// The sender hears the node that asked, perhaps this one.
    pub(super) fn handle_pong(
        &mut self,
        now: Time,
        sender: NodeId,
        asker: NodeId,
        ping: DatagramId,
    ) {
        if asker == self.life.node_id && ping.incarnation == self.life.incarnation {
            self.members.note_pong(now, &sender);
        }
    }
}
