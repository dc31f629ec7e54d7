//! How long a leader leads.

use super::*;
use crate::core::election::REFRESH_PAUSE;

#[test]
fn next_leader_waits_for_the_lease_and_the_grace() {
    let mut lan = three();
    lan.cut_off("a");
    let cut_at = lan.now;
    lan.pass(secs(60));
    let runs: Vec<_> = lan.take("a").runs().map(|(at, event, why)| (event, why, at)).collect();
    let [(HookEvent::Demoted, Reason::LeaseLost, demoted_at)] = runs[..] else {
        panic!("{runs:?}");
    };
    let elected_at = lan.take("b").runs().next().unwrap().0;
    assert!(demoted_at.since(cut_at) <= secs(3));
    assert!(demoted_at.since(cut_at) >= secs(2));
    let between = elected_at.since(demoted_at);
    assert!(between >= secs(5), "no node leads in the demote grace: {between:?}");
    assert!(between <= ms(5_300), "and little more: {between:?}");
    assert_eq!(lan.at("b").term(), Term(2));
}

#[test]
fn lost_majority_causes_no_new_terms() {
    let mut lan = Lan::stable(&["a", "b", "c", "d", "e"], &quorum(&["a", "b", "c", "d", "e"]));
    assert_eq!(lan.leaders(), ["a"]);
    for name in ["c", "d", "e"] {
        lan.crash(name);
    }
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.at("b").term(), Term(1));
}

#[test]
fn a_dead_leader_whose_hooks_let_go_is_replaced_without_waiting_for_its_lease() {
    let mut lan = three();
    let plan = lan.at("a").crash_plan().unwrap();
    assert_eq!(plan.grace, Some(secs(5)));
    lan.crash("a");
    lan.pass(ms(100));
    lan.hear(plan.resignation.unwrap());
    lan.pass(ms(100));
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn the_demoted_leader_follows_the_next_one_after_healing() {
    let mut lan = three();
    lan.cut_off("a");
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
    lan.take("b");
    lan.reconnect("a");
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.at("a").leader(), Some(id("b")));
    assert_eq!(lan.take("b").transitions(), []);
}

/// Its `demoted` still runs when it hears the next leader.
#[test]
fn the_demoted_leader_votes_for_none_below_the_term_that_it_has_acknowledged() {
    let mut lan = cut_off_with_a_hook_that_runs(secs(4));
    lan.crash("b");
    lan.crash("c");
    lan.pass(secs(2));
    lan.reconnect("a");
    lan.take("a");
    let next = Peer { incarnation: Incarnation(7), ..voter_in("b", 9) }.declares();
    lan.hear(next);
    assert_eq!((lan.take("a").acknowledgements(), lan.at("a").term()), (1, Term(9)));
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(9));
    lan.take("a");
    lan.hear(Peer { incarnation: Incarnation(7), ..voter_in("c", 8) }.asks_for_votes());
    assert_eq!(lan.take("a").votes(), [no("c")]);
}

/// The node `b`, elected in term 1 by itself and `c`, the only voters that it hears.
pub(super) fn elected() -> (Lan, Peer) {
    let mut lan = alone("b");
    let request = lan.take_vote_request("b");
    let mut c = voter("c");
    lan.hear(c.answers(&request, true));
    assert_eq!(lan.leaders(), ["b"]);
    (lan, c)
}

#[test]
fn the_elected_hook_waits_until_a_majority_follows() {
    let (mut lan, mut c) = elected();
    lan.pass(ms(100));
    let done = lan.take("b");
    assert_eq!(done.hooks(), []);
    let declaration = done.last_declaration();
    lan.hear(c.acknowledges(&declaration));
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Elected, Reason::Election)]);
}

#[test]
fn leader_without_acknowledgements_ends_without_a_hook_run() {
    let (mut lan, _) = elected();
    lan.pass(secs(4));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("b").hooks(), []);
}

#[test]
fn an_acknowledgement_counts_from_when_the_declaration_was_sent() {
    let (mut lan, mut c) = elected();
    let declared_at = lan.now;
    let declaration = lan.take("b").last_declaration();
    lan.pass(ms(900));
    lan.hear(c.acknowledges(&declaration));
    assert_eq!(lan.at("b").lease_end(), Some(declared_at + secs(3)));
}

