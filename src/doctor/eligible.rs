//! Why this node is not eligible to lead, where no other topic has a line about the cause.

use super::finding::Finding;
use crate::control_api::{StatusReport, why_ineligible};
use crate::core::status::Ineligible;

const TOPIC: &str = "eligible";

/// `options` are what reaches the daemon.
pub(super) fn judge(report: &StatusReport, options: &str) -> Vec<Finding> {
    report.ineligible_reasons.iter().filter_map(|reason| finding(*reason, options)).collect()
}

/// What an administrator chose, or what ends by itself, is no fault.
fn finding(reason: Ineligible, options: &str) -> Option<Finding> {
    let text = || format!("this node is not eligible to lead: {}", why_ineligible(reason, options));
    match reason {
        Ineligible::Stopping
        | Ineligible::Observer
        | Ineligible::NotVoter
        | Ineligible::StaticFollower
        | Ineligible::Maintenance
        | Ineligible::Yielding => Some(Finding::ok(TOPIC, text())),
        Ineligible::NotReleased => Some(
            Finding::fail(TOPIC, text())
                .remedy("the hook runs again until it succeeds for started or demoted"),
        ),
        Ineligible::TooFewCandidates => Some(
            Finding::warn(TOPIC, text())
                .remedy("start the other candidates, or repair the network to them"),
        ),
        // Of the interface, the disk, the hook, the checks, and the voters.
        Ineligible::InterfaceDown
        | Ineligible::DiskPending
        | Ineligible::NoHookRunner
        | Ineligible::CheckFailed
        | Ineligible::CheckPending
        | Ineligible::HookFailed
        | Ineligible::ServiceFailed
        | Ineligible::Unenrolled => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;

    #[test]
    fn each_reason_without_a_topic_of_its_own_has_a_line() {
        let mut report = follower();
        assert!(judge(&report, "").is_empty());
        report.ineligible_reasons = vec![
            Ineligible::Maintenance,
            Ineligible::NoHookRunner,
            Ineligible::NotReleased,
            Ineligible::TooFewCandidates,
        ];
        let lines: Vec<_> = judge(&report, "").iter().map(|finding| finding.line(0)).collect();
        let [maintenance, not_released, too_few] = &lines[..] else { panic!("{lines:?}") };
        assert!(
            maintenance.starts_with("ok       eligible  this node is not eligible to lead: ma")
        );
        assert!(not_released.starts_with("fail     eligible  "), "{not_released}");
        assert!(too_few.starts_with("warn     eligible  "), "{too_few}");
    }
}
