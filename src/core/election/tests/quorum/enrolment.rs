//! Voters without their state.

use super::*;
use crate::types::KeyMode;

#[test]
fn a_new_group_needs_every_voter_once() {
    let mut lan = Lan::new();
    for name in ["a", "b"] {
        lan.start(name, quorum(&THREE));
    }
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "c may have a state");
    assert!(lan.take("a").has_event(Event::AwaitingEnrolment { silent: 1, enrolled: 0 }));
    lan.start("c", quorum(&THREE));
    lan.pass(secs(5));
    assert_eq!(lan.leaders().len(), 1, "any of them may be the first to vote");
    for name in THREE {
        assert_eq!(lan.host(name).disk.enrolment, Enrolment::Enrolled);
    }
}

#[test]
fn founding_voter_that_crashes_continues_the_founding() {
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
fn voter_that_lost_its_disk_does_not_vote_until_a_majority_testifies() {
    let mut lan = three();
    lan.crash("c");
    lan.host("c").disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
    lan.cut_off("a");
    lan.start("c", quorum(&THREE));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new(), "only b has its state");
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
fn voters_testify_only_after_every_pledge_of_the_earlier_life_has_expired() {
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

/// The pledges of the others count, because the asking voter has forgotten its own.
#[test]
fn testimony_waits_for_a_longer_pledge_of_the_others() {
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
fn recovered_voter_does_not_vote_in_a_testified_term() {
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
fn answers_to_others_and_answers_without_a_state_do_not_count() {
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

/// However old the delayed datagrams of the founding are.
#[test]
fn old_founding_datagrams_found_no_group() {
    let mut lan = alone_with("b", PersistentState::default());
    for flags in [Flags::CANDIDATE, Flags::CANDIDATE.with(Flags::FOUNDING, true)] {
        for name in ["a", "c"] {
            let mut peer = Peer { flags, ..voter(name) };
            peer.sequence.0 = if flags == Flags::CANDIDATE { 1 } else { 2 };
            lan.hear(peer.sends(HEARTBEAT));
        }
        lan.pass(secs(1));
    }
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::None);
}

#[test]
fn majority_without_state_elects_no_leader() {
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

/// Three voters with these enrolments.
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

/// Each founding step is taken only when all others have taken the one before. So these are the
/// enrolments with which a disk can be lost.
#[test]
fn lost_disk_does_not_stop_the_founding() {
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
fn two_lost_disks_of_five_do_not_stop_the_founding() {
    use Enrolment::{Enrolled, Founding, None};
    for enrolled in 0..=3 {
        let others = [0, 1, 2].map(|voter| if voter < enrolled { Enrolled } else { Founding });
        let mut lan = found_with(&[others[0], others[1], others[2], None, None]);
        lan.pass(secs(30));
        assert_eq!(lan.leaders().len(), 1, "beside {others:?}");
    }
}

/// A founding voter that testifies must still be known as a founding one.
#[test]
fn founding_voters_wait_for_a_late_voter() {
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

/// Besides d, which is removed, and e, which is cut off, only a has heard of term 2.
#[test]
fn a_term_that_a_removed_voter_has_won_is_not_won_again() {
    const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];
    const FOUR: [&str; 4] = ["a", "b", "c", "e"];
    let mut lan = Lan::stable(&FIVE, &quorum(&FIVE));
    assert_eq!((lan.leaders(), lan.at("e").term()), (vec!["a".to_owned()], Term(1)));
    for name in ["b", "c"] {
        lan.cut_off(name);
    }
    lan.pass(secs(10));
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(10));
    assert_eq!((lan.leaders(), lan.at("d").term()), (vec!["d".to_owned()], Term(2)));

    lan.cut_off("e");
    lan.on("d", Election::stop);
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

/// An attacker without the key answers in the name of a, before keys are required.
#[test]
fn forged_testimony_does_not_count_once_keys_are_required() {
    let mode = |key_mode| Params { key_mode: Some(key_mode), ..quorum(&THREE) };
    let mut lan = Lan::stable(&THREE, &mode(KeyMode::Prefer));
    assert_eq!(lan.leaders(), ["a"]);
    lan.crash("c");
    lan.host("c").disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
    lan.cut_off("a");
    lan.start("c", mode(KeyMode::Prefer));
    lan.pass(secs(2));
    let inquiry = lan.take("c").last(|body| *body == Body::Inquiry);
    let incarnation = lan.at("a").life.incarnation;
    let mut forger = Peer { incarnation, sequence: Sequence(1 << 40), ..voter("a") };
    let forged = forger.answers(&inquiry, true);
    lan.on("c", |election, now| {
        election.handle_open_datagram(now, address(forged.sender), &forged);
    });
    for name in ["b", "c"] {
        lan.on(name, |election, now| election.reconfigure(now, mode(KeyMode::Require)));
    }
    lan.pass(secs(30));
    assert_eq!(lan.host("c").disk.enrolment, Enrolment::None, "only b has testified");
    lan.on("a", |election, now| election.reconfigure(now, mode(KeyMode::Require)));
    lan.reconnect("a");
    lan.pass(secs(30));
    assert_eq!(lan.host("c").disk.enrolment, Enrolment::Enrolled);
}
