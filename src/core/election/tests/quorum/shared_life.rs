//! Two daemons in one life, because the memory of a virtual machine was copied.

use super::*;

/// The next datagram of the copy of `name`, a while after the memory was copied.
fn word_of_copy(lan: &mut Lan, name: &str) -> Message {
    let mut word = lan.take(name).sent().last().unwrap().1;
    word.sequence.0 += 1000;
    word
}

#[test]
fn leader_that_hears_a_copy_of_its_life_stops_without_a_farewell() {
    let mut lan = three();
    lan.pass(secs(2));
    let word = word_of_copy(&mut lan, "a");
    lan.hear(word);
    let (outputs, ended) = (lan.take("a"), lan.now);
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::Shutdown)]);
    assert_eq!(outputs.bodies(), [], "a datagram of one counts for both");
    assert_eq!(outputs.stopped(), Some(StopCause::LifeShared { with: address(id("a")) }));
    lan.pass(secs(8));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "the other may lead");
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["b"], "{:?} after", lan.now.since(ended));
}

/// A resignation counts for both, and has a number above all that the copy will ever use.
#[test]
fn nobody_resigns_for_a_dead_daemon_whose_copy_runs() {
    let mut lan = three();
    lan.pass(secs(2));
    let word = word_of_copy(&mut lan, "a");
    lan.set_hooks("a", None);
    lan.take("a");
    lan.hear(word);
    let outputs = lan.take("a").0;
    assert!(outputs.iter().any(|(_, output)| *output == Output::UpdateCrashPlan));
    let plan = lan.at("a").crash_plan().unwrap();
    assert_eq!(plan.hook.map(|run| run.event), Some(HookEvent::Demoted));
    assert_eq!(plan.resignation, None);
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.at("a").crash_plan(), None);
}

#[test]
fn stopping_daemon_that_hears_its_copy_sends_nothing_more() {
    let mut lan = three();
    lan.pass(secs(2));
    let word = word_of_copy(&mut lan, "a");
    lan.set_hooks("a", None);
    lan.on("a", |election, now| election.stop(now));
    lan.hear(word);
    lan.take("a");
    lan.end_hook("a", HookOutcome::Succeeded);
    let outputs = lan.take("a");
    assert_eq!(outputs.bodies(), []);
    assert!(matches!(outputs.stopped(), Some(StopCause::LifeShared { .. })));
}

#[test]
fn daemon_in_available_mode_stops_if_another_uses_its_life() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.pass(secs(2));
    let word = word_of_copy(&mut lan, "a");
    lan.hear(word);
    let outputs = lan.take("a");
    assert!(matches!(outputs.stopped(), Some(StopCause::LifeShared { .. })));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
}
