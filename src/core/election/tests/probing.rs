//! Probing a silent leader before it is given up.

use super::*;
use crate::core::status::MemberState;
use crate::types::DatagramId;

/// Times at the default threshold and a declaration every second: until the declaration is due,
/// until the leader is given up, and between the probes.
const DUE: Duration = Duration::from_secs(1);
const GIVEN_UP: Duration = Duration::from_millis(1250);
const SPACING: Duration = Duration::from_micros(31_250);

fn probe(leader: &str) -> Body {
    Body::Probe { leader: id(leader) }
}

/// The datagram that follows `sent`.
fn after(sent: &Message) -> DatagramId {
    DatagramId { incarnation: sent.incarnation, sequence: Sequence(sent.sequence.0 + 1) }
}

/// How often `name` has probed since the last call.
fn probes(lan: &mut Lan, name: &str) -> usize {
    lan.take(name).bodies().iter().filter(|body| matches!(body, Body::Probe { .. })).count()
}

/// `m`, which follows `z` alone, and the declaration that `z` has just sent.
fn follower() -> (Lan, Peer, Message) {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", every_second(), &mut leader);
    let declaration = leader.sends(EVERY_SECOND);
    lan.hear(declaration);
    lan.take("m");
    (lan, leader, declaration)
}

#[test]
fn overdue_leader_is_probed_seven_times_before_the_best_candidate_leads() {
    let (mut lan, ..) = follower();
    lan.pass(DUE + SPACING - ms(1));
    assert_eq!(probes(&mut lan, "m"), 0);
    lan.pass(GIVEN_UP - DUE - SPACING);
    assert_eq!(probes(&mut lan, "m"), 7);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["m"]);
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND], "it probes no node that cannot answer");
}

#[test]
fn leader_that_answers_a_probe_is_still_followed() {
    let (mut lan, mut leader, _) = follower();
    for _ in 0..10 {
        lan.pass(GIVEN_UP - ms(1));
        lan.hear(leader.sends(EVERY_SECOND));
    }
    assert_eq!(lan.at("m").leader(), Some(id("z")));
}

#[test]
fn probed_leader_declares_three_times() {
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(Peer::new("z").sends(probe("m")));
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND]);
    lan.pass(ms(200));
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND; 2]);
    lan.pass(ms(849));
    assert_eq!(lan.take("m").bodies(), [], "and after that every second");
}

/// Otherwise the follower would wait for a third leader although this one leads.
#[test]
fn a_leader_that_hears_another_one_probed_declares_once() {
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(Peer::new("z").sends(probe("y")));
    lan.pass(ms(200));
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND]);
}

#[test]
fn best_follower_probes_for_all() {
    let mut lan = Lan::stable(&["a", "b", "c", "d", "e"], &every_second());
    lan.crash("a");
    for name in ["b", "c", "d", "e"] {
        lan.take(name);
    }
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(probes(&mut lan, "b"), 7);
    for name in ["c", "d", "e"] {
        assert_eq!(probes(&mut lan, name), 0, "{name}");
    }
}

#[test]
fn next_follower_probes_and_leads_if_the_best_one_has_failed_too() {
    let mut lan = Lan::stable(&["a", "b", "c"], &every_second());
    lan.crash("a");
    lan.crash("b");
    lan.take("c");
    lan.pass(secs(1) + GIVEN_UP);
    assert_eq!(lan.leaders(), ["c"]);
    assert_eq!(probes(&mut lan, "c"), 7);
}

/// A node behind the eighth probes at random or not at all, so its silence does not show that it
/// has failed. The worst survivor is the first to wake.
#[test]
fn best_survivor_leads_after_the_leader_and_many_better_nodes_have_failed() {
    const WORST_FIRST: &str = "abcdefghijklmnopqrst";
    for (group, failed) in (12..=20).flat_map(|group| (7..group).map(move |failed| (group, failed)))
    {
        let names: Vec<_> = WORST_FIRST.split("").filter(|name| !name.is_empty()).collect();
        let (survivors, better) = names[..group].split_at(group - failed);
        let mut lan = Lan::new();
        for (priority, name) in (0..20).zip(&names[..group]).rev() {
            lan.start(name, Params { priority: Priority(priority), ..every_second() });
            // They share a seed, but do not choose the same times.
            lan.pass(ms(300));
        }
        lan.pass(secs(20));
        assert_eq!(lan.leaders(), better[failed - 1..]);
        for name in better {
            lan.crash(name);
        }
        for name in survivors {
            lan.take(name);
        }
        lan.pass(secs(1) + GIVEN_UP * 2);
        let best = survivors.len() - 1;
        assert_eq!(lan.leaders(), survivors[best..], "{failed} of {group} failed");
        for name in &survivors[..best] {
            assert_eq!(lan.take(name).hooks(), [], "{name} of {group}, {failed} failed");
        }
    }
}

