//! Two leaders hear each other.

use super::*;
use crate::core::election::State;
use crate::core::params::StaticRole;
use crate::types::DatagramId;

#[test]
fn declaration_of_a_better_leader_ends_the_leadership() {
    let mut lan = Lan::led_by("m");
    lan.hear(Peer::leading("a", 5).sends(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("a")));
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::BetterLeader)]);
    assert_eq!(
        outputs.bodies(),
        [Body::Heartbeat {
            interval_us: 1_100_000,
            leader: Some(id("a")),
            conceded: Some(Term(6)),
            acknowledged: None
        }],
        "a loser does not declare again"
    );
}

#[test]
fn node_that_leads_again_before_its_hook_has_released_has_yet_to_take_over() {
    let mut lan = Lan::led_by("m");
    assert!(!lan.at("m").has_hook_pending());
    lan.set_hooks("m", None);
    lan.hear(Peer::leading("a", 5).sends(EVERY_SECOND));
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["m"], "the other one is silent");
    assert_eq!(lan.take("m").hooks(), [(HookEvent::Demoted, Reason::BetterLeader)]);
    assert!(lan.at("m").has_changeover_pending(), "demoted runs");
    lan.end_hook("m", HookOutcome::Succeeded);
    assert_eq!(lan.take("m").hooks(), [(HookEvent::Elected, Reason::Election)]);
    assert!(lan.at("m").has_changeover_pending(), "elected runs");
    lan.end_hook("m", HookOutcome::Succeeded);
    assert!(!lan.at("m").has_changeover_pending() && !lan.at("m").has_hook_pending());
}

#[test]
fn reaffirmed_is_no_changeover() {
    let mut lan = Lan::led_by("m");
    lan.set_hooks("m", None);
    lan.hear(Peer::leading("z", 7).sends(EVERY_SECOND));
    lan.pass(patient().declaration_gap());
    assert!(lan.at("m").has_hook_pending() && !lan.at("m").has_changeover_pending());
}

#[test]
fn a_worse_leaders_declaration_is_answered_at_once_and_then_under_a_term_above_both() {
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(Peer::leading("z", 7).sends(EVERY_SECOND));
    lan.pass(patient().declaration_gap());
    let outputs = lan.take("m");
    let answers: Vec<_> = outputs.sent().map(|(_, answer)| (answer.body, answer.term)).collect();
    assert_eq!(answers, [(EVERY_SECOND, Term(1)), (EVERY_SECOND, Term(8))]);
    assert_eq!(outputs.hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    assert!(outputs.has_event(Event::RivalLeader { rival: id("z"), address: address(id("z")) }));
    assert_eq!(lan.leaders(), ["m"]);
}

#[test]
fn one_conflict_reaffirms_once_however_often_the_loser_declares() {
    let mut rival = Peer::leading("z", 7);
    let mut lan = Lan::led_by("m");
    for _ in 0..20 {
        lan.hear(rival.sends(EVERY_SECOND));
        lan.pass(ms(10));
    }
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    assert_eq!(lan.at("m").term(), Term(8));
    let most = ms(200).as_millis() / every_second().declaration_gap().as_millis() + 1;
    let answers = outputs.declarations().len();
    assert!(answers as u128 <= most, "answers are bounded by the gap: {answers}");
}

/// The rival's hooks may have taken over after this node's did, whatever the terms.
#[test]
fn leader_outbids_each_leadership_of_a_rival_once_even_in_a_lower_term() {
    let mut lan = Lan::led_by("m");
    lan.hear(Peer::leading("z", 7).sends(EVERY_SECOND));
    assert_eq!(lan.at("m").term(), Term(8));
    let mut rival = Peer::leading("y", 2);
    lan.hear(rival.sends(EVERY_SECOND));
    lan.pass_with(secs(5), &mut [(&mut rival, EVERY_SECOND)]);
    assert_eq!(lan.at("m").term(), Term(9));
    rival.role = Role::Follower;
    lan.hear(rival.sends(Body::Heartbeat {
        interval_us: 0,
        leader: Some(id("m")),
        conceded: Some(Term(2)),
        acknowledged: None,
    }));
    assert_eq!(lan.at("m").term(), Term(9), "outbid when it was heard as a leader");
    let reaffirmed = (HookEvent::Reaffirmed, Reason::Conflict);
    assert_eq!(lan.take("m").hooks(), [reaffirmed, reaffirmed]);
}

/// It counts its terms from the beginning then, and its hooks run anew.
#[test]
fn leader_outbids_a_rival_that_lost_its_disk_in_the_same_term_again() {
    let mut rival = Peer::leading("z", 2);
    let mut lan = Lan::led_by("m");
    lan.hear(rival.sends(EVERY_SECOND));
    lan.pass(secs(30));
    let before = lan.at("m").term();
    rival.incarnation.0 += 1;
    lan.hear(rival.sends(EVERY_SECOND));
    lan.pass(secs(1));
    assert_eq!(lan.at("m").term(), before.next());
}

#[test]
fn a_winner_that_never_heard_the_loser_reaffirms_on_its_concession() {
    let mut loser = Peer::new("z");
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(loser.sends(following("m", Some(2))));
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    let (_, answer) = outputs.sent().next().unwrap();
    assert_eq!((answer.body, answer.term), (EVERY_SECOND, Term(3)));
    lan.pass(secs(2));
    lan.hear(loser.sends(following("m", Some(2))));
    assert_eq!(lan.take("m").hooks(), [], "once");
}

#[test]
fn only_the_best_ranked_leader_is_reaffirmed_after_a_partition() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.cut_off("a");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a", "b"]);
    let before = lan.at("b").term();
    for name in ["a", "b", "c"] {
        lan.take(name);
    }
    lan.reconnect("a");
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Demoted, Reason::BetterLeader)]);
    assert_eq!(lan.take("c").hooks(), []);
    assert!(lan.at("a").term() > before);
    for name in ["b", "c"] {
        assert_eq!(lan.at(name).leader(), Some(id("a")));
    }
}

