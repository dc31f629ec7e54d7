//! Start-up: listening before taking part.

use super::replay_protection::keyed;
use super::*;
use crate::core::status::Ineligible;

#[test]
fn a_lone_node_leads_after_two_equal_samples() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.pass(ms(1999));
    assert_eq!(lan.at("a").role(), Role::Starting);
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_member_that_joins_prolongs_start_up_until_the_samples_agree() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.pass(ms(1500));
    lan.hear(Peer::new("b").sends(HEARTBEAT));
    lan.pass(ms(1499));
    assert_eq!(lan.at("a").role(), Role::Starting);
    lan.pass(ms(1));
    assert_ne!(lan.at("a").role(), Role::Starting);
}

#[test]
fn start_up_lasts_no_longer_than_the_grace_period() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    for second in 0..15 {
        assert_eq!(lan.at("a").role(), Role::Starting, "after {second} s");
        lan.hear(Peer::new(&format!("b{second}")).sends(HEARTBEAT));
        lan.pass(secs(1));
    }
    assert_ne!(lan.at("a").role(), Role::Starting);
}

#[test]
fn a_declaration_ends_start_up_even_a_worse_leaders() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.pass(ms(300));
    lan.hear(Peer::leading("z", 4).sends(EVERY_SECOND));
    assert_eq!(lan.at("a").role(), Role::Follower);
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    assert_eq!(lan.at("a").term(), Term(4));
}

#[test]
fn leader_declares_at_once_to_a_starting_node() {
    let mut lan = Lan::led_by("a");
    lan.pass(ms(500));
    lan.start("b", patient());
    assert_eq!(lan.at("b").leader(), Some(id("a")));
}

#[test]
fn a_proposal_does_not_end_start_up() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.hear(Peer::new("z").sends(Body::Proposal));
    assert_eq!(lan.at("a").role(), Role::Starting);
}

#[test]
fn a_life_begins_with_its_number_on_disk_then_the_hook_for_started() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    let outputs = lan.take("a");
    let expected =
        PersistentState { revision: 1, incarnation: Incarnation(1), ..PersistentState::default() };
    assert_eq!(outputs.0[0].1, Output::Persist(expected));
    assert_eq!(outputs.hooks(), [(HookEvent::Started, Reason::Startup)]);
    assert_eq!(
        outputs.bodies(),
        [Body::Heartbeat {
            interval_us: 2_200_000,
            leader: None,
            conceded: None,
            acknowledged: None
        }]
    );
}

/// It may not speak, so the others would know nothing of its leadership.
#[test]
fn a_node_does_not_lead_before_its_life_is_on_disk() {
    let mut lan = Lan::new();
    lan.start_unsaved("a", patient());
    lan.pass(secs(60));
    assert_eq!(lan.at("a").role(), Role::Starting);
    assert_eq!(lan.at("a").ineligible(lan.now), Some(Ineligible::DiskPending));
    lan.mend_disk("a");
    lan.pass(ms(1999));
    assert_eq!(lan.at("a").role(), Role::Starting, "it listens anew");
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_better_node_that_starts_is_not_overtaken_by_one_whose_first_write_was_slow() {
    let mut lan = Lan::new();
    lan.start_unsaved("b", patient());
    lan.pass(ms(1500));
    lan.start("a", patient());
    lan.pass(ms(1700));
    assert_eq!(lan.at("a").role(), Role::Starting);
    lan.mend_disk("b");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn the_best_of_nodes_that_start_together_on_slow_disks_leads() {
    let mut lan = Lan::new();
    lan.start_unsaved("a", patient());
    lan.start_unsaved("b", patient());
    lan.pass(secs(5));
    lan.mend_disk("b");
    lan.pass(ms(50));
    lan.mend_disk("a");
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
}

/// Without a proof of its own it hears nobody. Then it would lead beside the others.
#[test]
fn a_node_with_a_key_listens_after_its_first_write() {
    for name in ["a", "z"] {
        let mut lan = Lan::stable(&["x", "y"], &keyed());
        lan.take("x");
        lan.start_unsaved(name, keyed());
        lan.pass(secs(5));
        lan.mend_disk(name);
        lan.pass(secs(10));
        assert_eq!(lan.leaders(), ["x"]);
        assert_eq!(lan.take(name).hooks(), [(HookEvent::Started, Reason::Startup)]);
        assert_eq!(lan.take("x").hooks(), []);
    }
}

/// The others know it from its earlier life.
#[test]
fn a_node_with_a_key_whose_first_write_is_slow_follows_its_leader_again() {
    let keyed = super::replay_protection::keyed;
    for (name, first_write) in [("b", 300), ("b", 1000), ("b", 2500), ("a", 1000)] {
        let mut lan = Lan::stable(&["a", "b", "c"], &keyed());
        if name == "a" {
            lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
            lan.pass(secs(30));
        }
        let leader = lan.leaders().remove(0);
        lan.crash(name);
        lan.set_slow_disk(name, true);
        lan.take(&leader);
        lan.take(name);
        lan.start(name, keyed());
        lan.pass(ms(first_write));
        lan.mend_disk(name);
        lan.pass(secs(10));
        assert_eq!(lan.leaders(), [&*leader], "{name} after {first_write} ms");
        assert_eq!(lan.take(name).hooks(), [(HookEvent::Started, Reason::Startup)]);
        assert_eq!(lan.take(&leader).hooks(), []);
    }
}

/// Its first hello is lost, so nobody challenges it. It challenges the leader, with a proof.
#[test]
fn a_node_with_a_key_whose_first_hello_is_lost_follows_its_leader_again() {
    for names in [&["b"][..], &["b", "c"]] {
        let mut lan = Lan::stable(names, &keyed());
        lan.start("a", keyed());
        lan.pass(secs(20));
        assert_eq!(lan.leaders(), ["b"]);
        lan.crash("a");
        lan.cut_off("a");
        lan.start("a", keyed());
        lan.reconnect("a");
        lan.take("b");
        lan.pass(secs(20));
        assert_eq!(lan.at("a").leader(), Some(id("b")), "{names:?}");
        assert_eq!(lan.take("b").hooks(), [], "{names:?}");
    }
}

/// An objection that it could not send is none: of two daemons with one id the one that is past its
/// start-up stays.
#[test]
fn a_node_objects_to_no_other_daemon_before_its_life_is_on_disk() {
    let mut lan = Lan::new();
    lan.start("b", patient());
    lan.pass(secs(10));
    lan.start_unsaved("a", patient());
    let mut other = Peer { incarnation: Incarnation(500), role: Role::Starting, ..Peer::new("a") };
    lan.hear(other.sends(EVERY_SECOND));
    other.role = Role::Follower;
    lan.pass_with(secs(5), &mut [(&mut other, EVERY_SECOND)]);
    lan.mend_disk("a");
    lan.hear(other.sends(Body::Objection { newcomer: Incarnation(1) }));
    let stopped = lan.take("a").stopped();
    assert!(matches!(stopped, Some(StopCause::NodeIdTaken { .. })), "{stopped:?}");
}

/// It says hello first, so it is a newcomer for the others, also if another daemon has its id.
#[test]
fn a_node_follows_nobody_before_its_life_is_on_disk() {
    let mut lan = Lan::new();
    lan.start_unsaved("a", patient());
    let mut leader = Peer::leading("z", 5);
    lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
    assert_eq!((lan.at("a").role(), lan.at("a").leader()), (Role::Starting, None));
    lan.pass(ms(3400));
    lan.mend_disk("a");
    let (_, first) = lan.take("a").sent().next().unwrap();
    assert_eq!(first.standing.role, Role::Starting);
    lan.pass_with(secs(5), &mut [(&mut leader, EVERY_SECOND)]);
    assert_eq!(lan.at("a").leader(), Some(id("z")));
    assert_eq!(lan.take("a").hooks(), []);
}

/// Its former life led in it, and died before it was heard.
#[test]
fn a_term_that_a_starting_node_knows_is_not_taken_again() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    let role = Role::Starting;
    let mut restarted = Peer { incarnation: Incarnation(2), term: Term(5), role, ..Peer::new("z") };
    lan.hear(restarted.sends(HEARTBEAT));
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["m"]);
    let terms = lan.take("m").declared_terms();
    assert!(terms.iter().all(|term| *term > Term(5)), "{terms:?}");
}

