//! Waiting until a handover, or a change of maintenance, is complete.

use std::io::Write;
use std::thread;
use std::time::Duration;

use super::{CommandError, Exit, finish};
use crate::client::Target;
use crate::control_api::{StatusReport, why_ineligible};
use crate::core::hook::HookEvent;
use crate::core::status::Ineligible;
use crate::os::clock;
use crate::types::{NodeId, Role};

/// Pause between two looks at the status.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How far a change has come.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    /// It is complete, with this effect.
    Done(String),
    /// It may still complete; this is missing.
    Missing(String),
    /// It cannot complete any more, for this reason.
    Failed(String),
}

/// `lanelect yield --wait`: returns when another node leads, `to` if that is named, and this node's
/// hook has released everything.
///
/// # Errors
///
/// [`CommandError::Incomplete`] if that is not so within `limit`, or cannot become so; and if there
/// is no answer.
pub fn await_successor(
    target: &Target,
    to: Option<NodeId>,
    limit: Duration,
    out: &mut impl Write,
) -> Result<Exit, CommandError> {
    wait(target, limit, out, |report| handover(report, to))
}

/// `lanelect maintenance on|off --wait`: returns when this node leads nothing any more, or is
/// eligible again.
///
/// # Errors
///
/// As [`await_successor`].
pub fn await_maintenance(
    target: &Target,
    on: bool,
    limit: Duration,
    out: &mut impl Write,
) -> Result<Exit, CommandError> {
    let options = target.options();
    wait(target, limit, out, |report| match on {
        true => release(report),
        false => return_to_service(report, &options),
    })
}

#[expect(clippy::disallowed_methods, reason = "a command waits for a daemon and for nothing else")]
fn wait(
    target: &Target,
    limit: Duration,
    out: &mut impl Write,
    progress: impl Fn(&StatusReport) -> Progress,
) -> Result<Exit, CommandError> {
    let deadline = clock::now() + limit;
    loop {
        match progress(&target.status()?) {
            Progress::Done(effect) => return finish(out, &format!("{effect}\n")),
            Progress::Failed(why) => return Err(CommandError::Incomplete(why)),
            Progress::Missing(what) if clock::now() >= deadline => {
                let why = format!("not complete within {limit:?}: {what}; it continues");
                return Err(CommandError::Incomplete(why));
            }
            Progress::Missing(_) => thread::sleep(POLL_INTERVAL),
        }
    }
}

/// How far a handover has come, to `to` if that is named.
fn handover(report: &StatusReport, to: Option<NodeId>) -> Progress {
    if report.role == Role::Leader {
        return Progress::Failed("no other node took over, and this node leads again".to_owned());
    }
    let effect = match release(report) {
        Progress::Done(effect) => effect,
        missing => return missing,
    };
    match (&report.leader, to) {
        (None, _) => Progress::Missing("no other node leads yet".to_owned()),
        (Some(leader), Some(to)) if leader.node_id != to => {
            Progress::Failed(format!("{} leads, and not {to}", leader.node_id))
        }
        (Some(leader), _) => {
            Progress::Done(format!("{} leads in term {}; {effect}", leader.node_id, report.term))
        }
    }
}

/// Whether this node has stepped down, and its hook has released everything.
fn release(report: &StatusReport) -> Progress {
    let hook = &report.hook;
    if let Some(term) = hook.overdue_term {
        return Progress::Missing(format!("the hook has not released term {term}"));
    }
    match hook.last_event {
        _ if report.role == Role::Leader => {
            Progress::Missing("this node has not stepped down yet".to_owned())
        }
        Some(event) if hook.running => {
            Progress::Missing(format!("the hook for {event} still runs on this node"))
        }
        _ if report.handing_over.is_some() => {
            Progress::Missing("the hook has not run for demoted yet".to_owned())
        }
        // A leader that steps down for a better one does not hand over, and its run for `demoted`
        // may wait.
        _ if hook.pending => Progress::Missing(
            "the hook still has to run for started or demoted on this node".to_owned(),
        ),
        Some(HookEvent::Demoted) if hook.last_exit != Some(0) => Progress::Done(
            "this node leads nothing, but its hook failed for demoted and may hold resources"
                .to_owned(),
        ),
        _ => Progress::Done("this node leads nothing".to_owned()),
    }
}

