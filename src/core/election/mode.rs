//! The differences between the two modes. The rest of the election is the same in both.
//!
//! | | available mode | quorum mode |
//! |---|---|---|
//! | why a node leads | no better candidate is visible | a majority of the voters voted for it |
//! | how long it leads | until it hears a better leader | until its lease expires |
//! | who may be elected | every candidate | a voter that may vote for itself |
//! | hooks of an old leader | may still hold | have released before the next leader's hooks run |
//!
//! Each function here has one arm for each mode. No other file of the election branches on it:
//! `available` serves the one, `quorum` the other. Some ask whether there are voters.

use std::net::IpAddr;
use std::time::Duration;

use super::{Election, State, at_least_a_millisecond};
use crate::core::hook::Reason;
use crate::core::params::{Mode, Params};
use crate::core::quorum::Lease;
use crate::core::rank::Rank;
use crate::time::Time;
use crate::types::{NodeId, Term};
use crate::wire::message::Message;

/// Standing for leadership.
impl Election {
    pub(super) fn open_candidacy(&mut self, now: Time) {
        match self.params.mode() {
            Mode::Available => self.collect_proposals(now),
            Mode::Quorum => self.stand_in_quorum(now),
        }
    }

    /// Proposes itself again, or asks the voters again.
    pub(super) fn repeat_proposal(&mut self, now: Time) {
        match self.params.mode() {
            Mode::Available => self.send_proposal(now),
            Mode::Quorum => self.repeat_question(now),
        }
    }

    /// The election time is over: no better candidate has proposed itself, or too few voters have
    /// granted.
    pub(super) fn end_election(&mut self, now: Time) {
        match self.params.mode() {
            Mode::Available => self.become_leader(now, Reason::Election),
            Mode::Quorum => self.lose_election(now),
        }
    }

    /// Settings change, so the voters' answers to this candidate were for the old times; or it
    /// withdraws. It asks no more, and releases the voters that have granted.
    pub(super) fn interrupt_election(&mut self, now: Time) {
        match self.params.mode() {
            Mode::Available => {}
            Mode::Quorum if self.state == State::Standing => self.lose_election(now),
            Mode::Quorum => {}
        }
    }

    /// Whether this candidate leaves the leadership to the better `candidate`.
    pub(super) fn makes_way_for(&mut self, candidate: NodeId) -> bool {
        match self.params.mode() {
            Mode::Available => true,
            Mode::Quorum => self.defers_once_to(candidate),
        }
    }

    /// The leader resigned and named this node.
    pub(super) fn succeed(&mut self, now: Time) {
        match self.params.mode() {
            Mode::Available => self.become_leader(now, Reason::Handover),
            Mode::Quorum => self.request_votes_as_successor(now),
        }
    }

    /// Whether the mode allows `node_id` to be elected.
    pub(super) fn may_be_elected(&self, node_id: &NodeId) -> bool {
        match self.params.mode() {
            Mode::Available => true,
            Mode::Quorum => self.params.has_vote(node_id),
        }
    }

    /// Whether this node may stand against a leader that it follows. While its hooks cannot take
    /// over, the leader serves better.
    pub(super) fn may_challenge_leader(&self, now: Time) -> bool {
        match self.params.mode() {
            Mode::Available => self.hooks.have_released(),
            Mode::Quorum => self.could_stand_after_leader(now),
        }
    }
}

/// Leading.
impl Election {
    /// Whether a leader may act, as of the last call with a time.
    pub(super) const fn may_act(&self) -> bool {
        match self.params.mode() {
            Mode::Available => true,
            Mode::Quorum => self.quorum.lease.is_some(),
        }
    }

    /// Whether a leader may act at `now`.
    pub(super) fn may_act_at(&self, now: Time) -> bool {
        match self.params.mode() {
            Mode::Available => true,
            Mode::Quorum => self.lease_end().is_some_and(|end| now < end),
        }
    }