#[test]
fn acknowledgements_of_another_life_or_an_unknown_declaration_do_not_count() {
    let (mut lan, mut c) = elected();
    let declaration = lan.take("b").last_declaration();
    let mut other_life = declaration;
    other_life.incarnation.0 += 1;
    lan.hear(c.acknowledges(&other_life));
    let mut future = declaration;
    future.sequence.0 += 100;
    lan.hear(c.acknowledges(&future));
    let to_another = Body::Heartbeat {
        interval_us: 0,
        leader: Some(id("a")),
        conceded: None,
        acknowledged: Some(declaration.id()),
    };
    lan.hear(c.sends(to_another));
    assert_eq!(lan.take("b").hooks(), []);
}

#[test]
fn unenrolled_voter_renews_no_lease() {
    let (mut lan, mut c) = elected();
    let declaration = lan.take("b").last_declaration();
    c.flags = Flags::CANDIDATE.with(Flags::ELIGIBLE, true);
    lan.hear(c.acknowledges(&declaration));
    assert_eq!(lan.take("b").hooks(), []);
}

#[test]
fn leader_does_not_lead_after_its_lease_even_before_the_next_input() {
    let (mut lan, mut c) = elected();
    let declaration = lan.take("b").last_declaration();
    lan.hear(c.acknowledges(&declaration));
    let end = lan.at("b").lease_end().unwrap();
    assert!(lan.at("b").is_leader_at(Time::from_nanos(end.as_nanos() - 1)));
    assert!(!lan.at("b").is_leader_at(end));
}

#[test]
fn paused_process_sends_nothing_under_its_expired_lease() {
    for wakes_by in 0..4 {
        let (mut lan, mut c) = elected();
        let declaration = lan.take("b").last_declaration();
        lan.hear(c.acknowledges(&declaration));
        lan.take("b");
        lan.now += secs(10);
        match wakes_by {
            0 => lan.on("b", |election, now| election.handle_timeout(now)),
            1 => lan.hear(c.acknowledges(&declaration)),
            2 => lan.hear(c.sends(Body::Proposal)),
            _ => lan.on("b", |election, now| election.set_maintenance(now, true)),
        }
        assert_eq!(lan.leaders(), Vec::<String>::new(), "woken by {wakes_by}");
        let woken = lan.take("b");
        assert_eq!(woken.hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
        let as_leader = woken.sent().filter(|(_, message)| message.standing.role == Role::Leader);
        assert_eq!(as_leader.count(), 0, "woken by {wakes_by}");
    }
}

/// With one voter down the leader needs the other one, which its operator takes out of service.
#[test]
fn disk_that_hangs_costs_no_leader_that_has_its_pledge() {
    let mut lan = three();
    lan.crash("c");
    lan.set_slow_disk("b", true);
    lan.on("b", |election, now| election.set_maintenance(now, true));
    lan.pass(secs(60));
    assert!(lan.host("b").unwritten.is_some());
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks(), []);
}

/// So that a second daemon under its id is noticed, and that others know it is alive.
#[test]
fn leader_whose_lease_expires_in_a_handover_declares_nothing_more_and_still_speaks() {
    let mut lan = three();
    lan.set_hooks("a", None);
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.cut_off("a");
    let end = lan.at("a").lease_end().unwrap();
    lan.pass(secs(8));
    let outputs = lan.take("a");
    assert_eq!(outputs.overlong_silences(), []);
    let sent: Vec<_> = outputs.sent().collect();
    let later = sent.iter().filter(|(at, _)| *at >= end).map(|(_, message)| message);
    assert!(later.clone().all(|message| matches!(message.body, Body::Heartbeat { .. })));
    assert!(later.clone().all(|message| message.standing.role == Role::Follower));
    assert!(later.count() >= 3, "it speaks every interval");
}

#[test]
fn hooks_that_overrun_the_grace_are_fenced_once() {
    let mut lan = cut_off_with_a_hook_that_runs(secs(60));
    let done = lan.take("a");
    let demoted_at = done.runs().next().unwrap().0;
    assert_eq!(done.fences(), [demoted_at + secs(5)]);
    assert!(done.has_event(Event::GraceOverrun { term: Term(1) }));
}

