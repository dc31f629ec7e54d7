//! The notes of quorum mode: whether this side has a majority, and which voters do not count.

use super::{Notes, listed, short};
use crate::control_api::{QuorumReport, StatusReport, VoterReport};
use crate::core::status::VoterStanding;
use crate::types::NodeId;

/// Adds the number of voters that count, and the reason for each one that does not.
pub(super) fn note(notes: &mut Notes, report: &StatusReport, quorum: &QuorumReport) {
    notes.push(("quorum", majority(quorum)));
    notes.extend(quorum.not_counting.iter().map(|voter| ("voter", absence(report, voter))));
    notes.extend(not_voters(quorum).map(|text| ("members", text)));
    notes.extend(pledge(report, quorum).map(|text| ("promise", text)));
}

fn majority(quorum: &QuorumReport) -> String {
    let QuorumReport { reachable, needed, lease_ms, .. } = *quorum;
    let all = quorum.voters.len();
    let count = if reachable == 1 { "counts" } else { "count" };
    let short_of = if reachable < needed { ": no node can be elected here" } else { "" };
    let lease = lease_ms.map(|ms| format!("; {} of the lease left", short(ms)));
    format!(
        "{reachable} of {all} voters {count}, {needed} needed{short_of}{}",
        lease.unwrap_or_default()
    )
}

fn absence(report: &StatusReport, voter: &VoterReport) -> String {
    let node_id = voter.node_id;
    let of_self = if node_id == report.node_id { ", this node," } else { "" };
    let why = match voter.reason {
        VoterStanding::Counts => "unknown reason",
        VoterStanding::Silent => "it is silent",
        VoterStanding::Disagrees => "it has other voters, or is in available mode",
        VoterStanding::Unenrolled => {
            "it has no saved votes (first start, or lost state); voter recovery is not finished"
        }
        VoterStanding::DuplicateNodeId => "duplicate node id: another daemon uses its node_id",
    };
    format!("{node_id}{of_self} does not count: {why}")
}

/// The members that disagree and that have no line as voters.
fn not_voters(quorum: &QuorumReport) -> Option<String> {
    let told = |id: &NodeId| quorum.not_counting.iter().any(|voter| voter.node_id == *id);
    let others: Vec<_> = quorum.disagreeing.iter().filter(|id| !told(id)).collect();
    (!others.is_empty())
        .then(|| format!("{} with other voters, or in available mode", listed(&others)))
}

/// The promise, if it keeps this node from voting. A promise to the leader is normal.
fn pledge(report: &StatusReport, quorum: &QuorumReport) -> Option<String> {
    let pledge = quorum.pledged_to.filter(|_| report.leader.is_none())?;
    Some(format!("to {}: no vote for another node for {}", pledge.node_id, short(pledge.left_ms)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{alone, follower, render};
    use super::*;
    use crate::control_api::PledgeReport;
    use crate::core::params::Mode;
    use crate::types::Role;

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    /// Of the voters web0 to web2, all count except these.
    fn quorum(not_counting: &[(&str, VoterStanding)]) -> QuorumReport {
        let voters = ["web0", "web1", "web2"].map(id);
        let not_counting: Vec<_> = not_counting
            .iter()
            .map(|(name, reason)| VoterReport { node_id: id(name), reason: *reason })
            .collect();
        let counts = |voter: &NodeId| not_counting.iter().all(|other| other.node_id != *voter);
        let counting: Vec<_> = voters.into_iter().filter(counts).collect();
        QuorumReport {
            voters: voters.to_vec(),
            needed: 2,
            reachable: counting.len(),
            lease_ms: None,
            counting,
            not_counting,
            pledged_to: None,
            disagreeing: Vec::new(),
        }
    }

    /// The notes below the members.
    fn notes(report: StatusReport, quorum: QuorumReport) -> String {
        let report = StatusReport { mode: Mode::Quorum, quorum: Some(quorum), ..report };
        render(&report).rsplit_once("\n\n").unwrap().1.to_owned()
    }

    #[test]
    fn all_voters_that_count_get_one_line() {
        assert_eq!(
            notes(follower(), quorum(&[])),
            "\
hook    started, exit 0, 3 ms
quorum  3 of 3 voters count, 2 needed
mode    quorum: never two leaders; a side without a majority of the voters has none
"
        );
    }

    #[test]
    fn leader_shows_the_rest_of_its_lease() {
        let leading = QuorumReport { lease_ms: Some(2_412), ..quorum(&[]) };
        let told = notes(alone(Role::Leader), leading);
        assert!(
            told.starts_with("quorum  3 of 3 voters count, 2 needed; 2.4 s of the lease left\n")
        );
    }

    #[test]
    fn each_voter_that_does_not_count_gets_a_line_with_the_reason() {
        let absent = [("web0", VoterStanding::Silent), ("web1", VoterStanding::Unenrolled)];
        let pledged_to = Some(PledgeReport { node_id: id("web0"), left_ms: 4_800 });
        let report = QuorumReport { pledged_to, ..quorum(&absent) };
        assert_eq!(
            notes(alone(Role::Follower), report),
            "\
quorum   1 of 3 voters counts, 2 needed: no node can be elected here
voter    web0 does not count: it is silent
voter    web1, this node, does not count: it has no saved votes (first start, or lost state); voter recovery is not finished
promise  to web0: no vote for another node for 4.8 s
mode     quorum: never two leaders; a side without a majority of the voters has none
"
        );
    }

    #[test]
    fn members_that_disagree_are_listed_once_and_not_all_of_many() {
        let voter = [("web2", VoterStanding::Disagrees)];
        let mut report = quorum(&voter);
        report.disagreeing = ["web2", "db1"].map(id).to_vec();
        let told = notes(follower(), report.clone());
        assert!(told.contains("voter    web2 does not count: it has other voters"), "{told}");
        assert!(told.contains("members  db1 with other voters, or in available mode\n"), "{told}");
        report.disagreeing = (0..99).map(|n| id(&format!("db{n:02}"))).collect();
        let told = notes(follower(), report);
        assert!(told.contains("members  db00, db01, db02, db03, db04 and 94 more with"), "{told}");
    }

    #[test]
    fn promise_to_the_leader_gets_no_line() {
        let pledged_to = Some(PledgeReport { node_id: id("web0"), left_ms: 4_800 });
        let report = QuorumReport { pledged_to, ..quorum(&[]) };
        assert!(!notes(follower(), report).contains("promise"));
    }
}
