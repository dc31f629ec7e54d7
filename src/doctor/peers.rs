//! The hosts that are sent to by unicast: whether the daemon hears them, and how far away they are.

use super::finding::Finding;
use crate::control_api::{MemberReport, PeerReport, StatusReport, milliseconds};

const TOPIC: &str = "peer";

/// So many lost datagrams in a hundred are worth a look: of seven probes of a leader, one is lost
/// about every other time.
const LOSS_PERCENT: u8 = 10;

pub(super) fn judge(report: &StatusReport) -> Vec<Finding> {
    if report.peers.is_empty() {
        return Vec::new();
    }
    let others = report.peers.iter().filter(|peer| !peer.is_self || peer.problem.is_some());
    let mut findings: Vec<_> = others.map(|peer| state(peer, report)).collect();
    if !report.peers.iter().any(|peer| peer.is_self) {
        let text = "this host is not in its own list of peers: the others must list the address \
                    that it sends from";
        findings.push(Finding::ok(TOPIC, text));
    }
    let too_far = report.too_far_here();
    findings.extend(too_far.map(|too_far| Finding::warn(TOPIC, too_far.to_string())));
    findings
}

fn state(peer: &PeerReport, report: &StatusReport) -> Finding {
    let name = &peer.peer;
    if let Some(problem) = &peer.problem {
        return Finding::fail(TOPIC, format!("{name}: {problem}"));
    }
    let heard = report.members.iter().find(|member| {
        member.node_id != report.node_id
            && member.state.is_visible()
            && member.address.is_some_and(|address| peer.addresses.contains(&address))
    });
    match heard {
        Some(member) => {
            let text = format!("{name} is heard, as {}{}", member.node_id, way(member));
            match member.loss_percent {
                Some(LOSS_PERCENT..) => Finding::warn(TOPIC, text).remedy(
                    "look for a link that is full or broken on the way, in both directions",
                ),
                _ => Finding::ok(TOPIC, text),
            }
        }
        None => Finding::warn(TOPIC, format!("{name} is sent to, and not heard")).remedy(
            "look whether its daemon runs and lists this host, and whether firewalls between the \
             two let UDP to its port and to that of this host pass",
        ),
    }
}

/// How far away a member is.
fn way(member: &MemberReport) -> String {
    let told = |time| format!(", {} there and back", milliseconds(time));
    let time = member.round_trip().map(told).unwrap_or_default();
    let loss = member.loss_percent.map(|loss| format!(", {loss} % lost")).unwrap_or_default();
    time + &loss
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;

    fn peer(name: &str, address: &str) -> PeerReport {
        PeerReport {
            peer: name.to_owned(),
            addresses: address.parse().into_iter().collect(),
            is_self: false,
            source: "10.0.0.11".parse().ok(),
            up: true,
            problem: None,
        }
    }

    #[test]
    fn each_peer_has_a_line_and_this_host_only_if_something_is_wrong() {
        let own = PeerReport { is_self: true, ..peer("web1", "10.0.0.11") };
        let unknown = PeerReport { problem: Some("no name".to_owned()), ..peer("web7", "") };
        let peers = vec![own, peer("web0", "10.0.0.10"), peer("web9", "10.0.0.19"), unknown];
        let report = StatusReport { peers, ..follower() };
        let lines: Vec<_> = judge(&report).iter().map(|finding| finding.line(0)).collect();
        assert_eq!(lines.len(), 3, "{lines:#?}");
        assert_eq!(lines[0], "ok       peer  web0 is heard, as web0");
        assert!(lines[1].starts_with("warn     peer  web9 is sent to, and not heard"), "{lines:?}");
        assert_eq!(lines[2], "fail     peer  web7: no name");
        let report = StatusReport { peers: vec![peer("web0", "10.0.0.10")], ..follower() };
        assert!(judge(&report)[1].line(0).contains("not in its own list"));
        assert_eq!(judge(&follower()).len(), 0);
    }

    #[test]
    fn way_to_a_peer_is_told_and_a_bad_one_is_a_warning() {
        let mut report = StatusReport { peers: vec![peer("web0", "10.0.0.10")], ..follower() };
        report.round_trip_max_us = Some(21_875);
        report.members[0].round_trip_us = Some(21_874);
        report.members[0].loss_percent = Some(9);
        let lines = |report: &_| -> Vec<_> { judge(report).iter().map(|it| it.line(0)).collect() };
        let told = "ok       peer  web0 is heard, as web0, 21.9 ms there and back, 9 % lost";
        assert_eq!(lines(&report)[0], told);
        report.members[0].loss_percent = Some(10);
        assert!(lines(&report)[0].starts_with("warn     peer  web0 is heard"), "{report:?}");
        report.members[0].round_trip_us = Some(80_100);
        let far = "warn     peer  a datagram to web0 and back takes 80.1 ms, and the settings suit \
                   21.9 ms; set leader_election_duration to 321ms or more, and \
                   leader_alive_threshold to heartbeat_interval + 241ms or more, on all nodes";
        assert_eq!(lines(&report)[2], far);
    }
}
