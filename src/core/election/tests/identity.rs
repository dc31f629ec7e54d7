//! Old datagrams, earlier lives, duplicates, and the order of writes and datagrams.

use super::*;
use crate::core::status::MemberState;

#[test]
fn old_reordered_and_duplicated_datagrams_change_nothing() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    let overtaken = leader.sends(Body::Resignation { successor: None });
    let newest = leader.sends(EVERY_SECOND);
    lan.hear(newest);
    lan.take("m");
    let before = lan.at("m").poll_timeout();
    lan.hear(newest);
    lan.hear(overtaken);
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    assert_eq!(lan.at("m").ignored().stale, 2);
    assert_eq!(lan.at("m").poll_timeout(), before);
    assert!(lan.take("m").0.is_empty());
}

#[test]
fn replayed_declaration_does_not_keep_a_leader_alive() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    let declaration = leader.sends(EVERY_SECOND);
    lan.hear(declaration);
    for _ in 0..6 {
        lan.pass(ms(500));
        lan.hear(declaration);
    }
    assert_ne!(lan.at("m").leader(), Some(id("z")));
}

#[test]
fn datagrams_of_an_earlier_life_change_nothing() {
    let mut earlier = Peer::leading("z", 4);
    earlier.sequence = Sequence(1000);
    let mut later = Peer { incarnation: Incarnation(2), ..Peer::leading("z", 5) };
    let mut lan = Lan::following("m", patient(), &mut later);
    lan.hear(earlier.sends(Body::Farewell));
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    assert_eq!(lan.at("m").ignored().stale, 1);
}

#[test]
fn a_restarted_leader_is_known_to_lead_no_more() {
    let mut leader = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut leader);
    leader.incarnation = Incarnation(2);
    leader.role = Role::Follower;
    lan.hear(leader.sends(HEARTBEAT));
    assert_eq!(lan.at("m").leader(), None);
}

/// A host restarts twice, and copies of what its lives asked arrive late.
#[test]
fn each_question_of_a_starting_life_is_answered_once() {
    let mut known = Peer::new("z");
    let mut lan = Lan::led_by("m");
    lan.hear(known.sends(HEARTBEAT));
    let starting =
        |life| Peer { incarnation: Incarnation(life), role: Role::Starting, ..Peer::new("z") };
    let [second, third] = [2, 3].map(|life| starting(life).sends(HEARTBEAT));
    lan.hear(second);
    lan.hear(third);
    lan.pass(ms(900));
    lan.take("m");
    lan.hear(second);
    lan.hear(third);
    assert_eq!(lan.take("m").declarations().len(), 0);
    // The known life is heard all the same.
    lan.hear(known.sends(HEARTBEAT));
    assert_eq!(lan.at("m").ignored().stale, 2);
}

/// Its clock was ahead for one life.
#[test]
fn a_gone_member_that_starts_with_an_earlier_clock_is_heard() {
    let starting =
        |life| Peer { incarnation: Incarnation(life), role: Role::Starting, ..Peer::new("z") };
    let mut lan = Lan::led_by("m");
    lan.hear(Peer::new("z").sends(HEARTBEAT));
    lan.hear(starting(9).sends(HEARTBEAT));
    lan.pass(secs(60));
    assert_eq!(lan.sees("m", "z"), Some(MemberState::Gone));
    lan.hear(starting(5).sends(HEARTBEAT));
    assert_eq!(lan.sees("m", "z"), Some(MemberState::Alive));
}

#[test]
fn node_ignores_its_own_datagrams() {
    // Loopback returns them in every scenario; here they would have an effect.
    let mut lan = Lan::led_by("a");
    lan.pass(secs(10));
    assert_eq!(lan.at("a").ignored().stale, 0);
    assert_eq!(lan.at("a").status(lan.now).members.len(), 1);
    assert_eq!(lan.take("a").hooks(), []);
}

#[test]
fn newcomer_with_a_taken_id_sends_nothing_while_its_hook_ends() {
    let mut lan = Lan::new();
    lan.start("m", patient());
    lan.take("m");
    lan.crash("m");
    lan.set_hooks("m", None);
    lan.start("m", patient());
    let newcomer = lan.at("m").life.incarnation;
    lan.take("m");
    let mut holder = Peer { incarnation: Incarnation(77), ..Peer::new("m") };
    lan.hear(holder.sends(Body::Objection { newcomer }));
    lan.hear(holder.sends(EVERY_SECOND));
    lan.pass(secs(60));
    let outputs = lan.take("m");
    assert_eq!(outputs.bodies(), [], "after its start-up it would be taken for the holder");
    assert_eq!(outputs.stopped(), None, "its hook still runs");
    lan.end_hook("m", HookOutcome::Succeeded);
    assert!(lan.take("m").stopped().is_some());
}

#[test]
fn newcomer_with_a_taken_id_stops_without_a_farewell() {
    let mut lan = Lan::new();
    lan.start("m", patient());
    let newcomer = lan.at("m").life.incarnation;
    let mut holder = Peer { incarnation: Incarnation(77), ..Peer::new("m") };
    lan.pass(ms(100));
    lan.take("m");
    lan.hear(holder.sends(Body::Objection { newcomer }));
    let outputs = lan.take("m");
    let holder = address(id("m"));
    assert_eq!(outputs.stopped(), Some(StopCause::NodeIdTaken { holder }));
    assert_eq!(outputs.bodies(), [], "a farewell would count for the holder");
}

