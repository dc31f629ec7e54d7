//! Static roles.

use super::*;
use crate::core::election::{YieldError, Yielding};
use crate::core::params::{QuorumParams, StaticRole, Thresholds};
use crate::core::quorum::Voters;
use crate::core::status::Ineligible;

fn fixed(role: StaticRole) -> Params {
    Params { static_role: Some(role), ..priority(0) }
}

#[test]
fn a_static_leader_leads_without_an_election() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.start("z", fixed(StaticRole::Leader));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["z"]);
    let outputs = lan.take("z");
    assert_eq!(outputs.hooks()[1..], [(HookEvent::Elected, Reason::Static)]);
    assert!(!outputs.bodies().contains(&Body::Proposal));
}

#[test]
fn a_static_leader_takes_over_from_any_elected_one() {
    let mut lan = Lan::led_by("a");
    lan.start("z", fixed(StaticRole::Leader));
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["z"]);
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::BetterLeader)]);
}

#[test]
fn a_static_follower_never_leads() {
    let mut lan = Lan::new();
    lan.start("a", fixed(StaticRole::Follower));
    lan.pass(secs(60));
    assert_eq!(lan.at("a").role(), Role::Follower);
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::StaticFollower));
    lan.hear(Peer::leading("z", 3).sends(Body::Resignation { successor: Some(id("a")) }));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
}

#[test]
fn two_static_leaders_neither_give_way_nor_outbid_each_other() {
    let mut lan = Lan::new();
    lan.start("a", fixed(StaticRole::Leader));
    lan.start("b", fixed(StaticRole::Leader));
    lan.pass(secs(10));
    let terms = [lan.at("a").term(), lan.at("b").term()];
    let reported = |outputs: Outputs, rival: &str| {
        let seen = Event::RivalStaticLeader { rival: id(rival), address: address(id(rival)) };
        outputs.events().filter(|event| *event == seen).count()
    };
    assert_eq!(reported(lan.take("a"), "b"), 1);
    assert_eq!(reported(lan.take("b"), "a"), 1);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["a", "b"]);
    assert_eq!([lan.at("a").term(), lan.at("b").term()], terms);
    assert_eq!(lan.take("a").hooks(), []);
}

#[test]
fn static_leader_refuses_to_yield() {
    let mut lan = Lan::new();
    lan.start("a", fixed(StaticRole::Leader));
    lan.pass(secs(5));
    let yielded = lan.on("a", |election, now| election.yield_leadership(now));
    assert_eq!(yielded, Err(YieldError::StaticRole));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn static_leader_out_of_service_is_replaced_and_returns() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.start("z", fixed(StaticRole::Leader));
    lan.pass(secs(10));
    lan.on("z", |election, now| election.set_maintenance(now, true));
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.on("a", |e, now| e.yield_leadership(now)), Ok(Yielding::Began));
    lan.on("z", |election, now| election.set_maintenance(now, false));
    lan.pass(secs(1));
    assert_eq!(lan.leaders(), ["z"]);
}

#[test]
fn in_quorum_mode_a_static_role_waits_for_the_restart_that_ends_the_mode() {
    let voters = Voters::new(["a", "b", "c"].map(id)).unwrap();
    let quorum = Some(QuorumParams { voters, demote_grace: secs(5) });
    let mut lan = Lan::stable(&["a", "b", "c"], &Params { quorum, ..patient() });
    assert_eq!(lan.leaders(), ["a"]);
    lan.cut_off("a");
    lan.on("a", |election, now| election.reconfigure(now, fixed(StaticRole::Leader)));
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["b"], "a has no majority");
}

#[test]
fn static_leader_with_failing_check_is_replaced_and_returns() {
    let mut lan = Lan::new();
    lan.start("a", fixed(StaticRole::Follower));
    lan.start("z", Params { check: Some(Thresholds::default()), ..fixed(StaticRole::Leader) });
    lan.pass(secs(10));
    assert_eq!(lan.at("z").ineligible(lan.now), Some(Ineligible::CheckPending));
    lan.on("z", |election, now| election.handle_check(now, true));
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["z"]);
    lan.take("z");
    for _ in 0..3 {
        lan.on("z", |election, now| election.handle_check(now, false));
    }
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("z").hooks(), [(HookEvent::Demoted, Reason::CheckFailed)]);
    for _ in 0..2 {
        lan.on("z", |election, now| election.handle_check(now, true));
    }
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["z"]);
}

#[test]
fn leadership_does_not_wait_for_the_gap_after_a_declaration_of_an_earlier_one() {
    let mut lan = Lan::new();
    lan.start("z", fixed(StaticRole::Leader));
    lan.pass(secs(10));
    lan.on("z", |election, now| election.set_maintenance(now, true));
    lan.pass(ms(1500));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    let slower = Params {
        heartbeat_interval: secs(120),
        leader_alive_threshold: secs(360),
        ..lan.at("z").params().clone()
    };
    lan.on("z", |election, now| election.reconfigure(now, slower));
    lan.take("z");
    lan.on("z", |election, now| election.set_maintenance(now, false));
    lan.pass(ms(10));
    assert_eq!(lan.leaders(), ["z"]);
    assert_eq!(lan.take("z").declarations().len(), 1);
}

#[test]
fn static_leader_whose_links_return_while_demoted_runs_leads_when_that_has_ended() {
    let mut lan = Lan::new();
    lan.start("z", fixed(StaticRole::Leader));
    lan.pass(secs(20));
    lan.set_hooks("z", None);
    lan.on("z", |election, now| election.handle_links(now, false));
    lan.on("z", |election, now| election.handle_links(now, true));
    assert_eq!(lan.leaders(), [""; 0]);
    lan.end_hook("z", HookOutcome::Succeeded);
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["z"]);
}

/// It has not listened yet, and its hooks cannot take over.
#[test]
fn static_leader_whose_links_return_while_started_runs_listens_first() {
    let mut lan = Lan::led_by("a");
    lan.hosts.insert(id("z"), Host::default());
    lan.start("z", fixed(StaticRole::Leader));
    lan.pass(secs(10));
    assert_eq!(lan.at("z").leader(), Some(id("a")));
    lan.cut_off("z");
    lan.on("z", |election, now| election.handle_links(now, false));
    lan.pass(secs(10));
    assert_eq!(lan.at("z").leader(), None);
    lan.reconnect("z");
    lan.on("z", |election, now| election.handle_links(now, true));
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
    lan.end_hook("z", HookOutcome::Succeeded);
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["z"]);
}
