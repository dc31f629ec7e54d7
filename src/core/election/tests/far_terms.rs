//! Terms that no group has got to.

use super::*;

const FAR: u64 = 1 << 40;

fn conceding(reign: u64) -> Body {
    Body::Heartbeat {
        interval_us: 1_000_000,
        leader: None,
        conceded: Some(Term(reign)),
        acknowledged: None,
    }
}

fn told_to_catch_up(outputs: &Outputs) -> bool {
    outputs.events().any(|event| matches!(event, Event::CaughtUp { .. }))
}

#[test]
fn one_broken_member_among_others_moves_no_term_however_long_it_goes_on() {
    let mut lan = Lan::settled(&["a", "b", "c"], &patient());
    let mut broken = Peer::leading("0", FAR);
    lan.pass_with(secs(60), &mut [(&mut broken, EVERY_SECOND)]);
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.at("a").term(), Term(1));
    assert!(lan.at("a").ignored().absurd_term >= 100);
    assert!(!told_to_catch_up(&lan.take("a")));
}

#[test]
fn a_conceded_reign_beyond_reason_is_refused_like_a_term() {
    let mut lan = Lan::settled(&["a", "b", "c"], &patient());
    lan.hear(Peer::new("d").says(conceding(u64::MAX - 5)));
    assert_eq!(lan.at("a").term(), Term(1));
    assert_eq!(lan.at("a").ignored().absurd_term, 1);
}

#[test]
fn who_finds_most_members_far_ahead_catches_up_and_follows() {
    let mut lan = Lan::settled(&["b"], &patient());
    let mut leader = Peer::leading("a", FAR);
    let mut follower = Peer { role: Role::Follower, ..Peer::leading("c", FAR + 1) };
    lan.pass_with(secs(7), &mut [(&mut leader, EVERY_SECOND), (&mut follower, Body::Claim)]);
    assert_eq!(lan.at("b").leader(), Some(id("a")));
    assert!(told_to_catch_up(&lan.take("b")));
}

#[test]
fn the_last_terms_there_are_are_taken_from_nobody() {
    let mut lan = Lan::settled(&["b"], &patient());
    let mut broken = Peer::leading("a", u64::MAX - 1);
    lan.pass_with(secs(60), &mut [(&mut broken, EVERY_SECOND)]);
    assert_eq!((lan.leaders(), lan.at("b").term()), (vec!["b".to_string()], Term(1)));
}

/// Each of its terms is within reason, after the one before.
#[test]
fn a_member_that_goes_from_term_to_term_is_held_up_until_the_next_look() {
    const JUMP: u64 = 1 << 32;
    let mut lan = Lan::settled(&["a", "b", "c"], &patient());
    let mut broken = Peer::new("d");
    let looks = 4;
    let end = lan.now + patient().member_patience() * looks;
    while lan.now < end {
        broken.term = Term(lan.at("a").term().0 + JUMP);
        let message = broken.says(Body::Claim);
        lan.hear(message);
        lan.pass(ms(5));
    }
    let jumps = lan.at("a").term().0 / JUMP;
    // A look comes early where a heartbeat is due.
    assert!((2..=u64::from(looks) * 2).contains(&jumps), "{jumps} times in {looks} looks");
    assert_eq!(lan.leaders().len(), 1);
}
