//! A yield that names its successor.

use super::*;
use crate::core::election::{NoSuccessor, YieldError, Yielding};

fn yield_to(lan: &mut Lan, successor: &str) -> Result<Yielding, YieldError> {
    lan.on("a", |election, now| election.yield_to(now, id(successor)))
}

fn refusal(lan: &mut Lan, successor: &str) -> NoSuccessor {
    match yield_to(lan, successor) {
        Err(YieldError::Successor { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn leader_hands_over_to_the_named_member_and_not_to_the_best() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    assert_eq!(yield_to(&mut lan, "c"), Ok(Yielding::Began));
    assert_eq!(lan.leaders(), ["c"]);
    assert_eq!(lan.take("c").hooks(), [(HookEvent::Elected, Reason::Handover)]);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["c"]);
}

#[test]
fn node_that_cannot_take_over_is_refused_with_the_reason() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.start("o", Params { candidate: false, ..patient() });
    lan.pass(secs(5));
    lan.on("b", |election, now| election.set_maintenance(now, true));
    assert_eq!(refusal(&mut lan, "a"), NoSuccessor::ThisNode);
    assert_eq!(refusal(&mut lan, "nobody"), NoSuccessor::NotMember);
    assert_eq!(refusal(&mut lan, "o"), NoSuccessor::Observer);
    assert_eq!(refusal(&mut lan, "b"), NoSuccessor::NotEligible);
    lan.crash("c");
    lan.pass(secs(6));
    assert_eq!(refusal(&mut lan, "c"), NoSuccessor::Silent);
    lan.pass(secs(10));
    assert_eq!(refusal(&mut lan, "c"), NoSuccessor::NotMember);
    assert_eq!(lan.leaders(), ["a"], "nothing has changed");
}

#[test]
fn another_node_takes_over_if_the_named_one_fails_before_the_hook_has_ended() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.set_hooks("a", None);
    yield_to(&mut lan, "c").unwrap();
    lan.crash("c");
    lan.pass(secs(30));
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn successor_may_be_named_while_the_leader_hands_over() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.set_hooks("a", None);
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    assert_eq!(yield_to(&mut lan, "c"), Ok(Yielding::Already));
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.leaders(), ["c"]);
    assert_eq!(yield_to(&mut lan, "b"), Err(YieldError::NotLeader));
}
