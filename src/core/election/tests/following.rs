//! Following a leader, and losing it.

use super::*;
use crate::core::params::patience_for;
use crate::core::status::MemberState;

#[test]
fn after_silence_for_the_alive_threshold_the_best_candidate_leads() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("a", patient(), &mut leader);
    lan.pass(ms(2999));
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    lan.pass(ms(1));
    let outputs = lan.take("a");
    assert!(outputs.has_event(Event::LeaderSilent { leader: id("z"), silence: secs(3) }));
    assert_eq!(lan.leaders(), ["a"], "no other node answered");
}

#[test]
fn each_declaration_extends_the_leaders_time_by_a_threshold() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("a", patient(), &mut leader);
    for _ in 0..10 {
        lan.pass(ms(2999));
        lan.hear(leader.sends(EVERY_SECOND));
    }
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    assert!(!lan.take("a").events().any(|event| matches!(event, Event::LeaderSilent { .. })));
}

#[test]
fn a_leaders_other_datagrams_are_no_declarations() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("a", patient(), &mut leader);
    lan.pass_with(secs(3), &mut [(&mut leader, HEARTBEAT)]);
    assert_ne!(lan.at("a").leader(), Some(id("z")));
}

/// A later release sends it: no declaration, but its sender is alive.
#[test]
fn a_datagram_of_an_unknown_kind_shows_that_its_sender_is_alive() {
    let (mut leader, mut follower) = (Peer::leading("z", 4), Peer::new("y"));
    let mut lan = Lan::following("a", patient(), &mut leader);
    let mut said = [(&mut leader, Body::Unknown), (&mut follower, Body::Unknown)];
    lan.pass_with(secs(3), &mut said);
    assert_ne!(lan.at("a").leader(), Some(id("z")));
    assert_eq!(lan.sees("a", "y"), Some(MemberState::Alive));
}

#[test]
fn a_leader_that_declares_rarely_is_given_a_quarter_more_than_its_own_interval() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("a", patient(), &mut leader);
    lan.hear(leader.sends(Body::Declaration { interval_us: 5_000_000, hold_us: 0 }));
    lan.pass(ms(6249));
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    lan.pass(ms(1));
    assert_ne!(lan.at("a").leader(), Some(id("z")));
}

#[test]
fn absurd_announced_interval_is_bounded() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("a", patient(), &mut leader);
    lan.hear(leader.sends(Body::Declaration { interval_us: u32::MAX, hold_us: 0 }));
    lan.pass(secs(120));
    assert_ne!(lan.at("a").leader(), Some(id("z")));
}

#[test]
fn the_best_ranked_of_several_leaders_is_followed() {
    let mut worse = Peer::leading("z", 9);
    let mut better = Peer::leading("y", 2);
    let mut lan = Lan::following("a", patient(), &mut worse);
    lan.hear(better.sends(EVERY_SECOND));
    assert_eq!(lan.at("a").leader(), Some(id("y")));
    lan.hear(worse.sends(EVERY_SECOND));
    assert_eq!(lan.at("a").leader(), Some(id("y")));
    assert_eq!(lan.at("a").term(), Term(9), "a known term is kept, whichever leader is followed");
}

#[test]
fn follower_of_a_silent_leader_follows_the_next_active_one() {
    let mut worse = Peer::leading("z", 9);
    let mut better = Peer::leading("y", 2);
    let mut lan = Lan::following("a", patient(), &mut better);
    lan.pass_with(secs(4), &mut [(&mut worse, EVERY_SECOND)]);
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    assert!(!lan.take("a").bodies().contains(&Body::Proposal));
}

#[test]
fn a_leader_heard_in_another_role_no_longer_leads() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("a", patient(), &mut leader);
    leader.role = Role::Follower;
    lan.hear(leader.sends(HEARTBEAT));
    assert!(lan.take("a").has_event(Event::LeaderResigned { leader: id("z") }));
    assert_eq!(lan.at("a").leader(), None);
}

#[test]
fn better_candidate_that_starts_late_follows_the_present_leader() {
    let mut lan = Lan::led_by("b");
    lan.start("a", priority(255));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["b"]);
    assert_eq!(lan.at("a").leader(), Some(id("b")));
    assert_eq!(lan.take("b").hooks(), []);
}

