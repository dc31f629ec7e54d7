//! Hooks that have not released: what their node may do meanwhile, and what a handover waits for.

use super::quorum::quorum;
use super::*;
use crate::core::params::{StaticRole, Thresholds};
use crate::core::status::Ineligible;

const VOTERS: [&str; 3] = ["a", "b", "c"];
const SUCCEEDED: Option<HookOutcome> = Some(HookOutcome::Succeeded);

impl Lan {
    /// Starts a host whose `started` hook, and each one after it, runs until the test ends it.
    fn start_with_hook_running(&mut self, name: &str, params: Params) {
        self.hosts.insert(id(name), Host::default());
        self.start(name, params);
    }
}

fn static_leader() -> Params {
    Params { static_role: Some(StaticRole::Leader), ..patient() }
}

/// Before, it led without its `elected` hook: `started` waited for what an earlier life had left
/// behind, which nothing could kill, and `elected` waited for `started`.
#[test]
fn node_leads_only_once_the_earlier_lifes_hooks_have_released() {
    for outcome in [HookOutcome::NotRun, HookOutcome::Lost] {
        let mut lan = Lan::new();
        lan.hosts.insert(id("a"), Host { hooks_end: Some(outcome), ..Host::default() });
        lan.start("a", patient());
        lan.start("b", patient());
        lan.pass(secs(600));
        assert_eq!(lan.leaders(), ["b"], "{outcome:?}");
        assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::NotReleased));
        let started = (HookEvent::Started, Reason::Startup);
        assert!(lan.take("a").hooks().iter().all(|run| *run == started));
        lan.set_hooks("a", SUCCEEDED);
        lan.pass(secs(600));
        assert_eq!(lan.at("a").ineligible(lan.now), None);
        lan.crash("b");
        lan.pass(secs(600));
        assert_eq!(lan.leaders(), ["a"]);
    }
}

/// A leader whose `started` hook has not had its turn, and a follower.
fn leader_that_has_not_started() -> Lan {
    let mut lan = Lan::new();
    lan.start_with_hook_running("a", patient());
    lan.start("b", patient());
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    lan
}

#[test]
fn leader_whose_hooks_cannot_begin_leaves_the_leadership() {
    let mut lan = leader_that_has_not_started();
    lan.end_hook("a", HookOutcome::NotRun);
    assert_eq!(lan.leaders(), ["b"]);
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(10));
    let runs = lan.take("a").hooks();
    assert!(runs.iter().all(|run| *run == (HookEvent::Started, Reason::Startup)), "{runs:?}");
}

#[test]
fn handover_does_not_hurry_the_next_try_of_a_run_that_was_lost() {
    let mut lan = leader_that_has_not_started();
    lan.take("a");
    lan.end_hook("a", HookOutcome::Lost);
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("a").hooks(), []);
    lan.pass(secs(1));
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Started, Reason::Startup)]);
}

#[test]
fn handover_waits_once_for_hooks_that_cannot_begin() {
    let mut lan = leader_that_has_not_started();
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "it waits for the run that is under way");
    lan.end_hook("a", HookOutcome::NotRun);
    assert_eq!(lan.leaders(), ["b"]);
}

/// Before, a leader whose `demoted` did not end on SIGKILL kept the leadership that it had given
/// up.
#[test]
fn leader_whose_demoted_hook_is_lost_hands_over_all_the_same() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::Lost));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"]);
    lan.crash("b");
    lan.pass(secs(600));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "what `a` held may hold on");
    let plan = lan.at("a").crash_plan().expect("what remains to be done");
    assert!(plan.hook.is_some());
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["a"]);
    let expected = [(HookEvent::Demoted, Reason::Yield), (HookEvent::Elected, Reason::Election)];
    assert_eq!(lan.take("a").hooks().last_chunk(), Some(&expected));
}

/// A leader whose `elected` hook runs, and a follower.
fn leader_that_takes_over() -> Lan {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.set_hooks("a", None);
    lan.start("b", patient());
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    lan
}

#[test]
fn leader_whose_elected_hook_is_stuck_hands_over_without_demoted() {
    let mut lan = leader_that_takes_over();
    lan.end_hook("a", HookOutcome::Lost);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "`demoted` waits for its turn");
    lan.end_hook("a", HookOutcome::NoTurn);
    assert_eq!(lan.leaders(), ["b"]);
}