#[test]
fn hooks_that_let_go_in_time_are_not_fenced() {
    let mut lan = cut_off_with_a_hook_that_runs(ms(7_000));
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(60));
    assert_eq!(lan.take("a").fences(), []);
}

#[test]
fn an_elected_hook_that_still_runs_is_cut_short_and_then_undone() {
    let (mut lan, mut c) = elected();
    let declaration = lan.take("b").last_declaration();
    lan.set_hooks("b", None);
    lan.hear(c.acknowledges(&declaration));
    let end = lan.at("b").lease_end().unwrap();
    lan.pass(secs(4));
    let done = lan.take("b");
    let cut = done.0.iter().find(|(_, output)| matches!(output, Output::CutHookShort { .. }));
    assert_eq!(cut, Some(&(end, Output::CutHookShort { by: end + ms(2_500) })));
    lan.end_hook("b", HookOutcome::Failed);
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
}

#[test]
fn a_leader_keeps_its_term_though_a_voter_knows_a_higher_one() {
    let mut lan = three();
    let mut c = Peer { incarnation: Incarnation(50), ..voter_in("c", 9) };
    lan.crash("c");
    for _ in 0..10 {
        lan.hear(c.sends(HEARTBEAT));
        lan.pass(secs(1));
    }
    let leader = lan.take("a");
    assert_eq!(lan.at("a").term(), Term(1));
    assert_eq!(leader.hooks(), []);
    assert_eq!(lan.at("b").term(), Term(9), "the next leadership will be above it");
}

#[test]
fn longer_intervals_do_not_cost_the_leadership() {
    let mut lan = three();
    let slower = Params { ..quorum(&THREE) };
    let slower = Params {
        heartbeat_interval: secs(4),
        leader_alive_threshold: secs(12),
        leader_election_duration: secs(4),
        ..slower
    };
    for name in THREE {
        lan.on(name, |election, now| election.reconfigure(now, slower.clone()));
    }
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks(), []);
    lan.cut_off("a");
    lan.pass(secs(7));
    assert_eq!(lan.leaders(), ["a"]);
    lan.pass(secs(6));
    assert_eq!(lan.leaders(), Vec::<String>::new());
}

#[test]
fn longer_interval_does_not_put_off_the_declaration_that_was_announced() {
    let (mut lan, mut c) = elected();
    let declaration = lan.take("b").last_declaration();
    let slower = Params {
        heartbeat_interval: secs(4),
        leader_alive_threshold: secs(12),
        ..lan.at("b").params().clone()
    };
    lan.on("b", |election, now| election.reconfigure(now, slower));
    lan.hear(c.acknowledges(&declaration));
    lan.pass(secs(1));
    assert_ne!(lan.take("b").declarations(), []);
}

#[test]
fn the_voters_stay_what_they_were_at_the_start() {
    let mut lan = three();
    lan.on("a", |election, now| election.reconfigure(now, quorum(&["a"])));
    lan.on("b", |election, now| election.reconfigure(now, patient()));
    for name in ["a", "b"] {
        assert_eq!(lan.at(name).params().quorum, quorum(&THREE).quorum, "{name}");
    }
}

#[test]
fn a_leader_that_hears_one_of_a_later_term_gives_way() {
    let (mut lan, mut c) = elected();
    let declaration = lan.take("b").last_declaration();
    lan.hear(c.acknowledges(&declaration));
    lan.take("b");
    let mut later = voter_in("a", 9);
    later.sequence.0 = 10;
    lan.hear(later.declares());
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Demoted, Reason::BetterLeader)]);
}

#[test]
fn stable_group_writes_nothing() {
    let mut lan = three();
    lan.pass(secs(1000));
    for name in THREE {
        assert_eq!(lan.take(name).saves(), 0, "{name}");
    }
}

/// Otherwise one lost acknowledgement would cost the lease, which is little longer than two
/// intervals.
#[test]
fn leader_without_a_majority_repeats_its_declaration_soon() {
    let (mut lan, mut c) = elected();
    lan.pass(ms(10));
    lan.take("b");
    lan.pass(secs(1));
    let repeated = lan.take("b").declarations();
    assert_eq!(repeated.len(), 4, "every eighth of what the lease is longer than the interval");
    lan.pass(ms(250));
    let declaration = lan.take("b").last_declaration();
    lan.hear(c.acknowledges(&declaration));
    lan.pass(ms(989));
    assert_eq!(lan.take("b").declarations(), []);
    lan.pass(ms(11));
    assert_eq!(lan.take("b").declarations().len(), 1);
}

