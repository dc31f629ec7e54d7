//! Faults of the election that reviews or the simulator found.

use super::*;
use crate::core::election::Yielding;
use crate::core::membership::FORGET_AFTER;
use crate::core::status::Ineligible;
use crate::types::DatagramId;

/// Whatever the terms were, the winner takes a term above both and is reaffirmed.
#[test]
fn a_winner_with_the_higher_term_is_reaffirmed_too() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.cut_off("b");
    lan.pass(secs(10));
    assert_eq!((lan.at("a").term(), lan.at("b").term()), (Term(1), Term(2)));
    for _ in 0..2 {
        lan.on("a", |e, now| e.yield_leadership(now)).unwrap();
        lan.pass(secs(20));
    }
    assert_eq!((lan.at("a").term(), lan.at("b").term()), (Term(3), Term(2)));
    lan.take("a");
    lan.reconnect("b");
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
}

/// Only the winner is reaffirmed, even if a follower sends before the better leader does.
#[test]
fn the_loser_is_not_reaffirmed() {
    let mut lan = Lan::led_by("m");
    let mut follower = Peer::new("f");
    follower.term = Term(5);
    lan.hear(follower.sends(Body::Heartbeat {
        interval_us: 0,
        leader: Some(id("a")),
        conceded: None,
        acknowledged: None,
    }));
    lan.hear(Peer::leading("a", 5).sends(EVERY_SECOND));
    assert_eq!(lan.take("m").hooks(), [(HookEvent::Demoted, Reason::BetterLeader)]);
}

/// The node a lost its link, and its demote hook still runs while b leads. When a returns, it must
/// not interrupt b's leadership only to resign at once.
#[test]
fn a_handing_over_leader_that_comes_back_does_not_displace_the_new_one() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.set_hooks("a", None);
    lan.on("a", |e, now| e.handle_links(now, false));
    lan.cut_off("a");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["b"]);
    lan.take("b");
    lan.reconnect("a");
    lan.on("a", |e, now| e.handle_links(now, true));
    lan.pass(secs(5));
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(5));
    let hooks = lan.take("b").hooks();
    assert_eq!(hooks, [(HookEvent::Reaffirmed, Reason::Conflict)], "it leads on throughout");
}

/// A better candidate that starts takes the leadership only when it can lead.
#[test]
fn preemption_waits_for_min_candidates() {
    let params = Params { preempt: true, min_candidates: 3, ..patient() };
    let mut lan = Lan::stable(&["b", "c", "d"], &params);
    assert_eq!(lan.leaders(), ["b"]);
    lan.take("b");
    lan.start("a", params);
    let mut gap = 0;
    for _ in 0..500 {
        lan.pass(ms(10));
        gap += u32::from(lan.leaders().is_empty()) * 10;
    }
    assert_eq!(gap, 0);
}

/// A candidate that asks for more candidates than there are can never lead.
#[test]
fn candidate_that_cannot_lead_does_not_flap() {
    let mut lan = Lan::stable(&["b", "c"], &Params { preempt: true, ..patient() });
    lan.take("b");
    lan.start("a", Params { preempt: true, min_candidates: 4, ..patient() });
    lan.pass(secs(60));
    let runs = lan.take("b").hooks();
    assert!(runs.len() <= 2, "{} hook runs on b within a minute", runs.len());
}

/// This candidate does not hear one of the others.
#[test]
fn preempting_node_with_one_deaf_link_does_not_flap() {
    let params = Params { preempt: true, min_candidates: 3, ..patient() };
    let mut lan = Lan::stable(&["a", "b", "c"], &params);
    assert_eq!(lan.leaders(), ["a"]);
    // a does not hear c any more, so it must step down; b hears all three.
    lan.deaf.insert((id("c"), id("a")));
    lan.pass(secs(20));
    lan.take("b");
    lan.pass(secs(60));
    let runs = lan.take("b").hooks();
    assert!(runs.len() <= 2, "{} hook runs on b within a minute", runs.len());
}

