//! The parts of a status and of a watch as the control socket sends them.

use std::net::IpAddr;
use std::time::Duration;

use crate::control_api::{
    LeaderReport, MemberReport, PledgeReport, QuorumReport, Transition, VoterReport,
};
use crate::core::output;
use crate::core::status::{LeaderStatus, MemberStatus, QuorumStatus, VoterStanding, VoterStatus};
use crate::os::clock;
use crate::types::NodeId;

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

/// This node and the address it sends from; the core knows only where others send from.
pub(super) type Own = (NodeId, Option<IpAddr>);

/// The leader as a status shows it.
pub(super) fn leader_report(leader: LeaderStatus, own: Own) -> LeaderReport {
    LeaderReport {
        node_id: leader.node_id,
        address: address(leader.node_id, leader.address, own),
        last_heard_ms: millis(leader.last_heard),
    }
}

/// A member as a status shows it.
pub(super) fn member_report(member: MemberStatus, own: Own) -> MemberReport {
    MemberReport {
        node_id: member.node_id,
        address: address(member.node_id, member.address, own),
        role: member.role,
        priority: member.priority,
        candidate: member.candidate,
        eligible: member.eligible,
        state: member.state,
        last_heard_ms: millis(member.last_heard),
    }
}

/// The voters as a status shows them.
pub(super) fn quorum_report(quorum: QuorumStatus) -> QuorumReport {
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

fn address(node_id: NodeId, address: Option<IpAddr>, own: Own) -> Option<IpAddr> {
    if node_id == own.0 { own.1 } else { address }
}

/// In whole milliseconds, rounded down.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    /// Of three voters, `a` and `c` count.
    fn quorum() -> QuorumStatus {
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
        let report = quorum_report(quorum());
        assert_eq!(report.voters, ["a", "b", "c"].map(id));
        assert_eq!((report.needed, report.reachable), (2, 2));
        assert_eq!(report.counting, ["a", "c"].map(id));
        let unenrolled = VoterReport { node_id: id("b"), reason: VoterStanding::Unenrolled };
        assert_eq!(report.not_counting, [unenrolled]);
        assert_eq!(report.disagreeing, [id("x")]);
    }

    #[test]
    fn times_are_in_milliseconds_and_never_longer_than_they_are() {
        let leading = quorum_report(quorum());
        assert_eq!((leading.lease_ms, leading.pledged_to), (Some(812), None));
        let left = Duration::from_millis(3061);
        let pledged = Some((id("a"), left));
        let following = quorum_report(QuorumStatus { lease: None, pledged, ..quorum() });
        let pledge = PledgeReport { node_id: id("a"), left_ms: 3061 };
        assert_eq!((following.lease_ms, following.pledged_to), (None, Some(pledge)));
    }
}