/// Whether this node may lead again.
fn return_to_service(report: &StatusReport, options: &str) -> Progress {
    let reasons = &report.ineligible_reasons;
    if reasons.is_empty() {
        return Progress::Done("this node is eligible to lead".to_owned());
    }
    let texts: Vec<_> = reasons.iter().map(|reason| why_ineligible(*reason, options)).collect();
    let why = format!("this node is not eligible to lead: {}", texts.join("; "));
    if reasons.iter().any(|reason| is_for_good(*reason)) {
        Progress::Failed(why)
    } else {
        Progress::Missing(why)
    }
}

/// Whether waiting does not help.
const fn is_for_good(reason: Ineligible) -> bool {
    matches!(
        reason,
        Ineligible::Observer
            | Ineligible::NotVoter
            | Ineligible::StaticFollower
            | Ineligible::Stopping
    )
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::{alone, follower};
    use super::*;
    use crate::core::hook::Reason;
    use crate::types::Term;

    /// web1 has yielded to web0, and its hook has run for `demoted`.
    fn yielded() -> StatusReport {
        let mut report = follower();
        report.hook.last_event = Some(HookEvent::Demoted);
        report
    }

    fn missing(progress: &Progress, words: &str) -> bool {
        matches!(progress, Progress::Missing(what) if what.contains(words))
    }

    #[test]
    fn handover_is_complete_when_another_node_leads_and_the_hook_has_ended() {
        let mut report = yielded();
        let done = "web0 leads in term 7; this node leads nothing".to_owned();
        assert_eq!(handover(&report, None), Progress::Done(done.clone()));
        assert_eq!(handover(&report, "web0".parse().ok()), Progress::Done(done));
        report.hook.last_exit = Some(1);
        assert!(matches!(handover(&report, None), Progress::Done(text) if text.contains("failed")));
        report.hook.running = true;
        assert!(missing(&handover(&report, None), "the hook for demoted still runs"));
        report.hook.running = false;
        report.hook.last_event = Some(HookEvent::Elected);
        report.hook.last_exit = Some(0);
        report.hook.pending = true;
        assert!(missing(&handover(&report, None), "still has to run for started or demoted"));
        report.handing_over = Some(Reason::Yield);
        assert!(missing(&handover(&report, None), "has not run for demoted"));
        report.hook.overdue_term = Some(Term(7));
        assert!(missing(&handover(&report, None), "has not released term 7"));
        report = StatusReport { leader: None, ..yielded() };
        assert!(missing(&handover(&report, None), "no other node leads yet"));
    }

    #[test]
    fn handover_has_failed_if_the_wrong_node_leads() {
        let failed = |why: &str| Progress::Failed(why.to_owned());
        let other = "web2".parse().ok();
        assert_eq!(handover(&yielded(), other), failed("web0 leads, and not web2"));
        let again = "no other node took over, and this node leads again";
        assert_eq!(handover(&alone(Role::Leader), None), failed(again));
    }

    #[test]
    fn node_is_back_in_service_when_it_is_eligible() {
        let mut report = follower();
        assert!(matches!(return_to_service(&report, ""), Progress::Done(_)));
        report.ineligible_reasons = vec![Ineligible::NoHookRunner, Ineligible::CheckPending];
        assert!(missing(&return_to_service(&report, ""), "see the log; the health check has no"));
        report.ineligible_reasons = vec![Ineligible::Observer, Ineligible::CheckPending];
        assert!(matches!(return_to_service(&report, ""), Progress::Failed(_)));
    }
}