/// Before, a group whose leader had failed, on a host that could begin no process any more, had no
/// other leader as long as that lasted.
#[test]
fn leader_that_has_failed_does_not_wait_for_a_demoted_hook_that_cannot_begin() {
    let mut lan = leader_that_takes_over();
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.end_hook("a", HookOutcome::Failed);
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"], "`elected` failed");

    let check_leader = Some(Thresholds { fall: 1, rise: 1 });
    let mut lan = Lan::stable(&["a", "b"], &Params { check_leader, ..patient() });
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.handle_leader_check(now, false));
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"], "the check failed");

    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.yield_after_failure(now)).unwrap();
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"], "a unit failed");
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(5));
    assert_eq!(lan.take("a").hooks().last(), Some(&(HookEvent::Demoted, Reason::Yield)));
}

/// Before, only a failure that the handover was for counted.
#[test]
fn leader_that_fails_in_a_handover_does_not_wait_for_a_demoted_hook_that_cannot_begin() {
    let mut lan = leader_that_takes_over();
    lan.on("a", |election, now| election.set_maintenance(now, true));
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.end_hook("a", HookOutcome::Failed);
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"], "`elected` failed");

    let check = Some(Thresholds { fall: 1, rise: 1 });
    let mut lan = Lan::new();
    for name in ["a", "b"] {
        lan.start(name, Params { check, ..patient() });
        lan.on(name, |election, now| election.handle_check(now, true));
    }
    lan.pass(secs(20));
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    lan.on("a", |election, now| election.handle_check(now, false));
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"], "the check failed");

    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.set_maintenance(now, true));
    lan.pass(secs(60));
    lan.on("a", |election, now| election.yield_after_failure(now)).unwrap();
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"], "a unit failed");
}

/// Before, the second leadership counted as one that serves what the first had taken over.
#[test]
fn leader_that_leads_again_before_demoted_began_has_failed_all_the_same() {
    let mut lan = leader_that_takes_over();
    let mut better = Peer { priority: Priority(200), ..Peer::leading("z", 50) };
    lan.hear(better.sends(EVERY_SECOND));
    lan.end_hook("a", HookOutcome::Failed);
    better.role = Role::Follower;
    better.flags = Flags::default();
    lan.hear(better.sends(Body::Resignation { successor: Some(id("a")) }));
    lan.pass(secs(3));
    assert_eq!(lan.leaders(), ["a"]);
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.end_hook("a", HookOutcome::NotRun);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
}

/// Before, a failure was forgotten with its hold-off, and a unit's if nobody else could lead yet.
#[test]
fn leader_has_failed_until_it_leads_again() {
    let mut lan = Lan::stable(&["a", "b"], &Params { failure_holdoff: secs(2), ..patient() });
    lan.set_hooks("a", None);
    lan.on("a", |election, now| election.yield_after_failure(now)).unwrap();
    lan.pass(secs(5));
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.end_hook("a", HookOutcome::NotRun);
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"], "its hold-off is over");

    let mut lan = Lan::led_by("a");
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.yield_after_failure(now)).unwrap();
    lan.pass(secs(60));
    lan.start("b", patient());
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"], "it was alone");
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(5));

    lan.crash("b");
    lan.pass(secs(60));
    lan.start("b", patient());
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "this leadership serves");
}

/// Before, nobody led as long as a hook-runner hung.
#[test]
fn handover_does_not_wait_for_a_demoted_hook_whose_turn_does_not_come() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::NoTurn));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"]);
}

/// Before, such a leader resigned without `demoted`, although it served.
#[test]
fn a_lost_run_of_long_ago_does_not_count() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::Lost));
    lan.hear(Peer::leading("z", 9).sends(EVERY_SECOND));
    lan.pass(secs(600));
    assert_eq!(lan.take("a").hooks().last(), Some(&(HookEvent::Reaffirmed, Reason::Conflict)));
    assert_eq!(lan.leaders(), ["a"]);
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(600));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"]);
}

/// It still serves: the hooks hold what the leader holds.
#[test]
fn handover_waits_for_a_demoted_hook_that_cannot_begin() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(600));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.at("b").leader(), Some(id("a")));
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"]);
}

/// Before, it took the leadership from a leader that served, and led without its `elected` for as
/// long as `started` took.
#[test]
fn preempting_node_claims_once_its_started_hook_has_ended() {
    let preempting = Params { preempt: true, priority: Priority(200), ..patient() };
    for outcome in [HookOutcome::Succeeded, HookOutcome::NotRun] {
        let mut lan = Lan::stable(&["b", "c"], &patient());
        lan.start_with_hook_running("a", preempting.clone());
        lan.pass(secs(60));
        assert_eq!(lan.leaders(), ["b"]);
        lan.end_hook("a", outcome);
        lan.set_hooks("a", Some(outcome));
        lan.pass(secs(60));
        let leads = if outcome == HookOutcome::Succeeded { "a" } else { "b" };
        assert_eq!(lan.leaders(), [leads], "{outcome:?}");
    }
}

