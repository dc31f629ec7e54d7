//! Asking a silent leader before it is given up.

use super::*;
use crate::core::status::MemberState;
use crate::types::DatagramId;

/// When a declaration of every second is due, and its leader given up, at the default threshold;
/// and between the probes in between.
const DUE: Duration = Duration::from_secs(1);
const GIVEN_UP: Duration = Duration::from_millis(1250);
const SPACING: Duration = Duration::from_micros(31_250);

fn probe(leader: &str) -> Body {
    Body::Probe { leader: id(leader) }
}

/// The datagram after `sent`, which its sender's next one would be.
fn after(sent: &Message) -> DatagramId {
    DatagramId { incarnation: sent.incarnation, sequence: Sequence(sent.sequence.0 + 1) }
}

/// How often `name` probed since this was last asked.
fn probes(lan: &mut Lan, name: &str) -> usize {
    lan.take(name).bodies().iter().filter(|body| matches!(body, Body::Probe { .. })).count()
}

/// `m`, which follows `z` alone, and the declaration that `z` has just sent.
fn follower() -> (Lan, Peer, Message) {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", Params::default(), &mut leader);
    let declaration = leader.says(EVERY_SECOND);
    lan.hear(declaration);
    lan.take("m");
    (lan, leader, declaration)
}

#[test]
fn an_overdue_leader_is_asked_seven_times_and_then_the_best_candidate_leads_at_once() {
    let (mut lan, ..) = follower();
    lan.pass(DUE + SPACING - ms(1));
    assert_eq!(probes(&mut lan, "m"), 0);
    lan.pass(GIVEN_UP - DUE - SPACING);
    assert_eq!(probes(&mut lan, "m"), 7);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["m"]);
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND], "nobody is asked who cannot answer");
}

#[test]
fn a_leader_that_answers_is_followed_on() {
    let (mut lan, mut leader, _) = follower();
    for _ in 0..10 {
        lan.pass(GIVEN_UP - ms(1));
        lan.hear(leader.says(EVERY_SECOND));
    }
    assert_eq!(lan.at("m").leader(), Some(id("z")));
}

#[test]
fn a_leader_that_is_probed_declares_at_once_and_three_times_over() {
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(Peer::new("z").says(probe("m")));
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND]);
    lan.pass(ms(200));
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND; 2]);
    lan.pass(ms(849));
    assert_eq!(lan.take("m").bodies(), [], "and then every second again");
}

/// Else the follower would look for a third leader where one is.
#[test]
fn a_leader_that_hears_another_one_probed_declares_once() {
    let mut lan = Lan::led_by("m");
    lan.pass(ms(500));
    lan.take("m");
    lan.hear(Peer::new("z").says(probe("y")));
    lan.pass(ms(200));
    assert_eq!(lan.take("m").bodies(), [EVERY_SECOND]);
}