/// A stopped follower that continues finds its leader overdue, but has not listened.
#[test]
fn paused_follower_probes_before_it_gives_its_leader_up() {
    let (mut lan, mut leader, _) = follower();
    lan.now += secs(60);
    lan.pass(Duration::ZERO);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.pass(SPACING * 2);
    assert!(probes(&mut lan, "m") >= 2);
    lan.hear(leader.sends(EVERY_SECOND));
    lan.pass(DUE);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    assert!(!lan.take("m").events().any(|event| matches!(event, Event::LeaderSilent { .. })));
}

/// The earlier probes did not leave this host.
#[test]
fn follower_whose_links_return_probes_before_it_gives_its_leader_up() {
    let (mut lan, mut leader, _) = follower();
    lan.pass(DUE);
    lan.on("m", |election, now| election.handle_links(now, false));
    lan.pass(GIVEN_UP - DUE - ms(1));
    assert!(probes(&mut lan, "m") >= 3);
    lan.on("m", |election, now| election.handle_links(now, true));
    lan.pass(SPACING * 2);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    assert!(probes(&mut lan, "m") >= 1);
    lan.hear(leader.sends(EVERY_SECOND));
    lan.pass(DUE);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
}

#[test]
fn node_whose_links_return_does_not_take_better_nodes_for_failed() {
    let (mut lan, ..) = follower();
    let interval_us = 60_000_000;
    let rarely = Body::Heartbeat { interval_us, leader: None, conceded: None, acknowledged: None };
    lan.hear(Peer::new("b").sends(rarely));
    lan.on("m", |election, now| election.handle_links(now, false));
    lan.pass(secs(5));
    assert_eq!(lan.at("m").leader(), None);
    lan.on("m", |election, now| election.handle_links(now, true));
    lan.take("m");
    lan.pass(GIVEN_UP + every_second().candidacy_slot());
    assert_eq!(lan.leaders(), Vec::<String>::new(), "b may be about to stand");
    assert!(lan.take("m").bodies().contains(&Body::Proposal));
}

#[test]
fn paused_follower_gives_up_a_leader_that_does_not_answer() {
    let (mut lan, ..) = follower();
    lan.now += secs(60);
    lan.pass(SPACING * 5);
    assert_eq!(lan.leaders(), ["m"]);
    assert!(probes(&mut lan, "m") >= 3);
}

/// A follower that cannot lead leaves the probes to the others, and so may probe late.
#[test]
fn leader_has_time_to_answer_the_third_probe() {
    let mut leader = Peer::leading("z", 4);
    let observer = Params { candidate: false, ..every_second() };
    let mut lan = Lan::following("m", observer, &mut leader);
    let mut other = Peer::new("y");
    for round in 0..500 {
        lan.hear(leader.sends(EVERY_SECOND));
        lan.take("m");
        lan.pass(DUE + ms(round % 125));
        let mut asked = vec![];
        for _ in 0..2 {
            asked.push(lan.now);
            lan.hear(other.sends(probe("z")));
            lan.pass(SPACING);
        }
        while lan.at("m").leader().is_some() {
            lan.pass(ms(1));
        }
        let sent = lan.take("m");
        let own = sent.sent().filter(|(_, message)| message.body == probe("z")).map(|(at, _)| at);
        asked.extend(own);
        asked.sort();
        let waited = lan.now.since(asked[2]);
        assert!(waited >= SPACING, "asked {asked:?}, given up {waited:?} after the third");
    }
}

#[test]
fn probe_reply_with_a_newer_datagram_counts_as_the_due_declaration() {
    let (mut lan, _, declaration) = follower();
    lan.pass(DUE + ms(200));
    lan.hear(
        Peer::new("x").sends(Body::ProbeReply { leader: id("z"), newest: after(&declaration) }),
    );
    lan.take("m");
    lan.pass(GIVEN_UP - ms(201));
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["m"]);
}

#[test]
fn outdated_probe_reply_gives_the_leader_no_time() {
    let (mut lan, _, declaration) = follower();
    let known = DatagramId { sequence: declaration.sequence, ..after(&declaration) };
    let earlier = DatagramId { incarnation: Incarnation(0), sequence: Sequence(1000) };
    let (mut x, leader) = (Peer::new("x"), id("z"));
    lan.pass(DUE + ms(200));
    for newest in [known, earlier] {
        lan.hear(x.sends(Body::ProbeReply { leader, newest }));
    }
    lan.hear(x.sends(Body::ProbeReply { leader: id("y"), newest: after(&declaration) }));
    lan.pass(ms(50));
    assert_ne!(lan.at("m").leader(), Some(leader));

    let (mut lan, _, declaration) = follower();
    let mut x = Peer::new("x");
    let reply = Body::ProbeReply { leader, newest: after(&declaration) };
    lan.pass(DUE + ms(200));
    lan.hear(x.sends(reply));
    lan.pass(DUE);
    lan.hear(x.sends(reply));
    lan.pass(ms(50));
    assert_ne!(lan.at("m").leader(), Some(leader), "one datagram gives time once");
}