#[test]
fn conflict_ends_in_one_round_trip_whichever_leader_declares_first() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.cut_off("b");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a", "b"]);
    lan.reconnect("b");
    lan.take("a");
    lan.take("b");
    let mut conflict_ended = false;
    for _ in 0..1000 {
        lan.pass(ms(1));
        let declared = [lan.take("a"), lan.take("b")].iter().any(|o| !o.declarations().is_empty());
        if declared {
            lan.pass(patient().declaration_gap());
            conflict_ended = lan.leaders() == ["a"];
            break;
        }
    }
    assert!(conflict_ended);
}

#[test]
fn a_leader_that_is_handing_over_gives_way_to_a_better_one_without_a_second_demotion() {
    let mut lan = Lan::led_by("m");
    lan.set_hooks("m", None);
    lan.on("m", |election, now| election.yield_leadership(now)).unwrap();
    lan.hear(Peer::leading("a", 5).sends(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("a")));
    lan.end_hook("m", HookOutcome::Succeeded);
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::Yield)]);
    assert!(!outputs.bodies().iter().any(|body| matches!(body, Body::Resignation { .. })));
}

/// At short intervals followers send heartbeats only once a second.
#[test]
fn loser_concedes_at_every_interval() {
    let every = ms(20);
    let quick = Params { heartbeat_interval: every, ..Params::new(every) };
    let mut lan = Lan::new();
    lan.start("m", quick);
    lan.pass(secs(3));
    assert_eq!(lan.leaders(), ["m"]);
    lan.take("m");
    let declaration = Body::Declaration { interval_us: 20_000, hold_us: 0 };
    let mut winner = Peer::leading("a", 1);
    for _ in 0..6 {
        lan.hear(winner.sends(declaration));
        lan.pass(every);
    }
    let told = |body: &Body| matches!(body, Body::Heartbeat { conceded: Some(Term(2)), .. });
    let count = lan.take("m").bodies().iter().filter(|body| told(body)).count();
    assert!(count >= 5, "{count}");
}

/// A heartbeat of a node that follows `leader`, which must lead in a term above `conceded`.
fn following(leader: &str, conceded: Option<u64>) -> Body {
    Body::Heartbeat {
        interval_us: 1_100_000,
        leader: Some(id(leader)),
        conceded: conceded.map(Term),
        acknowledged: None,
    }
}

fn concedes(body: &Body) -> bool {
    matches!(body, Body::Heartbeat { conceded: Some(_), .. })
}

