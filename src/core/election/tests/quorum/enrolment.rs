//! Voters without a memory.

use super::*;

#[test]
fn a_new_group_needs_every_voter_once() {
    let mut lan = Lan::new();
    for name in ["a", "b"] {
        lan.start(name, quorum(&THREE));
    }
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "c may remember what they do not");
    assert!(lan.take("a").has_event(Event::AwaitingEnrolment { silent: 1, enrolled: 0 }));
    lan.start("c", quorum(&THREE));
    lan.pass(secs(5));
    assert_eq!(lan.leaders().len(), 1, "whoever of them may vote first");
    for name in THREE {
        assert_eq!(lan.host(name).disk.enrolment, Enrolment::Enrolled);
    }
}

#[test]
fn a_founder_that_crashes_in_the_middle_of_it_goes_on_where_it_was() {
    let mut lan = Lan::new();
    for name in THREE {
        lan.set_up(name);
    }
    lan.start("a", quorum(&THREE));
    lan.set_slow_disk("c", true);
    lan.start("b", quorum(&THREE));
    lan.start("c", quorum(&THREE));
    lan.end_write("c");
    lan.pass(secs(2));
    assert_eq!(lan.host("a").disk.enrolment, Enrolment::Founding);
    lan.crash("a");
    lan.pass(secs(10));
    lan.start("a", quorum(&THREE));
    lan.end_write("c");
    lan.set_slow_disk("c", false);
    lan.pass(secs(20));
    assert_eq!(lan.leaders().len(), 1);
}

#[test]
fn a_voter_that_lost_its_disk_does_not_vote_until_a_majority_has_told_it_the_term() {
    let mut lan = three();
    lan.crash("c");
    lan.host("c").disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
    lan.cut_off("a");
    lan.start("c", quorum(&THREE));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "b alone remembers");
    assert!(!lan.take("c").votes().iter().any(|(_, granted)| *granted));
    lan.reconnect("a");
    lan.pass(secs(10));
    assert_eq!(lan.host("c").disk.enrolment, Enrolment::Enrolled);
    assert_eq!(lan.leaders().len(), 1);
    lan.cut_off("a");
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["b"], "c votes again");
}

#[test]
fn it_is_told_the_term_only_once_no_pledge_of_its_earlier_life_can_be_in_force() {
    let mut lan = three();
    lan.crash("c");
    lan.host("c").disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
    lan.start("c", quorum(&THREE));
    lan.pass(ms(8_100));
    assert!(lan.take("c").bodies().contains(&Body::Inquiry));
    assert_eq!(lan.host("c").disk.enrolment, Enrolment::None);
    lan.pass(secs(10));
    assert_eq!(lan.host("c").disk.enrolment, Enrolment::Enrolled);
}

/// The voters that are asked know better than the one that has forgotten.
#[test]
fn a_longer_pledge_of_the_others_is_waited_for() {
    let mut lan = three();
    let hurried = Params {
        quorum: Some(QuorumParams { demote_grace: secs(0), ..quorum(&THREE).quorum.unwrap() }),
        ..quorum(&THREE)
    };
    lan.crash("c");
    lan.host("c").disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
    lan.start("c", hurried);
    lan.pass(ms(8_100));
    assert_eq!(lan.host("c").disk.enrolment, Enrolment::None);
}

#[test]
fn what_it_may_have_voted_in_it_does_not_vote_in_again() {
    let mut lan = alone_with("b", PersistentState::default());
    lan.pass(secs(6));
    let inquiry = lan.take("b").last(|body| *body == Body::Inquiry);
    let (mut a, mut c) = (voter_in("a", 7), voter_in("c", 6));
    lan.hear(a.answers(&inquiry, true));
    lan.hear(c.answers(&inquiry, true));
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::Enrolled);
    lan.take("b");
    lan.hear(voter_in("c", 7).asks_for_votes());
    c.term = Term(7);
    lan.hear(c.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("c")]);
    c.term = Term(8);
    lan.hear(c.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [yes("c")]);
}

#[test]
fn answers_to_others_and_those_of_the_forgetful_do_not_count() {
    let mut lan = alone_with("b", PersistentState::default());
    lan.pass(secs(6));
    let inquiry = lan.take("b").last(|body| *body == Body::Inquiry);
    lan.hear(voter_in("a", 7).answers(&inquiry, true));
    let mut forgetful = voter_in("c", 6);
    forgetful.flags = Flags::CANDIDATE;
    lan.hear(forgetful.answers(&inquiry, true));
    let mut of_an_earlier_life = inquiry;
    of_an_earlier_life.incarnation.0 -= 1;
    forgetful.flags = voter("c").flags;
    lan.hear(forgetful.answers(&of_an_earlier_life, true));
    lan.hear(forgetful.answers(&inquiry, false));
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::None);
    lan.hear(forgetful.answers(&inquiry, true));
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::Enrolled);
}

