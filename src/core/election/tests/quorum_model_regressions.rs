//! Faults of quorum mode that the model checker found.

use super::*;
use crate::core::params::QuorumParams;
use crate::core::persist::Enrolment;
use crate::core::quorum::Voters;
use crate::types::DatagramId;

const VOTERS: [&str; 3] = ["a", "b", "c"];

fn voters() -> Voters {
    Voters::new(VOTERS.map(id)).unwrap()
}

fn quorum() -> Params {
    let quorum = QuorumParams { voters: voters(), demote_grace: secs(5) };
    Params { quorum: Some(quorum), ..patient() }
}

/// An enrolled voter.
fn voter(name: &str) -> Peer {
    let flags = Flags::CANDIDATE.with(Flags::ELIGIBLE, true).with(Flags::ENROLLED, true);
    Peer { flags, ..Peer::new(name) }
}

/// A datagram from `peer` to members of its group.
fn sends(peer: &mut Peer, body: Body) -> Message {
    let mut message = peer.sends(body);
    message.standing.voters = Some(voters().digest());
    message
}

/// A network on which the enrolled voter `b` has just asked for votes in term 1 with the support of
/// `voter`; with its vote request.
fn asking_for_votes(voter: &mut Peer) -> (Lan, DatagramId) {
    let mut lan = Lan::new();
    let disk = PersistentState { enrolment: Enrolment::Enrolled, ..PersistentState::default() };
    let hooks_end = Some(HookOutcome::Succeeded);
    lan.hosts.insert(id("b"), Host { disk, hooks_end, ..Host::default() });
    lan.start("b", quorum());
    lan.pass(secs(1));
    lan.hear(sends(voter, HEARTBEAT));
    lan.pass(secs(2));
    let proposal = asked(&lan.take("b"), |body| matches!(body, Body::Proposal));
    lan.hear(sends(voter, Body::Vote { candidate: id("b"), request: proposal, granted: true }));
    let request = asked(&lan.take("b"), |body| matches!(body, Body::VoteRequest { .. }));
    assert_eq!((lan.at("b").role(), lan.at("b").term()), (Role::Candidate, Term(1)));
    (lan, request)
}

/// The last datagram that `asks`.
fn asked(outputs: &Outputs, asks: impl Fn(Body) -> bool) -> DatagramId {
    let message = outputs.sent().filter(|(_, message)| asks(message.body)).last().unwrap().1;
    message.id()
}

/// A vote for one term makes no leader in another, which may have one already.
#[test]
fn a_candidate_that_learns_of_a_higher_term_wins_no_more() {
    let (mut c, mut a) = (voter("c"), voter("a"));
    let (mut lan, request) = asking_for_votes(&mut c);
    a.term = Term(2);
    lan.hear(sends(&mut a, HEARTBEAT));
    lan.hear(sends(&mut c, Body::Vote { candidate: id("b"), request, granted: true }));
    assert_eq!(lan.at("b").role(), Role::Follower);
}

/// The candidate also must not ask for votes in a term in which it did not vote for itself.
#[test]
fn a_candidate_that_learns_of_a_higher_term_asks_for_no_votes_in_it() {
    let (mut c, mut a) = (voter("c"), voter("a"));
    let (mut lan, _) = asking_for_votes(&mut c);
    a.term = Term(2);
    lan.hear(sends(&mut a, HEARTBEAT));
    lan.pass(secs(10));
    let outputs = lan.take("b");
    assert!(!outputs.bodies().iter().any(|body| matches!(body, Body::VoteRequest { .. })));
    assert!(
        outputs.bodies().contains(&Body::Resignation { successor: None }),
        "the voters are released"
    );
}
