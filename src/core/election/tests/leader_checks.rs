//! The leader's health check, of which the results count only while this node leads.

use super::*;
use crate::core::params::Thresholds;
use crate::core::status::{HealthState, Ineligible};

/// With a leader's check of fall 3 and rise 2.
fn checked() -> Params {
    Params { check_leader: Some(Thresholds::default()), ..patient() }
}

/// The leader's check of `host` has these results; `+` is a success, `-` a failure.
fn check(lan: &mut Lan, host: &str, results: &str) {
    for result in results.chars() {
        lan.on(host, |election, now| election.handle_leader_check(now, result == '+'));
    }
}

fn health(lan: &Lan, host: &str) -> Option<HealthState> {
    lan.at(host).leader_health().map(|health| health.state())
}

fn holdoffs(outputs: &Outputs) -> Vec<Duration> {
    let held_off = |event| match event {
        Event::HeldOff { reason: Reason::CheckFailed, holdoff } => Some(holdoff),
        _ => None,
    };
    outputs.events().filter_map(held_off).collect()
}

#[test]
fn leader_with_failing_check_hands_over_and_is_held_off() {
    let mut lan = Lan::stable(&["a", "b"], &checked());
    assert_eq!(lan.leaders(), ["a"]);
    check(&mut lan, "a", "+--+--");
    assert_eq!(lan.leaders(), ["a"], "not three failures in a row");
    check(&mut lan, "a", "-");
    lan.pass(secs(1));
    assert_eq!(lan.leaders(), ["b"]);
    let outputs = lan.take("a");
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::CheckFailed)]);
    assert_eq!(holdoffs(&outputs), [secs(60)]);
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::CheckFailed));
    assert_eq!(health(&lan, "a"), Some(HealthState::Failing));
    lan.pass(secs(60));
    assert_eq!(lan.at("a").ineligible(lan.now), None);
    assert_eq!(health(&lan, "a"), Some(HealthState::Pending));
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn followers_check_results_mean_nothing() {
    let mut lan = Lan::stable(&["a", "b"], &checked());
    check(&mut lan, "b", "-----");
    assert_eq!(health(&lan, "b"), Some(HealthState::Pending));
    assert_eq!(lan.at("b").ineligible(lan.now), None);
}

#[test]
fn results_count_only_after_the_hook_has_taken_over() {
    let mut lan = Lan::new();
    lan.start("a", checked());
    lan.set_hooks("a", None);
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(3));
    assert_eq!(lan.leaders(), ["a"]);
    assert!(!lan.at("a").has_taken_over() && !lan.at("a").may_check());
    check(&mut lan, "a", "------");
    assert_eq!(lan.leaders(), ["a"], "its hook for elected runs");
    lan.end_hook("a", HookOutcome::Succeeded);
    assert!(lan.at("a").has_taken_over() && lan.at("a").may_check());
    check(&mut lan, "a", "--");
    assert_eq!(lan.leaders(), ["a"]);
    check(&mut lan, "a", "-");
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert!(!lan.at("a").has_taken_over() && lan.at("a").may_check(), "a follower is checked");
}

#[test]
fn each_failed_leadership_doubles_the_holdoff_until_the_check_has_passed() {
    let mut lan = Lan::new();
    lan.start("a", checked());
    lan.pass(secs(3));
    for (results, holdoff) in [("---", 60), ("+---", 120), ("++---", 60)] {
        lan.take("a");
        check(&mut lan, "a", results);
        assert_eq!(holdoffs(&lan.take("a")), [secs(holdoff)], "{results}");
        lan.pass(secs(holdoff + 10));
        assert_eq!(lan.leaders(), ["a"]);
    }
}

#[test]
fn leader_keeps_leading_when_the_check_is_added_or_removed() {
    let mut lan = Lan::led_by("a");
    lan.on("a", |election, now| election.reconfigure(now, checked()));
    check(&mut lan, "a", "--");
    lan.on("a", |election, now| election.reconfigure(now, patient()));
    assert_eq!(health(&lan, "a"), None);
    check(&mut lan, "a", "---");
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn holdoff_ends_when_the_check_that_failed_is_removed() {
    let mut lan = Lan::led_by("a");
    lan.on("a", |election, now| election.reconfigure(now, checked()));
    check(&mut lan, "a", "---");
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::CheckFailed));
    lan.on("a", |election, now| election.reconfigure(now, patient()));
    assert_eq!(lan.at("a").ineligible(lan.now), None);
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}