#[test]
fn followers_send_heartbeats_every_other_interval_and_announce_that() {
    let mut lan = Lan::led_by("a");
    lan.start("b", patient());
    lan.take("b");
    lan.pass(secs(60));
    let outputs = lan.take("b");
    assert!(outputs.bodies().iter().all(|body| matches!(
        body,
        Body::Heartbeat {
            interval_us: 2_200_000,
            leader: Some(_),
            conceded: None,
            acknowledged: None
        }
    )));
    let times: Vec<Time> = outputs.sent().map(|(at, _)| at).collect();
    for pair in times.windows(2) {
        let gap = pair[1].since(pair[0]);
        assert!(secs(2) <= gap && gap <= ms(2200), "{gap:?}");
    }
    assert!(times.len() >= 27, "{}", times.len());
}

#[test]
fn silent_member_is_suspect_and_then_gone() {
    let mut lan = Lan::led_by("a");
    lan.hear(Peer::new("b").sends(HEARTBEAT));
    lan.pass(secs(10));
    let outputs = lan.take("a");
    let fading: Vec<&str> = outputs
        .events()
        .filter_map(|event| match event {
            Event::MemberSuspect { node_id, .. } if node_id == id("b") => Some("suspect"),
            Event::MemberGone { node_id, .. } if node_id == id("b") => Some("gone"),
            _ => None,
        })
        .collect();
    assert_eq!(fading, ["suspect", "gone"]);
}

#[test]
fn the_status_shows_the_leader_and_every_member_in_order() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    lan.hear(Peer::new("b").sends(HEARTBEAT));
    lan.pass(ms(200));
    let status = lan.at("m").status(lan.now);
    let leader = status.leader.unwrap();
    assert_eq!((leader.node_id, leader.last_heard), (id("z"), ms(200)));
    assert_eq!(leader.address, Some(address(id("z"))));
    let members: Vec<NodeId> = status.members.iter().map(|member| member.node_id).collect();
    assert_eq!(members, [id("b"), id("m"), id("z")]);
    assert_eq!((status.role, status.ineligible, status.since), (Role::Follower, vec![], ms(200)));
}

#[test]
fn follower_sleeps_between_declarations_and_still_sends_heartbeats() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("a", every_second(), &mut leader);
    for second in 0..40 {
        lan.pass(secs(1));
        lan.hear(leader.sends(EVERY_SECOND));
        let wake = lan.at("a").poll_timeout().unwrap();
        assert!(second < 5 || wake.at >= lan.now + secs(1), "{wake:?} after {second} s");
    }
    let heartbeats = lan.take("a").bodies().len();
    assert!((15..=45).contains(&heartbeats), "{heartbeats}");
}

#[test]
fn follower_without_declarations_sends_heartbeats_by_its_own_timer() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("a", every_second(), &mut leader);
    lan.hear(leader.sends(Body::Declaration { interval_us: 20_000_000, hold_us: 0 }));
    lan.take("a");
    lan.pass(secs(10));
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    assert!(lan.take("a").bodies().len() >= 3);
}

#[test]
fn between_declarations_a_leader_sleeps() {
    let mut lan = Lan::led_by("a");
    lan.pass(secs(5));
    for _ in 0..30 {
        let wake = lan.at("a").poll_timeout().unwrap();
        assert_eq!(wake.timer, crate::core::timers::Timer::Declare);
        lan.pass(wake.at.since(lan.now));
    }
}

/// The others know only the interval that was announced last.
#[test]
fn lost_heartbeat_makes_no_member_suspect_though_its_interval_grows() {
    let mut lan = Lan::new();
    lan.start("m", Params::default());
    lan.pass(secs(10));
    // It leads, then concedes, and then reports rarely; at last the group grows.
    let mut better = Peer::leading("a", 1);
    lan.pass_with(secs(3), &mut [(&mut better, EVERY_SECOND)]);
    better.term = Term(50);
    lan.pass_with(secs(10), &mut [(&mut better, EVERY_SECOND)]);
    let interval_us = 60_000_000;
    let rarely = Body::Heartbeat { interval_us, leader: None, conceded: None, acknowledged: None };
    for number in 0..1000 {
        lan.hear(Peer::new(&format!("n{number}")).sends(rarely));
    }
    lan.pass_with(secs(30), &mut [(&mut better, EVERY_SECOND)]);
    let announced = lan.take("m").announced();
    assert!(announced.last().is_some_and(|(_, interval)| *interval > secs(10)), "{announced:?}");
    for heartbeats in announced.windows(3) {
        let [(from, interval), _, (to, _)] = heartbeats else { unreachable!() };
        assert!(to.since(*from) <= patience_for(*interval), "{heartbeats:?}");
    }
}
