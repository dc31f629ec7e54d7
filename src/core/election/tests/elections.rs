//! Standing for leadership.

use super::*;

/// A node `m` without a leader that knows `rivals`, the first of which led until now.
fn leaderless(rivals: &mut [Peer]) -> Lan {
    let [led, others @ ..] = rivals else { panic!("a node must have led") };
    led.role = Role::Leader;
    let mut lan = Lan::following("m", patient(), led);
    for other in others {
        lan.hear(other.sends(HEARTBEAT));
    }
    led.role = Role::Follower;
    lan.hear(led.sends(Body::Resignation { successor: None }));
    assert_eq!(lan.at("m").leader(), None);
    lan.take("m");
    lan
}

/// How often `m` has proposed itself since the last call.
fn proposals(lan: &mut Lan) -> usize {
    lan.take("m").bodies().iter().filter(|body| **body == Body::Proposal).count()
}

#[test]
fn certain_winner_declares_at_once() {
    let mut lan = leaderless(&mut [Peer::new("z")]);
    lan.pass(Duration::ZERO);
    assert_eq!(lan.take("m").bodies(), [Body::Proposal]);
    lan.pass(ms(249));
    assert_eq!(lan.at("m").role(), Role::Candidate);
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["m"]);
    assert_eq!(lan.take("m").hooks(), [(HookEvent::Elected, Reason::Election)]);
}

#[test]
fn each_worse_candidate_stands_a_slot_later() {
    let mut lan = leaderless(&mut [Peer::new("a"), Peer::new("b"), Peer::new("z")]);
    lan.pass(ms(249));
    assert_eq!(lan.take("m").bodies(), []);
    lan.pass(ms(1));
    assert_eq!(lan.take("m").bodies(), [Body::Proposal]);
}

#[test]
fn candidate_does_not_wait_for_ineligible_nodes() {
    let mut idle = Peer::new("a");
    idle.flags = Flags::CANDIDATE;
    let mut lan = leaderless(&mut [Peer::new("z"), idle]);
    lan.pass(Duration::ZERO);
    assert_eq!(lan.take("m").bodies(), [Body::Proposal]);
}

#[test]
fn candidate_waits_the_whole_election_for_a_better_one_that_is_alive_but_silent() {
    let mut lan = leaderless(&mut [Peer::new("a")]);
    lan.pass(ms(125));
    assert_eq!(lan.at("m").role(), Role::Candidate);
    lan.pass(ms(999));
    assert_eq!(lan.at("m").role(), Role::Candidate);
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["m"]);
    assert_eq!(proposals(&mut lan), 4, "repeated, in case a datagram was lost");
}

#[test]
fn candidate_defers_to_a_better_one_and_stands_again_if_that_fails() {
    let mut better = Peer::new("a");
    let mut lan = leaderless(&mut [Peer::new("z")]);
    lan.pass(ms(100));
    lan.hear(better.sends(Body::Proposal));
    assert_eq!(lan.at("m").role(), Role::Follower);
    assert!(lan.take("m").has_event(Event::DeferredTo { candidate: id("a") }));
    lan.pass(ms(1999));
    assert_eq!(proposals(&mut lan), 0);
    lan.pass(ms(126));
    assert_eq!(lan.at("m").role(), Role::Candidate);
}

#[test]
fn a_node_that_waits_for_its_turn_defers_to_a_better_proposal() {
    let mut rivals = [Peer::new("a")];
    let mut lan = leaderless(&mut rivals);
    lan.pass(ms(100));
    lan.hear(rivals[0].sends(Body::Proposal));
    lan.pass(ms(1999));
    assert_eq!(proposals(&mut lan), 0);
    lan.pass(ms(126));
    assert_eq!(proposals(&mut lan), 1);
}

#[test]
fn a_better_candidate_answers_a_worse_proposal_at_once_with_its_own() {
    let mut worse = Peer::new("z");
    let mut led = Peer::leading("y", 4);
    let mut lan = Lan::following("m", patient(), &mut led);
    led.role = Role::Follower;
    lan.hear(led.sends(Body::Resignation { successor: Some(id("z")) }));
    lan.pass(ms(100));
    assert_eq!(lan.take("m").bodies(), [], "z has a head start");
    lan.hear(worse.sends(Body::Proposal));
    lan.pass(Duration::ZERO);
    assert_eq!(lan.at("m").role(), Role::Candidate);
    assert_eq!(lan.take("m").bodies(), [Body::Proposal]);
}

/// The cost of an election must not grow with the group.
#[test]
fn best_node_answers_a_worse_proposal_and_the_others_wait_for_their_turn() {
    let mut lan = leaderless(&mut [Peer::new("a"), Peer::new("b"), Peer::new("z")]);
    lan.hear(Peer::new("z").sends(Body::Proposal));
    lan.pass(ms(249));
    assert_eq!(lan.take("m").bodies(), []);
}

