//! Hooks that do not release everything: the node neither resigns nor votes, and is fenced.

use super::leases::elected;
use super::*;
use crate::core::status::Ineligible;

const NOT_LET_GO: [HookOutcome; 3] = [HookOutcome::Failed, HookOutcome::Lost, HookOutcome::NotRun];

fn resigns(outputs: &Outputs) -> bool {
    outputs.bodies().iter().any(|body| matches!(body, Body::Resignation { .. }))
}

/// Three voters whose leader `a` begins to hand over, with this outcome of its demote hook.
fn yielding(hooks: HookOutcome) -> Lan {
    let mut lan = three();
    lan.set_hooks("a", Some(hooks));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan
}

#[test]
fn a_leader_whose_demote_hook_does_not_succeed_keeps_its_lease_and_does_not_resign() {
    for outcome in NOT_LET_GO {
        let mut lan = yielding(outcome);
        lan.pass(secs(60));
        let done = lan.take("a");
        assert!(!resigns(&done), "{outcome:?}");
        assert!(done.declarations().last().unwrap().since(lan.now) <= secs(1));
        assert_eq!(lan.leaders(), Vec::<String>::new());
        assert_eq!(lan.at("b").term(), Term(1));
        assert_eq!(lan.at("a").overdue_term(), Some(Term(1)));
        lan.set_hooks("a", Some(HookOutcome::Succeeded));
        lan.pass(secs(11));
        assert!(resigns(&lan.take("a")), "{outcome:?}");
        assert_eq!(lan.leaders(), ["b"]);
        assert_eq!(lan.at("a").overdue_term(), None);
    }
}

#[test]
fn a_demote_hook_that_fails_runs_again_at_growing_intervals() {
    let mut lan = yielding(HookOutcome::Failed);
    let first = lan.now;
    lan.pass(secs(40));
    let after: Vec<_> = lan.take("a").demotions().iter().map(|at| at.since(first)).collect();
    assert_eq!(after, [0, 1, 3, 7, 15, 25, 35].map(secs));
}

#[test]
fn hooks_that_do_not_let_go_in_a_handover_are_fenced_when_the_grace_is_over() {
    for outcome in NOT_LET_GO {
        let mut lan = yielding(outcome);
        let began = lan.now;
        lan.pass(secs(60));
        assert_eq!(lan.take("a").fences(), [began + secs(5)], "{outcome:?}");
    }
}

#[test]
fn successful_fence_releases_the_hooks() {
    for hooks in [Some(HookOutcome::Failed), None] {
        let mut lan = three();
        lan.set_hooks("a", hooks);
        lan.set_fence("a", Some(HookOutcome::Succeeded));
        lan.cut_off("a");
        lan.pass(secs(9));
        lan.reconnect("a");
        let done = lan.take("a");
        assert_eq!(done.fences().len(), 1);
        assert!(lan.at("a").crash_plan().is_none_or(|plan| plan.hook.is_none()));
        if hooks.is_none() {
            lan.end_hook("a", HookOutcome::Failed);
        }
        lan.pass(secs(30));
        assert_eq!(lan.take("a").demotions(), [], "the hooks have released everything already");
        assert_eq!(lan.leaders(), ["b"]);
        // It votes again.
        lan.crash("b");
        lan.pass(secs(30));
        assert_eq!(lan.leaders().len(), 1);
    }
}

#[test]
fn a_leader_that_is_fenced_in_a_handover_resigns() {
    let mut lan = yielding(HookOutcome::Failed);
    lan.set_fence("a", Some(HookOutcome::Succeeded));
    lan.pass(ms(5_100));
    assert!(resigns(&lan.take("a")));
    assert_eq!(lan.leaders(), ["b"]);
}