/// Before, it took the leadership with each of its starts, and nobody served until its hooks had
/// released.
#[test]
fn static_leader_takes_over_once_its_started_hook_has_ended() {
    let mut lan = Lan::stable(&["b", "c"], &patient());
    lan.start_with_hook_running("a", static_leader());
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
    lan.end_hook("a", HookOutcome::NotRun);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
}

/// Before, it waited for the next declaration, which may not reach it.
#[test]
fn static_leader_takes_over_as_soon_as_its_started_hook_has_ended() {
    let mut lan = Lan::stable(&["b", "c"], &patient());
    lan.start_with_hook_running("a", static_leader());
    lan.pass(secs(5));
    lan.deaf.insert((id("b"), id("a")));
    lan.pass(secs(60));
    assert_eq!(lan.at("a").leader(), Some(id("b")), "its answers to probes keep it");
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

/// Before, a reload while it listened made it lead.
#[test]
fn static_leader_whose_link_is_back_listens_while_its_started_hook_runs() {
    let mut lan = Lan::stable(&["b", "c"], &patient());
    lan.start_with_hook_running("a", static_leader());
    lan.pass(secs(5));
    lan.cut_off("a");
    lan.on("a", |election, now| election.handle_links(now, false));
    lan.pass(secs(60));
    assert_eq!(lan.at("a").leader(), None);
    lan.reconnect("a");
    lan.on("a", |election, now| election.handle_links(now, true));
    lan.on("a", |election, now| election.reconfigure(now, static_leader()));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn static_leader_of_a_group_without_one_does_not_wait_for_its_started_hook() {
    let mut lan = Lan::new();
    lan.start_with_hook_running("a", static_leader());
    lan.start("b", patient());
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn preempting_node_claims_once_its_demoted_hook_has_ended() {
    let mut lan = Lan::stable(&["a", "b"], &Params { preempt: true, ..patient() });
    lan.set_hooks("a", None);
    let mut better = Peer { priority: Priority(200), ..Peer::leading("z", 50) };
    lan.hear(better.sends(EVERY_SECOND));
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    better.role = Role::Follower;
    better.flags = Flags::default();
    lan.hear(better.sends(Body::Resignation { successor: Some(id("b")) }));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.set_hooks("a", SUCCEEDED);
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}

/// Before, the others ranked it as eligible until its next heartbeat.
#[test]
fn candidate_that_is_no_longer_eligible_says_so_at_once() {
    let mut lan = Lan::new();
    lan.start_with_hook_running("a", patient());
    lan.hear(Peer::new("b").sends(HEARTBEAT));
    let stands = |lan: &mut Lan| {
        lan.pass(ms(20));
        lan.at("a").role() == Role::Candidate
    };
    assert!((0..500).any(|_| stands(&mut lan)));
    lan.take("a");
    lan.end_hook("a", HookOutcome::NotRun);
    let outputs = lan.take("a");
    let (_, message) = outputs.sent().next().expect("a heartbeat");
    assert!(!message.standing.flags.contains(Flags::ELIGIBLE), "{message:?}");
}

#[test]
fn node_reports_once_that_its_hook_cannot_begin() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(60));
    let outputs = lan.take("a");
    let reports = outputs.events().filter(|event| matches!(event, Event::NotReleased { .. }));
    assert_eq!(reports.count(), 1);
}

#[test]
fn fenced_node_is_eligible_again() {
    let mut lan = Lan::stable(&VOTERS, &quorum(&VOTERS));
    lan.pass(secs(1));
    lan.set_hooks("a", Some(HookOutcome::Failed));
    lan.set_fence("a", SUCCEEDED);
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(4));
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::NotReleased));
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.at("a").ineligible(lan.now), None);
}

#[test]
fn voter_that_has_not_released_is_no_successor() {
    let mut lan = Lan::stable(&VOTERS, &quorum(&VOTERS));
    lan.crash("c");
    let hooks_end = Some(HookOutcome::Failed);
    let disk = lan.hosts[&id("c")].disk;
    lan.hosts.insert(id("c"), Host { disk, hooks_end, ..Host::default() });
    lan.start("c", quorum(&VOTERS));
    lan.pass(secs(20));
    assert_eq!(lan.at("c").ineligible(lan.now), Some(Ineligible::NotReleased));
    let refused = lan.on("a", |election, now| election.yield_to(now, id("c")));
    assert!(refused.is_err(), "{refused:?}");
}