fn reaffirmed(outputs: &Outputs) -> usize {
    outputs
        .hooks()
        .iter()
        .filter(|hook| **hook == (HookEvent::Reaffirmed, Reason::Conflict))
        .count()
}

/// Otherwise a third node would carry terms between two leaders that do not hear each other, and
/// each would outbid the other for ever.
#[test]
fn leader_keeps_its_term_without_a_concession() {
    let leader = id("m");
    let newest = DatagramId { incarnation: Incarnation(1), sequence: Sequence(1) };
    let unconceded = [
        following("m", None),
        following("z", None),
        following("z", Some(90)),
        HEARTBEAT,
        Body::Probe { leader },
        Body::Probe { leader: id("z") },
        Body::ProbeReply { leader: id("z"), newest },
        Body::Proposal,
        Body::Challenge,
        Body::Claim,
        Body::Resignation { successor: None },
        Body::Farewell,
    ];
    for body in unconceded {
        let mut lan = Lan::led_by("m");
        let mut between = Peer::new("z");
        between.term = Term(50);
        lan.hear(between.sends(body));
        lan.pass(secs(2));
        assert_eq!(lan.at("m").term(), Term(1), "{body:?}");
        assert_eq!(reaffirmed(&lan.take("m")), 0, "{body:?}");
    }
}

/// The third node follows the better of two leaders that do not hear each other, and misses many of
/// its declarations.
#[test]
fn leaders_that_do_not_hear_each_other_keep_their_terms_when_declarations_are_lost() {
    let mut lan = Lan::new();
    for (from, to) in [("a", "c"), ("c", "a")] {
        lan.deaf.insert((id(from), id(to)));
    }
    for name in ["a", "b", "c"] {
        lan.start(name, patient());
    }
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["a", "c"]);
    for name in ["a", "c"] {
        lan.take(name);
    }
    for _ in 0..60 {
        lan.deaf.insert((id("a"), id("b")));
        lan.pass(ms(1500));
        lan.deaf.remove(&(id("a"), id("b")));
        lan.pass(secs(2));
    }
    assert_eq!(lan.leaders(), ["a", "c"]);
    let reaffirmed = ["a", "c"].map(|name| reaffirmed(&lan.take(name)));
    assert_eq!(reaffirmed, [0, 0]);
}

#[test]
fn loser_concedes_until_the_leader_leads_in_a_higher_term() {
    let mut lan = Lan::led_by("m");
    let mut winner = Peer::leading("a", 1);
    lan.hear(winner.sends(EVERY_SECOND));
    lan.pass_with(secs(300), &mut [(&mut winner, EVERY_SECOND)]);
    assert_eq!(lan.take("m").bodies().pop(), Some(following("a", Some(2))));
    lan.pass_with(secs(5), &mut [(&mut winner, EVERY_SECOND)]);
    assert!(lan.take("m").bodies().len() > 3, "at every interval");
    winner.term = Term(3);
    lan.hear(winner.sends(EVERY_SECOND));
    lan.take("m");
    lan.pass_with(secs(10), &mut [(&mut winner, EVERY_SECOND)]);
    let bodies = lan.take("m").bodies();
    assert!(!bodies.is_empty() && !bodies.iter().any(concedes), "{bodies:?}");
}

/// The winner's term is above the loser's, but its hook ran before the loser's hooks release
/// everything.
#[test]
fn loser_concedes_also_to_a_winner_in_a_higher_term() {
    let mut lan = Lan::led_by("m");
    let mut winner = Peer::leading("a", 5);
    lan.hear(winner.sends(EVERY_SECOND));
    assert_eq!(lan.take("m").bodies(), [following("a", Some(6))]);
    winner.term = Term(6);
    lan.hear(winner.sends(EVERY_SECOND));
    lan.take("m");
    lan.pass_with(secs(3), &mut [(&mut winner, EVERY_SECOND)]);
    assert!(!lan.take("m").bodies().contains(&following("a", Some(6))));
}

#[test]
fn restarted_node_concedes_the_term_that_it_knew() {
    let mut lan = Lan::led_by("m");
    lan.crash("m");
    lan.host("m").disk.term = Term(7);
    let mut leader = Peer::leading("a", 5);
    lan.start("m", patient());
    lan.hear(leader.sends(EVERY_SECOND));
    assert!(lan.take("m").bodies().contains(&following("a", Some(7))));
    leader.term = Term(7);
    lan.hear(leader.sends(EVERY_SECOND));
    lan.take("m");
    lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
    assert!(!lan.take("m").bodies().contains(&following("a", Some(7))));
}

