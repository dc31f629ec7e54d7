//! The other members: when each was heard, and whose datagrams are dropped.

use super::finding::{Finding, ago};
use crate::control_api::{MemberReport, RejectedKind, RejectedReport, StatusReport};
use crate::core::status::MemberState;

const TOPIC: &str = "member";

/// A drop within this time counts as one that lasts: longer than between two heartbeats.
const RECENT_MS: u64 = 60_000;

/// Most members that have a line each; of further ones only those that are not alive.
const LISTED_MAX: usize = 32;

pub(super) fn judge(report: &StatusReport) -> Vec<Finding> {
    let others: Vec<_> =
        report.members.iter().filter(|member| member.node_id != report.node_id).collect();
    let is_listed = |(at, member): &(usize, &&MemberReport)| {
        *at < LISTED_MAX || member.state != MemberState::Alive
    };
    let listed = others.iter().enumerate().filter(is_listed);
    let mut findings: Vec<_> = listed.map(|(_, member)| state(member)).collect();
    if others.is_empty() {
        findings.push(alone(report));
    }
    findings.extend(tie_breaks(report));
    findings.extend(report.rejected_from.iter().filter_map(dropped));
    findings
}

fn state(member: &MemberReport) -> Finding {
    let address = member.address.map_or(String::new(), |address| format!(" ({address})"));
    let name = format!("{}{address}", member.node_id);
    let heard = ago(member.last_heard_ms);
    match member.state {
        MemberState::Alive => Finding::ok(TOPIC, format!("{name} was heard {heard}")),
        MemberState::Left => Finding::ok(TOPIC, format!("{name} stopped in order {heard}")),
        MemberState::Suspect => {
            Finding::warn(TOPIC, format!("{name} is late: it was last heard {heard}"))
        }
        MemberState::Gone => Finding::warn(TOPIC, format!("{name} failed: last heard {heard}"))
            .remedy("run `lanelect doctor` on that host"),
    }
}

fn alone(report: &StatusReport) -> Finding {
    let foreign = report.counters.rejected.foreign_group;
    if foreign > 0 {
        let text = format!(
            "no other member was heard, and {foreign} datagrams of other groups: this node is in \
             the group {}",
            report.group
        );
        return Finding::warn(TOPIC, text).remedy("set the same group on every node");
    }
    Finding::warn(TOPIC, "no other member was heard since the daemon started")
        .remedy("if there are others, look at the lines about the wire, and at their doctor")
}

/// Equal priorities are ordered the same on every node also then, but not as the operator meant.
fn tie_breaks(report: &StatusReport) -> Option<Finding> {
    let own = report.members.iter().find(|member| member.node_id == report.node_id)?;
    let other = report
        .members
        .iter()
        .find(|member| member.state.is_visible() && member.tie_break != own.tie_break)?;
    let text = format!(
        "{} has tie_break = \"{}\", and this node \"{}\": the nodes with \"lowest-id\" lead first",
        other.node_id, other.tie_break, own.tie_break
    );
    Some(Finding::warn("tie_break", text).remedy("set the same tie_break on every node"))
}

/// Datagrams that are dropped now. Old drops are over.
fn dropped(from: &RejectedReport) -> Option<Finding> {
    if from.last_ms > RECENT_MS {
        return None;
    }
    let RejectedReport { kind, address, why, count, last_ms, .. } = from;
    let sender = from.node_id.map_or(String::new(), |node_id| format!("{node_id} at "));
    let last = ago(*last_ms);
    let text = format!("datagrams from {sender}{address} ({count}, the last {last}): {why}");
    Some(match kind {
        RejectedKind::Malformed | RejectedKind::Source => Finding::warn("dropped", text),
        RejectedKind::Version
        | RejectedKind::Unsealed
        | RejectedKind::Sealed
        | RejectedKind::Forged
        | RejectedKind::Hops
        | RejectedKind::AbsurdTerm => Finding::fail("dropped", text),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;
    use crate::types::TieBreakRule;

    fn lines(change: impl FnOnce(&mut StatusReport)) -> Vec<String> {
        let mut report = follower();
        change(&mut report);
        judge(&report).iter().map(|finding| finding.line(0)).collect()
    }

    #[test]
    fn each_other_member_has_a_line() {
        assert_eq!(
            lines(|_| {}),
            [
                "ok       member  web0 (10.0.0.10) was heard 212 ms ago",
                "warn     member  web2 (10.0.0.12) is late: it was last heard 4 s ago",
            ]
        );
        let gone = lines(|report| report.members[2].state = MemberState::Gone);
        assert!(gone[1].starts_with("warn     member  web2 (10.0.0.12) failed"), "{gone:?}");
    }

    #[test]
    fn node_that_hears_no_other_is_told_where_to_look() {
        let alone = |report: &mut StatusReport| {
            report.members.retain(|member| member.node_id == report.node_id);
        };
        assert!(lines(alone)[0].contains("no other member was heard since"));
        let foreign = lines(|report| {
            alone(report);
            report.counters.rejected.foreign_group = 9;
        });
        assert!(foreign[0].ends_with("in the group default; set the same group on every node"));
    }

    #[test]
    fn member_with_another_tie_break_is_named() {
        let lines = lines(|report| report.members[2].tie_break = TieBreakRule::Spread);
        assert_eq!(
            lines.last().unwrap(),
            "warn     tie_break  web2 has tie_break = \"spread\", and this node \"lowest-id\": the \
             nodes with \"lowest-id\" lead first; set the same tie_break on every node"
        );
    }

    #[test]
    fn datagrams_that_are_dropped_now_are_a_fault() {
        let dropped = |kind, last_ms| RejectedReport {
            kind,
            address: "10.0.0.13".parse().unwrap(),
            node_id: "web3".parse().ok(),
            why: "they have no key".to_owned(),
            count: 12,
            last_ms,
        };
        let told = lines(|report| {
            report.rejected_from = vec![
                dropped(RejectedKind::Unsealed, 1_200),
                dropped(RejectedKind::Malformed, 0),
                dropped(RejectedKind::Forged, RECENT_MS + 1),
            ];
        });
        assert_eq!(told.len(), 4, "{told:#?}");
        assert_eq!(
            told[2],
            "fail     dropped  datagrams from web3 at 10.0.0.13 (12, the last 1 s ago): they have \
             no key"
        );
        assert!(told[3].starts_with("warn     dropped  datagrams from web3"));
    }
}
