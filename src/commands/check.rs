//! `lanelect status --check`: one line and an exit status, as Nagios and what followed it expect.
//!
//! A daemon that does not run is critical, and not unknown: plugins report the service that they
//! check as critical if it is down, and unknown only what they could not find out. That is a socket
//! which this user may not open, or an answer of another version.

use std::io::Write;

use super::print;
use crate::client::{ClientError, Target};
use crate::control_api::{HookReport, PeerReport, StatusReport, why_ineligible};
use crate::core::status::{Ineligible, MemberState};
use crate::types::{KeyMode, Role};

/// The states of a monitored service; each is its exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing to do.
    Ok = 0,
    /// To be looked at.
    Warning = 1,
    /// To be repaired now.
    Critical = 2,
    /// Not known.
    Unknown = 3,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            State::Ok => "OK",
            State::Warning => "WARNING",
            State::Critical => "CRITICAL",
            State::Unknown => "UNKNOWN",
        }
    }
}

/// Prints the line for this daemon. An output that cannot be printed is unknown.
pub fn check(target: &Target, out: &mut impl Write) -> State {
    let (state, text) = match target.status() {
        Ok(report) => line(&report, &target.options()),
        Err(error) => failed(&error),
    };
    let text = format!("LANELECT {} - {text}\n", state.word());
    if print(out, &text).is_ok() { state } else { State::Unknown }
}

fn failed(error: &ClientError) -> (State, String) {
    let is_elsewhere = matches!(error, ClientError::NotPermitted(_) | ClientError::NotASocket(_));
    let is_down = error.is_unreachable() && !is_elsewhere;
    let state = if is_down { State::Critical } else { State::Unknown };
    (state, plain(&error.to_string()))
}

/// The state, and the text with the performance data.
fn line(report: &StatusReport, options: &str) -> (State, String) {
    let problems = problems(report, options);
    let state = problems.iter().map(|(state, _)| *state).max().unwrap_or(State::Ok);
    let mut texts: Vec<_> = problems;
    texts.sort_by_key(|(state, _)| std::cmp::Reverse(*state));
    let texts: Vec<_> = texts.into_iter().map(|(_, text)| text).collect();
    let text = if texts.is_empty() { summary(report) } else { texts.join("; ") };
    (state, format!("{}|{}", plain(&text), performance(report)))
}