/// Whatever the network kept from the days in which the group was founded.
#[test]
fn old_datagrams_of_a_new_group_found_none() {
    let mut lan = alone_with("b", PersistentState::default());
    let hello =
        Body::Heartbeat { interval_us: 0, leader: None, conceded: None, acknowledged: None };
    for flags in [Flags::CANDIDATE, Flags::CANDIDATE.with(Flags::FOUNDING, true)] {
        for name in ["a", "c"] {
            let mut peer = Peer { flags, ..voter(name) };
            peer.sequence.0 = if flags == Flags::CANDIDATE { 1 } else { 2 };
            lan.hear(peer.says(hello));
        }
        lan.pass(secs(1));
    }
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::None);
}

#[test]
fn a_majority_without_a_memory_stays_without_a_leader() {
    let mut lan = three();
    for name in ["b", "c"] {
        lan.crash(name);
        lan.host(name).disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
        lan.start(name, quorum(&THREE));
    }
    lan.pass(secs(100));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    for name in ["b", "c"] {
        assert_eq!(lan.host(name).disk.enrolment, Enrolment::None, "{name} founds no group");
    }
    assert!(lan.take("b").has_event(Event::AwaitingEnrolment { silent: 0, enrolled: 1 }));
}

/// Three voters, of which each that has founded the group or is enrolled remembers that.
fn found_with(memories: &[Enrolment]) -> Lan {
    let mut lan = Lan::new();
    let names = &["a", "b", "c", "d", "e"][..memories.len()];
    for (name, enrolment) in names.iter().zip(memories) {
        lan.set_up(name);
        lan.host(name).disk.enrolment = *enrolment;
    }
    for name in names {
        lan.start(name, quorum(names));
    }
    lan
}

/// Each step of a founding is taken where all others have taken the one before, so these are the
/// memories that a disk can be lost beside.
#[test]
fn a_disk_that_is_lost_while_the_group_is_founded_stops_nobody() {
    use Enrolment::{Enrolled, Founding, None};
    for others in [
        [None, None],
        [None, Founding],
        [Founding, None],
        [Founding, Founding],
        [Founding, Enrolled],
        [Enrolled, Founding],
        [Enrolled, Enrolled],
    ] {
        let mut lan = found_with(&[others[0], others[1], None]);
        lan.pass(secs(30));
        let enrolled = THREE.map(|name| lan.host(name).disk.enrolment);
        assert_eq!((lan.leaders().len(), enrolled), (1, [Enrolled; 3]), "beside {others:?}");
    }
}

#[test]
fn two_of_five_disks_that_are_lost_while_the_group_is_founded_stop_nobody() {
    use Enrolment::{Enrolled, Founding, None};
    for enrolled in 0..=3 {
        let others = [0, 1, 2].map(|voter| if voter < enrolled { Enrolled } else { Founding });
        let mut lan = found_with(&[others[0], others[1], others[2], None, None]);
        lan.pass(secs(30));
        assert_eq!(lan.leaders().len(), 1, "beside {others:?}");
    }
}

/// What a founding voter testifies must not hide that it is one.
#[test]
fn a_voter_that_comes_late_finds_the_founding_ones_waiting() {
    use Enrolment::{Founding, None};
    let mut lan = found_with(&[Founding, None, None]);
    lan.crash("c");
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    lan.start("c", quorum(&THREE));
    lan.pass(secs(30));
    assert_eq!(lan.leaders().len(), 1);
}

impl Lan {
    /// A machine that is switched off.
    fn set_up(&mut self, name: &str) {
        let host = Host { hooks_end: Some(HookOutcome::Succeeded), ..Host::default() };
        self.hosts.insert(id(name), host);
    }
}

/// What d, which is gone for good, and e, which is cut off, know of term 2 only a has heard
/// besides.
#[test]
fn a_term_that_a_removed_voter_has_won_is_not_won_again() {
    const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];
    const FOUR: [&str; 4] = ["a", "b", "c", "e"];
    let mut lan = Lan::settled(&FIVE, &quorum(&FIVE));
    assert_eq!((lan.leaders(), lan.at("e").term()), (vec!["a".to_owned()], Term(1)));
    for name in ["b", "c"] {
        lan.cut_off(name);
    }
    lan.pass(secs(10));
    lan.tell("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(10));
    assert_eq!((lan.leaders(), lan.at("d").term()), (vec!["d".to_owned()], Term(2)));

    lan.cut_off("e");
    lan.tell("d", Election::stop);
    for name in FOUR {
        lan.crash(name);
    }
    lan.host("a").disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
    for name in FOUR {
        lan.start(name, quorum(&FOUR));
    }
    for name in ["b", "c"] {
        lan.reconnect(name);
    }
    lan.pass(secs(60));
    let leaderships: Vec<_> = FOUR.iter().map(|name| (name, lan.at(name).leader())).collect();
    assert_eq!(
        lan.leaders(),
        Vec::<String>::new(),
        "in term {}: {leaderships:?}",
        lan.at("b").term()
    );
    lan.reconnect("e");
    lan.pass(secs(30));
    assert_eq!(lan.leaders().len(), 1);
    assert!(lan.at("b").term() > Term(2), "{}", lan.at("b").term());
}
