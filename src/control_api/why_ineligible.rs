//! What the reasons for not being eligible mean, in words for people.

use crate::core::status::Ineligible;

/// Why a node is not eligible. `options` are what reaches its daemon.
pub fn why_ineligible(reason: Ineligible, options: &str) -> String {
    let text = match reason {
        Ineligible::Observer => "observer: candidate = false",
        Ineligible::StaticFollower => "static_role = \"follower\"",
        Ineligible::Stopping => "the daemon is stopping",
        Ineligible::Maintenance => {
            return format!("maintenance is on, until `lanelect maintenance off{options}`");
        }
        Ineligible::InterfaceDown => {
            "no interface can reach the group, or a peer's name is not known yet"
        }
        Ineligible::DiskPending => "its state is not on disk yet",
        Ineligible::NoHookRunner => {
            "the hook-runner has not confirmed the configuration of this node; see the log"
        }
        Ineligible::NotReleased => {
            "the hook for started or demoted could not be run, or has not ended well; see the log"
        }
        Ineligible::CheckFailed => "a health check failed",
        Ineligible::CheckPending => "the health check has no result yet",
        Ineligible::HookFailed => {
            "the hook failed for elected; waiting for the end of the hold-off time"
        }
        Ineligible::ServiceFailed => {
            "the service failed while this node led; waiting for the end of the hold-off time"
        }
        Ineligible::Yielding => "it yielded, and waits for another node to lead",
        Ineligible::NotVoter => "it is not a voter, and only voters can lead",
        Ineligible::Unenrolled => {
            "it has no saved votes (first start, or lost state); voter recovery is not finished"
        }
        Ineligible::TooFewCandidates => "fewer than min_candidates candidates are visible",
    };
    text.to_owned()
}
