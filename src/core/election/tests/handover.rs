//! Orderly handover: yield, preemption, stop, maintenance.

use super::*;
use crate::core::election::{YieldError, Yielding};
use crate::core::status::Ineligible;

fn yield_now(lan: &mut Lan, name: &str) -> Result<Yielding, YieldError> {
    lan.on(name, |election, now| election.yield_leadership(now))
}

fn preempting(priority: u8) -> Params {
    Params { preempt: true, ..super::priority(priority) }
}

#[test]
fn a_leader_that_yields_is_replaced_at_once_and_follows() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    assert_eq!(yield_now(&mut lan, "a"), Ok(Yielding::Began));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.at("a").leader(), Some(id("b")));
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::Yield)]);
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Elected, Reason::Handover)]);
    assert!(lan.at("a").is_eligible(), "another leader's declaration ends the yield");
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn a_lone_node_gets_its_leadership_back_after_six_alive_thresholds() {
    let mut lan = Lan::led_by("a");
    yield_now(&mut lan, "a").unwrap();
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::Yielding));
    lan.pass(ms(17_999));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn yielding_twice_changes_nothing() {
    let mut lan = Lan::led_by("a");
    lan.set_hooks("a", None);
    yield_now(&mut lan, "a").unwrap();
    lan.take("a");
    assert_eq!(yield_now(&mut lan, "a"), Ok(Yielding::Already), "while it hands over");
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(10));
    lan.take("a");
    let before = lan.at("a").poll_timeout();
    assert_eq!(yield_now(&mut lan, "a"), Ok(Yielding::Already), "while it stays out");
    assert_eq!(lan.at("a").poll_timeout(), before);
    assert!(lan.take("a").0.is_empty());
    lan.pass(secs(8));
    assert_eq!(lan.leaders(), ["a"], "the second yield does not prolong the first");
}

#[test]
fn only_a_leader_can_yield() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    assert_eq!(yield_now(&mut lan, "b"), Err(YieldError::NotLeader));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_leader_keeps_declaring_until_its_demote_hook_has_ended() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", None);
    yield_now(&mut lan, "a").unwrap();
    assert_eq!(lan.at("a").role(), Role::Follower);
    assert_eq!(lan.at("a").status(lan.now).handing_over, Some(Reason::Yield));
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "no node leads early");
    let outputs = lan.take("a");
    assert!(outputs.declarations().len() >= 29);
    let resigned = |body: &Body| matches!(body, Body::Resignation { .. });
    assert!(!outputs.bodies().iter().any(resigned));
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.take("a").bodies()[0], Body::Resignation { successor: Some(id("b")) });
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn failed_demote_hook_does_not_delay_the_handover() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::Failed));
    yield_now(&mut lan, "a").unwrap();
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn named_successor_leads_at_once_without_an_election() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.hear(Peer::new("a").sends(HEARTBEAT));
    lan.hear(leader.sends(Body::Resignation { successor: Some(id("m")) }));
    assert_eq!(lan.leaders(), ["m"]);
    let outputs = lan.take("m");
    assert!(!outputs.bodies().contains(&Body::Proposal));
    assert_eq!(outputs.hooks(), [(HookEvent::Elected, Reason::Handover)]);
    assert_eq!(lan.at("m").term(), Term(5));
}

#[test]
fn other_nodes_wait_one_election_time_for_the_named_successor() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.hear(leader.sends(Body::Resignation { successor: Some(id("y")) }));
    lan.pass(ms(999));
    assert!(!lan.take("m").bodies().contains(&Body::Proposal));
    lan.pass(ms(1));
    assert!(lan.take("m").bodies().contains(&Body::Proposal));
}

