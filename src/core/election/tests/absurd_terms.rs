//! Terms that no group can have reached.

use super::*;

const IN_REASON: u64 = 1 << 32;
const STEP: u64 = 1 << 16;

fn conceding(term: u64) -> Body {
    Body::Heartbeat {
        interval_us: 1_000_000,
        leader: None,
        conceded: Some(Term(term)),
        acknowledged: None,
    }
}

#[test]
fn absurd_terms_of_broken_members_are_ignored() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    let far = |name| Peer::leading(name, IN_REASON + 1);
    let mut broken = [far("0"), far("1"), far("2"), far("3")];
    let mut speaking: Vec<_> = broken.iter_mut().map(|peer| (peer, EVERY_SECOND)).collect();
    lan.pass_with(secs(60), &mut speaking);
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.at("a").term(), Term(1));
    assert!(lan.at("a").ignored().absurd_term >= 400);
}

#[test]
fn concession_of_an_absurd_term_is_ignored() {
    let mut lan = Lan::stable(&["a", "b", "c"], &patient());
    lan.hear(Peer::new("d").sends(conceding(u64::MAX - 5)));
    assert_eq!(lan.at("a").term(), Term(1));
    assert_eq!(lan.at("a").ignored().absurd_term, 1);
}

#[test]
fn new_node_learns_any_reasonable_term() {
    let mut lan = Lan::stable(&["b"], &Params { candidate: false, ..patient() });
    lan.hear(Peer::leading("a", IN_REASON).sends(EVERY_SECOND));
    assert_eq!(lan.at("b").leader(), Some(id("a")));
    assert_eq!(lan.at("b").term(), Term(IN_REASON));
}

/// Otherwise the leader would ignore its followers, which learn those terms.
#[test]
fn leader_counts_terms_that_it_does_not_lead_in_as_known() {
    let mut lan = Lan::led_by("b");
    let mut broken = Peer::new("c");
    for steps in 0..3 {
        broken.term = Term(IN_REASON + steps * STEP);
        lan.hear(broken.sends(Body::Proposal));
    }
    assert_eq!(lan.at("b").ignored().absurd_term, 0);
    assert_eq!(lan.at("b").term(), Term(1));
    lan.hear(Peer::leading("a", 2).sends(EVERY_SECOND));
    assert_eq!(lan.at("b").leader(), Some(id("a")));
    assert!(lan.at("b").term() > Term(IN_REASON + 2 * STEP));
}

#[test]
fn very_high_term_rises_by_one_step_at_a_time() {
    let mut lan = Lan::stable(&["b"], &Params { candidate: false, ..patient() });
    let mut leader = Peer::leading("a", IN_REASON);
    lan.hear(leader.sends(EVERY_SECOND));
    leader.term = Term(IN_REASON + STEP + 1);
    lan.hear(leader.sends(EVERY_SECOND));
    assert_eq!(lan.at("b").term(), Term(IN_REASON));
    leader.term = Term(IN_REASON + STEP);
    lan.hear(leader.sends(EVERY_SECOND));
    assert_eq!(lan.at("b").term(), Term(IN_REASON + STEP));
}