#[test]
fn objection_to_another_life_is_ignored() {
    let mut lan = Lan::led_by("m");
    let mut duplicate = Peer { incarnation: Incarnation(77), ..Peer::new("m") };
    lan.hear(duplicate.sends(Body::Objection { newcomer: Incarnation(78) }));
    assert_eq!(lan.leaders(), ["m"]);
    assert_eq!(lan.take("m").stopped(), None);
}

#[test]
fn holder_of_an_id_objects_to_a_newcomer_but_not_to_each_datagram() {
    let mut lan = Lan::led_by("m");
    let newcomer = Incarnation(77);
    let mut duplicate = Peer { incarnation: newcomer, role: Role::Starting, ..Peer::new("m") };
    for _ in 0..50 {
        lan.hear(duplicate.sends(HEARTBEAT));
        lan.pass(ms(1));
    }
    let outputs = lan.take("m");
    let objections = outputs.bodies();
    assert_eq!(objections[0], Body::Objection { newcomer });
    assert_eq!(objections.len(), 1);
    assert!(outputs.has_event(Event::DuplicateNodeId { newcomer: address(id("m")) }));
    assert_eq!(lan.leaders(), ["m"]);
}

#[test]
fn older_of_two_running_lives_with_one_id_stays() {
    let mut lan = Lan::led_by("m");
    let mut later = Peer { incarnation: Incarnation(77), ..Peer::leading("m", 3) };
    lan.hear(later.sends(EVERY_SECOND));
    let newcomer = Incarnation(77);
    assert_eq!(lan.take("m").bodies(), [Body::Objection { newcomer }]);
    let mut earlier = Peer { incarnation: Incarnation(0), ..Peer::leading("m", 3) };
    lan.hear(earlier.sends(EVERY_SECOND));
    assert_eq!(lan.take("m").bodies(), [], "it waits for an objection");
    let newcomer = lan.at("m").life.incarnation;
    lan.set_hooks("m", None);
    lan.hear(earlier.sends(Body::Objection { newcomer }));
    lan.pass(secs(20));
    lan.end_hook("m", HookOutcome::Succeeded);
    let outputs = lan.take("m");
    assert_eq!(outputs.hooks().last(), Some(&(HookEvent::Demoted, Reason::Shutdown)));
    assert!(outputs.stopped().is_some());
    assert_eq!(outputs.bodies(), [], "a resignation would count for the holder, which leads");
}

/// It hands over and stops at its operator's request when it hears that its id is taken.
#[test]
fn daemon_that_stops_gives_way_too() {
    let mut lan = Lan::stable(&["a", "b"], &patient());
    lan.set_hooks("a", None);
    lan.on("a", Election::stop);
    lan.take("a");
    let newcomer = lan.at("a").life.incarnation;
    let mut holder = Peer { incarnation: Incarnation(0), ..Peer::leading("a", 3) };
    lan.hear(holder.sends(Body::Objection { newcomer }));
    lan.pass(secs(5));
    lan.end_hook("a", HookOutcome::Succeeded);
    let outputs = lan.take("a");
    assert_eq!(outputs.bodies(), []);
    assert!(outputs.stopped().is_some());
}

/// Each has heard the other before its start-up was over.
#[test]
fn older_of_two_lives_that_object_to_each_other_stays() {
    for (other, stays) in [(Incarnation(77), true), (Incarnation(0), false)] {
        let mut lan = Lan::led_by("m");
        let own = lan.at("m").life.incarnation;
        let mut duplicate = Peer { incarnation: other, role: Role::Starting, ..Peer::new("m") };
        lan.hear(duplicate.sends(HEARTBEAT));
        assert_eq!(lan.take("m").bodies(), [Body::Objection { newcomer: other }]);
        lan.hear(duplicate.sends(Body::Objection { newcomer: own }));
        assert_eq!(lan.take("m").stopped().is_none(), stays);
        assert_eq!(lan.leaders().is_empty(), !stays);
    }
}

#[test]
fn starting_newcomer_does_not_displace_the_holder_of_its_id() {
    let mut holder = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut holder);
    let mut newcomer = Peer { incarnation: Incarnation(9), role: Role::Starting, ..Peer::new("z") };
    for _ in 0..10 {
        lan.hear(newcomer.sends(HEARTBEAT));
        lan.hear(holder.sends(EVERY_SECOND));
        assert_eq!(lan.at("m").leader(), Some(id("z")));
        lan.pass(secs(1));
    }
    assert_eq!(lan.at("m").ignored().stale, 0);
    assert!(!lan.take("m").events().any(|event| matches!(event, Event::LeaderSilent { .. })));
}

