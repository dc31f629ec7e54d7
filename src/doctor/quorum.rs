//! Quorum mode: whether a majority of the voters counts, and why others do not.

use super::finding::Finding;
use crate::control_api::{QuorumReport, StatusReport, VoterReport};
use crate::core::status::VoterStanding;

const TOPIC: &str = "quorum";

pub(super) fn judge(report: &StatusReport) -> Vec<Finding> {
    let Some(quorum) = &report.quorum else { return Vec::new() };
    let mut findings = vec![majority(quorum)];
    findings.extend(quorum.not_counting.iter().map(absence));
    let is_voter = |id| quorum.not_counting.iter().any(|voter| voter.node_id == id);
    let others = quorum.disagreeing.iter().filter(|id| !is_voter(**id));
    findings.extend(others.map(|node_id| {
        Finding::warn("voters", format!("{node_id} has other voters, or is in available mode"))
            .remedy("set the same mode and voters on every node")
    }));
    if report.counters.fences > 0 {
        let times = report.counters.fences;
        let text = format!("the hook for demoted exceeded demote_grace {times} times");
        findings.push(
            Finding::warn(TOPIC, text).remedy("make the hook faster, or demote_grace longer"),
        );
    }
    findings
}

fn majority(quorum: &QuorumReport) -> Finding {
    let QuorumReport { reachable, needed, .. } = *quorum;
    let text = format!("{reachable} of {} voters count here, {needed} needed", quorum.voters.len());
    if reachable >= needed {
        return Finding::ok(TOPIC, text);
    }
    Finding::fail(TOPIC, format!("{text}: no node can be elected"))
        .remedy("start the voters that are missing, or repair the network to them")
}

fn absence(voter: &VoterReport) -> Finding {
    let node_id = voter.node_id;
    let (why, remedy) = match voter.reason {
        VoterStanding::Counts => ("of an unknown reason", "look at its log"),
        VoterStanding::Silent => ("it is silent", "run `lanelect doctor` on that host"),
        VoterStanding::Disagrees => (
            "it has other voters, or is in available mode",
            "set the same mode and voters on every node, and restart it",
        ),
        VoterStanding::Unenrolled => (
            "it has no saved votes, and voter recovery is not finished",
            "a majority of the other voters must be up",
        ),
        VoterStanding::DuplicateNodeId => {
            ("another daemon has its node_id", "give one of the two hosts another node_id")
        }
    };
    Finding::warn("voter", format!("{node_id} does not count: {why}")).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;
    use crate::types::NodeId;

    fn lines(reachable: usize, not_counting: &[(&str, VoterStanding)]) -> Vec<String> {
        let id = |name: &str| name.parse::<NodeId>().unwrap();
        let quorum = QuorumReport {
            voters: ["web0", "web1", "web2"].map(id).to_vec(),
            needed: 2,
            reachable,
            lease_ms: None,
            counting: Vec::new(),
            not_counting: not_counting
                .iter()
                .map(|(name, reason)| VoterReport { node_id: id(name), reason: *reason })
                .collect(),
            pledged_to: None,
            disagreeing: vec![id("web2"), id("db1")],
        };
        let report = StatusReport { quorum: Some(quorum), ..follower() };
        judge(&report).iter().map(|finding| finding.line(0)).collect()
    }

    #[test]
    fn lost_majority_is_a_fault_and_each_absent_voter_has_a_line() {
        let absent = [("web0", VoterStanding::Silent), ("web2", VoterStanding::Disagrees)];
        let told = lines(1, &absent);
        assert!(
            told[0].starts_with("fail     quorum  1 of 3 voters count here, 2 needed: no node")
        );
        assert!(told[1].starts_with("warn     voter  web0 does not count: it is silent"));
        assert!(told[2].starts_with("warn     voter  web2 does not count: it has other voters"));
        assert!(told[3].starts_with("warn     voters  db1 has other voters"), "{told:#?}");
        assert_eq!(told.len(), 4);
        assert!(lines(3, &[])[0].starts_with("ok       quorum  3 of 3"));
        assert!(judge(&follower()).is_empty());
    }
}