#[test]
fn follower_concedes_the_term_of_the_leader_that_it_lost_to_one_in_a_lower_term() {
    let mut leader = Peer::leading("a", 5);
    let mut lan = Lan::following("m", Params { candidate: false, ..patient() }, &mut leader);
    let mut other = Peer::leading("b", 3);
    lan.hear(other.sends(EVERY_SECOND));
    lan.hear(leader.sends(Body::Farewell));
    lan.hear(other.sends(EVERY_SECOND));
    assert_eq!(lan.take("m").bodies().pop(), Some(following("b", Some(5))));
}

#[test]
fn member_that_concedes_ever_higher_terms_costs_one_hook_run_an_interval() {
    let mut lan = Lan::led_by("m");
    let mut loser = Peer::new("z");
    for term in 0..1000 {
        lan.hear(loser.sends(following("m", Some(10 + 2 * term))));
        lan.pass(ms(10));
    }
    let outputs = lan.take("m");
    let (hooks, declared) = (reaffirmed(&outputs), outputs.declarations().len());
    assert_eq!(hooks, 11, "in 10 s, the first at once");
    assert!((10..=30).contains(&declared), "{declared} declarations in 10 s");
}

/// A node that declares in a new term each time costs no more.
#[test]
fn rival_in_ever_higher_terms_costs_one_hook_run_an_interval() {
    let mut lan = Lan::led_by("m");
    let mut rival = Peer::leading("z", 10);
    for _ in 0..1000 {
        rival.term.0 += 2;
        lan.hear(rival.sends(EVERY_SECOND));
        lan.pass(ms(10));
    }
    let hooks = reaffirmed(&lan.take("m"));
    assert_eq!(hooks, 11, "in 10 s, the first at once");
}

/// The rival, or the follower that concedes, may send nothing more.
#[test]
fn leader_outbids_two_leaderships_heard_at_once() {
    let lost = |name, term| Peer::leading(name, term).sends(EVERY_SECOND);
    let conceded = |name, term| Peer::new(name).sends(following("m", Some(term)));
    let pairs = [
        [lost("y", 7), lost("z", 20)],
        [conceded("y", 7), conceded("z", 20)],
        [lost("y", 7), conceded("z", 20)],
        [conceded("y", 7), lost("z", 20)],
    ];
    for (index, pair) in pairs.into_iter().enumerate() {
        let mut lan = Lan::led_by("m");
        pair.into_iter().for_each(|message| lan.hear(message));
        assert_eq!(lan.at("m").term(), Term(8), "{index}");
        lan.pass(patient().heartbeat_interval);
        assert_eq!(lan.at("m").term(), Term(21), "{index}");
        lan.pass(secs(10));
        assert_eq!(lan.at("m").term(), Term(21), "{index}");
        assert_eq!(reaffirmed(&lan.take("m")), 2, "{index}");
    }
}

#[test]
fn shorter_interval_applies_to_a_pending_reaffirmation() {
    let slow = Params { candidate: true, ..Params::new(secs(60)) };
    let mut lan = Lan::new();
    lan.start("m", slow);
    lan.pass(secs(1000));
    assert_eq!(lan.leaders(), ["m"]);
    lan.hear(Peer::leading("y", 7).sends(EVERY_SECOND));
    lan.hear(Peer::leading("z", 20).sends(EVERY_SECOND));
    lan.on("m", |election, now| election.reconfigure(now, patient()));
    lan.pass(secs(5));
    assert_eq!(lan.at("m").term(), Term(21));
}

/// The disk is done long before the end of the interval, and the loser sends nothing more.
#[test]
fn leadership_heard_during_a_write_is_outbid_after_it() {
    let slow = Params { candidate: true, ..Params::new(secs(60)) };
    let mut lan = Lan::new();
    lan.start("m", slow);
    lan.pass(secs(1000));
    assert_eq!(lan.leaders(), ["m"]);
    lan.set_slow_disk("m", true);
    lan.hear(Peer::leading("y", 7).sends(EVERY_SECOND));
    lan.pass(secs(61));
    lan.hear(Peer::leading("z", 20).sends(EVERY_SECOND));
    assert_eq!(lan.at("m").term(), Term(8), "that is not on disk yet");
    lan.set_slow_disk("m", false);
    lan.pass(ms(50));
    lan.end_write("m");
    lan.pass(secs(20));
    assert_eq!(lan.at("m").term(), Term(21));
}

