//! Who may lead, and what happens when that changes.

use super::*;
use crate::core::params::OnElectedFailure;
use crate::core::status::Ineligible;

const FAILED: Option<HookOutcome> = Some(HookOutcome::Failed);
const SUCCEEDED: Option<HookOutcome> = Some(HookOutcome::Succeeded);

fn observer() -> Params {
    Params { candidate: false, ..Params::default() }
}

fn at_least_two() -> Params {
    Params { min_candidates: 2, ..Params::default() }
}

fn holdoffs(outputs: &Outputs) -> Vec<Duration> {
    let held_off = |event| match event {
        Event::HeldOff { holdoff } => Some(holdoff),
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
    lan.hear(leader.says(EVERY_SECOND));
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    lan.hear(leader.says(Body::Resignation { successor: Some(id("a")) }));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert!(!lan.take("a").bodies().contains(&Body::Proposal));
}

#[test]
fn an_observer_is_never_named_as_successor() {
    let mut lan = Lan::led_by("m");
    let mut watcher = Peer::new("a");
    watcher.flags = Flags::default();
    lan.hear(watcher.says(Body::Heartbeat { leader: None, conceded: None, acknowledged: None }));
    lan.tell("m", Election::stop);
    assert_eq!(lan.take("m").bodies()[0], Body::Resignation { successor: None });
}

#[test]
fn without_enough_candidates_in_sight_nobody_leads() {
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
fn a_leader_that_loses_sight_of_enough_candidates_steps_down() {
    let mut lan = Lan::settled(&["a", "b"], &at_least_two());
    assert_eq!(lan.leaders(), ["a"]);
    lan.cut_off("a");
    lan.pass(secs(12));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::TooFewCandidates)]);
    lan.reconnect("a");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_farewell_that_leaves_too_few_candidates_ends_the_reign_at_once() {
    let mut lan = Lan::settled(&["a", "b"], &at_least_two());
    lan.tell("b", Election::stop);
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::TooFewCandidates)]);
}

#[test]
fn a_leader_whose_elected_hook_fails_makes_room_for_another() {
    let mut lan = Lan::new();
    lan.start("a", Params::default());
    lan.set_hooks("a", FAILED);
    lan.start("b", Params::default());
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
fn every_failure_in_a_row_doubles_the_time_out_and_a_success_resets_it() {
    let mut lan = Lan::new();
    lan.start("a", Params::default());
    lan.set_hooks("a", FAILED);
    lan.pass(secs(2 + 60 + 120 + 239));
    assert_eq!(holdoffs(&lan.take("a")), [secs(60), secs(120), secs(240)]);
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["a"]);
    lan.set_hooks("a", FAILED);
    lan.tell("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(18));
    assert_eq!(holdoffs(&lan.take("a")), [secs(60)]);
}

#[test]
fn the_time_out_after_failures_is_bounded() {
    let mut lan = Lan::new();
    lan.start("a", Params { failure_holdoff: secs(1000), ..Params::default() });
    lan.set_hooks("a", FAILED);
    lan.pass(secs(2 + 1000 + 2000 + 3600));
    let expected = [1000, 2000, 3600, 3600].map(secs);
    assert_eq!(holdoffs(&lan.take("a")), expected);
}

#[test]
fn a_failed_hook_can_be_ignored() {
    let mut lan = Lan::new();
    let params = Params { on_elected_failure: OnElectedFailure::Ignore, ..Params::default() };
    lan.start("a", params);
    lan.set_hooks("a", FAILED);
    lan.pass(secs(100));
    assert_eq!(lan.leaders(), ["a"]);
    let outputs = lan.take("a");
    assert_eq!(outputs.hooks().len(), 2);
    assert!(holdoffs(&outputs).is_empty());
}

#[test]
fn failures_of_other_hooks_hold_nobody_off() {
    let mut lan = Lan::settled(&["a", "b"], &Params::default());
    lan.set_hooks("a", FAILED);
    lan.hear(Peer::leading("z", 9).says(EVERY_SECOND));
    let outputs = lan.take("a");
    assert_eq!(outputs.hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    assert!(holdoffs(&outputs).is_empty());
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_leader_without_a_link_steps_down_and_listens_before_it_stands_again() {
    let mut lan = Lan::led_by("a");
    lan.tell("a", |election, now| election.handle_links(now, false));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::InterfaceDown)]);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::InterfaceDown));
    lan.tell("a", |election, now| election.handle_links(now, true));
    lan.pass(ms(2999));
    assert_eq!(lan.at("a").role(), Role::Follower, "a leader gets the time to be heard");
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_node_whose_link_comes_back_follows_the_leader_that_took_over() {
    let mut lan = Lan::settled(&["a", "b"], &Params::default());
    lan.cut_off("a");
    lan.tell("a", |election, now| election.handle_links(now, false));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    lan.reconnect("a");
    lan.tell("a", |election, now| election.handle_links(now, true));
    lan.take("b");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.at("a").leader(), Some(id("b")));
    assert_eq!(lan.take("b").hooks(), []);
}

#[test]
fn a_new_priority_does_not_cost_the_leadership() {
    let mut lan = Lan::settled(&["a", "b"], &Params::default());
    lan.tell("a", |election, now| election.reconfigure(now, priority(1)));
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks(), []);
    assert_eq!(lan.at("b").leader(), Some(id("a")));
}

#[test]
fn a_leader_that_is_made_an_observer_hands_over_and_may_come_back() {
    let mut lan = Lan::settled(&["a", "b"], &Params::default());
    lan.tell("a", |election, now| election.reconfigure(now, observer()));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::Reconfigured)]);
    lan.tell("a", |election, now| election.reconfigure(now, Params::default()));
    lan.crash("b");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn new_intervals_count_at_once() {
    let mut lan = Lan::led_by("a");
    lan.pass(ms(500));
    lan.take("a");
    lan.tell("a", |election, now| election.reconfigure(now, Params::new(ms(100))));
    lan.pass(secs(1));
    let outputs = lan.take("a");
    assert!(outputs.declarations().len() >= 10);
    assert_eq!(outputs.bodies()[0], Body::Declaration { interval_us: 100_000, hold_us: 0 });
}

#[test]
fn a_larger_min_candidates_counts_at_once() {
    let mut lan = Lan::led_by("a");
    lan.tell("a", |election, now| election.reconfigure(now, at_least_two()));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::TooFewCandidates)]);
}

#[test]
fn a_candidate_that_may_no_longer_stand_withdraws() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", Params::default(), &mut leader);
    lan.hear(leader.says(Body::Resignation { successor: None }));
    lan.pass(ms(100));
    assert_eq!(lan.at("m").role(), Role::Candidate);
    lan.tell("m", |election, now| election.set_maintenance(now, true));
    assert_eq!(lan.at("m").role(), Role::Follower);
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new());
}
