//! The hook, its runner and the checks.

use super::finding::Finding;
use crate::control_api::{CheckReport, HookReport, StatusReport};
use crate::core::status::{HealthState, Ineligible};
use crate::types::Role;

const TOPIC: &str = "hook";

/// `programs` is what is wrong with the programs that the config file names.
pub(super) fn judge(report: Option<&StatusReport>, programs: &[String]) -> Vec<Finding> {
    let mut findings: Vec<_> =
        programs.iter().map(|problem| Finding::fail("program", problem.clone())).collect();
    if let Some(report) = report {
        findings.extend(runner(report));
        findings.extend(run(&report.hook));
        findings.extend(failures(report));
        findings.extend(report.check.as_ref().map(|report| check("check", report)));
        let leader = report
            .check_leader
            .as_ref()
            .filter(|check| report.role == Role::Leader || check.state == HealthState::Failing);
        findings.extend(leader.map(|report| check("check_leader", report)));
    }
    findings
}

fn runner(report: &StatusReport) -> Option<Finding> {
    report.ineligible_reasons.contains(&Ineligible::NoHookRunner).then(|| {
        let socket = report.config.hook_socket.as_deref().unwrap_or("its socket");
        let text = format!(
            "the hook-runner does not answer at {socket}, or has another configuration: this node \
             cannot lead"
        );
        Finding::fail(TOPIC, text).remedy("start it, and see its log")
    })
}

fn run(hook: &HookReport) -> Option<Finding> {
    let event = hook.last_event?;
    let output = hook.output.as_ref().map_or(String::new(), |at| format!("its output: {at}"));
    if let Some(term) = hook.overdue_term {
        let text = format!("the hook has not released term {term}: this host may hold resources");
        return Some(Finding::fail(TOPIC, text).remedy(output));
    }
    if hook.running {
        return Some(Finding::ok(TOPIC, format!("it runs for {event}")));
    }
    Some(match hook.last_exit {
        Some(0) if hook.pending => {
            Finding::ok(TOPIC, format!("it succeeded for {event}, and another run waits"))
        }
        Some(0) => Finding::ok(TOPIC, format!("it succeeded for {event}")),
        exit => {
            let exit = exit.map_or("no exit status".to_owned(), |exit| format!("exit {exit}"));
            Finding::fail(TOPIC, format!("it failed for {event}, {exit}")).remedy(output)
        }
    })
}

/// Failed takeovers, which a later run hides, and what follows from them.
fn failures(report: &StatusReport) -> Vec<Finding> {
    let mut findings = Vec::new();
    let times = report.hook.elected_failures;
    if times > 0 {
        let text = format!("the hook failed for elected {times} times since the daemon started");
        let output = report.hook.output.as_ref().map(|at| format!("its output: {at}"));
        findings.push(Finding { remedy: output, ..Finding::warn(TOPIC, text) });
    }
    if let Some(left) = report.holdoff_ms {
        let seconds = left / 1000;
        let text = format!(
            "this node is not eligible for another {seconds} s: hold-off time after a failure"
        );
        findings.push(Finding::warn(TOPIC, text));
    }
    if report.fence.is_some_and(|run| !run.succeeded) {
        findings.push(Finding::fail("fence", "the fence command did not succeed"));
    }
    findings
}

fn check(topic: &'static str, report: &CheckReport) -> Finding {
    let exit = report.last_exit.map_or("no exit status".to_owned(), |exit| format!("exit {exit}"));
    match report.state {
        HealthState::Failing => Finding::fail(topic, format!("it fails, {exit}"))
            .remedy("this node is not eligible until that is repaired"),
        HealthState::Pending => Finding::ok(topic, "it has not passed yet"),
        HealthState::Healthy if report.failures > 0 => {
            let CheckReport { failures, fall, .. } = report;
            Finding::warn(topic, format!("it failed {failures} of {fall} times, {exit}"))
        }
        HealthState::Healthy => Finding::ok(topic, "it passes"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;
    use crate::types::Term;

    fn lines(change: impl FnOnce(&mut StatusReport)) -> Vec<String> {
        let mut report = follower();
        change(&mut report);
        judge(Some(&report), &[]).iter().map(|finding| finding.line(0)).collect()
    }

    #[test]
    fn hook_that_failed_is_a_fault_with_its_output() {
        assert_eq!(lines(|_| {}), ["ok       hook  it succeeded for started"]);
        let failed = lines(|report| {
            report.hook.last_exit = Some(3);
            report.hook.output = Some("the log".to_owned());
        });
        assert_eq!(failed, ["fail     hook  it failed for started, exit 3; its output: the log"]);
        let overdue = lines(|report| report.hook.overdue_term = Some(Term(7)));
        assert!(overdue[0].starts_with("fail     hook  the hook has not released term 7"));
    }

    #[test]
    fn earlier_failures_and_the_hold_off_are_warnings() {
        let told = lines(|report| {
            report.hook.elected_failures = 2;
            report.holdoff_ms = Some(61_000);
        });
        assert!(told[1].starts_with("warn     hook  the hook failed for elected 2 times"));
        assert!(told[2].starts_with("warn     hook  this node is not eligible for another 61 s"));
    }

    #[test]
    fn missing_runner_and_a_failing_check_are_faults() {
        let told = lines(|report| {
            report.ineligible_reasons = vec![Ineligible::Maintenance, Ineligible::NoHookRunner];
            report.config.hook_socket = Some("/run/hook.sock".to_owned());
            report.check = Some(CheckReport {
                state: HealthState::Failing,
                running: false,
                failures: 3,
                fall: 3,
                successes: 0,
                rise: 2,
                last_exit: Some(1),
                last_ms: Some(2),
            });
        });
        assert!(told[0].contains("does not answer at /run/hook.sock"), "{told:?}");
        assert!(told[2].starts_with("fail     check  it fails, exit 1"), "{told:?}");
        let program = judge(None, &["hook: cannot find /x".to_owned()]);
        assert_eq!(program[0].line(0), "fail     program  hook: cannot find /x");
    }
}