/// If the daemon dies, `post-stop` fences at the end of that grace, not a grace later.
#[test]
fn crash_plan_has_the_end_of_a_grace_that_has_begun() {
    let mut lan = three();
    lan.set_hooks("a", None);
    lan.set_fence("a", Some(HookOutcome::Succeeded));
    assert_eq!(lan.at("a").crash_plan().unwrap().grace_end, None);
    lan.take("a");
    lan.cut_off("a");
    lan.pass(secs(4));
    let told = lan.at("a").crash_plan().unwrap().grace_end;
    let is_kept = |(_, output): &(Time, Output)| *output == Output::UpdateCrashPlan;
    assert!(told.is_some() && lan.take("a").0.iter().any(is_kept));
    lan.pass(secs(10));
    assert_eq!(lan.take("a").fences().first(), told.as_ref());
}

/// A failure in a handover began a grace, and the lease is lost within it.
#[test]
fn lost_lease_does_not_extend_a_grace_that_has_begun() {
    let mut lan = three();
    lan.set_hooks("a", Some(HookOutcome::Failed));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    let began = lan.now;
    lan.pass(secs(3));
    lan.cut_off("a");
    lan.pass(ms(1500));
    assert_eq!(lan.at("a").crash_plan().unwrap().grace_end, Some(began + secs(5)));
    lan.pass(secs(20));
    assert_eq!(lan.take("a").fences(), [began + secs(5)]);
    assert_eq!(lan.at("a").crash_plan().unwrap().grace_end, Some(began + secs(5)));
}

/// If the daemon dies, the fence command must not end the next one.
#[test]
fn crash_plan_demotes_the_leadership_that_the_hooks_hold() {
    let mut lan = cut_off_with_a_hook_that_runs(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    lan.reconnect("a");
    lan.pass(secs(1));
    assert_eq!((lan.at("a").leader(), lan.at("a").term()), (Some(id("b")), Term(2)));
    assert_eq!(lan.at("a").crash_plan().unwrap().hook.unwrap().term, Term(1));
}

/// The lease is lost while the fence command runs, which then fails.
#[test]
fn lost_lease_does_not_delay_the_next_fence() {
    let mut lan = yielding(HookOutcome::Failed);
    lan.set_fence("a", None);
    lan.pass(ms(3_900));
    lan.cut_off("a");
    lan.pass(ms(3_100));
    assert_eq!((lan.take("a").fences().len(), lan.at("a").lease_end()), (1, None));
    let failed = lan.now;
    lan.on("a", |election, now| election.handle_fence_finished(now, HookOutcome::Failed));
    lan.pass(secs(20));
    assert_eq!(lan.take("a").fences(), [failed + secs(1)]);
}

/// It stays out for as long as one that yields from the start.
#[test]
fn preempted_leader_that_yields_is_held_off_if_its_takeover_fails() {
    let (mut lan, mut c) = elected();
    lan.set_hooks("b", None);
    let declaration = lan.take("b").last_declaration();
    lan.hear(c.acknowledges(&declaration));
    let mut better = Peer { sequence: Sequence(9), ..voter("a") };
    lan.hear(better.sends(HEARTBEAT));
    lan.hear(better.sends(Body::Claim));
    lan.on("b", Election::yield_leadership).unwrap();
    lan.end_hook("b", HookOutcome::Failed);
    let held_off = |event| matches!(event, Event::HeldOff { .. });
    assert!(lan.take("b").events().any(held_off));
}

#[test]
fn failed_fence_runs_again_at_growing_intervals() {
    for outcome in NOT_LET_GO {
        let mut lan = three();
        lan.set_hooks("a", None);
        lan.set_fence("a", Some(outcome));
        lan.cut_off("a");
        lan.pass(secs(200));
        let fences = lan.take("a").fences();
        let pauses: Vec<_> = fences.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60].map(secs)[..pauses.len()], "{outcome:?}");
        assert!(pauses.len() >= 7);
        lan.end_hook("a", HookOutcome::Succeeded);
        lan.pass(secs(200));
        assert_eq!(lan.take("a").fences(), []);
    }
}

