//! The crash plan.

use super::*;
use crate::core::crash_plan::CrashPlan;

/// How often a new crash plan was requested.
fn plans(outputs: &Outputs) -> usize {
    outputs.0.iter().filter(|(_, output)| matches!(output, Output::UpdateCrashPlan)).count()
}

fn crash_plan_of(lan: &Lan, name: &str) -> CrashPlan {
    lan.at(name).crash_plan().unwrap()
}

#[test]
fn follower_has_no_crash_plan() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.pass(secs(60));
    assert_eq!(lan.at("b").crash_plan(), None);
    assert_eq!(plans(&lan.take("b")), 0);
}

#[test]
fn crash_plan_of_a_leader_demotes_and_names_the_best_successor() {
    let lan = Lan::stable(&["a", "b", "c"], &patient());
    let plan = crash_plan_of(&lan, "a");
    let hook = plan.hook.unwrap();
    assert_eq!((hook.event, hook.reason), (HookEvent::Demoted, Reason::Crashed));
    assert_eq!((hook.role, hook.term), (Role::Follower, Term(1)));
    assert_eq!((hook.leader, hook.previous_leader), (None, Some(id("a"))));
    let resignation = plan.resignation.unwrap();
    assert_eq!(resignation.body, Body::Resignation { successor: Some(id("b")) });
    assert!(!resignation.standing.flags.contains(Flags::ELIGIBLE), "a dead node is eligible");
    assert_eq!(plan.grace, None);
}

#[test]
fn crash_plan_is_updated_only_when_it_changes() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.pass(secs(60));
    assert_eq!(plans(&lan.take("a")), 0);
    lan.crash("b");
    lan.pass(secs(60));
    assert_eq!(plans(&lan.take("a")), 1);
    let resignation = crash_plan_of(&lan, "a").resignation.unwrap();
    assert_eq!(resignation.body, Body::Resignation { successor: None });
}

#[test]
fn crash_plan_exists_from_before_the_takeover_until_the_hooks_have_let_go() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.set_hooks("a", None);
    lan.pass(secs(3));
    let outputs = lan.take("a");
    let elected =
        |output: &Output| matches!(output, Output::RunHook(run) if run.event == HookEvent::Elected);
    let takes_over = outputs.0.iter().position(|(_, output)| elected(output)).unwrap();
    assert_eq!(outputs.0[takes_over - 1].1, Output::UpdateCrashPlan);
    assert!(crash_plan_of(&lan, "a").hook.is_some());
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.on("a", |election, now| election.stop(now));
    assert!(crash_plan_of(&lan, "a").hook.is_some(), "while the demote hook runs");
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.at("a").crash_plan(), None);
    let last: Vec<_> = lan.take("a").0.into_iter().map(|(_, output)| output).collect();
    let cleared = last.iter().rposition(|output| *output == Output::UpdateCrashPlan);
    assert!(cleared < last.iter().position(|output| matches!(output, Output::Stopped(_))));
}

#[test]
fn resignation_in_a_crash_plan_is_newer_than_all_other_datagrams() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    let plan = crash_plan_of(&lan, "a");
    lan.crash("a");
    lan.hear(plan.resignation.unwrap());
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Elected, Reason::Handover)]);
    assert!(!lan.take("c").bodies().contains(&Body::Proposal));
}

#[test]
fn crash_plan_of_an_earlier_life_is_ignored() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    let plan = crash_plan_of(&lan, "a");
    lan.crash("a");
    lan.start("a", patient());
    lan.pass(secs(60));
    let before = lan.leaders();
    lan.hear(plan.resignation.unwrap());
    assert_eq!(lan.leaders(), before);
}