#[test]
fn of_the_followers_the_best_asks_for_all() {
    let mut lan = Lan::settled(&["a", "b", "c", "d", "e"], &Params::default());
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
fn where_the_best_follower_is_gone_too_the_next_one_asks_and_leads_without_waiting_for_it() {
    let mut lan = Lan::settled(&["a", "b", "c"], &Params::default());
    lan.crash("a");
    lan.crash("b");
    lan.take("c");
    lan.pass(secs(1) + GIVEN_UP);
    assert_eq!(lan.leaders(), ["c"]);
    assert_eq!(probes(&mut lan, "c"), 7);
}

/// A follower that was stopped finds its leader long overdue when it goes on, and knows nothing.
#[test]
fn a_follower_that_was_held_asks_before_it_gives_its_leader_up() {
    let (mut lan, mut leader, _) = follower();
    lan.now += secs(60);
    lan.pass(Duration::ZERO);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.pass(SPACING * 2);
    assert!(probes(&mut lan, "m") >= 2);
    lan.hear(leader.says(EVERY_SECOND));
    lan.pass(DUE);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    assert!(!lan.take("m").events().any(|event| matches!(event, Event::LeaderSilent { .. })));
}

#[test]
fn a_follower_that_was_held_gives_a_leader_up_that_does_not_answer() {
    let (mut lan, ..) = follower();
    lan.now += secs(60);
    lan.pass(SPACING * 5);
    assert_eq!(lan.leaders(), ["m"]);
    assert!(probes(&mut lan, "m") >= 3);
}

/// A follower that cannot lead leaves it to the others to ask, and so may ask late.
#[test]
fn the_third_probe_too_has_the_time_to_be_answered() {
    let mut leader = Peer::leading("z", 4);
    let observer = Params { candidate: false, ..Params::default() };
    let mut lan = Lan::following("m", observer, &mut leader);
    let mut other = Peer::new("y");
    for round in 0..500 {
        lan.hear(leader.says(EVERY_SECOND));
        lan.take("m");
        lan.pass(DUE + ms(round % 125));
        let mut asked = vec![];
        for _ in 0..2 {
            asked.push(lan.now);
            lan.hear(other.says(probe("z")));
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
fn a_probe_reply_of_a_newer_datagram_counts_as_the_declaration_that_was_due() {
    let (mut lan, _, declaration) = follower();
    lan.pass(DUE + ms(200));
    lan.hear(
        Peer::new("x").says(Body::ProbeReply { leader: id("z"), newest: after(&declaration) }),
    );
    lan.take("m");
    lan.pass(GIVEN_UP - ms(201));
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["m"]);
}

#[test]
fn a_probe_reply_of_what_was_heard_or_sighted_before_or_of_an_earlier_life_buys_no_time() {
    let (mut lan, _, declaration) = follower();
    let known = DatagramId { sequence: declaration.sequence, ..after(&declaration) };
    let earlier = DatagramId { incarnation: Incarnation(0), sequence: Sequence(1000) };
    let (mut x, leader) = (Peer::new("x"), id("z"));
    lan.pass(DUE + ms(200));
    for newest in [known, earlier] {
        lan.hear(x.says(Body::ProbeReply { leader, newest }));
    }
    lan.hear(x.says(Body::ProbeReply { leader: id("y"), newest: after(&declaration) }));
    lan.pass(ms(50));
    assert_ne!(lan.at("m").leader(), Some(leader));

    let (mut lan, _, declaration) = follower();
    let mut x = Peer::new("x");
    let reply = Body::ProbeReply { leader, newest: after(&declaration) };
    lan.pass(DUE + ms(200));
    lan.hear(x.says(reply));
    lan.pass(DUE);
    lan.hear(x.says(reply));
    lan.pass(ms(50));
    assert_ne!(lan.at("m").leader(), Some(leader), "one datagram buys time once");
}

#[test]
fn a_follower_that_hears_the_leader_tells_those_who_ask_where_the_leader_stays_silent() {
    let (mut lan, _, declaration) = follower();
    let newest = DatagramId { sequence: declaration.sequence, ..after(&declaration) };
    lan.hear(Peer::new("x").says(probe("z")));
    lan.pass(SPACING);
    assert_eq!(lan.take("m").bodies(), [Body::ProbeReply { leader: id("z"), newest }]);
}

#[test]
fn a_follower_leaves_the_answer_to_a_leader_that_gives_it() {
    let (mut lan, mut leader, _) = follower();
    lan.hear(Peer::new("x").says(probe("z")));
    lan.hear(leader.says(EVERY_SECOND));
    lan.pass(SPACING);
    assert_eq!(lan.take("m").bodies(), []);
}

/// It hears everybody but the leader.
#[test]
fn whoever_asks_again_though_the_leader_has_answered_is_told_all_the_same() {
    let (mut lan, mut leader, _) = follower();
    let mut deaf = Peer::new("x");
    for _ in 0..2 {
        lan.hear(deaf.says(probe("z")));
        lan.hear(leader.says(EVERY_SECOND));
    }
    lan.pass(SPACING);
    let told = lan.take("m").bodies();
    assert!(matches!(told[..], [Body::ProbeReply { .. }]), "{told:?}");
}

#[test]
fn a_follower_whose_own_leader_is_overdue_tells_nothing_and_lets_the_other_ask() {
    let (mut lan, ..) = follower();
    let mut x = Peer::new("x");
    lan.pass(DUE);
    for _ in 0..10 {
        lan.hear(x.says(probe("z")));
        lan.pass(SPACING / 2);
    }
    assert_eq!(lan.take("m").bodies(), []);
}

#[test]
fn nobody_else_is_asked_about() {
    let (mut lan, ..) = follower();
    lan.hear(Peer::new("x").says(probe("y")));
    lan.pass(SPACING * 2);
    assert_eq!(lan.take("m").bodies(), []);
}

#[test]
fn the_larger_the_group_the_rarer_are_heartbeats_and_the_longer_is_their_senders_silence_borne_with()
 {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", Params::default(), &mut leader);
    let reports = |interval_us| Body::Heartbeat {
        interval_us,
        leader: Some(id("z")),
        conceded: None,
        acknowledged: None,
    };
    for number in 0..318 {
        lan.hear(Peer::new(&format!("n{number}")).says(reports(11_000_000)));
    }
    lan.take("m");
    lan.pass_with(secs(24), &mut [(&mut leader, EVERY_SECOND)]);
    let own = lan.take("m").bodies();
    assert!(matches!(own[..], [_, ..] if own.len() <= 3), "{own:?}");
    assert!(matches!(own.last(), Some(Body::Heartbeat { interval_us: 11_000_000, .. })));
    let alive = |lan: &Lan| {
        let status = lan.at("m").status(lan.now);
        status.members.iter().filter(|member| member.state == MemberState::Alive).count()
    };
    assert_eq!(alive(&lan), 320);
    lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
    assert_eq!(alive(&lan), 2, "two and a half of the intervals that they told are over");
}
