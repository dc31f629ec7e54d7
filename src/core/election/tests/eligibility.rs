//! Which nodes may lead, and what happens when that changes.

use super::*;
use crate::core::election::{YieldError, Yielding};
use crate::core::params::{OnElectedFailure, Thresholds};
use crate::core::status::{HealthState, Ineligible};

const FAILED: Option<HookOutcome> = Some(HookOutcome::Failed);
const SUCCEEDED: Option<HookOutcome> = Some(HookOutcome::Succeeded);

fn observer() -> Params {
    Params { candidate: false, ..patient() }
}

fn at_least_two() -> Params {
    Params { min_candidates: 2, ..patient() }
}

/// With a check of fall 3 and rise 2.
fn checked() -> Params {
    Params { check: Some(Thresholds::default()), ..patient() }
}

/// The check of `host` has these results; `+` is a success, `-` a failure.
fn check(lan: &mut Lan, host: &str, results: &str) {
    for result in results.chars() {
        lan.on(host, |election, now| election.handle_check(now, result == '+'));
    }
}

fn health(lan: &Lan, host: &str) -> Option<HealthState> {
    lan.at(host).health().map(|health| health.state())
}

fn holdoffs(outputs: &Outputs) -> Vec<Duration> {
    let held_off = |event| match event {
        Event::HeldOff { holdoff, .. } => Some(holdoff),
        _ => None,
    };
    outputs.events().filter_map(held_off).collect()
}

#[test]
fn an_observer_follows_but_never_leads() {
    let mut lan = Lan::new();
    lan.start("a", observer());
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::Observer));
    let mut leader = Peer::leading("z", 1);
    lan.hear(leader.sends(EVERY_SECOND));
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    lan.hear(leader.sends(Body::Resignation { successor: Some(id("a")) }));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert!(!lan.take("a").bodies().contains(&Body::Proposal));
}

#[test]
fn an_observer_is_never_named_as_successor() {
    let mut lan = Lan::led_by("m");
    let mut watcher = Peer::new("a");
    watcher.flags = Flags::default();
    lan.hear(watcher.sends(HEARTBEAT));
    lan.on("m", Election::stop);
    assert_eq!(lan.take("m").bodies()[0], Body::Resignation { successor: None });
}

#[test]
fn no_node_leads_with_too_few_candidates() {
    let mut lan = Lan::new();
    lan.start("a", at_least_two());
    lan.start("o", Params { min_candidates: 2, ..observer() });
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "an observer is no candidate");
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::TooFewCandidates));
    assert!(lan.take("a").has_event(Event::TooFewCandidates { visible: 1, needed: 2 }));
    lan.start("b", at_least_two());
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.at("a").ineligible(lan.now), None);
}

#[test]
fn leader_with_too_few_candidates_steps_down() {
    let mut lan = Lan::stable(&["a", "b"], &at_least_two());
    assert_eq!(lan.leaders(), ["a"]);
    lan.cut_off("a");
    lan.pass(secs(15));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::TooFewCandidates)]);
    lan.reconnect("a");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_farewell_that_leaves_too_few_candidates_ends_the_leadership_at_once() {
    let mut lan = Lan::stable(&["a", "b"], &at_least_two());
    lan.on("b", Election::stop);
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::TooFewCandidates)]);
}

#[test]
fn leader_with_failed_elected_hook_hands_over() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.set_hooks("a", FAILED);
    lan.start("b", patient());
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::HookFailed));
    let hooks = lan.take("a").hooks();
    assert_eq!(
        hooks[1..],
        [(HookEvent::Elected, Reason::Election), (HookEvent::Demoted, Reason::HookFailed)]
    );
}

#[test]
fn leader_whose_elected_hook_fails_while_it_yields_is_held_off() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.set_hooks("a", None);
    lan.pass(secs(1));
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.start("b", patient());
    lan.pass(secs(5));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.end_hook("a", HookOutcome::Failed);
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["b"]);
    let outputs = lan.take("a");
    let events: Vec<_> = outputs.hooks().into_iter().skip(1).collect();
    let expected = [(HookEvent::Elected, Reason::Election), (HookEvent::Demoted, Reason::Yield)];
    assert_eq!(events, expected);
    assert_eq!(holdoffs(&outputs), [secs(60)]);
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::HookFailed));
}

/// The node yields because what it leads for has failed.
fn fail(lan: &mut Lan, name: &str) -> Result<Yielding, YieldError> {
    lan.on(name, |election, now| election.yield_after_failure(now))
}