#[test]
fn follower_that_hears_the_leader_replies_to_a_probe_if_the_leader_does_not() {
    let (mut lan, _, declaration) = follower();
    let newest = DatagramId { sequence: declaration.sequence, ..after(&declaration) };
    lan.hear(Peer::new("x").sends(probe("z")));
    lan.pass(SPACING);
    assert_eq!(lan.take("m").bodies(), [Body::ProbeReply { leader: id("z"), newest }]);
}

/// In a chain, each follower would hold the next one to a leader that has failed.
#[test]
fn follower_that_knows_the_leader_by_a_reply_alone_replies_to_no_probe() {
    let (mut lan, _, declaration) = follower();
    lan.pass(DUE + ms(200));
    let mut witness = Peer::new("x");
    lan.hear(witness.sends(Body::ProbeReply { leader: id("z"), newest: after(&declaration) }));
    lan.take("m");
    for _ in 0..4 {
        lan.hear(Peer::new("y").sends(probe("z")));
        lan.pass(SPACING);
    }
    let told = lan.take("m").bodies();
    assert!(!told.iter().any(|body| matches!(body, Body::ProbeReply { .. })), "{told:?}");
}

/// Its turn comes after those of candidates, and later than the next probe.
#[test]
fn follower_that_is_not_eligible_replies_though_probes_go_on() {
    let params = every_second();
    let observer = Params { candidate: false, ..params.clone() };
    let mut lan = Lan::stable(&["a", "b"], &params);
    lan.start("o", observer);
    lan.pass(secs(20));
    lan.deaf.insert((id("a"), id("b")));
    for _ in 0..200 {
        lan.pass(ms(100));
        assert_eq!(lan.at("b").leader(), Some(id("a")));
    }
}

#[test]
fn follower_sends_no_reply_if_the_leader_answers() {
    let (mut lan, mut leader, _) = follower();
    lan.hear(Peer::new("x").sends(probe("z")));
    lan.hear(leader.sends(EVERY_SECOND));
    lan.pass(SPACING);
    assert_eq!(lan.take("m").bodies(), []);
}

/// The probing node hears every node but the leader.
#[test]
fn repeated_probe_gets_a_reply_even_if_the_leader_has_answered() {
    let (mut lan, mut leader, _) = follower();
    let mut deaf = Peer::new("x");
    for _ in 0..2 {
        lan.hear(deaf.sends(probe("z")));
        lan.hear(leader.sends(EVERY_SECOND));
    }
    lan.pass(SPACING);
    let told = lan.take("m").bodies();
    assert!(matches!(told[..], [Body::ProbeReply { .. }]), "{told:?}");
}

/// Its settings may be others than this node's, as while new intervals are rolled out.
#[test]
fn repeated_probe_gets_a_reply_however_rarely_the_node_probes() {
    let (mut lan, mut leader, _) = follower();
    let mut deaf = Peer::new("x");
    for expected in [0, 1] {
        lan.hear(deaf.sends(probe("z")));
        lan.hear(leader.sends(EVERY_SECOND));
        lan.pass(SPACING * 10);
        let told = lan.take("m").bodies();
        let replies = told.iter().filter(|body| matches!(body, Body::ProbeReply { .. })).count();
        assert_eq!(replies, expected, "{told:?}");
    }
}

#[test]
fn follower_with_an_overdue_leader_sends_no_reply() {
    let (mut lan, ..) = follower();
    let mut x = Peer::new("x");
    lan.pass(DUE);
    for _ in 0..10 {
        lan.hear(x.sends(probe("z")));
        lan.pass(SPACING / 2);
    }
    assert_eq!(lan.take("m").bodies(), []);
}

#[test]
fn probe_of_another_node_gets_no_reply() {
    let (mut lan, ..) = follower();
    lan.hear(Peer::new("x").sends(probe("y")));
    lan.pass(SPACING * 2);
    assert_eq!(lan.take("m").bodies(), []);
}

#[test]
fn heartbeats_are_rarer_and_patience_is_longer_in_a_larger_group() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", every_second(), &mut leader);
    let reports = |interval_us| Body::Heartbeat {
        interval_us,
        leader: Some(id("z")),
        conceded: None,
        acknowledged: None,
    };
    for number in 0..318 {
        lan.hear(Peer::new(&format!("n{number}")).sends(reports(11_000_000)));
    }
    // The second heartbeat still comes after the shorter time.
    lan.pass_with(secs(4), &mut [(&mut leader, EVERY_SECOND)]);
    lan.take("m");
    lan.pass_with(secs(20), &mut [(&mut leader, EVERY_SECOND)]);
    let own = lan.take("m").bodies();
    assert!(matches!(own[..], [_, ..] if own.len() <= 3), "{own:?}");
    assert!(matches!(own.last(), Some(Body::Heartbeat { interval_us: 11_000_000, .. })));
    let alive = |lan: &Lan| {
        let status = lan.at("m").status(lan.now);
        status.members.iter().filter(|member| member.state == MemberState::Alive).count()
    };
    assert_eq!(alive(&lan), 320);
    lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
    assert_eq!(alive(&lan), 2, "two and a half of their announced intervals are over");
}