/// The node still has the grace, but no daemon is left to use it.
#[test]
fn stopping_node_whose_hooks_hold_releases_no_voter() {
    for outcome in [HookOutcome::Failed, HookOutcome::Lost, HookOutcome::NotRun] {
        let mut lan = three();
        lan.set_hooks("a", Some(outcome));
        lan.on("a", |election, now| election.stop(now));
        let done = lan.take("a");
        assert_eq!((done.demotions().len(), done.fences().len()), (1, 0));
        assert_eq!(done.stopped(), Some(StopCause::Requested));
        let says_farewell = done.bodies().iter().any(|body| matches!(body, Body::Farewell));
        assert!(!says_farewell && !resigns(&done));
        let plan = lan.at("a").crash_plan().unwrap();
        assert!(plan.hook.is_some() && plan.grace_end.is_none());
        lan.pass(secs(60));
        assert_eq!(lan.take("a").0, []);
    }
}

#[test]
fn a_leader_whose_hook_is_replaced_lets_go_and_hands_over() {
    let mut lan = three();
    lan.on("a", |election, now| election.replace_hook(now));
    lan.pass(secs(1));
    let done = lan.take("a");
    assert_eq!(done.hooks(), [(HookEvent::Demoted, Reason::Reconfigured)]);
    assert!(resigns(&done));
    assert_eq!(lan.leaders(), ["b"]);
    lan.on("a", |election, now| election.replace_hook(now));
    lan.pass(secs(1));
    assert_eq!(lan.take("a").hooks(), [], "its hooks hold nothing");
}

#[test]
fn a_node_neither_votes_nor_stands_while_its_fence_command_runs() {
    let mut lan = cut_off_with_a_hook_that_runs(secs(10));
    assert_eq!(lan.take("a").fences().len(), 1);
    lan.set_hooks("a", Some(HookOutcome::Succeeded));
    lan.end_hook("a", HookOutcome::Succeeded);
    for name in ["b", "c"] {
        lan.crash(name);
    }
    lan.reconnect("a");
    let mut candidate = Peer { incarnation: Incarnation(7), ..voter_in("b", 9) };
    lan.hear(candidate.asks_for_votes());
    lan.pass(secs(20));
    lan.take("a");
    lan.hear(candidate.asks_for_votes());
    assert_eq!(lan.take("a").votes(), [no("b")]);
    lan.on("a", |election, now| election.handle_fence_finished(now, HookOutcome::Failed));
    lan.hear(candidate.asks_for_votes());
    assert_eq!(lan.take("a").votes(), [yes("b")]);
}

/// As the leader it would wait for that run with `elected`.
#[test]
fn a_leader_that_is_fenced_while_its_demote_hook_hangs_resigns_and_stays_out_until_that_ends() {
    let mut lan = three();
    lan.set_hooks("a", None);
    lan.set_fence("a", Some(HookOutcome::Succeeded));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.end_hook("a", HookOutcome::Lost);
    lan.pass(ms(5_100));
    let done = lan.take("a");
    assert_eq!((done.demotions().len(), done.fences().len()), (2, 1));
    assert!(resigns(&done));
    assert_eq!(lan.leaders(), ["b"]);
    lan.crash("b");
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["c"], "with the vote of the fenced node");
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::NotReleased));
    lan.end_hook("a", HookOutcome::Failed);
    assert_eq!(lan.at("a").ineligible(lan.now), None);
}

/// `b` leads, its `elected` hangs, and its lease is lost.
fn hung_takeover() -> Lan {
    let mut lan = three();
    lan.set_hooks("b", None);
    lan.set_fence("b", Some(HookOutcome::Succeeded));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(1));
    assert_eq!(lan.leaders(), ["b"]);
    lan.take("b");
    lan.cut_off("b");
    lan
}