#[test]
fn each_node_is_tried_before_one_that_failed_leads_again() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    for (name, next) in [("a", "b"), ("b", "c")] {
        assert_eq!(fail(&mut lan, name), Ok(Yielding::Began));
        assert_eq!(lan.leaders(), [next]);
        let outputs = lan.take(name);
        assert_eq!(outputs.hooks().last(), Some(&(HookEvent::Demoted, Reason::Yield)));
        assert_eq!(holdoffs(&outputs), [secs(60)]);
        assert_eq!(lan.at(name).ineligible(lan.now), Some(Ineligible::ServiceFailed));
    }
    // No node can replace the last one, which so tries again when the yield time is over.
    assert_eq!(fail(&mut lan, "c"), Ok(Yielding::Began));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["c"]);
    assert!(holdoffs(&lan.take("c")).is_empty());
    lan.pass(secs(31));
    assert!(lan.at("a").is_eligible());
}

/// The successor that the failed node counts on has died, and is not suspected yet.
#[test]
fn failed_node_leads_again_if_its_successor_has_died() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.crash("b");
    assert_eq!(fail(&mut lan, "a"), Ok(Yielding::Began));
    assert_eq!(holdoffs(&lan.take("a")), [secs(60)]);
    lan.pass(patient().yield_time());
    assert!(lan.at("a").is_eligible());
    lan.pass(secs(15));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn failed_node_stays_out_after_another_one_has_led_briefly() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    assert_eq!(fail(&mut lan, "a"), Ok(Yielding::Began));
    assert_eq!(lan.leaders(), ["b"]);
    lan.crash("b");
    lan.pass(secs(50));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    lan.pass(secs(11));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn failure_during_a_handover_causes_no_holdoff() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", None);
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    assert_eq!(fail(&mut lan, "a"), Ok(Yielding::Already));
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(fail(&mut lan, "a"), Err(YieldError::NotLeader));
    assert!(holdoffs(&lan.take("a")).is_empty());
}

#[test]
fn failure_of_hook_and_service_counts_once() {
    let mut lan = Lan::new();
    lan.start("b", patient());
    lan.pass(secs(5));
    lan.start("a", patient());
    lan.set_hooks("a", None);
    lan.pass(secs(5));
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.on("b", |election, now| election.yield_leadership(now)).unwrap();
    assert_eq!(fail(&mut lan, "a"), Ok(Yielding::Began));
    lan.end_hook("a", HookOutcome::Failed);
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(holdoffs(&lan.take("a")), [secs(60)]);
}

#[test]
fn each_failure_in_a_row_doubles_the_holdoff_and_a_success_resets_it() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.set_hooks("a", FAILED);
    lan.pass(secs(2 + 60 + 120 + 239));
    assert_eq!(holdoffs(&lan.take("a")), [secs(60), secs(120), secs(240)]);
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["a"]);
    lan.set_hooks("a", FAILED);
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(18));
    assert_eq!(holdoffs(&lan.take("a")), [secs(60)]);
}

#[test]
fn holdoff_is_bounded() {
    let mut lan = Lan::new();
    lan.start("a", Params { failure_holdoff: secs(1000), ..patient() });
    lan.set_hooks("a", FAILED);
    lan.pass(secs(2 + 1000 + 2000 + 3600));
    let expected = [1000, 2000, 3600, 3600].map(secs);
    assert_eq!(holdoffs(&lan.take("a")), expected);
}

#[test]
fn a_failed_hook_can_be_ignored() {
    let mut lan = Lan::new();
    let params = Params { on_elected_failure: OnElectedFailure::Ignore, ..patient() };
    lan.start("a", params);
    lan.set_hooks("a", FAILED);
    lan.pass(secs(100));
    assert_eq!(lan.leaders(), ["a"]);
    let outputs = lan.take("a");
    assert_eq!(outputs.hooks().len(), 2);
    assert!(holdoffs(&outputs).is_empty());
}

#[test]
fn failures_of_other_hooks_cause_no_holdoff() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", FAILED);
    lan.hear(Peer::leading("z", 9).sends(EVERY_SECOND));
    let outputs = lan.take("a");
    assert_eq!(outputs.hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    assert!(holdoffs(&outputs).is_empty());
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_leader_without_a_link_steps_down_and_listens_before_it_stands_again() {
    let mut lan = Lan::led_by("a");
    lan.on("a", |election, now| election.handle_links(now, false));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::InterfaceDown)]);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::InterfaceDown));
    lan.on("a", |election, now| election.handle_links(now, true));
    lan.pass(ms(2999));
    assert_eq!(lan.at("a").role(), Role::Follower, "it waits to hear a leader");
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