#[test]
fn resignation_of_a_node_that_does_not_lead_changes_nothing() {
    let mut leader = Peer::leading("y", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.hear(Peer::leading("z", 3).sends(Body::Resignation { successor: Some(id("m")) }));
    assert_eq!(lan.at("m").leader(), Some(id("y")));
}

#[test]
fn preempting_best_candidate_takes_over_after_the_leaders_demote_hook() {
    let mut lan = Lan::new();
    lan.start("b", preempting(100));
    lan.pass(secs(3));
    lan.set_hooks("b", None);
    lan.start("a", preempting(100));
    lan.pass(ms(500));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "b's hooks are still letting go");
    assert_eq!(lan.take("b").hooks().last(), Some(&(HookEvent::Demoted, Reason::Preempted)));
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Started, Reason::Startup)]);
    lan.end_hook("b", HookOutcome::Succeeded);
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Elected, Reason::Handover)]);
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["a"]);
}

/// `m` has begun to hand over to `claimant`, which claimed first, and its hook still runs.
fn handing_over_to(claimant: &mut Peer) -> Lan {
    let mut lan = Lan::led_by("m");
    lan.set_hooks("m", None);
    lan.hear(claimant.sends(Body::Claim));
    assert_eq!(lan.at("m").status(lan.now).handing_over, Some(Reason::Preempted));
    lan.take("m");
    lan
}

fn named_successor(lan: &mut Lan) -> Option<NodeId> {
    lan.end_hook("m", HookOutcome::Succeeded);
    let outputs = lan.take("m");
    let successor = |body: &Body| match body {
        Body::Resignation { successor } => Some(*successor),
        _ => None,
    };
    outputs.bodies().iter().find_map(successor).expect("a resignation")
}

/// Otherwise each would preempt the one before, and each time two hooks would run.
#[test]
fn a_leader_hands_over_to_the_best_that_claims_while_its_hooks_run() {
    let mut lan = handing_over_to(&mut Peer::new("c"));
    lan.hear(Peer::new("a").sends(Body::Claim));
    lan.hear(Peer::new("b").sends(Body::Claim));
    assert_eq!(named_successor(&mut lan), Some(id("a")));
}

#[test]
fn neither_a_worse_claimant_nor_a_better_node_without_a_claim_replaces_the_first() {
    let mut lan = handing_over_to(&mut Peer::new("c"));
    lan.start("a", patient());
    lan.hear(Peer::new("d").sends(Body::Claim));
    assert_eq!(named_successor(&mut lan), Some(id("c")));
}

/// A worse node than this one claims too, because a leader that hands over ranks below it.
#[test]
fn a_claimant_that_cannot_lead_makes_way_for_the_best_node_and_not_for_the_next_claimant() {
    let hand_over = |c: &mut Peer| {
        let mut lan = handing_over_to(c);
        lan.hear(Peer::new("d").sends(HEARTBEAT));
        c.flags = Flags::CANDIDATE;
        lan.hear(c.sends(HEARTBEAT));
        lan.hear(Peer::new("z").sends(Body::Claim));
        lan
    };
    assert_eq!(named_successor(&mut hand_over(&mut Peer::new("c"))), Some(id("d")));

    let mut c = Peer::new("c");
    let mut lan = hand_over(&mut c);
    c.flags = Peer::new("c").flags;
    lan.hear(c.sends(HEARTBEAT));
    assert_eq!(named_successor(&mut lan), Some(id("c")), "it can lead again");
}

#[test]
fn a_claim_does_not_replace_the_successor_that_the_operator_names() {
    let mut lan = handing_over_to(&mut Peer::new("c"));
    lan.hear(Peer::new("d").sends(Body::Claim));
    lan.on("m", |election, now| election.yield_to(now, id("d"))).unwrap();
    lan.hear(Peer::new("a").sends(Body::Claim));
    assert_eq!(named_successor(&mut lan), Some(id("d")));
}

#[test]
fn preemption_waits_its_delay() {
    let mut lan = Lan::new();
    lan.start("b", preempting(100));
    lan.pass(ms(3500));
    lan.start("a", Params { preempt_delay: secs(5), ..preempting(100) });
    assert_eq!(lan.at("a").leader(), Some(id("b")));
    lan.pass(ms(4999));
    assert_eq!(lan.leaders(), ["b"]);
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_worse_candidate_does_not_preempt() {
    let mut lan = Lan::new();
    lan.start("a", preempting(100));
    lan.pass(secs(3));
    lan.start("b", preempting(100));
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["a"]);
    assert!(!lan.take("b").bodies().contains(&Body::Claim));
    lan.hear(Peer::new("z").sends(Body::Claim));
    assert_eq!(lan.leaders(), ["a"], "nor does the leader accept a claim");
}

