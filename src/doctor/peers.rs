//! The hosts that are sent to by unicast, and whether the daemon hears them.

use super::finding::Finding;
use crate::control_api::{PeerReport, StatusReport};

const TOPIC: &str = "peer";

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
        Some(member) => Finding::ok(TOPIC, format!("{name} is heard, as {}", member.node_id)),
        None => Finding::warn(TOPIC, format!("{name} is sent to, and not heard")).remedy(
            "look whether its daemon runs and lists this host, and whether firewalls between the \
             two let UDP to its port and to that of this host pass",
        ),
    }
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
}