#[test]
fn too_few_candidates_is_not_reported_for_ever() {
    for phase in [0, 100, 200, 300, 400, 500, 600, 700, 800, 900] {
        let params = Params { min_candidates: 3, ..patient() };
        let mut lan = Lan::new();
        lan.start("a", params.clone());
        lan.pass(ms(300));
        lan.start("b", params.clone());
        lan.pass(secs(20));
        assert_eq!(lan.at("b").ineligible(lan.now), Some(Ineligible::TooFewCandidates));
        lan.pass(ms(phase));
        lan.start("c", params);
        lan.pass(secs(600));
        assert_eq!(lan.leaders().len(), 1);
        let why: Vec<_> = ["a", "b", "c"]
            .map(|n| (n, lan.at(n).is_leader(), lan.at(n).ineligible(lan.now)))
            .to_vec();
        assert!(why.iter().all(|(_, _, w)| w.is_none()), "{phase} {why:?}");
    }
}

#[test]
fn one_way_deafness_does_not_storm() {
    let mut lan = Lan::stable(&["a", "b", "c", "d"], &patient());
    lan.take("a");
    lan.deaf.insert((id("a"), id("b")));
    lan.pass(secs(60));
    let a = lan.take("a");
    let b = lan.take("b");
    let count = |o: &Outputs| o.hooks().iter().filter(|h| h.0 == HookEvent::Reaffirmed).count();
    assert!(count(&a) + count(&b) < 5, "a {} b {} reaffirmed in a minute", count(&a), count(&b));
}

#[test]
fn a_static_leader_leads_at_once_after_link_recovery() {
    let p = Params { static_role: Some(crate::core::params::StaticRole::Leader), ..patient() };
    let mut lan = Lan::new();
    lan.start("a", p);
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
    lan.on("a", |e, now| e.handle_links(now, false));
    lan.pass(secs(10));
    lan.on("a", |e, now| e.handle_links(now, true));
    lan.pass(ms(100));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn absurd_term_does_not_stop_terms_from_growing() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.take("a");
    let mut stray = Peer::new("x");
    stray.term = Term(u64::MAX);
    lan.hear(stray.sends(HEARTBEAT));
    lan.take("b");
    lan.on("a", |e, now| e.yield_leadership(now)).unwrap();
    lan.pass(secs(5));
    assert!(lan.at("b").term() < Term(u64::MAX));
}

#[test]
fn a_yield_counts_during_another_handover_too() {
    let params = Params { preempt: true, ..patient() };
    let mut lan = Lan::stable(&["b", "c"], &params);
    lan.set_hooks("b", None);
    lan.start("a", params);
    lan.pass(secs(1));
    assert_eq!(lan.at("b").status(lan.now).handing_over, Some(Reason::Preempted));
    let yielding = lan.on("b", |election, now| election.yield_leadership(now));
    assert_eq!(yielding, Ok(Yielding::Already));
    lan.crash("a");
    lan.crash("c");
    lan.pass(secs(10));
    lan.set_hooks("b", Some(HookOutcome::Succeeded));
    lan.end_hook("b", HookOutcome::Succeeded);
    lan.pass(secs(3));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "it had to yield");
}

#[test]
fn a_shorter_preempt_delay_counts_at_once() {
    let mut leader = Peer::leading("z", 4);
    let long = Params { preempt: true, preempt_delay: secs(3600), ..patient() };
    let mut lan = Lan::following("m", long.clone(), &mut leader);
    lan.on("m", |e, now| e.reconfigure(now, Params { preempt_delay: secs(0), ..long }));
    lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
    assert!(lan.take("m").bodies().contains(&Body::Claim));
}

/// The nodes a and b both lead; a is stopped with a slow hook, and then the partition heals.
#[test]
fn a_stopping_leader_does_not_displace_another_at_healing() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.cut_off("a");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a", "b"]);
    lan.set_hooks("a", None);
    lan.on("a", Election::stop);
    lan.take("b");
    lan.reconnect("a");
    lan.pass(secs(20));
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(5));
    let hooks = lan.take("b").hooks();
    assert_eq!(hooks, [(HookEvent::Reaffirmed, Reason::Conflict)], "it leads on throughout");
}

/// A newcomer with a's id is heard before a objects to it. After that the others must hear a.
#[test]
fn rejected_newcomer_does_not_silence_the_holder_of_its_id() {
    let mut lan = Lan::new();
    lan.start("m", patient());
    let mut duplicate =
        Peer { role: Role::Starting, incarnation: Incarnation(9), ..Peer::new("a") };
    let mut holder = Peer { incarnation: Incarnation(5), ..Peer::leading("a", 1) };
    lan.hear(duplicate.sends(HEARTBEAT));
    lan.hear(holder.sends(Body::Objection { newcomer: Incarnation(9) }));
    lan.pass_with(secs(60), &mut [(&mut holder, EVERY_SECOND)]);
    assert_eq!(lan.at("m").leader(), Some(id("a")));
}

