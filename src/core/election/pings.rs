//! Pings: which members hear this node, and how far away they are.
//!
//! Whom this node hears, it knows from their datagrams. Who hears this node, they have to say: an
//! administrator asks them all. With unicast, members may be far away. Then each node also pings
//! one member after the other, along with its heartbeats or declarations, to measure the way.
//!
//! The election takes no notice of pings and pongs: they are no sign of life, and the order in
//! which they arrive among other datagrams does not matter. So one that is sent together with a
//! declaration may overtake it. A recorded one changes nothing: each ping of a member is answered
//! once, and each pong counts once, for the last ping and for a limited time.

use std::time::Duration;

use super::Election;
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::{DatagramId, NodeId, Sequence};
use crate::wire::message::{Body, Message};

/// Most pings to this node alone that it answers in a heartbeat interval. The members of a group
/// send it about two.
const ANSWERS_PER_INTERVAL: u32 = 16;

/// The pings that this node sent, and the pongs that it owes.
#[derive(Debug, Clone, Copy, Hash, Default)]
pub(super) struct Pings {
    /// The last ping to all members, and when it was sent.
    all: Option<(Sequence, Time)>,
    /// Which member this node last pinged alone, and when.
    one: Option<(NodeId, Time)>,
    /// The ping to all that this node answers next.
    owed: Option<Owed>,
    /// How many pings to it alone this node has answered since that time.
    answers: Option<(Time, u32)>,
}

/// A ping that this node answers soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Owed {
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
            let is_due = election.pings.all.is_none_or(|(_, last)| now.since(last) >= gap);
            if is_due && election.may_send() {
                election.send(Body::Ping { node: None });
                election.pings.all = Some((election.sent.newest, now));
            }
            election.pong_within(now)
        })
    }

    /// With unicast: pings the next member, at most one in half a heartbeat interval. Each node
    /// begins after its own id, so that those that start together do not all ping the same one.
    pub(super) fn measure(&mut self, now: Time) {
        let gap = self.params.heartbeat_interval / 2;
        let is_due = self.pings.one.is_none_or(|(_, last)| now.since(last) >= gap);
        if !self.params.unicast || !is_due || !self.may_send() {
            return;
        }
        let last = self.pings.one.map_or(self.life.node_id, |(node, _)| node);
        let Some(node) = self.members.visible_after(now, last) else { return };
        self.pings.one = Some((node, now));
        self.send(Body::Ping { node: Some(node) });
        self.members.note_ping(now, &node, self.sent.newest);
    }

    /// Receives a ping or a pong. False if `message` is neither.
    pub(super) fn receive_ping_or_pong(&mut self, now: Time, message: &Message) -> bool {
        match message.body {
            Body::Ping { node } => self.handle_ping(now, message, node),
            Body::Pong { asker, ping } if ping.incarnation == self.life.incarnation => {
                self.handle_pong(now, message, asker, ping.sequence);
            }
            Body::Pong { .. } => {}
            _ => return false,
        }
        true
    }

    /// A ping to all is answered later, so that a group does not answer all at once, and one at a
    /// time, so that pings cannot make this node send much. A node that asks meanwhile has to
    /// repeat its ping.
    fn handle_ping(&mut self, now: Time, message: &Message, node: Option<NodeId>) {
        if !self.members.note_pinged_by(message) {
            return;
        }
        let owed = Owed { asker: message.sender, ping: message.id() };
        match node {
            Some(node) if node == self.life.node_id && self.may_answer_at_once(now) => {
                self.answer_ping(owed);
            }
            None if self.timers.get(Timer::Pong).is_none() => {
                self.pings.owed = Some(owed);
                let most = self.pong_within(now);
                let wait = most / 2 + self.chance.up_to(most / 2);
                self.timers.set(Timer::Pong, now + wait);
            }
            _ => {}
        }
    }

    /// Counts an answer, and returns whether it is one of few in this heartbeat interval.
    fn may_answer_at_once(&mut self, now: Time) -> bool {
        let interval = self.params.heartbeat_interval;
        let recent = self.pings.answers.filter(|(since, _)| now.since(*since) < interval);
        let (since, count) = recent.unwrap_or((now, 0));
        let is_one_of_few = count < ANSWERS_PER_INTERVAL;
        self.pings.answers = Some((since, count + u32::from(is_one_of_few)));
        is_one_of_few
    }

    /// Within which time members answer a ping to all: as seldom as they send heartbeats, so that a
    /// large group sends no more pongs than a small one.
    fn pong_within(&self, now: Time) -> Duration {
        self.params.report_interval(self.members.visible(now))
    }

    pub(super) fn answer_ping_to_all(&mut self) {
        if let Some(owed) = self.pings.owed.take() {
            self.answer_ping(owed);
        }
    }

    fn answer_ping(&mut self, Owed { asker, ping }: Owed) {
        self.send(Body::Pong { asker, ping });
    }

    /// The sender hears the node that asked, perhaps this one.
    fn handle_pong(&mut self, now: Time, message: &Message, asker: NodeId, ping: Sequence) {
        if asker != self.life.node_id {
            return;
        }
        let within = self.pong_within(now) * 2;
        let is_to_all = |(all, sent)| all == ping && now.since(sent) <= within;
        let answers_all = self.pings.all.is_some_and(is_to_all);
        self.members.note_pong(now, message.life(), ping, answers_all);
    }
}
