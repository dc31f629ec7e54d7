//! Whether the daemon answers, and whether the group has a leader.

use super::finding::Finding;
use crate::client::ClientError;
use crate::control_api::StatusReport;
use crate::types::Role;

const TOPIC: &str = "daemon";

/// `own` is the version of this program.
pub(super) fn judge(answer: Result<&StatusReport, &ClientError>, own: &str) -> Vec<Finding> {
    match answer {
        Ok(report) => vec![version(report, own), leader(report)],
        Err(error) => vec![Finding::fail(TOPIC, error.to_string())],
    }
}

fn version(report: &StatusReport, own: &str) -> Finding {
    let StatusReport { node_id, group, version, .. } = report;
    if version == own {
        return Finding::ok(TOPIC, format!("{node_id} answers for the group {group}"));
    }
    Finding::warn(TOPIC, format!("it is lanelect {version}, and this program is {own}"))
        .remedy("restart the daemon after an upgrade")
}

fn leader(report: &StatusReport) -> Finding {
    let term = report.term;
    if let Some(reason) = report.handing_over {
        let text = format!("this node hands over in term {term} ({reason}), once demoted has run");
        return Finding::ok("leader", text);
    }
    match (&report.leader, report.role) {
        (_, Role::Leader) => Finding::ok("leader", format!("this node leads in term {term}")),
        (Some(leader), _) => {
            Finding::ok("leader", format!("{} leads in term {term}", leader.node_id))
        }
        (None, Role::Starting) => {
            Finding::warn("leader", "the daemon starts, and still listens for a leader")
        }
        (None, _) => {
            let seconds = report.since_ms / 1000;
            Finding::fail("leader", format!("no leader is known for {seconds} s"))
                .remedy("the faults below say why; run `lanelect doctor` on the other hosts too")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;
    use crate::core::hook::Reason;

    fn lines(report: &StatusReport, own: &str) -> Vec<String> {
        judge(Ok(report), own).iter().map(|finding| finding.line(0)).collect()
    }

    #[test]
    fn daemon_that_answers_and_follows_is_well() {
        assert_eq!(
            lines(&follower(), "0.1.0"),
            [
                "ok       daemon  web1 answers for the group default",
                "ok       leader  web0 leads in term 7",
            ]
        );
    }

    #[test]
    fn another_version_and_a_missing_leader_are_named() {
        let mut report = follower();
        report.leader = None;
        let [version, leader] = &lines(&report, "0.2.0")[..] else { panic!("not two") };
        assert!(version.starts_with("warn     daemon  it is lanelect 0.1.0"), "{version}");
        assert!(leader.starts_with("fail     leader  no leader is known for 83 s"), "{leader}");
    }

    #[test]
    fn handover_that_waits_for_its_hook_is_no_fault() {
        let mut report = follower();
        report.leader = None;
        report.handing_over = Some(Reason::Yield);
        let line = &lines(&report, "0.1.0")[1];
        assert!(
            line.starts_with("ok       leader  this node hands over in term 7 (yield)"),
            "{line}"
        );
    }

    #[test]
    fn daemon_that_does_not_answer_is_a_fault_with_what_to_do() {
        let error = ClientError::Stale("/run/lanelect/web.sock".into());
        let line = judge(Err(&error), "0.1.0")[0].line(0);
        assert!(line.starts_with("fail     daemon  cannot reach the daemon"), "{line}");
        assert!(line.contains("start it again"), "{line}");
    }
}