/// A check that needs the link fails with it, and passes again before a declaration has come.
#[test]
fn a_node_whose_check_recovers_with_its_link_listens_before_it_stands() {
    let params = Params { check: Some(Thresholds { fall: 1, rise: 1 }), ..patient() };
    let mut lan = Lan::new();
    for name in ["a", "b"] {
        lan.start(name, params.clone());
        lan.on(name, |election, now| election.handle_check(now, true));
    }
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["a"]);
    lan.cut_off("a");
    lan.on("a", |election, now| election.handle_links(now, false));
    lan.on("a", |election, now| election.handle_check(now, false));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
    lan.take("b");
    lan.reconnect("a");
    lan.on("a", |election, now| election.handle_links(now, true));
    lan.on("a", |election, now| election.handle_check(now, true));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("b").hooks(), []);
}

#[test]
fn a_node_that_has_heard_its_leader_since_its_link_is_back_stands_at_once() {
    let mut leader = Peer::leading("z", 1);
    let mut lan = Lan::following("a", patient(), &mut leader);
    lan.on("a", |election, now| election.handle_links(now, false));
    lan.on("a", |election, now| election.handle_links(now, true));
    lan.hear(leader.sends(EVERY_SECOND));
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    lan.hear(leader.sends(Body::Resignation { successor: None }));
    lan.pass(secs(1));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_node_whose_handover_ends_when_its_link_is_back_listens_before_it_stands() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", None);
    lan.cut_off("a");
    lan.on("a", |election, now| election.handle_links(now, false));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
    lan.take("b");
    lan.reconnect("a");
    lan.on("a", |election, now| election.handle_links(now, true));
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("b").hooks(), []);
}

#[test]
fn a_leader_whose_hook_runner_disagrees_hands_over_until_it_agrees() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.take("a");
    lan.on("a", |election, now| election.handle_hook_runner(now, false));
    lan.pass(secs(1));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::Reconfigured)]);
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::NoHookRunner));
    lan.on("a", |election, now| election.set_maintenance(now, true));
    let reasons = lan.at("a").status(lan.now).ineligible;
    assert_eq!(reasons, [Ineligible::Maintenance, Ineligible::NoHookRunner], "none hides another");
    lan.on("a", |election, now| election.set_maintenance(now, false));
    lan.on("a", |election, now| election.handle_hook_runner(now, true));
    assert_eq!(lan.at("a").ineligible(lan.now), None);
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn a_node_whose_link_comes_back_follows_the_leader_that_took_over() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.cut_off("a");
    lan.on("a", |election, now| election.handle_links(now, false));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    lan.reconnect("a");
    lan.on("a", |election, now| election.handle_links(now, true));
    lan.take("b");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.at("a").leader(), Some(id("b")));
    assert_eq!(lan.take("b").hooks(), []);
}

#[test]
fn a_new_priority_does_not_cost_the_leadership() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.on("a", |election, now| election.reconfigure(now, priority(1)));
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks(), []);
    assert_eq!(lan.at("b").leader(), Some(id("a")));
}

#[test]
fn a_leader_that_is_made_an_observer_hands_over_and_may_come_back() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.on("a", |election, now| election.reconfigure(now, observer()));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::Reconfigured)]);
    lan.on("a", |election, now| election.reconfigure(now, patient()));
    lan.crash("b");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn new_intervals_count_at_once() {
    let mut lan = Lan::led_by("a");
    lan.pass(ms(500));
    lan.take("a");
    lan.on("a", |election, now| election.reconfigure(now, Params::new(ms(100))));
    lan.pass(secs(1));
    let outputs = lan.take("a");
    assert!(outputs.declarations().len() >= 10);
    assert_eq!(outputs.bodies()[0], Body::Declaration { interval_us: 100_000, hold_us: 0 });
}

#[test]
fn a_larger_min_candidates_counts_at_once() {
    let mut lan = Lan::led_by("a");
    lan.on("a", |election, now| election.reconfigure(now, at_least_two()));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::TooFewCandidates)]);
}