#[test]
fn a_claim_is_repeated_until_the_leader_hands_over() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", preempting(100), &mut leader);
    lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
    let claims = lan.take("m").bodies().iter().filter(|body| **body == Body::Claim).count();
    assert!((5..=6).contains(&claims), "{claims}");
}

/// The candidate would miss the leader's resignation too, and the others would wait for it without
/// need.
#[test]
fn candidate_that_does_not_hear_the_leader_itself_claims_nothing() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", preempting(100), &mut leader);
    let mut witness = Peer::new("x");
    let mut told = Vec::new();
    for _ in 0..10 {
        let unheard = leader.sends(EVERY_SECOND);
        lan.hear(witness.sends(Body::ProbeReply { leader: id("z"), newest: unheard.id() }));
        lan.take("m");
        lan.pass(secs(1));
        told.extend(lan.take("m").bodies());
        assert_eq!(lan.at("m").leader(), Some(id("z")));
    }
    assert!(!told.contains(&Body::Claim), "{told:?}");
    lan.hear(leader.sends(EVERY_SECOND));
    lan.pass(secs(1));
    assert!(lan.take("m").bodies().contains(&Body::Claim));
}

fn delayed(delay: Duration) -> Params {
    Params { preempt_delay: delay, ..preempting(100) }
}

fn claims(outputs: &Outputs) -> usize {
    outputs.bodies().iter().filter(|body| **body == Body::Claim).count()
}

/// The declaration is lost on its way to the candidate, just when the candidate would claim.
#[test]
fn one_lost_declaration_does_not_restart_the_preempt_delay() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", delayed(secs(60)), &mut leader);
    let mut witness = Peer::new("x");
    for _ in 0..59 {
        lan.pass(secs(1));
        lan.hear(leader.sends(EVERY_SECOND));
    }
    lan.take("m");
    lan.pass(ms(990));
    let unheard = leader.sends(EVERY_SECOND);
    lan.hear(witness.sends(Body::ProbeReply { leader: id("z"), newest: unheard.id() }));
    lan.pass(ms(20));
    let mut told = claims(&lan.take("m"));
    for _ in 0..10 {
        lan.hear(leader.sends(EVERY_SECOND));
        lan.pass(secs(1));
        told += claims(&lan.take("m"));
    }
    assert!(told > 0, "it follows for 70 s and hears the leader, and has not claimed");
}

/// The same after the first claim.
#[test]
fn one_lost_declaration_does_not_end_the_repetition_of_a_claim() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", delayed(secs(60)), &mut leader);
    let mut witness = Peer::new("x");
    for _ in 0..65 {
        lan.pass(secs(1));
        lan.hear(leader.sends(EVERY_SECOND));
    }
    assert!(claims(&lan.take("m")) > 3);
    let unheard = leader.sends(EVERY_SECOND);
    lan.hear(witness.sends(Body::ProbeReply { leader: id("z"), newest: unheard.id() }));
    lan.pass(ms(1_000));
    lan.take("m");
    lan.pass_with(secs(20), &mut [(&mut leader, EVERY_SECOND)]);
    assert!(claims(&lan.take("m")) > 0, "no claim for 20 s");
}

/// A broken member sends a probe reply with a datagram that the leader never sent.
#[test]
fn one_absurd_probe_reply_does_not_end_all_claims() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", delayed(secs(5)), &mut leader);
    let newest =
        crate::types::DatagramId { incarnation: leader.incarnation, sequence: Sequence(u64::MAX) };
    lan.hear(Peer::new("x").sends(Body::ProbeReply { leader: id("z"), newest }));
    lan.pass_with(secs(60), &mut [(&mut leader, EVERY_SECOND)]);
    assert!(claims(&lan.take("m")) > 0);
}

