//! The status, and the transitions of a watch, as the control socket sends them.

use std::time::Duration;

use super::Daemon;
use crate::control_api::{
    Counters, DuplicateReport, HookReport, LeaderReport, Leadership, MemberReport, PledgeReport,
    QuorumReport, Readiness, Rejected, StatusReport, Transition, VoterReport,
};
use crate::core::output;
use crate::core::status::{QuorumStatus, VoterStanding, VoterStatus};
use crate::os::clock;
use crate::time::Time;
use crate::types::Role;
use crate::wire::auth::Keyring;

impl Daemon {
    /// The status, after the election has processed the current time. Creating it takes a while. If
    /// the lease that it shows expires meanwhile, it is created again.
    pub(super) fn status(&mut self) -> StatusReport {
        loop {
            self.let_time_pass();
            let status = self.status_at(clock::now());
            if status.role != Role::Leader || self.election.is_leader_at(clock::now()) {
                return status;
            }
        }
    }

    /// Whether this node leads now and its hook has taken over.
    pub(super) fn readiness(&self) -> Readiness {
        self.readiness_if(self.election.is_leader_at(clock::now()))
    }

    /// Whether the hook has taken over, if this node `leads`.
    pub(super) fn readiness_if(&self, leads: bool) -> Readiness {
        self.hooks.progress().readiness(leads, self.election.has_changeover_pending())
    }

    fn status_at(&self, now: Time) -> StatusReport {
        let (status, params) = (self.election.status(now), self.election.params());
        // The core knows only where others send from.
        let address_of = |node_id, heard_from| match node_id == status.node_id {
            true => self.transport.source_address(),
            false => heard_from,
        };
        let leader = status.leader.map(|leader| LeaderReport {
            node_id: leader.node_id,
            address: address_of(leader.node_id, leader.address),
            last_heard_ms: millis(leader.last_heard),
        });
        let members = status.members.into_iter().map(|member| MemberReport {
            node_id: member.node_id,
            address: address_of(member.node_id, member.address),
            role: member.role,
            priority: member.priority,
            tie_break: member.tie_break,
            candidate: member.candidate,
            eligible: member.eligible,
            state: member.state,
            last_heard_ms: millis(member.last_heard),
            answered_ms: member.answered.map(millis),
            round_trip_us: member.round_trip.map(micros),
            loss_percent: member.loss_percent,
        });
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            group: self.config.group,
            node_id: status.node_id,
            role: status.role,
            ready: self.readiness_if(status.role == Role::Leader) == Readiness::Ready,
            eligible: status.ineligible.is_empty(),
            ineligible_reason: status.ineligible.first().copied(),
            ineligible_reasons: status.ineligible,
            holdoff_ms: status.holdoff.map(millis),
            handing_over: status.handing_over,
            term: status.term,
            leader,
            previous_leader: status.previous_leader,
            mode: self.config.election.mode(),
            quorum: status.quorum.map(quorum),
            since_ms: millis(status.since),
            uptime_ms: millis(now.since(self.started_at)),
            members: members.collect(),
            multicast: self.config.multicast_group(),
            interfaces: self.transport.reports(),
            peers: self.transport.peer_reports(),
            round_trip_max_us: params.unicast.then(|| micros(params.round_trip_max())),
            hook: HookReport {
                pending: self.election.has_hook_pending(),
                overdue_term: self.election.overdue_term(),
                ..self.hooks.report().clone()
            },
            fence: self.hooks.progress().fence(),
            check: self.check_report(),
            check_leader: self.leader_check_report(),
            key_mode: self.config.election.key_mode,
            key_fingerprint: self.codec.keyring().map(Keyring::fingerprint),
            state_failure: self.writer.trouble(now),
            duplicate: self
                .duplicate
                .map(|(address, at)| DuplicateReport { address, last_ms: millis(now.since(at)) }),
            rejected_from: self.rejections.reports(now),
            config: self.config_report.clone(),
            counters: self.counters(),
        }
    }

    /// Who leads. A leader whose lease is over knows of no leader.
    pub(super) fn leadership(&self) -> Leadership {
        let election = &self.election;
        let leads = election.is_leader_at(clock::now());
        Leadership {
            node_id: election.node_id(),
            leads,
            term: election.term(),
            leader: election.leader().filter(|_| leads || !election.is_leader()),
        }
    }

    fn counters(&self) -> Counters {
        let ignored = self.election.ignored();
        Counters {
            datagrams_sent: self.transport.sent(),
            datagrams_received: self.received,
            datagrams_extended: self.extended,
            send_errors: self.transport.send_errors(),
            rejected: Rejected {
                replayed: ignored.stale,
                unproven: ignored.unproven,
                table_full: ignored.table_full,
                ..self.rejections.counts()
            },
            transitions: self.transitions,
            state_saves: self.writer.saves(),
            fences: self.fences,
        }
    }
}