/// `m` succeeds `a`, and its disk hangs.
fn undeclared() -> Lan {
    let mut leader = Peer::leading("a", 1);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.set_slow_disk("m", true);
    lan.hear(leader.sends(Body::Resignation { successor: Some(id("m")) }));
    assert_eq!(lan.leaders(), ["m"]);
    lan
}

#[test]
fn leader_whose_term_is_not_on_disk_follows_a_worse_one_that_declares() {
    let mut lan = undeclared();
    let mut rival = Peer::leading("z", 2);
    lan.hear(rival.sends(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.end_write("m");
    lan.pass_with(secs(10), &mut [(&mut rival, EVERY_SECOND)]);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), []);
    assert!(!outputs.bodies().iter().any(concedes), "no hook ran in the other's time");
    assert_eq!(outputs.declarations(), []);
}

/// `m` is to lead, also while another node does, and its disk hangs.
fn static_and_undeclared() -> Lan {
    let fixed = Params { static_role: Some(StaticRole::Leader), ..patient() };
    let mut lan = Lan::new();
    lan.start("m", fixed);
    lan.set_slow_disk("m", true);
    lan.pass(secs(20));
    assert_eq!((lan.leaders(), lan.take("m").declarations().len()), (vec!["m".to_string()], 0));
    lan
}

#[test]
fn static_leader_whose_disk_hangs_follows_a_leader_until_the_disk_is_done() {
    let mut lan = static_and_undeclared();
    let mut rival = Peer::leading("a", 7);
    lan.hear(rival.sends(EVERY_SECOND));
    lan.pass_with(secs(10), &mut [(&mut rival, EVERY_SECOND)]);
    assert_eq!(lan.at("m").leader(), Some(id("a")), "others would hear of one leader, it of two");
    lan.mend_disk("m");
    lan.pass_with(secs(10), &mut [(&mut rival, EVERY_SECOND)]);
    assert_eq!(lan.leaders(), ["m"]);
    assert!(!lan.take("m").declarations().is_empty());
}

/// Each write takes longer than others wait for a leader. The other one leads until the term is on
/// disk.
#[test]
fn static_leader_whose_disk_is_slow_takes_over_once() {
    let fixed = Params { static_role: Some(StaticRole::Leader), ..patient() };
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.take("a");
    lan.start_unsaved("m", fixed);
    let mut leaders = vec![lan.leaders()];
    for _ in 0..10 {
        for _ in 0..8 {
            lan.pass(ms(500));
            leaders.push(lan.leaders());
        }
        if lan.host("m").unwritten.is_some() {
            lan.end_write("m");
        }
    }
    leaders.dedup();
    assert_eq!(leaders, [["a"], ["m"]]);
    let outputs = lan.take("m");
    assert!(!outputs.declarations().is_empty());
    let elected = |hooks: &[(HookEvent, Reason)]| {
        hooks.iter().filter(|(event, _)| *event == HookEvent::Elected).count()
    };
    assert_eq!(elected(&outputs.hooks()), 1);
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::BetterLeader)]);
}

/// The terms in which the hooks of this host took over.
fn terms_of(outputs: &Outputs) -> Vec<u64> {
    let runs = outputs.0.iter().filter_map(|(_, output)| match output {
        Output::RunHook(run) if run.event.takes_over() => Some(run.term.0),
        _ => None,
    });
    runs.collect()
}

/// Both took the term that followed that of the leader that resigned.
#[test]
fn node_that_has_not_declared_leads_later_in_a_term_above_that_of_the_one_that_did() {
    let mut lan = undeclared();
    let term = lan.at("m").term().0;
    let mut rival = Peer::leading("z", term);
    lan.pass_with(secs(1), &mut [(&mut rival, EVERY_SECOND)]);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.hear(rival.sends(Body::Resignation { successor: Some(id("m")) }));
    lan.mend_disk("m");
    lan.pass(secs(1));
    assert_eq!(lan.leaders(), ["m"]);
    assert_eq!(terms_of(&lan.take("m")), [term + 1]);
}

