//! The status as the control socket tells it.

use std::net::IpAddr;
use std::time::Duration;

use crate::control_api::{LeaderReport, MemberReport, StatusReport, Transition};
use crate::core::output;
use crate::core::status::{LeaderStatus, MemberStatus, Status};
use crate::daemon::clock;
use crate::types::NodeId;

/// What a status holds beyond what the core knows.
pub(super) struct Surroundings {
    pub(super) group: crate::types::GroupName,
    pub(super) own_address: Option<IpAddr>,
    pub(super) uptime: Duration,
    pub(super) interfaces: Vec<crate::control_api::InterfaceReport>,
    pub(super) hook: crate::control_api::HookReport,
    pub(super) counters: crate::control_api::Counters,
}

/// The whole status.
pub(super) fn status(status: Status, surroundings: Surroundings) -> StatusReport {
    let Surroundings { group, own_address, uptime, interfaces, hook, counters } = surroundings;
    let own = (status.node_id, own_address);
    StatusReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        group,
        node_id: status.node_id,
        role: status.role,
        eligible: status.ineligible.is_none(),
        ineligible_reason: status.ineligible,
        handing_over: status.handing_over,
        term: status.term,
        leader: status.leader.map(|leader| leader_report(leader, own)),
        mode: "available".to_owned(),
        quorum: None,
        since_ms: millis(status.since),
        uptime_ms: millis(uptime),
        members: status.members.into_iter().map(|member| member_report(member, own)).collect(),
        interfaces,
        hook,
        counters,
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

/// This node and the address it sends from; the core knows only where others send from.
type Own = (NodeId, Option<IpAddr>);

fn leader_report(leader: LeaderStatus, own: Own) -> LeaderReport {
    LeaderReport {
        node_id: leader.node_id,
        address: address(leader.node_id, leader.address, own),
        last_heard_ms: millis(leader.last_heard),
    }
}

fn member_report(member: MemberStatus, own: Own) -> MemberReport {
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

fn address(node_id: NodeId, address: Option<IpAddr>, own: Own) -> Option<IpAddr> {
    if node_id == own.0 { own.1 } else { address }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