    /// Until when this node leads for certain, unless it steps down before: in quorum mode until
    /// its lease ends, in available mode until other nodes may have given it up. None if it does
    /// not lead at `now`.
    pub fn leads_until(&self, now: Time) -> Option<Time> {
        let until = match self.params.mode() {
            Mode::Available => Some(now + self.params.leader_alive_threshold),
            Mode::Quorum => self.lease_end(),
        };
        until.filter(|_| self.is_leader_at(now))
    }

    /// Whether the mode allows the `elected` hook to run. Until a majority has acknowledged the
    /// leader, the pledges leave no time to undo what the hook does.
    pub(super) fn is_confirmed(&self) -> bool {
        match self.params.mode() {
            Mode::Available => true,
            Mode::Quorum => self.quorum.lease.as_ref().is_some_and(Lease::is_confirmed),
        }
    }

    /// How long after a declaration the next one comes. In quorum mode the leader repeats it
    /// sooner, as often as the lease allows, until enough voters acknowledge it.
    pub(super) fn declaration_interval(&self) -> Duration {
        let interval = at_least_a_millisecond(self.params.heartbeat_interval);
        match self.params.mode() {
            Mode::Available => interval,
            Mode::Quorum => {
                let window = self.params.lease_term().saturating_sub(interval);
                if window.is_zero() {
                    return interval;
                }
                at_least_a_millisecond(Params::probe_spacing(window)).min(interval)
            }
        }
    }

    /// Whether other nodes wait for this one's `demoted` hook before they lead.
    pub(super) const fn others_wait_for_hooks(&self) -> bool {
        matches!(self.params.mode(), Mode::Quorum)
    }

    /// Whether repeating a resignation can help. A voter that missed it keeps its pledge until that
    /// expires. In available mode a follower that missed it waits until its patience ends.
    pub(super) const fn resignation_may_help(&self) -> bool {
        match self.params.mode() {
            Mode::Available => self.leader.is_none(),
            Mode::Quorum => true,
        }
    }
}

/// Received datagrams, and the state on disk.
impl Election {
    /// Applies a new datagram of a member; `agrees` if it names the same voters.
    pub(super) fn take_in_by_mode(
        &mut self,
        now: Time,
        from: IpAddr,
        message: &Message,
        agrees: bool,
    ) {
        let rank = Rank::new(message.sender, &message.standing);
        match self.params.mode() {
            Mode::Available => self.take_in_available(now, from, rank, message),
            Mode::Quorum => self.take_in_for_quorum(now, rank, message, agrees),
        }
    }

    /// This node has lost its leader.
    pub(super) fn replace_leader(&mut self, now: Time) {
        match self.params.mode() {
            Mode::Available => self.follow_another_leader(now),
            Mode::Quorum => self.quorum.forget_declaration(),
        }
    }

    /// A leader has heard of `term`. In available mode it keeps that term for the time after its
    /// leadership.
    pub(super) fn note_term_while_leading(&mut self, term: Term) {
        match self.params.mode() {
            Mode::Available => self.conflicts.heard = self.conflicts.heard.max(term),
            Mode::Quorum => {}
        }
    }

    /// A node that starts knows `term`. Its former life may have led in it, unheard by this node.
    pub(super) fn learn_newcomers_term(&mut self, term: Term) {
        match self.params.mode() {
            Mode::Available => self.learn_term(term),
            Mode::Quorum => {}
        }
    }

    /// This node knows that a node has led in `term`. In available mode it makes sure that no
    /// leader stays below it. In quorum mode every next leader is above it.
    pub(super) fn note_led(&mut self, term: Term) {
        match self.params.mode() {
            Mode::Available => self.concede_at_least(term),
            Mode::Quorum => {}
        }
    }

    /// Does what waited for the disk.
    pub(super) fn go_on_persisted(&mut self, now: Time) {
        self.open_leadership(now);
        match self.params.mode() {
            Mode::Available => {
                self.go_on_reaffirming(now);
                self.resume_static_leadership(now);
            }
            Mode::Quorum => self.send_what_waited(now),
        }
    }
}