#[test]
fn rejected_newcomer_reports_its_transition_once() {
    let mut lan = Lan::new();
    lan.start("m", patient());
    lan.set_hooks("m", None);
    lan.take("m");
    let mut holder = Peer { incarnation: Incarnation(0), ..Peer::new("m") };
    lan.hear(holder.sends(Body::Objection { newcomer: Incarnation(1) }));
    let told = lan.take("m").events().filter(|e| matches!(e, Event::Transition(_))).count();
    assert!(told <= 1, "{told}");
}

/// Before, only a heartbeat ended the leadership. Followers of a leader that stood again waited for
/// it, and then reported a silence of no length.
#[test]
fn a_leader_that_stands_for_election_again_leads_no_more() {
    let sayings = [
        Body::Proposal,
        Body::Probe { leader: id("x") },
        Body::ProbeReply {
            leader: id("x"),
            newest: DatagramId { incarnation: Incarnation(1), sequence: Sequence(1) },
        },
    ];
    for sent in sayings {
        let mut leader = Peer::leading("z", 4);
        let mut lan = Lan::following("m", patient(), &mut leader);
        leader.role = Role::Candidate;
        lan.hear(leader.sends(sent));
        assert!(lan.take("m").has_event(Event::LeaderResigned { leader: id("z") }), "{sent:?}");
        assert_eq!(lan.at("m").leader(), None, "{sent:?}");
    }
}

/// Before, a leader learned late of a missed leadership, because followers send rarely. So there
/// were two static leaders, one of them unseen by the followers of the other.
#[test]
fn leader_learns_of_a_missed_leadership_from_a_new_follower() {
    let (mut outdated, mut lost) = (Peer::leading("a", 2), Peer::leading("b", 4));
    let mut lan = Lan::following("c", patient(), &mut lost);
    lan.hear(lost.sends(Body::Resignation { successor: Some(id("a")) }));
    lan.take("c");
    lan.hear(outdated.sends(EVERY_SECOND));
    assert_eq!(lan.at("c").leader(), Some(id("a")));
    let told = lan.take("c").bodies();
    assert!(matches!(told[..], [Body::Heartbeat { conceded: Some(Term(4)), .. }]), "{told:?}");
}

/// Before, a member was forgotten after ten minutes without a datagram, even the leader.
#[test]
fn leader_known_by_probe_replies_is_not_forgotten() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.deaf.insert((id("a"), id("c")));
    lan.pass(FORGET_AFTER * 2);
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.at("c").leader(), Some(id("a")));
    assert!(!lan.take("c").events().any(|event| matches!(event, Event::LeaderSilent { .. })));
}

/// Before, a late write changed the crash plan of a stopped node whose hooks had not released
/// everything.
#[test]
fn write_that_ends_after_the_stop_requests_nothing() {
    let mut lan = Lan::led_by("b");
    lan.set_slow_disk("b", true);
    lan.set_hooks("b", Some(HookOutcome::NotRun));
    lan.hear(Peer::new("c").sends(Body::Heartbeat {
        interval_us: 0,
        leader: Some(id("b")),
        conceded: Some(Term(5)),
        acknowledged: None,
    }));
    lan.on("b", |election, now| election.stop(now));
    assert_eq!(lan.take("b").stopped(), Some(StopCause::Requested));
    lan.end_write("b");
    assert!(lan.take("b").0.is_empty());
}

/// Before, a restarted leader that was heard before its first declaration was given up without a
/// probe.
#[test]
fn a_leader_that_is_heard_in_another_life_has_yet_to_declare() {
    let mut former = Peer::leading("a", 4);
    let mut lan = Lan::following("b", patient(), &mut former);
    let mut restarted = Peer { incarnation: Incarnation(9), ..Peer::leading("a", 5) };
    lan.hear(restarted.sends(Body::Challenge));
    assert_eq!(lan.at("b").leader(), None);
    lan.hear(restarted.sends(EVERY_SECOND));
    assert_eq!(lan.at("b").leader(), Some(id("a")));
    lan.pass(secs(1));
    let silent = |event| matches!(event, Event::LeaderSilent { .. });
    assert!(!lan.take("b").events().any(silent));
}