/// In one line, without the bar, after which performance data begins.
fn plain(text: &str) -> String {
    text.replace('|', "/").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn summary(report: &StatusReport) -> String {
    let StatusReport { node_id, term, .. } = report;
    let role = match (report.role, &report.leader) {
        _ if report.handing_over.is_some() => format!("{node_id} hands over"),
        (Role::Leader, _) | (_, None) => format!("{node_id} is {}", report.role),
        (role, Some(leader)) => format!("{node_id} is {role} of {}", leader.node_id),
    };
    let members = alive(report);
    format!("{role}, term {term}, {members} member{} alive", if members == 1 { "" } else { "s" })
}

fn alive(report: &StatusReport) -> usize {
    report.members.iter().filter(|member| member.state == MemberState::Alive).count()
}

/// Values as `label=value[unit]`, without limits: what they should be depends on the group.
fn performance(report: &StatusReport) -> String {
    let mut values = vec![
        format!("term={}", report.term),
        format!("members={};;;0;{}", alive(report), report.members.len()),
    ];
    let leader = report.leader.as_ref();
    values.extend(leader.map(|leader| format!("last_heard={}ms;;;0", leader.last_heard_ms)));
    let lease = report.quorum.as_ref().and_then(|quorum| quorum.lease_ms);
    values.extend(lease.map(|lease| format!("lease={lease}ms;;;0")));
    values.join(" ")
}

fn problems(report: &StatusReport, options: &str) -> Vec<(State, String)> {
    let critical = [no_leader(report), failed_hook(report), no_majority(report)];
    let warnings = [
        suspects(report),
        interfaces(report),
        duplicate(report),
        peers(report),
        report.too_far_here().map(|far| far.to_string()),
        report.config.reload_failure.as_ref().map(|why| format!("config file refused: {why}")),
        restart(report),
        report.state_failure.as_ref().map(|why| format!("not saved: {why}")),
        open_keys(report),
    ];
    let with = |state| move |text| (state, text);
    let critical = critical.into_iter().flatten().map(with(State::Critical));
    let warnings = warnings.into_iter().flatten().chain(unintended(report, options));
    critical.chain(warnings.map(with(State::Warning))).collect()
}

/// A node that hands over declares until its hook has run for `demoted`.
fn no_leader(report: &StatusReport) -> Option<String> {
    let leads = report.role == Role::Leader || report.handing_over.is_some();
    let is_known = report.leader.is_some() || leads;
    (!is_known).then(|| format!("no leader known for {} s", report.since_ms / 1000))
}

/// A hook that has not taken over, or has not released.
fn failed_hook(report: &StatusReport) -> Option<String> {
    let hook = &report.hook;
    if let Some(term) = hook.overdue_term {
        return Some(format!("the hook has not released term {term}"));
    }
    let leads = report.role == Role::Leader;
    let failed = !hook.running && hook.last_exit != Some(0) && hook.last_event.is_some();
    let releases = hook.last_event.is_some_and(|event| !event.takes_over());
    (failed && (leads || releases)).then(|| ending(hook))
}

fn ending(hook: &HookReport) -> String {
    let event = hook.last_event.map_or(String::new(), |event| format!(" for {event}"));
    let exit = hook
        .last_exit
        .map_or("without an exit status".to_owned(), |exit| format!("with exit status {exit}"));
    format!("the hook failed{event} {exit}")
}

fn no_majority(report: &StatusReport) -> Option<String> {
    let quorum = report.quorum.as_ref()?;
    let (reachable, needed) = (quorum.reachable, quorum.needed);
    (reachable < needed).then(|| {
        format!("only {reachable} of {} voters count, {needed} needed", quorum.voters.len())
    })
}

fn suspects(report: &StatusReport) -> Option<String> {
    let is_suspect = |state| state == MemberState::Suspect;
    let names: Vec<_> = report
        .members
        .iter()
        .filter(|member| is_suspect(member.state))
        .map(|member| &member.node_id)
        .collect();
    (!names.is_empty()).then(|| format!("suspect: {}", super::status::listed(&names)))
}

/// The reasons for not being eligible that no operator chose.
fn unintended(report: &StatusReport, options: &str) -> impl Iterator<Item = String> {
    let reasons = report.ineligible_reasons.iter().filter(|reason| is_problem(**reason));
    reasons.map(move |reason| format!("not eligible: {}", why_ineligible(*reason, options)))
}

/// A check without a result yet is none: it passes or fails soon.
const fn is_problem(reason: Ineligible) -> bool {
    match reason {
        Ineligible::InterfaceDown
        | Ineligible::DiskPending
        | Ineligible::NoHookRunner
        | Ineligible::NotReleased
        | Ineligible::CheckFailed
        | Ineligible::HookFailed
        | Ineligible::ServiceFailed
        | Ineligible::Unenrolled
        | Ineligible::TooFewCandidates => true,
        Ineligible::Stopping
        | Ineligible::Observer
        | Ineligible::NotVoter
        | Ineligible::StaticFollower
        | Ineligible::Maintenance
        | Ineligible::CheckPending
        | Ineligible::Yielding => false,
    }
}

fn peers(report: &StatusReport) -> Option<String> {
    let problem =
        |peer: &PeerReport| Some(format!("peer {}: {}", peer.peer, peer.problem.as_ref()?));
    report.peers.iter().find_map(problem)
}

fn interfaces(report: &StatusReport) -> Option<String> {
    let down: Vec<_> = report
        .interfaces
        .iter()
        .filter(|interface| !interface.up || interface.problem.is_some())
        .map(|interface| match &interface.problem {
            Some(problem) => format!("interface {}: {problem}", interface.name),
            None => format!("interface {} is down", interface.name),
        })
        .collect();
    (!down.is_empty()).then(|| down.join("; "))
}

fn duplicate(report: &StatusReport) -> Option<String> {
    let address = report.recent_duplicate()?.address;
    Some(format!("another daemon with this node_id was started at {address}"))
}

fn restart(report: &StatusReport) -> Option<String> {
    let keys = &report.config.restart_needed;
    (!keys.is_empty()).then(|| format!("restart needed for {}", keys.join(", ")))
}

/// A step on the way to keys. A group without any key may be meant to have none.
fn open_keys(report: &StatusReport) -> Option<String> {
    let is_open = matches!(report.key_mode, Some(KeyMode::Accept | KeyMode::Prefer));
    is_open.then(|| "keys are not required, and protect nothing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::status::tests::{alone, follower};
    use super::*;
    use crate::control_api::{DuplicateReport, QuorumReport};
    use crate::core::hook::{HookEvent, Reason};
    use crate::types::Term;

    /// A follower in a group in which all is well.
    fn well() -> StatusReport {
        let mut report = follower();
        report.members[2].state = MemberState::Alive;
        report
    }

    fn judged(report: &StatusReport) -> (State, String) {
        line(report, "")
    }

    #[track_caller]
    fn assert_judged(state: State, words: &str, change: impl FnOnce(&mut StatusReport)) {
        let mut report = well();
        change(&mut report);
        let (judged, text) = judged(&report);
        assert_eq!(judged, state, "{text}");
        assert!(text.contains(words), "{text}");
    }

    #[test]
    fn line_has_a_summary_and_performance_data() {
        let text = "web1 is follower of web0, term 7, 3 members alive|\
                    term=7 members=3;;;0;3 last_heard=212ms;;;0";
        assert_eq!(judged(&well()), (State::Ok, text.to_owned()));
        let mut leader = alone(Role::Leader);
        let voters = ["web1".parse().unwrap()];
        leader.quorum = Some(QuorumReport {
            voters: voters.to_vec(),
            needed: 1,
            reachable: 1,
            lease_ms: Some(812),
            counting: voters.to_vec(),
            not_counting: Vec::new(),
            pledged_to: None,
            disagreeing: Vec::new(),
        });
        let text = "web1 is leader, term 7, 1 member alive|term=7 members=1;;;0;1 lease=812ms;;;0";
        assert_eq!(judged(&leader), (State::Ok, text.to_owned()));
        leader.quorum.as_mut().unwrap().reachable = 0;
        assert_eq!(judged(&leader).0, State::Critical);
    }

    #[test]
    fn what_stops_the_service_is_critical() {
        let critical = |words, change: fn(&mut StatusReport)| {
            assert_judged(State::Critical, words, change);
        };
        critical("no leader known for 83 s", |report| report.leader = None);
        critical("has not released term 7", |report| report.hook.overdue_term = Some(Term(7)));
        critical("failed for elected with exit status 3", |report| {
            report.role = Role::Leader;
            report.hook.last_event = Some(HookEvent::Elected);
            report.hook.last_exit = Some(3);
        });
        critical("failed for started with exit status 3", |report| report.hook.last_exit = Some(3));
        critical("failed for demoted without an exit status", |report| {
            report.hook.last_event = Some(HookEvent::Demoted);
            report.hook.last_exit = None;
        });
    }

    #[test]
    fn what_should_be_looked_at_is_a_warning() {
        let warning = |words, change: fn(&mut StatusReport)| {
            assert_judged(State::Warning, words, change);
        };
        warning("suspect: web2", |report| report.members[2].state = MemberState::Suspect);
        warning("not eligible: a health check failed", |report| {
            report.ineligible_reasons = vec![Ineligible::CheckFailed];
        });
        warning("not eligible: the hook-runner has not", |report| {
            report.ineligible_reasons = vec![Ineligible::Maintenance, Ineligible::NoHookRunner];
        });
        warning("interface eth0 is down", |report| report.interfaces[0].up = false);
        warning("another daemon with this node_id was started at 10.0.0.99", |report| {
            let address = "10.0.0.99".parse().unwrap();
            report.duplicate = Some(DuplicateReport { address, last_ms: 3_000 });
        });
        warning("config file refused: a b", |report| {
            report.config.reload_failure = Some("a\nb".to_owned());
        });
        warning("restart needed for group", |report| {
            report.config.restart_needed = vec!["group".to_owned()];
        });
        warning("not saved: a / b", |report| report.state_failure = Some("a | b".to_owned()));
        warning("keys are not required", |report| report.key_mode = Some(KeyMode::Prefer));
    }

    #[test]
    fn what_an_operator_chose_is_no_problem() {
        for reason in [Ineligible::Maintenance, Ineligible::Observer, Ineligible::Yielding] {
            assert_judged(State::Ok, "follower of web0", |report| {
                report.ineligible_reasons = vec![reason];
            });
        }
        assert_judged(State::Ok, "web0", |report| {
            report.hook.last_event = Some(HookEvent::Elected);
            report.hook.last_exit = Some(1);
        });
    }

    #[test]
    fn handover_that_waits_for_its_hook_is_no_problem() {
        assert_judged(State::Ok, "web1 hands over, term 7, 3 members alive", |report| {
            report.leader = None;
            report.handing_over = Some(Reason::Yield);
        });
    }

    #[test]
    fn worst_problem_comes_first() {
        let mut report = well();
        report.leader = None;
        report.config.restart_needed = vec!["group".to_owned()];
        let (state, text) = judged(&report);
        assert_eq!(state, State::Critical);
        assert!(text.starts_with("no leader known for 83 s; restart needed"), "{text}");
    }

    #[test]
    fn daemon_that_is_down_is_critical_and_one_that_cannot_be_asked_is_unknown() {
        let state = |error: ClientError| failed(&error).0;
        assert_eq!(state(ClientError::Stale("/x".into())), State::Critical);
        assert_eq!(state(ClientError::TimedOut("/x".into())), State::Critical);
        assert_eq!(state(ClientError::NotPermitted("/x".into())), State::Unknown);
        let what = String::new();
        let other = ClientError::Incomprehensible { socket: "/x".into(), daemon: None, what };
        assert_eq!(state(other), State::Unknown);
        let mut out = Vec::new();
        assert_eq!(check(&Target::at("/no/such.sock"), &mut out), State::Critical);
        assert!(out.starts_with(b"LANELECT CRITICAL - cannot reach the daemon at /no/such.sock"));
    }
}