#[test]
fn a_node_that_yielded_does_not_preempt_its_successor_within_the_yield_time() {
    let mut lan = Lan::stable(&["a", "b"], &preempting(100));
    yield_now(&mut lan, "a").unwrap();
    assert_eq!(lan.leaders(), ["b"]);
    lan.pass(ms(17_999));
    assert_eq!(lan.leaders(), ["b"]);
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn yield_that_another_leader_interrupts_counts_from_then_on() {
    let mut lan = Lan::led_by("a");
    let params = Params { preempt: true, ..patient() };
    lan.on("a", |election, now| election.reconfigure(now, params));
    lan.set_hooks("a", None);
    yield_now(&mut lan, "a").unwrap();
    let mut other = Peer::leading("b", 5);
    lan.hear(other.sends(EVERY_SECOND));
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.at("a").leader(), Some(id("b")));
    lan.pass_with(secs(17), &mut [(&mut other, EVERY_SECOND)]);
    assert!(!lan.take("a").bodies().contains(&Body::Claim));
    lan.pass_with(secs(2), &mut [(&mut other, EVERY_SECOND)]);
    assert!(lan.take("a").bodies().contains(&Body::Claim));
}

#[test]
fn leader_that_stops_hands_over_and_sends_a_farewell_last() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.on("a", Election::stop);
    assert_eq!(lan.leaders(), ["b"]);
    let outputs = lan.take("a");
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::Shutdown)]);
    let resignation = Body::Resignation { successor: Some(id("b")) };
    assert_eq!(outputs.bodies(), [resignation, Body::Farewell]);
    assert_eq!(outputs.stopped(), Some(StopCause::Requested));
    assert!(lan.take("b").has_event(Event::MemberLeft { node_id: id("a") }));
}

#[test]
fn end_is_reported_last_even_after_its_own_transition() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.on("b", Election::stop);
    let outputs = lan.take("b").0;
    assert!(matches!(outputs[outputs.len() - 2].1, Output::Notify(Event::Transition(_))));
    assert_eq!(outputs[outputs.len() - 1].1, Output::Stopped(StopCause::Requested));
}

#[test]
fn stopped_node_does_nothing() {
    let mut lan = Lan::led_by("m");
    lan.on("m", Election::stop);
    lan.take("m");
    assert_eq!(lan.at("m").poll_timeout(), None);
    lan.hear(Peer::new("z").sends(Body::Proposal));
    lan.hear(Peer::leading("a", 9).sends(EVERY_SECOND));
    lan.hear(Peer::new("m").sends(HEARTBEAT));
    lan.on("m", |election, now| {
        election.handle_timeout(now + secs(100));
        election.handle_links(now, false);
        election.handle_links(now, true);
        election.set_maintenance(now, true);
        election.reconfigure(now, priority(255));
        election.handle_hook_finished(now, HookOutcome::Failed);
        election.stop(now);
        assert_eq!(election.yield_leadership(now), Err(YieldError::NotLeader));
    });
    lan.pass(secs(60));
    assert!(lan.take("m").0.is_empty());
}

#[test]
fn a_follower_that_stops_lets_its_running_hook_end_first() {
    let mut lan = Lan::led_by("a");
    lan.start("b", patient());
    lan.set_hooks("b", None);
    lan.hear(Peer::leading("a", 9).sends(HEARTBEAT));
    lan.crash("b");
    lan.start("b", patient());
    lan.take("b");
    lan.on("b", Election::stop);
    assert_eq!(lan.take("b").stopped(), None);
    lan.end_hook("b", HookOutcome::Succeeded);
    assert_eq!(lan.take("b").stopped(), Some(StopCause::Requested));
}

#[test]
fn maintenance_hands_over_survives_a_restart_and_ends_on_request() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.on("a", |election, now| election.set_maintenance(now, true));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::Maintenance)]);
    lan.crash("b");
    lan.crash("a");
    lan.start("a", patient());
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::Maintenance));
    lan.on("a", |election, now| election.set_maintenance(now, false));
    lan.pass(secs(1));
    assert_eq!(lan.leaders(), ["a"]);
    lan.crash("a");
    lan.start("a", patient());
    assert!(!lan.at("a").in_maintenance(), "its end outlives a restart, too");
}