#[test]
fn a_candidate_that_may_no_longer_stand_withdraws() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.hear(leader.sends(Body::Resignation { successor: None }));
    lan.pass(ms(100));
    assert_eq!(lan.at("m").role(), Role::Candidate);
    lan.on("m", |election, now| election.set_maintenance(now, true));
    assert_eq!(lan.at("m").role(), Role::Follower);
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new());
}

#[test]
fn leader_with_failing_check_hands_over_and_stays_out_until_it_passes() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.on("a", |election, now| election.reconfigure(now, checked()));
    lan.take("a");
    check(&mut lan, "a", "--");
    assert_eq!(lan.leaders(), ["a"], "two failures are too few");
    check(&mut lan, "a", "-");
    assert_eq!(lan.leaders(), ["b"], "the successor was named");
    let outputs = lan.take("a");
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::CheckFailed)]);
    assert!(outputs.bodies().contains(&Body::Resignation { successor: Some(id("b")) }));
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::CheckFailed));

    check(&mut lan, "a", "+");
    lan.crash("b");
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "one success is too few");
    check(&mut lan, "a", "+");
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn demote_hook_after_a_failing_check_ends_before_another_node_leads() {
    let mut lan = Lan::stable(&["a", "b"], &checked());
    check(&mut lan, "a", "+");
    lan.pass(secs(5));
    check(&mut lan, "b", "+");
    assert_eq!(lan.leaders(), ["a"]);
    lan.set_hooks("a", None);
    check(&mut lan, "a", "---");
    lan.pass(secs(10));
    assert_eq!(lan.at("b").leader(), Some(id("a")), "it declares until its hooks have released");
    lan.set_hooks("a", SUCCEEDED);
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn a_node_with_a_check_starts_without_waiting_and_stands_by_the_first_result() {
    let mut lan = Lan::new();
    lan.start("a", checked());
    lan.pass(secs(10));
    assert_eq!(lan.at("a").role(), Role::Follower, "the start-up is over");
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::CheckPending));
    check(&mut lan, "a", "+");
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["a"]);

    lan.start("b", checked());
    check(&mut lan, "b", "-");
    assert_eq!(lan.at("b").ineligible(lan.now), Some(Ineligible::CheckFailed));
    assert_eq!(lan.at("b").role(), Role::Starting);
    lan.pass(secs(10));
    lan.crash("a");
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new());
}

#[test]
fn a_first_result_during_the_start_up_costs_no_time() {
    let mut lan = Lan::new();
    lan.start("a", checked());
    lan.start("b", patient());
    check(&mut lan, "a", "+");
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_candidate_whose_check_fails_withdraws() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.on("m", |election, now| election.reconfigure(now, checked()));
    lan.hear(leader.sends(Body::Resignation { successor: None }));
    lan.pass(ms(100));
    assert_eq!(lan.at("m").role(), Role::Candidate);
    check(&mut lan, "m", "---");
    assert_eq!(lan.at("m").role(), Role::Follower);
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new());
}

#[test]
fn leader_keeps_leading_when_a_check_is_added_or_removed() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.on("a", |election, now| election.reconfigure(now, checked()));
    assert_eq!(health(&lan, "a"), Some(HealthState::Healthy));
    check(&mut lan, "a", "+--");
    let easier = Params { check: Some(Thresholds { fall: 4, rise: 1 }), ..checked() };
    lan.on("a", |election, now| election.reconfigure(now, easier));
    check(&mut lan, "a", "-");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    lan.on("a", |election, now| election.reconfigure(now, patient()));
    assert_eq!(health(&lan, "a"), None);
    check(&mut lan, "a", "-----");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks(), []);
}

#[test]
fn node_is_eligible_again_when_its_failing_check_is_removed() {
    let mut lan = Lan::new();
    lan.start("a", checked());
    check(&mut lan, "a", "-");
    lan.pass(secs(10));
    lan.on("a", |election, now| election.reconfigure(now, checked()));
    assert_eq!(health(&lan, "a"), Some(HealthState::Failing), "its last state stays");
    assert_eq!(lan.leaders(), Vec::<String>::new());
    lan.on("a", |election, now| election.reconfigure(now, patient()));
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn preempting_candidate_claims_the_leadership_when_its_check_passes_again() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.on("a", |election, now| {
        election.reconfigure(now, Params { preempt: true, priority: Priority(200), ..checked() });
    });
    check(&mut lan, "a", "---");
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"]);
    check(&mut lan, "a", "++");
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("b").hooks().last(), Some(&(HookEvent::Demoted, Reason::Preempted)));
}