/// Another node took the same term. Its declaration is lost, but not the heartbeat of its follower.
#[test]
fn node_that_has_not_declared_begins_above_the_terms_that_it_heard_meanwhile() {
    for ahead in 0..2 {
        let mut lan = undeclared();
        let heard = Term(lan.at("m").term().0 + ahead);
        let mut follower = Peer { term: heard, ..Peer::new("f") };
        lan.hear(follower.sends(following("n", None)));
        lan.mend_disk("m");
        lan.pass(secs(1));
        assert_eq!(lan.leaders(), ["m"]);
        let outputs = lan.take("m");
        assert_eq!(terms_of(&outputs), [heard.0 + 1]);
        assert!(!outputs.declarations().is_empty());
        assert!(outputs.sent().all(|(_, sent)| sent.term > heard));
    }
}

/// The follower reports a term, and `m` begins above that in any case.
#[test]
fn concession_to_a_node_that_has_not_declared_causes_no_reaffirmation() {
    let mut lan = undeclared();
    let mut follower = Peer { term: Term(8), ..Peer::new("f") };
    lan.hear(follower.sends(following("m", Some(8))));
    lan.mend_disk("m");
    lan.pass(secs(10));
    let outputs = lan.take("m");
    assert_eq!((terms_of(&outputs), reaffirmed(&outputs)), (vec![9], 0));
}

/// A broken member knows of a higher term at each write.
#[test]
fn terms_that_rise_delay_a_leadership_by_one_write() {
    let mut lan = undeclared();
    let mut broken = Peer { term: Term(8), ..Peer::new("f") };
    let mut writes = 0;
    while lan.host("m").unwritten.is_some() {
        broken.term = lan.at("m").term().next();
        lan.hear(broken.sends(following("n", None)));
        lan.end_write("m");
        lan.pass(ms(10));
        writes += 1;
        assert!(writes < 10);
    }
    let outputs = lan.take("m");
    assert_eq!((terms_of(&outputs).len(), writes), (1, 2));
    assert!(!outputs.declarations().is_empty());
}

/// It goes out of service while its term is being saved. Another node leads.
#[test]
fn leadership_that_was_not_declared_is_not_conceded() {
    for led in [1, 20] {
        let mut lan = undeclared();
        let mut follower = Peer { term: Term(led), ..Peer::new("f") };
        lan.hear(follower.sends(following("n", None)));
        if led > 1 {
            lan.end_write("m");
        }
        lan.on("m", |election, now| election.set_maintenance(now, true));
        let mut leader = Peer::leading("n", led);
        lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
        assert_eq!(lan.at("m").leader(), Some(id("n")));
        let outputs = lan.take("m");
        assert_eq!(outputs.declarations(), []);
        assert!(!outputs.bodies().iter().any(concedes));
    }
}

/// The next leader never heard of it.
#[test]
fn node_that_resigned_concedes_its_own_leadership() {
    let mut lan = Lan::led_by("m");
    let own = lan.at("m").term();
    lan.on("m", |election, now| election.set_maintenance(now, true));
    let mut leader = Peer::leading("n", own.0 - 1);
    lan.take("m");
    lan.hear(leader.sends(EVERY_SECOND));
    lan.pass(secs(2));
    assert!(lan.take("m").bodies().contains(&following("n", Some(own.0))));
}

/// The term that it took without a declaration counts.
#[test]
fn a_leader_that_began_above_what_it_heard_takes_the_next_term_an_interval_later() {
    let mut lan = undeclared();
    let mut follower = Peer { term: Term(8), ..Peer::new("f") };
    lan.hear(follower.sends(following("n", None)));
    lan.end_write("m");
    let moved = lan.now;
    lan.mend_disk("m");
    lan.hear(Peer::leading("z", 9).sends(EVERY_SECOND));
    lan.pass(secs(5));
    let outputs = lan.take("m");
    assert_eq!((terms_of(&outputs), reaffirmed(&outputs)), (vec![9, 10], 1));
    let is_next = |output: &Output| matches!(output, Output::RunHook(run) if run.term == Term(10));
    let (at, _) = outputs.0.iter().find(|(_, output)| is_next(output)).unwrap();
    assert!(at.since(moved) >= secs(1));
}