#[test]
fn a_standing_candidate_answers_worse_proposals_no_more_often_than_they_can_be_answered() {
    let mut worse = Peer::new("z");
    let mut lan = leaderless(&mut [Peer::new("a")]);
    lan.pass(ms(125));
    assert_eq!(lan.take("m").bodies(), [Body::Proposal]);
    lan.pass(ms(249));
    lan.hear(worse.sends(Body::Proposal));
    assert_eq!(lan.take("m").bodies(), []);
    lan.pass(ms(1));
    lan.hear(worse.sends(Body::Proposal));
    assert_eq!(lan.take("m").bodies(), [Body::Proposal]);
}

#[test]
fn candidate_follows_any_leader_that_declares() {
    let mut worse = Peer::leading("z", 8);
    let mut lan = leaderless(&mut [Peer::new("a")]);
    lan.pass(ms(125));
    assert_eq!(lan.at("m").role(), Role::Candidate);
    lan.hear(worse.sends(EVERY_SECOND));
    assert_eq!(lan.at("m").role(), Role::Follower);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.pass_with(secs(5), &mut [(&mut worse, EVERY_SECOND)]);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
}

#[test]
fn a_leader_answers_a_proposal_with_a_declaration() {
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(Peer::new("a").sends(Body::Proposal));
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND]);
    assert_eq!(lan.leaders(), ["m"]);
}

#[test]
fn one_declaration_answers_all_questions_within_a_gap() {
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    for number in 0..100 {
        lan.hear(Peer::new(&format!("n{number}")).sends(Body::Proposal));
        lan.pass(ms(1));
    }
    assert!(lan.take("m").declarations().len() <= 5);
}

#[test]
fn a_leader_declares_at_least_every_interval() {
    let mut lan = Lan::led_by("a");
    lan.pass(secs(30));
    let times = lan.take("a").declarations();
    assert!(times.len() >= 30);
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) <= secs(1)));
}

#[test]
fn a_declaration_announces_no_shorter_interval_than_it_keeps() {
    let mut lan = Lan::new();
    let interval = secs(1) + Duration::from_nanos(1);
    lan.start("a", Params { heartbeat_interval: interval, ..patient() });
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    let outputs = lan.take("a");
    assert_ne!(outputs.declarations(), []);
    assert_eq!(outputs.overlong_silences(), []);
}

#[test]
fn a_proposal_under_a_leader_changes_nothing() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.hear(Peer::new("a").sends(Body::Proposal));
    lan.hear(Peer::new("y").sends(Body::Proposal));
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    assert_eq!(lan.take("m").bodies(), []);
}

#[test]
fn best_node_leads_and_the_others_follow() {
    let mut lan = Lan::new();
    lan.start("b", priority(100));
    lan.start("d", priority(101));
    lan.start("c", priority(101));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["c"]);
    for name in ["b", "c", "d"] {
        assert_eq!(lan.at(name).leader(), Some(id("c")));
    }
}

#[test]
fn the_best_survivor_replaces_a_leader_that_crashed() {
    let params = patient();
    let mut lan = Lan::stable(&["a", "b", "c"], &params);
    assert_eq!(lan.leaders(), ["a"]);
    lan.crash("a");
    lan.pass(params.settling_time());
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.at("c").leader(), Some(id("b")));
    assert!(lan.at("c").term() > Term(1));
}

fn spreading(tie_break: u32) -> Params {
    Params { tie_break: TieBreak(tie_break), ..patient() }
}

#[test]
fn lowest_tie_break_leads_among_equal_priorities() {
    let mut lan = Lan::new();
    lan.start("a", spreading(3));
    lan.start("b", spreading(2));
    lan.start("c", Params { priority: Priority(99), ..spreading(1) });
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["b"]);
}

/// Though each would find itself the best by its own rule alone.
#[test]
fn nodes_with_different_rules_elect_one_leader_and_report_each_other_once() {
    let mut lan = Lan::new();
    lan.start("a", spreading(7));
    lan.start("b", patient());
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["b"]);
    for (name, other, theirs) in
        [("a", "b", TieBreakRule::LowestId), ("b", "a", TieBreakRule::Spread)]
    {
        let reported = Event::TieBreakDiffers { node_id: id(other), theirs };
        let done = lan.take(name);
        assert_eq!(done.events().filter(|event| *event == reported).count(), 1, "{name}");
    }
    lan.on("b", |election, now| election.reconfigure(now, spreading(8)));
    lan.pass(secs(20));
    lan.on("b", |election, now| election.reconfigure(now, patient()));
    lan.pass(secs(20));
    let again = Event::TieBreakDiffers { node_id: id("b"), theirs: TieBreakRule::LowestId };
    assert!(lan.take("a").has_event(again), "after they agreed for a while");
}