#[test]
fn the_leaders_farewell_ends_its_leadership_without_waiting_for_silence() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.hear(leader.sends(Body::Farewell));
    lan.pass(ms(250));
    assert_eq!(lan.leaders(), ["m"]);
}

/// The next datagram of `name` to each of `others` is lost.
fn lose_the_resignation(lan: &mut Lan, name: &str, others: &[&str]) {
    for other in others {
        lan.deaf.insert((id(name), id(other)));
    }
    yield_now(lan, name).unwrap();
    lan.deaf.clear();
}

fn resignations(outputs: &Outputs) -> Vec<Time> {
    let resigns = |(at, message): (Time, Message)| {
        matches!(message.body, Body::Resignation { .. }).then_some(at)
    };
    outputs.sent().filter_map(resigns).collect()
}

#[test]
fn a_lost_resignation_delays_a_handover_by_a_gap() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lose_the_resignation(&mut lan, "a", &["b", "c"]);
    lan.pass(ms(100));
    assert_eq!(lan.at("b").leader(), None);
    lan.pass(ms(300));
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn a_resignation_is_repeated_until_another_node_leads() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.take("a");
    yield_now(&mut lan, "a").unwrap();
    lan.pass(secs(10));
    assert_eq!(resignations(&lan.take("a")).len(), 1, "b led at once");

    let mut lan = Lan::led_by("a");
    let begin = lan.now;
    yield_now(&mut lan, "a").unwrap();
    lan.pass(secs(10));
    let sent: Vec<_> = resignations(&lan.take("a")).iter().map(|at| at.since(begin)).collect();
    assert_eq!(sent, [0, 100, 200, 400, 800, 1600].map(ms), "up to the alive threshold");
}

/// Otherwise no other node would ever lead. No node waits for the hooks of a failed or partitioned
/// leader either.
#[test]
fn failed_demote_hook_keeps_no_node_from_leading_in_available_mode() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", Some(HookOutcome::Failed));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    assert_eq!(lan.leaders(), ["b"]);
    lan.pass(secs(60));
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::Yield)]);
}

/// The others expect what the leader announced, until it announces the long interval of a follower
/// in a large group.
#[test]
fn leader_that_has_resigned_in_a_large_group_speaks_when_its_declaration_was_due() {
    for unicast in [false, true] {
        let mut lan = Lan::new();
        lan.start("m", Params { unicast, ..patient() });
        for number in 0..320 {
            lan.hear(Peer::new(&format!("o{number:03}")).sends(HEARTBEAT));
        }
        lan.pass(secs(4));
        assert_eq!(lan.leaders(), ["m"], "by unicast: {unicast}");
        lan.take("m");
        yield_now(&mut lan, "m").unwrap();
        lan.pass(secs(1));
        let spoke =
            lan.take("m").bodies().iter().any(|body| matches!(body, Body::Heartbeat { .. }));
        assert!(spoke, "by unicast: {unicast}");
    }
}

#[test]
fn leader_that_resigns_before_its_term_is_on_disk_speaks_at_once() {
    let mut leader = Peer::leading("a", 1);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.pass_with(secs(2), &mut [(&mut leader, EVERY_SECOND)]);
    lan.take("m");
    while lan.take("m").bodies().is_empty() {
        lan.pass_with(ms(100), &mut [(&mut leader, EVERY_SECOND)]);
    }
    lan.pass(ms(1600));
    lan.set_slow_disk("m", true);
    lan.hear(leader.sends(Body::Resignation { successor: Some(id("m")) }));
    lan.pass(ms(10));
    assert_eq!(lan.leaders(), ["m"]);
    lan.on("m", |election, now| election.set_maintenance(now, true));
    lan.pass(ms(10));
    let sent = lan.take("m").bodies();
    assert!(sent.iter().any(|body| matches!(body, Body::Heartbeat { .. })), "{sent:?}");
}
