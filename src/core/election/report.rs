//! The status of an election.

use std::time::Duration;

use super::{Election, State};
use crate::core::member::Member;
use crate::core::status::{
    Headline, Ineligible, LeaderStatus, MemberState, MemberStatus, QuorumStatus, Status,
    VoterStanding, VoterStatus,
};
use crate::core::timers::Timer;
use crate::time::Time;
use crate::types::NodeId;

impl Election {
    /// The role, the term and the leader at `now`.
    pub fn headline(&self, now: Time) -> Headline {
        Headline {
            role: self.role(),
            term: self.terms.known,
            leader: self.leader.map(|leader| self.leader_status(now, leader)),
        }
    }

    /// A snapshot of the status at `now`.
    pub fn status(&self, now: Time) -> Status {
        let Headline { role, term, leader } = self.headline(now);
        Status {
            node_id: self.life.node_id,
            role,
            ineligible: self.ineligible_reasons(now),
            health: self.health(),
            leader_health: self.leader_health(),
            term,
            leader,
            previous_leader: self.outbox.previous_leader,
            holdoff: self.timers.get(Timer::HoldoffEnd).map(|end| end.since(now)),
            since: now.since(self.outbox.since),
            handing_over: match self.state {
                State::HandingOver { reason, .. } => Some(reason),
                _ => None,
            },
            members: self.member_statuses(now),
            quorum: self.quorum_status(now),
        }
    }

    /// The first reason why this node is not eligible now; none if it is.
    pub fn ineligible(&self, now: Time) -> Option<Ineligible> {
        self.exclusions_at(now).next()
    }

    /// All of them, each once.
    fn ineligible_reasons(&self, now: Time) -> Vec<Ineligible> {
        let mut reasons: Vec<_> = self.exclusions_at(now).collect();
        // Both health checks may have failed.
        reasons.dedup();
        reasons
    }

    fn exclusions_at(&self, now: Time) -> impl Iterator<Item = Ineligible> {
        let short = self.missing_candidates(now).map(|_| Ineligible::TooFewCandidates);
        self.exclusions.reasons().chain(short)
    }

    fn quorum_status(&self, now: Time) -> Option<QuorumStatus> {
        let params = self.params.quorum.as_ref()?;
        let digest = params.voters.digest();
        let standing = |id: &NodeId| match *id == self.life.node_id {
            true => self.own_voter_standing(now),
            false => self.members.voter_standing(now, id, digest),
        };
        let voters = params.voters.ids().iter();
        let pledge = self.quorum.voter.pledge().filter(|_| !self.is_leader());
        let pledged =
            pledge.filter(|pledge| pledge.to.node_id != self.life.node_id).and_then(|pledge| {
                let until = self.quorum.voter.bound_until(now, self.life)?;
                Some((pledge.to.node_id, until.since(now)))
            });
        let disagrees = |member: &Member| member.standing.voters != Some(digest);
        Some(QuorumStatus {
            voters: voters.map(|id| VoterStatus { node_id: *id, standing: standing(id) }).collect(),
            needed: params.voters.needed(),
            lease: self.lease_end().map(|end| end.since(now)),
            pledged,
            disagreeing: self
                .members
                .iter(now)
                .filter(|(_, member, state)| state.is_visible() && disagrees(member))
                .map(|(id, ..)| *id)
                .collect(),
        })
    }

    fn own_voter_standing(&self, now: Time) -> VoterStanding {
        if !self.disk.is_enrolled() {
            VoterStanding::Unenrolled
        } else if self.is_duplicated(now) {
            VoterStanding::DuplicateNodeId
        } else {
            VoterStanding::Counts
        }
    }

    fn leader_status(&self, now: Time, node_id: NodeId) -> LeaderStatus {
        let member = self.members.get(&node_id);
        let declared = member.and_then(|member| member.last_declared);
        LeaderStatus {
            node_id,
            address: member.map(|member| member.address),
            last_heard: declared.map_or(Duration::ZERO, |declared| now.since(declared)),
        }
    }

    fn member_statuses(&self, now: Time) -> Vec<MemberStatus> {
        let others = self
            .members
            .iter(now)
            .map(|(id, member, state)| member_status(now, *id, member, state));
        let mut members: Vec<_> = others.chain([self.own_status()]).collect();
        members.sort_unstable_by_key(|member| member.node_id);
        members
    }

    fn own_status(&self) -> MemberStatus {
        MemberStatus {
            node_id: self.life.node_id,
            address: None,
            role: self.role(),
            priority: self.params.priority,
            tie_break: self.params.tie_break.rule(),
            candidate: self.params.candidate,
            eligible: self.is_eligible(),
            state: MemberState::Alive,
            last_heard: Duration::ZERO,
            answered: None,
            round_trip: None,
            loss_percent: None,
        }
    }
}

fn member_status(now: Time, node_id: NodeId, member: &Member, state: MemberState) -> MemberStatus {
    MemberStatus {
        node_id,
        address: Some(member.address),
        role: member.standing.role,
        priority: member.standing.priority,
        tie_break: member.standing.tie_break.rule(),
        candidate: member.is_candidate(),
        eligible: member.is_eligible(),
        state,
        last_heard: now.since(member.last_heard),
        answered: member.answered().map(|at| now.since(at)),
        round_trip: member.round_trip.mean(),
        loss_percent: member.round_trip.loss_percent(),
    }
}
