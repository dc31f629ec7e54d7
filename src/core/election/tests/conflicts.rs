//! Two leaders meet.

use super::*;

#[test]
fn a_better_leaders_declaration_ends_this_ones_reign() {
    let mut lan = Lan::led_by("m");
    lan.hear(Peer::leading("a", 5).says(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("a")));
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::BetterLeader)]);
    assert_eq!(
        outputs.bodies(),
        [Body::Heartbeat {
            interval_us: 1_100_000,
            leader: Some(id("a")),
            conceded: Some(Term(1)),
            acknowledged: None
        }],
        "a loser does not declare again"
    );
}

#[test]
fn a_worse_leaders_declaration_is_answered_at_once_under_a_term_above_both() {
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(Peer::leading("z", 7).says(EVERY_SECOND));
    let outputs = lan.take("m");
    let (_, answer) = outputs.sent().next().unwrap();
    assert_eq!((answer.body, answer.term), (EVERY_SECOND, Term(8)));
    assert_eq!(outputs.hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    assert!(outputs.has_event(Event::RivalLeader { rival: id("z"), address: address(id("z")) }));
    assert_eq!(lan.leaders(), ["m"]);
}

#[test]
fn one_conflict_reaffirms_once_however_often_the_loser_declares() {
    let mut rival = Peer::leading("z", 7);
    let mut lan = Lan::led_by("m");
    for _ in 0..20 {
        lan.hear(rival.says(EVERY_SECOND));
        lan.pass(ms(10));
    }
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    assert_eq!(lan.at("m").term(), Term(8));
    let most = ms(200).as_millis() / Params::default().declaration_gap().as_millis() + 1;
    let answers = outputs.declarations().len();
    assert!(answers as u128 <= most, "answers are bounded by the gap: {answers}");
}

#[test]
fn the_loser_tells_for_a_while_which_reign_it_gave_up_also_the_next_leader() {
    let mut lan = Lan::led_by("m");
    assert_eq!(lan.at("m").term(), Term(1));
    let mut winner = Peer::leading("a", 1);
    lan.hear(winner.says(EVERY_SECOND));
    lan.pass_with(secs(5), &mut [(&mut winner, EVERY_SECOND)]);
    let telling = |leader| Body::Heartbeat {
        interval_us: 1_100_000,
        leader: Some(id(leader)),
        conceded: Some(Term(1)),
        acknowledged: None,
    };
    let bodies = lan.take("m").bodies();
    assert!(bodies.len() > 3 && bodies.iter().all(|body| *body == telling("a")), "{bodies:?}");
    lan.hear(winner.says(Body::Resignation { successor: None }));
    let mut next = Peer::leading("b", 3);
    lan.hear(next.says(EVERY_SECOND));
    lan.pass_with(secs(2), &mut [(&mut next, EVERY_SECOND)]);
    assert!(lan.take("m").bodies().contains(&telling("b")));
    lan.pass_with(secs(20), &mut [(&mut next, EVERY_SECOND)]);
    let last = lan.take("m").bodies().pop();
    assert_eq!(
        last,
        Some(Body::Heartbeat {
            interval_us: 2_200_000,
            leader: Some(id("b")),
            conceded: None,
            acknowledged: None
        })
    );
}

/// The rival's scripts may have taken things over later than this node's did, whatever the terms.
#[test]
fn each_reign_of_a_rival_is_settled_once_even_under_a_lower_term() {
    let mut lan = Lan::led_by("m");
    lan.hear(Peer::leading("z", 7).says(EVERY_SECOND));
    assert_eq!(lan.at("m").term(), Term(8));
    let mut rival = Peer::leading("y", 2);
    lan.hear(rival.says(EVERY_SECOND));
    lan.pass_with(secs(5), &mut [(&mut rival, EVERY_SECOND)]);
    assert_eq!(lan.at("m").term(), Term(9));
    rival.role = Role::Follower;
    lan.hear(rival.says(Body::Heartbeat {
        interval_us: 0,
        leader: Some(id("m")),
        conceded: Some(Term(2)),
        acknowledged: None,
    }));
    assert_eq!(lan.at("m").term(), Term(9), "settled when it was heard as a leader");
    let reaffirmed = (HookEvent::Reaffirmed, Reason::Conflict);
    assert_eq!(lan.take("m").hooks(), [reaffirmed, reaffirmed]);
}

/// Two leaders that do not hear each other would outbid each other through it for ever.
#[test]
fn a_follower_of_another_leader_is_not_outbid() {
    let mut lan = Lan::led_by("m");
    let mut between = Peer::new("b");
    between.term = Term(7);
    lan.hear(between.says(Body::Heartbeat {
        interval_us: 0,
        leader: Some(id("z")),
        conceded: None,
        acknowledged: None,
    }));
    assert_eq!(lan.at("m").term(), Term(1));
    lan.hear(between.says(Body::Heartbeat {
        interval_us: 0,
        leader: Some(id("m")),
        conceded: None,
        acknowledged: None,
    }));
    assert_eq!(lan.at("m").term(), Term(8));
}

#[test]
fn a_winner_that_never_heard_the_loser_reaffirms_on_its_concession() {
    let mut loser = Peer::new("z");
    loser.term = Term(2);
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(loser.says(Body::Heartbeat {
        interval_us: 0,
        leader: None,
        conceded: None,
        acknowledged: None,
    }));
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), [(HookEvent::Reaffirmed, Reason::Conflict)]);
    let (_, answer) = outputs.sent().next().unwrap();
    assert_eq!((answer.body, answer.term), (EVERY_SECOND, Term(3)));
    lan.hear(loser.says(Body::Heartbeat {
        interval_us: 0,
        leader: None,
        conceded: None,
        acknowledged: None,
    }));
    assert_eq!(lan.take("m").hooks(), [], "once");
}

#[test]
fn after_a_healed_partition_the_best_ranked_leads_on_and_only_it_is_reaffirmed() {
    let mut lan = Lan::settled(&["a", "b", "c"], &patient());
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
fn a_conflict_ends_in_one_round_trip_whoever_speaks_first() {
    let mut lan = Lan::settled(&["a", "b"], &patient());
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
    lan.tell("m", |election, now| election.yield_leadership(now)).unwrap();
    lan.hear(Peer::leading("a", 5).says(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("a")));
    lan.end_hook("m", HookOutcome::Succeeded);
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::Yield)]);
    assert!(!outputs.bodies().iter().any(|body| matches!(body, Body::Resignation { .. })));
}

/// At short intervals followers tell that they are there only once a second.
#[test]
fn a_reign_that_was_given_up_is_told_at_every_interval() {
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
        lan.hear(winner.says(declaration));
        lan.pass(every);
    }
    let told = |body: &Body| matches!(body, Body::Heartbeat { conceded: Some(Term(1)), .. });
    let count = lan.take("m").bodies().iter().filter(|body| told(body)).count();
    assert!(count >= 5, "{count}");
}
