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
    assert!(lan.take("b").has_event(Event::AwaitingEnrolment { silent: 0, enrolled: 1 }));
}

impl Lan {
    /// A machine that is switched off.
    fn set_up(&mut self, name: &str) {
        let host = Host { hooks_end: Some(HookOutcome::Succeeded), ..Host::default() };
        self.hosts.insert(id(name), host);
    }
}
