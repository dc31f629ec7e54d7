//! Whose terms a voter learns.

use super::*;

const HEARTBEAT: Body =
    Body::Heartbeat { interval_us: 1_000_000, leader: None, conceded: None, acknowledged: None };

/// More than half of all members, which announce absurdly high terms.
fn absurd_majority() -> Vec<Peer> {
    ["w", "x", "y", "z"].map(|name| voter_in(name, 1 << 40)).to_vec()
}

impl Lan {
    /// Time passes while each of `peers` sends again and again.
    fn pass_among(&mut self, duration: Duration, peers: &mut [Peer]) {
        let mut speaking: Vec<_> = peers.iter_mut().map(|peer| (peer, HEARTBEAT)).collect();
        self.pass_with(duration, &mut speaking);
    }
}

#[test]
fn candidate_among_members_of_absurd_terms_leads_in_the_term_that_it_asked_for() {
    let mut lan = alone("b");
    let mut absurd = absurd_majority();
    lan.pass_among(ms(2_000), &mut absurd);
    let request = lan.take_vote_request("b");
    lan.pass_among(ms(1_000), &mut absurd);
    lan.hear(voter("c").answers(&request, true));
    lan.pass_among(ms(4_000), &mut absurd);
    let led: Vec<_> = lan.take("b").sent().map(|(_, it)| it).filter(declares).collect();
    assert!(led.iter().all(|it| it.term == request.term), "{:?}", led[0].term);
    assert_eq!(lan.at("b").term(), request.term);
}

fn declares(message: &Message) -> bool {
    matches!(message.body, Body::Declaration { .. })
}

#[test]
fn candidate_whose_own_vote_is_being_written_is_not_held_up_by_absurd_terms() {
    let mut lan = alone("b");
    let proposal = lan.take_proposal_of("b");
    lan.set_slow_disk("b", true);
    lan.hear(voter("a").answers(&proposal, true));
    lan.pass_among(ms(8_000), &mut absurd_majority());
    lan.set_slow_disk("b", false);
    lan.end_write("b");
    lan.take("b");
    lan.pass(secs(10));
    assert!(lan.take("b").bodies().contains(&Body::Proposal), "it does not stand");
}

#[test]
fn candidate_whose_own_vote_is_never_written_stands_anew() {
    let mut lan = alone("b");
    let proposal = lan.take_proposal_of("b");
    lan.set_slow_disk("b", true);
    lan.hear(voter("a").answers(&proposal, true));
    lan.take("b");
    lan.pass(secs(10));
    assert!(lan.take("b").bodies().contains(&Body::Proposal), "it does not stand");
}

/// Each answer arrives before the voters have written their votes.
#[test]
fn higher_terms_of_a_node_without_a_vote_delay_no_election() {
    let mut lan = three();
    let mut broken = voter("x");
    lan.crash("a");
    lan.set_slow_disk("b", true);
    lan.set_slow_disk("c", true);
    let began = lan.now;
    while lan.leaders().is_empty() && lan.now.since(began) < secs(60) {
        lan.pass(ms(10));
        for name in ["b", "c"] {
            let asked = lan.take(name).sent().map(|(_, it)| it).find(asks_for_votes);
            if let Some(request) = asked {
                broken.term = request.term.next();
                lan.hear(broken.sends(HEARTBEAT));
            }
        }
        let writing = ["b", "c"].map(|name| (name, lan.host(name).unwritten.is_some()));
        for (name, _) in writing.iter().filter(|(_, writes)| *writes) {
            lan.end_write(name);
        }
    }
    // The longest hold, the alive threshold, six elections and two heartbeats.
    let bound = ms(8_162) + secs(3) + secs(6) + secs(2);
    assert!(lan.now.since(began) <= bound, "{:?}", lan.now.since(began));
    assert_eq!(lan.leaders(), ["b"]);
}

fn asks_for_votes(message: &Message) -> bool {
    matches!(message.body, Body::VoteRequest { .. })
}

/// A set of voters that is outdated by one change still has most of the present voters.
#[test]
fn terms_are_learned_from_a_voter_that_names_other_voters() {
    let mut lan = alone("b");
    let four = quorum(&["a", "b", "c", "d"]).quorum.unwrap().voters.digest();
    let mut changed = Peer { voters: Some(four), ..voter_in("a", 9) };
    lan.hear(changed.sends(HEARTBEAT));
    assert_eq!(lan.at("b").term(), Term(9));
    let mut unknown = Peer { voters: Some(four), ..voter_in("d", 10) };
    lan.hear(unknown.sends(HEARTBEAT));
    assert_eq!(lan.at("b").term(), Term(9));
}