/// `m` succeeds `a` and its disk hangs, while its hook for `demoted` of an earlier leadership runs.
fn undeclared_before_its_hook_has_released() -> Lan {
    let mut lan = Lan::led_by("m");
    lan.set_hooks("m", None);
    let mut leader = Peer::leading("a", 7);
    lan.hear(leader.sends(EVERY_SECOND));
    lan.set_slow_disk("m", true);
    leader.role = Role::Follower;
    lan.hear(leader.sends(Body::Resignation { successor: Some(id("m")) }));
    assert_eq!(lan.leaders(), ["m"]);
    lan
}

/// It goes out of service.
#[test]
fn node_that_hands_over_before_it_declared_concedes_nothing() {
    let mut lan = undeclared_before_its_hook_has_released();
    lan.on("m", |election, now| election.set_maintenance(now, true));
    assert!(matches!(lan.at("m").state, State::HandingOver { .. }));
    let mut next = Peer::leading("n", 30);
    lan.take("m");
    lan.pass_with(secs(5), &mut [(&mut next, EVERY_SECOND)]);
    assert_eq!(lan.at("m").leader(), Some(id("n")));
    assert!(!lan.take("m").bodies().iter().any(concedes));
}

/// The operators must decide between them, but not over one term.
#[test]
fn static_leader_begins_above_the_term_of_another_one() {
    let mut lan = static_and_undeclared();
    let term = lan.at("m").term();
    let mut rival = Peer::leading("z", term.0);
    rival.flags = rival.flags.with(Flags::FIXED, true);
    lan.hear(rival.sends(EVERY_SECOND));
    lan.mend_disk("m");
    lan.pass(secs(1));
    assert_eq!(terms_of(&lan.take("m")), [term.next().0]);
}

/// While its disk was writing, the other leader has taken the same term.
#[test]
fn static_leader_takes_over_above_the_term_of_the_leader_before() {
    let fixed = Params { static_role: Some(StaticRole::Leader), ..patient() };
    let mut lan = Lan::new();
    lan.start("m", fixed);
    lan.on("m", |election, now| election.set_maintenance(now, true));
    let mut rival = Peer::leading("z", 4);
    lan.pass_with(secs(5), &mut [(&mut rival, EVERY_SECOND)]);
    lan.set_slow_disk("m", true);
    lan.on("m", |election, now| election.set_maintenance(now, false));
    lan.pass_with(secs(1), &mut [(&mut rival, EVERY_SECOND)]);
    rival.term = lan.at("m").term();
    lan.pass_with(secs(1), &mut [(&mut rival, EVERY_SECOND)]);
    lan.mend_disk("m");
    lan.pass(secs(1));
    assert_eq!(lan.leaders(), ["m"]);
    assert!(terms_of(&lan.take("m")).iter().any(|term| *term > rival.term.0));
}

/// A conflict has taken it into a higher term, which is on disk only once it hands over.
#[test]
fn leader_that_handed_over_concedes_the_last_term_that_it_declared_in() {
    let mut lan = Lan::led_by("m");
    lan.set_hooks("m", None);
    lan.set_slow_disk("m", true);
    lan.hear(Peer::leading("y", 7).sends(EVERY_SECOND));
    lan.on("m", |election, now| election.set_maintenance(now, true));
    lan.mend_disk("m");
    lan.pass(secs(3));
    assert_eq!(lan.take("m").declared_terms().last(), Some(&Term(8)));
    lan.end_hook("m", HookOutcome::Succeeded);
    let mut next = Peer::leading("n", 7);
    lan.pass_with(secs(1), &mut [(&mut next, EVERY_SECOND)]);
    assert!(lan.take("m").bodies().contains(&following("n", Some(8))));
}

/// Another node has taken the same term, and `m` goes out of service before its own is on disk.
#[test]
fn leader_that_hands_over_declares_in_no_term_of_another_node() {
    let mut lan = undeclared_before_its_hook_has_released();
    let heard = lan.at("m").term();
    let mut follower = Peer { term: heard, ..Peer::new("f") };
    lan.hear(follower.sends(following("n", None)));
    lan.on("m", |election, now| election.set_maintenance(now, true));
    lan.mend_disk("m");
    lan.pass(secs(2));
    let declared = lan.take("m").declared_terms();
    assert!(!declared.is_empty() && declared.iter().all(|term| *term > heard), "{declared:?}");
}