/// A transition with the time of day.
pub(super) fn transition(transition: &output::Transition) -> Transition {
    Transition {
        time_ms: clock::wall_ms(),
        role: transition.role,
        previous_role: transition.previous_role,
        term: transition.term,
        leader: transition.leader,
        previous_leader: transition.previous_leader,
        reason: transition.reason,
    }
}

fn quorum(quorum: QuorumStatus) -> QuorumReport {
    let counts = |voter: &&VoterStatus| voter.standing == VoterStanding::Counts;
    let (counting, others): (Vec<_>, Vec<&VoterStatus>) = quorum.voters.iter().partition(counts);
    let not_counting =
        others.iter().map(|voter| VoterReport { node_id: voter.node_id, reason: voter.standing });
    QuorumReport {
        voters: quorum.voters.iter().map(|voter| voter.node_id).collect(),
        needed: quorum.needed,
        reachable: counting.len(),
        lease_ms: quorum.lease.map(millis),
        not_counting: not_counting.collect(),
        counting: counting.iter().map(|voter| voter.node_id).collect(),
        pledged_to: quorum
            .pledged
            .map(|(node_id, left)| PledgeReport { node_id, left_ms: millis(left) }),
        disagreeing: quorum.disagreeing,
    }
}

/// In whole milliseconds, rounded down.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// In whole microseconds, rounded down.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::NodeId;

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    /// Of three voters, `a` and `c` count.
    fn status() -> QuorumStatus {
        let standings = [VoterStanding::Counts, VoterStanding::Unenrolled, VoterStanding::Counts];
        let voters = ["a", "b", "c"].into_iter().zip(standings);
        QuorumStatus {
            voters: voters
                .map(|(name, standing)| VoterStatus { node_id: id(name), standing })
                .collect(),
            needed: 2,
            lease: Some(Duration::from_micros(812_999)),
            pledged: None,
            disagreeing: vec![id("x")],
        }
    }

    #[test]
    fn voters_are_told_apart_by_whether_they_count() {
        let report = quorum(status());
        assert_eq!(report.voters, ["a", "b", "c"].map(id));
        assert_eq!((report.needed, report.reachable), (2, 2));
        assert_eq!(report.counting, ["a", "c"].map(id));
        let unenrolled = VoterReport { node_id: id("b"), reason: VoterStanding::Unenrolled };
        assert_eq!(report.not_counting, [unenrolled]);
        assert_eq!(report.disagreeing, [id("x")]);
    }

    #[test]
    fn times_are_in_milliseconds_and_never_longer_than_they_are() {
        let leading = quorum(status());
        assert_eq!((leading.lease_ms, leading.pledged_to), (Some(812), None));
        let left = Duration::from_millis(3061);
        let pledged = Some((id("a"), left));
        let following = quorum(QuorumStatus { lease: None, pledged, ..status() });
        let pledge = PledgeReport { node_id: id("a"), left_ms: 3061 };
        assert_eq!((following.lease_ms, following.pledged_to), (None, Some(pledge)));
    }
}