/// What takes over may take something after the fence command. So the command runs again, and
/// `demoted` follows. And `elected` would wait for it in the next leadership.
#[test]
fn a_leader_that_is_fenced_while_its_elected_hook_hangs_waits_until_that_is_undone() {
    for outcome in [HookOutcome::Succeeded, HookOutcome::Failed] {
        let mut lan = hung_takeover();
        lan.pass(secs(9));
        let done = lan.take("b");
        let fences = done.fences();
        assert_eq!(fences[1].since(fences[0]), secs(1));
        assert!(!resigns(&done));
        lan.reconnect("b");
        lan.pass(secs(1));
        assert_eq!(lan.leaders(), ["a"]);
        lan.crash("a");
        lan.pass(secs(20));
        assert_eq!(lan.leaders(), [""; 0], "it gives no vote");
        lan.take("b");
        lan.set_hooks("b", Some(HookOutcome::Succeeded));
        lan.end_hook("b", outcome);
        assert_eq!(lan.take("b").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
        lan.pass(secs(1));
        assert_eq!(lan.leaders().len(), 1);
    }
}

#[test]
fn a_leader_that_is_fenced_while_reaffirmed_hangs_lets_go_after_it() {
    let params = Params { refresh_interval: Some(secs(5)), ..quorum(&["a", "b", "c"]) };
    let mut lan = Lan::stable(&["a", "b", "c"], &params);
    lan.set_hooks("a", None);
    lan.set_fence("a", Some(HookOutcome::Succeeded));
    lan.pass(secs(6));
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Reaffirmed, Reason::Refresh)]);
    lan.cut_off("a");
    lan.pass(secs(9));
    assert!(!lan.take("a").fences().is_empty());
    lan.set_hooks("a", Some(HookOutcome::Succeeded));
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
}

/// It was killed in vain, so it may go on when the disk or server that it waits for answers.
#[test]
fn a_takeover_that_was_lost_before_the_fence_command_is_undone() {
    let mut lan = hung_takeover();
    lan.pass(secs(7));
    lan.end_hook("b", HookOutcome::Lost);
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
    lan.pass(secs(2));
    assert!(!lan.take("b").fences().is_empty());
    lan.end_hook("b", HookOutcome::NoTurn);
    lan.reconnect("b");
    lan.pass(secs(30));
    assert_eq!(lan.at("b").ineligible(lan.now), Some(Ineligible::NotReleased));
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)], "its next try");
    lan.end_hook("b", HookOutcome::Succeeded);
    assert_eq!(lan.at("b").ineligible(lan.now), None);
}

/// It may take something after what the command does, and before the command ends.
#[test]
fn a_takeover_that_ends_while_the_fence_command_runs_is_undone() {
    for outcome in [HookOutcome::Succeeded, HookOutcome::Failed] {
        let mut lan = hung_takeover();
        lan.set_fence("b", None);
        lan.pass(secs(9));
        assert_eq!(lan.take("b").fences().len(), 1);
        lan.set_hooks("b", Some(HookOutcome::Failed));
        lan.end_hook("b", outcome);
        assert_eq!(lan.take("b").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
        let succeeded = HookOutcome::Succeeded;
        lan.on("b", |election, now| election.handle_fence_finished(now, succeeded));
        assert!(!resigns(&lan.take("b")));
        lan.set_hooks("b", Some(HookOutcome::Succeeded));
        lan.pass(secs(5));
        assert_eq!(lan.take("b").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)], "again");
    }
}

/// A `reaffirmed` that could not be started waits for its next try, or is about to, when `demoted`
/// takes its place.
#[test]
fn demoted_does_not_wait_for_the_next_try_of_the_run_that_it_replaces() {
    for is_late in [false, true] {
        let params = Params { refresh_interval: Some(secs(5)), ..quorum(&["a", "b", "c"]) };
        let mut lan = Lan::stable(&["a", "b", "c"], &params);
        lan.set_hooks("a", None);
        lan.pass(secs(6));
        assert_eq!(lan.take("a").hooks(), [(HookEvent::Reaffirmed, Reason::Refresh)]);
        let hand_over = |lan: &mut Lan| {
            lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
        };
        if is_late {
            hand_over(&mut lan);
        }
        lan.end_hook("a", HookOutcome::NotRun);
        if !is_late {
            hand_over(&mut lan);
        }
        assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::Yield)], "{is_late}");
    }
}