#[test]
fn a_holder_that_crashed_and_restarted_is_counted_again_once_it_has_started() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.crash("a");
    lan.start("a", patient());
    lan.pass(secs(20));
    assert_eq!(lan.leaders().len(), 1);
    let leader = lan.at("a").leader();
    assert!(leader.is_some());
    assert_eq!((lan.at("b").leader(), lan.at("c").leader()), (leader, leader));
}

#[test]
fn farewell_of_a_later_life_leaves_the_holder_of_its_id_known() {
    let mut usurper = Peer { incarnation: Incarnation(9), ..Peer::new("z") };
    let mut holder = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut holder);
    lan.hear(usurper.sends(HEARTBEAT));
    lan.hear(usurper.sends(Body::Farewell));
    lan.hear(holder.sends(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("z")));
}

/// The second daemon hears the leader, which ends its start-up. Its heartbeat crosses the objection
/// to its hello.
#[test]
fn nothing_of_a_life_that_was_objected_to_displaces_the_holder_of_the_id() {
    let mut holder = Peer::leading("z", 4);
    let mut second = Peer { incarnation: Incarnation(9), role: Role::Starting, ..Peer::new("z") };
    let mut lan = Lan::following("m", patient(), &mut holder);
    lan.hear(second.sends(HEARTBEAT));
    lan.hear(holder.sends(Body::Objection { newcomer: Incarnation(9) }));
    second.role = Role::Follower;
    lan.hear(second.sends(HEARTBEAT));
    lan.hear(holder.sends(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("z")));
}

#[test]
fn life_that_was_objected_to_counts_once_the_holder_of_the_id_is_gone() {
    for stops in [false, true] {
        let mut holder = Peer::new("z");
        let mut second = Peer { incarnation: Incarnation(9), ..Peer::new("z") };
        let mut lan = Lan::led_by("m");
        lan.hear(holder.sends(Body::Objection { newcomer: Incarnation(9) }));
        if stops {
            lan.hear(holder.sends(Body::Farewell));
        } else {
            lan.pass(secs(20));
        }
        lan.pass_with(secs(20), &mut [(&mut second, HEARTBEAT)]);
        assert_eq!(lan.at("m").ignored().stale, 0, "{stops}");
        assert_eq!(lan.at("m").members.newest(&id("z")).unwrap().incarnation, Incarnation(9));
    }
}

/// Two interfaces carry the datagrams of both daemons, one of them later.
#[test]
fn late_copies_of_a_life_that_gave_way_cost_no_leader() {
    for ends_by in [Body::Farewell, HEARTBEAT] {
        let mut usurper = Peer { incarnation: Incarnation(9), ..Peer::new("z") };
        let mut holder = Peer::leading("z", 4);
        let mut lan = Lan::following("m", patient(), &mut holder);
        let copies = [usurper.sends(HEARTBEAT), usurper.sends(ends_by)];
        copies.iter().for_each(|copy| lan.hear(*copy));
        lan.hear(holder.sends(Body::Objection { newcomer: Incarnation(9) }));
        lan.hear(holder.sends(EVERY_SECOND));
        assert_eq!(lan.at("m").leader(), Some(id("z")));
        copies.iter().for_each(|copy| lan.hear(*copy));
        assert_eq!(lan.at("m").leader(), Some(id("z")), "{ends_by:?}");
    }
}

#[test]
fn objection_that_was_overtaken_still_frees_the_id() {
    let mut usurper = Peer { incarnation: Incarnation(9), ..Peer::new("z") };
    let mut holder = Peer::leading("z", 4);
    let mut lan = Lan::following("m", patient(), &mut holder);
    lan.hear(usurper.sends(HEARTBEAT));
    let objection = holder.sends(Body::Objection { newcomer: Incarnation(9) });
    lan.hear(holder.sends(EVERY_SECOND));
    lan.hear(objection);
    lan.pass_with(secs(5), &mut [(&mut holder, EVERY_SECOND)]);
    assert_eq!((lan.leaders(), lan.at("m").leader()), (vec![], Some(id("z"))));
}

#[test]
fn term_is_on_disk_before_any_datagram_carries_it() {
    let mut lan = Lan::led_by("m");
    lan.hear(Peer::leading("z", 7).sends(EVERY_SECOND));
    let outputs = lan.take("m").0;
    let persisted = outputs
        .iter()
        .position(|(_, output)| matches!(output, Output::Persist(state) if state.term == Term(8)));
    let shown = outputs.iter().position(
        |(_, output)| matches!(output, Output::Transmit(message) if message.term == Term(8)),
    );
    let told = outputs.iter().position(|(_, output)| matches!(output, Output::RunHook(_)));
    assert!(persisted.unwrap() < told.unwrap());
    assert!(shown.is_none_or(|shown| persisted.unwrap() < shown));
    lan.pass(secs(1));
    assert_eq!(lan.take("m").sent().next().unwrap().1.term, Term(8));
}

#[test]
fn a_later_life_takes_terms_above_those_of_the_earlier_one() {
    let mut lan = Lan::led_by("a");
    lan.crash("a");
    lan.start("a", patient());
    lan.pass(secs(5));
    assert_eq!(lan.at("a").term(), Term(2));
    assert_eq!(lan.at("a").life.incarnation, Incarnation(2));
}