#[test]
fn leader_that_hands_over_outbids_no_rival() {
    let mut lan = Lan::led_by("m");
    lan.hear(Peer::leading("y", 7).sends(EVERY_SECOND));
    lan.hear(Peer::leading("z", 20).sends(EVERY_SECOND));
    lan.set_hooks("m", None);
    lan.on("m", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(3));
    lan.end_hook("m", HookOutcome::Succeeded);
    assert_eq!(reaffirmed(&lan.take("m")), 1);
}

#[test]
fn leader_that_steps_down_outbids_no_rival() {
    let mut lan = Lan::led_by("m");
    lan.hear(Peer::leading("y", 7).sends(EVERY_SECOND));
    lan.hear(Peer::leading("z", 20).sends(EVERY_SECOND));
    let mut winner = Peer::leading("a", 8);
    lan.hear(winner.sends(EVERY_SECOND));
    lan.pass_with(secs(5), &mut [(&mut winner, EVERY_SECOND)]);
    assert_eq!(lan.at("m").leader(), Some(id("a")));
    assert_eq!(reaffirmed(&lan.take("m")), 1);
}

#[test]
fn leader_declares_in_its_saved_term_while_a_higher_one_is_being_saved() {
    let mut lan = Lan::led_by("m");
    lan.set_slow_disk("m", true);
    let mut loser = Peer::new("z");
    for term in 0..50 {
        lan.hear(loser.sends(following("m", Some(10 + 2 * term))));
        lan.pass(ms(100));
    }
    let outputs = lan.take("m");
    let terms: BTreeSet<_> = outputs.sent().map(|(_, message)| message.term).collect();
    assert_eq!(terms, BTreeSet::from([Term(1)]));
    assert!(outputs.declarations().len() >= 5, "{:?}", outputs.declarations());
    assert_eq!(outputs.hooks(), []);
    lan.end_write("m");
    lan.pass(patient().declaration_gap());
    let outputs = lan.take("m");
    let (_, declaration) = outputs.sent().next().unwrap();
    assert_eq!((declaration.body, declaration.term), (EVERY_SECOND, Term(11)));
    assert_eq!(reaffirmed(&outputs), 1);
}

/// The loser may die before the winner has heard of it, but the loser's followers know its term.
#[test]
fn follower_of_a_better_leader_concedes_the_term_of_the_former_leader() {
    let mut loser = Peer::leading("c", 9);
    let mut lan = Lan::following("m", Params { candidate: false, ..patient() }, &mut loser);
    let mut winner = Peer::leading("a", 6);
    lan.hear(winner.sends(EVERY_SECOND));
    assert_eq!(lan.take("m").bodies().pop(), Some(following("a", Some(9))));
    winner.term = Term(10);
    lan.hear(winner.sends(EVERY_SECOND));
    lan.take("m");
    lan.pass_with(secs(5), &mut [(&mut winner, EVERY_SECOND)]);
    assert!(!lan.take("m").bodies().contains(&following("a", Some(9))));
}

#[test]
fn leader_that_restarts_without_its_disk_hears_of_its_former_term() {
    let mut leader = Peer::leading("a", 9);
    let mut lan = Lan::following("m", patient(), &mut leader);
    let mut restarted = Peer { incarnation: Incarnation(2), ..Peer::leading("a", 1) };
    lan.hear(restarted.sends(EVERY_SECOND));
    assert_eq!(lan.take("m").bodies().pop(), Some(following("a", Some(9))));
}

#[test]
fn concessions_of_a_large_group_spread_over_an_interval() {
    let mut loser = Peer::leading("c", 9);
    let mut lan = Lan::following("m", Params { candidate: false, ..patient() }, &mut loser);
    let interval_us = 60_000_000;
    let rarely = Body::Heartbeat { interval_us, leader: None, conceded: None, acknowledged: None };
    for number in 0..318 {
        lan.hear(Peer::new(&format!("n{number}")).sends(rarely));
    }
    lan.take("m");
    lan.hear(Peer::leading("a", 6).sends(EVERY_SECOND));
    assert_eq!(lan.take("m").bodies(), []);
    lan.pass(patient().heartbeat_interval);
    assert_eq!(lan.take("m").bodies(), [following("a", Some(9))]);
}