/// Three voters with a lease of two intervals.
fn three_with_short_leases() -> (Lan, Params) {
    let interval = every_second().heartbeat_interval;
    let leader_alive_threshold = interval * 2;
    let params = Params { leader_alive_threshold, ..quorum(&THREE) };
    let mut lan = Lan::stable(&THREE, &params);
    assert_eq!(lan.leaders(), ["a"]);
    lan.take("a");
    (lan, params)
}

#[test]
fn voter_that_restarts_at_once_keeps_its_leader_in_office() {
    for after in 0..20 {
        let (mut lan, params) = three_with_short_leases();
        lan.crash("b");
        lan.pass(secs(10) + ms(50) * after);
        lan.crash("c");
        lan.pass(ms(100));
        lan.start("c", params);
        lan.pass(secs(20));
        assert_eq!(lan.take("a").hooks(), [], "{after}");
    }
}

#[test]
fn a_lost_resignation_delays_a_handover_by_a_gap_and_not_by_a_pledge() {
    for deaf in [&["b"][..], &["c"], &["b", "c"]] {
        let mut lan = three();
        for name in deaf {
            lan.deaf.insert((id("a"), id(name)));
        }
        lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
        lan.deaf.clear();
        lan.pass(ms(400));
        assert_eq!(lan.leaders(), ["b"], "{deaf:?} missed it");
        lan.take("c");
        lan.pass(secs(1));
        assert!(lan.take("c").acknowledgements() > 0, "{deaf:?} missed it");
    }
}

/// The repeated resignation must not release the votes that the same life asks for again.
#[test]
fn a_resignation_is_not_repeated_once_its_sender_asks_for_votes_again() {
    let (mut lan, mut c) = elected();
    let declaration = lan.take("b").last_declaration();
    lan.hear(c.acknowledges(&declaration));
    // The lease ends after 3 s, and the node stands again at once.
    lan.pass(ms(3_200));
    let proposal = lan.take("b").last_proposal();
    lan.hear(c.answers(&proposal, true));
    assert_eq!(lan.take("b").last_vote_request().term, Term(2));
    lan.pass(secs(1));
    let resigns = |body: &Body| matches!(body, Body::Resignation { .. });
    assert!(!lan.take("b").bodies().iter().any(resigns), "it would release its voters");
}

#[test]
fn demoted_does_not_wait_for_the_next_try_of_a_run_that_could_not_begin() {
    let mut lan = three();
    let refreshing = Params { refresh_interval: Some(secs(60)), ..quorum(&THREE) };
    lan.on("a", |election, now| election.reconfigure(now, refreshing));
    lan.cut_off("a");
    let end = lan.at("a").lease_end().unwrap();
    lan.pass(end.since(lan.now) - ms(100) - REFRESH_PAUSE);
    lan.set_hooks("a", Some(HookOutcome::NotRun));
    lan.on("a", |election, now| election.handle_address_lost(now));
    lan.pass(REFRESH_PAUSE);
    lan.take("a");
    lan.pass(ms(200));
    let runs: Vec<_> = lan.take("a").runs().collect();
    assert_eq!(runs.first(), Some(&(end, HookEvent::Demoted, Reason::LeaseLost)));
}

#[test]
fn acknowledgement_does_not_drop_the_answer_to_a_starting_node() {
    let (mut lan, mut c) = elected();
    let declaration = lan.take("b").last_declaration();
    lan.hear(c.acknowledges(&declaration));
    lan.pass(secs(1));
    let declaration = lan.take("b").last_declaration();
    let mut d = Peer { role: Role::Starting, ..voter("d") };
    lan.hear(d.sends(HEARTBEAT));
    assert_eq!(lan.take("b").declarations(), [], "the last one was just sent");
    lan.hear(c.acknowledges(&declaration));
    lan.pass(ms(100));
    assert_eq!(lan.take("b").declarations().len(), 1);
}
