//! Which members hear this node: it pings them, and those that do answer.

use std::thread;
use std::time::Duration;

use super::finding::Finding;
use crate::client::{ClientError, Target};
use crate::control_api::{MemberReport, Request, Response, StatusReport};
use crate::core::status::MemberState;
use crate::os::clock;

const TOPIC: &str = "hearers";

/// Most pings. A ping or its answer may be lost.
const PINGS_MAX: u32 = 5;

/// Longest time in all; only a large group needs it.
const PATIENCE: Duration = Duration::from_secs(15);

/// Longer than a datagram and a daemon that is busy need.
const SLACK: Duration = Duration::from_millis(200);

/// Most members that a line names.
const NAMED_MAX: usize = 8;

/// Who answered.
#[derive(Debug)]
pub(super) struct Facts {
    pings: u32,
    /// How many others are alive.
    others: usize,
    /// Those of them that did not answer.
    silent: Vec<String>,
    /// Whether all had the time to answer.
    had_time: bool,
}

/// Pings until all members that are alive have answered.
#[expect(clippy::disallowed_methods, reason = "a command that has nothing else to do meanwhile")]
pub(super) fn gather(target: &Target) -> Result<Facts, ClientError> {
    let begun = clock::now();
    let mut pings = 0;
    loop {
        pings += 1;
        let within = match target.ask(Request::Ping)? {
            Response::Pinged { answers_within_ms } => Duration::from_millis(answers_within_ms),
            other => return Err(target.unexpected(&other)),
        };
        let left = PATIENCE.saturating_sub(clock::now().since(begun));
        thread::sleep((within + SLACK).min(left));
        let report = target.status()?;
        let facts = facts(&report, pings, clock::now().since(begun));
        if facts.silent.is_empty() || pings == PINGS_MAX || within > left {
            return Ok(Facts { had_time: within <= PATIENCE, ..facts });
        }
    }
}

fn facts(report: &StatusReport, pings: u32, asked: Duration) -> Facts {
    let is_other = |member: &&MemberReport| {
        member.node_id != report.node_id && member.state == MemberState::Alive
    };
    let others: Vec<_> = report.members.iter().filter(is_other).collect();
    let answered = |member: &MemberReport| {
        member.answered_ms.is_some_and(|ago| u128::from(ago) <= asked.as_millis())
    };
    let silent = others.iter().filter(|member| !answered(member)).map(|member| name(member));
    Facts { pings, others: others.len(), silent: silent.collect(), had_time: true }
}

fn name(member: &MemberReport) -> String {
    let address = member.address.map_or(String::new(), |address| format!(" ({address})"));
    format!("{}{address}", member.node_id)
}

pub(super) fn judge(facts: &Result<Facts, ClientError>) -> Option<Finding> {
    let Facts { pings, others, silent, had_time } = match facts {
        Ok(facts) => facts,
        Err(error) => {
            let text = format!("whether the others hear this node, was not asked: {error}");
            return Some(Finding::unknown(TOPIC, text).remedy("run the doctor as root"));
        }
    };
    Some(match silent.len() {
        _ if *others == 0 => return None,
        0 => Finding::ok(TOPIC, format!("all {others} members that are heard also hear this node")),
        count if !had_time => {
            let text = format!(
                "{count} of {others} members have not answered within {} s, and so large a group \
                 takes longer",
                PATIENCE.as_secs()
            );
            Finding::unknown(TOPIC, text)
        }
        count => {
            let text = format!(
                "{} of {others} members that are heard do not hear this node ({pings} pings): {}",
                count,
                named(silent)
            );
            Finding::fail(TOPIC, text).remedy(
                "look there at the lines dropped and firewall of `lanelect doctor`, and at the \
                 switch",
            )
        }
    })
}

fn named(silent: &[String]) -> String {
    match silent.split_at_checked(NAMED_MAX) {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{}, and {} others", first.join(", "), rest.len())
        }
        _ => silent.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::follower;
    use super::*;
    use crate::control_api::{Refusal, RefusalKind};

    const ASKED: Duration = Duration::from_secs(2);

    fn line(report: &StatusReport) -> Option<String> {
        judge(&Ok(facts(report, 5, ASKED))).map(|finding| finding.line(0))
    }

    fn all_alive() -> StatusReport {
        let mut report = follower();
        report.members[2].state = MemberState::Alive;
        report
    }

    #[test]
    fn members_that_answer_and_those_that_do_not_are_told_apart() {
        let mut report = all_alive();
        report.members[0].answered_ms = Some(1_999);
        report.members[2].answered_ms = Some(2_001);
        let told = line(&report).unwrap();
        assert!(
            told.starts_with(
                "fail     hearers  1 of 2 members that are heard do not hear this node (5 pings): \
                 web2 (10.0.0.12); look there"
            ),
            "{told}"
        );
        report.members[2].answered_ms = Some(0);
        assert_eq!(
            line(&report).unwrap(),
            "ok       hearers  all 2 members that are heard also hear this node"
        );
    }

    #[test]
    fn only_members_that_are_heard_are_expected_to_answer() {
        let mut report = follower();
        report.members[0].answered_ms = Some(0);
        assert!(line(&report).unwrap().starts_with("ok       hearers  all 1 members"));
        report.members.truncate(2);
        report.members.remove(0);
        assert_eq!(line(&report), None);
    }

    #[test]
    fn who_may_not_ask_or_cannot_wait_is_told_so() {
        let refusal = Refusal::new(RefusalKind::NotPermitted, "you may not".to_owned());
        let told = judge(&Err(ClientError::Refused(refusal))).unwrap().line(0);
        assert!(told.starts_with("unknown  hearers  whether the others hear"), "{told}");
        assert!(told.ends_with("you may not; run the doctor as root"), "{told}");
        let facts = Facts { had_time: false, ..facts(&all_alive(), 1, ASKED) };
        let told = judge(&Ok(facts)).unwrap().line(0);
        assert!(told.starts_with("unknown  hearers  2 of 2 members have not"), "{told}");
    }

    #[test]
    fn a_line_names_a_few() {
        let names: Vec<_> = (0..10).map(|number| format!("n{number}")).collect();
        assert!(named(&names).ends_with("n7, and 2 others"));
        assert!(named(&names[..8]).ends_with("n6, n7"));
    }
}