#[test]
fn a_node_without_a_link_starts_until_it_has_one() {
    let mut lan = Lan::new();
    lan.start_linked("a", patient(), false);
    lan.pass(secs(60));
    assert_eq!(lan.at("a").role(), Role::Starting);
    lan.on("a", |election, now| election.handle_links(now, true));
    lan.pass(ms(1999));
    assert_eq!(lan.at("a").role(), Role::Starting, "it listens anew");
    lan.pass(ms(1));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn a_link_that_fails_during_start_up_keeps_the_node_starting() {
    let mut lan = Lan::new();
    lan.start("a", patient());
    lan.pass(ms(1500));
    lan.on("a", |election, now| election.handle_links(now, false));
    lan.pass(secs(60));
    assert_eq!(lan.at("a").role(), Role::Starting);
    lan.on("a", |election, now| election.handle_links(now, true));
    lan.pass(secs(2));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn best_of_the_nodes_that_start_together_leads_even_if_it_starts_last() {
    let mut lan = Lan::new();
    lan.start("b", patient());
    lan.pass(ms(900));
    lan.start("a", patient());
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Started, Reason::Startup)]);
}

/// In a group so large that heartbeats are rare.
#[test]
fn starting_node_sends_heartbeats_at_the_first_samples_in_any_group() {
    let mut lan = Lan::new();
    lan.start("m", every_second());
    for number in 0..400 {
        let mut other = Peer { role: Role::Starting, ..Peer::new(&format!("a{number}")) };
        lan.hear(other.sends(Body::Heartbeat {
            interval_us: 2_200_000,
            leader: None,
            conceded: None,
            acknowledged: None,
        }));
    }
    lan.pass(ms(2500));
    assert_eq!(lan.at("m").role(), Role::Starting, "better nodes are starting");
    assert_eq!(lan.take("m").bodies().len(), 3);
    lan.pass(secs(2));
    assert!(lan.take("m").bodies().len() <= 1, "after that as rarely as every node");
}

/// Also while new members prolong it, and when it ends.
#[test]
fn starting_node_of_a_large_group_is_silent_no_longer_than_it_announces() {
    let rare = Body::Heartbeat {
        interval_us: 60_000_000,
        leader: None,
        conceded: None,
        acknowledged: None,
    };
    for others in [100, 200, 300, 400] {
        let mut lan = Lan::new();
        lan.start("m", Params { candidate: false, ..every_second() });
        for number in 0..others {
            lan.hear(Peer::new(&format!("a{number}")).sends(rare));
        }
        for number in 0..60 {
            lan.pass(secs(1));
            lan.hear(Peer::new(&format!("b{number}")).sends(rare));
        }
        lan.pass(secs(60));
        let sent = lan.take("m");
        assert!(sent.bodies().len() >= 6);
        assert_eq!(sent.overlong_silences(), [], "beside {others}");
    }
}
