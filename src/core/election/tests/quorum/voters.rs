//! A voter's answers.

use super::*;

#[test]
fn one_vote_a_term() {
    let mut lan = alone("b");
    let mut first = voter_in("a", 5);
    lan.hear(first.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [yes("a")]);
    lan.hear(voter_in("c", 5).asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("c")]);
    lan.hear(first.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [yes("a")], "the vote may have been lost");
}

#[test]
fn vote_is_sent_once_it_is_on_disk() {
    let mut lan = alone("b");
    lan.set_slow_disk("b", true);
    let request = voter_in("a", 5).asks_for_votes();
    lan.hear(request);
    lan.pass(secs(1));
    assert_eq!(lan.take("b").votes(), []);
    lan.end_write("b");
    assert_eq!(lan.take("b").votes(), [yes("a")]);
    let disk = lan.host("b").disk;
    assert_eq!(disk.term, Term(5));
    assert_eq!(disk.ballot, Some(Ballot { term: Term(5), candidate: request.life() }));
}

/// The last requested state equals the one on disk, and another one is being written.
#[test]
fn vote_is_not_sent_while_another_promise_may_replace_it_on_disk() {
    let mut lan = alone("b");
    let (mut candidate, mut earlier) = (voter_in("a", 5), voter_in("c", 4));
    lan.hear(candidate.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [yes("a")]);
    lan.hear(candidate.sends(Body::Resignation { successor: None }));
    lan.set_slow_disk("b", true);
    lan.hear(earlier.declares());
    let other = lan.host("b").unwritten.unwrap();
    lan.hear(earlier.sends(Body::Resignation { successor: None }));
    lan.take("b");
    lan.hear(candidate.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [], "on disk there may be {other:?}");
    lan.end_write("b");
    assert_eq!(lan.take("b").votes(), [yes("a")]);
}

#[test]
fn voter_grants_no_other_vote_until_the_lease_must_have_expired() {
    let mut lan = alone("b");
    lan.hear(voter_in("a", 5).asks_for_votes());
    lan.take("b");
    lan.pass(ms(3_060));
    let mut other = voter_in("c", 6);
    lan.hear(other.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("c")]);
    lan.pass(ms(1));
    lan.hear(other.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [yes("c")]);
}

#[test]
fn no_vote_in_a_term_below_the_highest_known_one() {
    let mut lan = alone("b");
    lan.hear(voter_in("c", 7).sends(HEARTBEAT));
    lan.hear(voter_in("a", 6).asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("a")]);
    lan.hear(voter_in("a", 7).asks_for_votes());
    assert_eq!(lan.take("b").votes(), []);
}

#[test]
fn voter_that_hears_a_leader_does_not_answer_candidates() {
    let mut lan = alone("b");
    lan.hear(voter_in("a", 5).declares());
    lan.take("b");
    lan.hear(voter_in("c", 5).sends(Body::Proposal));
    lan.hear(voter_in("c", 6).asks_for_votes());
    assert_eq!(lan.take("b").votes(), []);
}

#[test]
fn every_declaration_of_the_leader_is_acknowledged_at_once_and_one_write_is_enough() {
    let mut lan = alone("b");
    let mut leader = voter_in("a", 5);
    lan.hear(leader.declares());
    lan.take("b");
    for _ in 0..1000 {
        lan.pass(secs(1));
        let declaration = leader.declares();
        lan.hear(declaration);
        let done = lan.take("b");
        let acknowledged = done.last(|body| matches!(body, Body::Heartbeat { .. })).body;
        assert_eq!(
            acknowledged,
            Body::Heartbeat {
                interval_us: 1_100_000,
                leader: Some(id("a")),
                conceded: None,
                acknowledged: Some(declaration.id()),
            }
        );
        assert_eq!(done.saves(), 0);
    }
}

#[test]
fn the_first_acknowledgement_waits_for_the_disk() {
    let mut lan = alone("b");
    lan.set_slow_disk("b", true);
    let declaration = voter_in("a", 5).declares();
    lan.hear(declaration);
    lan.pass(secs(1));
    assert_eq!(lan.take("b").acknowledgements(), 0);
    lan.end_write("b");
    assert_eq!(lan.take("b").acknowledgements(), 1);
    let pledge = Pledge::new(declaration.life(), Term(5), Duration::from_micros(8_161_617));
    assert_eq!(lan.host("b").disk.pledge, Some(pledge));
}

#[test]
fn voter_pledged_to_one_leader_follows_another_without_acknowledging_it() {
    let mut lan = alone("b");
    lan.hear(voter_in("a", 5).declares());
    lan.take("b");
    lan.pass(ms(3_100));
    let mut second = voter_in("c", 6);
    lan.hear(second.declares());
    assert_eq!(lan.at("b").leader(), Some(id("c")));
    assert_eq!(lan.take("b").acknowledgements(), 0);
    lan.pass(ms(5_100));
    lan.hear(second.declares());
    assert_eq!(lan.take("b").acknowledgements(), 1);
}

#[test]
fn voter_supports_a_waiting_candidate_when_its_pledge_expires() {
    let mut lan = alone("c");
    lan.hear(voter_in("a", 5).declares());
    lan.pass(ms(8_150));
    lan.take("c");
    lan.hear(voter_in("b", 5).sends(Body::Proposal));
    assert_eq!(lan.take("c").votes(), [no("b")]);
    lan.pass(ms(12));
    assert_eq!(lan.take("c").votes(), [yes("b")]);
}

#[test]
fn resignation_releases_its_voters_and_an_older_one_does_not() {
    let mut lan = alone("b");
    let mut leader = voter_in("a", 5);
    let old = leader.sends(Body::Resignation { successor: None });
    let mut again = Peer { term: Term(6), ..leader.clone() };
    lan.hear(again.declares());
    // A new life cannot recognise the old datagram by its number.
    lan.crash("b");
    lan.start("b", quorum(&THREE));
    lan.hear(old);
    lan.take("b");
    lan.hear(voter_in("c", 7).asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("c")]);
    lan.hear(again.sends(Body::Resignation { successor: None }));
    lan.hear(voter_in("c", 7).asks_for_votes());
    assert_eq!(lan.take("b").votes(), [], "the same datagram number again means nothing");
    lan.hear(voter_in("c", 8).sends(Body::Proposal));
    let mut third = voter_in("c", 8);
    third.sequence.0 = 10;
    lan.hear(third.asks_for_votes());
    assert_eq!(lan.take("b").votes().last(), Some(&yes("c")));
}

#[test]
fn restarted_voter_keeps_its_pledge_for_the_whole_length() {
    let mut lan = alone("b");
    let mut leader = voter_in("a", 5);
    lan.hear(leader.declares());
    lan.pass(secs(2));
    lan.crash("b");
    lan.pass(secs(4));
    lan.start("b", quorum(&THREE));
    lan.pass(ms(8_000));
    lan.take("b");
    lan.hear(voter_in("c", 6).asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("c")]);
    lan.hear(leader.declares());
    assert_eq!(lan.take("b").acknowledgements(), 1);
}

#[test]
fn a_vote_outlives_a_restart() {
    let mut lan = alone("b");
    lan.hear(voter_in("a", 5).asks_for_votes());
    lan.crash("b");
    lan.start("b", quorum(&THREE));
    lan.pass(secs(60));
    lan.take("b");
    lan.hear(voter_in("c", 5).asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("c")]);
}

#[test]
fn another_daemon_under_the_leaders_id_is_not_the_leader() {
    let mut lan = alone("b");
    lan.hear(voter_in("a", 5).declares());
    let mut duplicate = Peer { incarnation: Incarnation(9), ..voter_in("a", 6) };
    lan.take("b");
    lan.hear(duplicate.asks_for_votes());
    lan.hear(duplicate.sends(Body::Resignation { successor: None }));
    lan.pass(secs(4));
    lan.hear(duplicate.asks_for_votes());
    assert!(!lan.take("b").votes().contains(&yes("a")));
    lan.pass(secs(5));
    lan.hear(duplicate.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [yes("a")], "once the first one's lease must be over");
}

#[test]
fn a_node_votes_only_once_its_own_hooks_have_let_go() {
    let mut lan = three();
    lan.set_hooks("a", None);
    lan.set_fence("a", Some(HookOutcome::Failed));
    for name in ["b", "c"] {
        lan.crash(name);
    }
    lan.pass(secs(4));
    assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
    lan.pass(secs(60));
    lan.take("a");
    let mut candidate = voter_in("b", 3);
    candidate.incarnation = Incarnation(7);
    lan.hear(candidate.asks_for_votes());
    assert_eq!(lan.take("a").votes(), [no("b")]);
    for outcome in [HookOutcome::Failed, HookOutcome::Lost, HookOutcome::NotRun] {
        lan.end_hook("a", outcome);
        lan.hear(candidate.asks_for_votes());
        assert_eq!(lan.take("a").votes(), [no("b")], "{outcome:?}");
        lan.pass(secs(10));
        assert_eq!(lan.take("a").hooks(), [(HookEvent::Demoted, Reason::LeaseLost)]);
    }
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.hear(candidate.asks_for_votes());
    assert_eq!(lan.take("a").votes(), [yes("b")]);
}

#[test]
fn the_started_hook_ends_before_the_first_vote() {
    let mut lan = alone("b");
    lan.crash("b");
    lan.set_hooks("b", None);
    lan.start("b", quorum(&THREE));
    let mut candidate = voter_in("a", 5);
    lan.hear(candidate.asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("a")]);
    for outcome in [HookOutcome::Failed, HookOutcome::Lost, HookOutcome::NotRun] {
        lan.end_hook("b", outcome);
        lan.pass(secs(2));
        lan.hear(candidate.asks_for_votes());
        let done = lan.take("b");
        assert_eq!(done.votes(), [no("a")], "{outcome:?}");
        assert_eq!(done.hooks(), [(HookEvent::Started, Reason::Startup)], "{outcome:?}");
    }
    lan.end_hook("b", HookOutcome::Succeeded);
    lan.hear(voter_in("c", 5).asks_for_votes());
    assert_eq!(lan.take("b").votes(), [yes("c")]);
}

#[test]
fn member_with_other_voters_is_reported_and_neither_asked_nor_answered() {
    let mut lan = alone("b");
    let other_set = quorum(&["a", "b", "d"]).quorum.unwrap().voters.digest();
    let mut node = Peer { voters: Some(other_set), ..voter_in("a", 5) };
    lan.hear(node.sends(Body::Proposal));
    lan.hear(node.asks_for_votes());
    lan.hear(node.declares());
    let done = lan.take("b");
    assert_eq!(done.votes(), []);
    assert_eq!(done.acknowledgements(), 0);
    assert_eq!(lan.at("b").leader(), None);
    let reported = Event::VotersDisagree { node_id: id("a"), in_quorum_mode: true };
    assert_eq!(done.events().filter(|event| *event == reported).count(), 1);

    let proposal = lan.take_proposal_of("b");
    lan.hear(node.answers(&proposal, true));
    assert_eq!(lan.at("b").role(), Role::Candidate);
    assert_eq!(lan.at("b").status(lan.now).quorum.unwrap().disagreeing, [id("a")]);
}

#[test]
fn voter_ignores_a_leader_in_available_mode() {
    let mut lan = alone("b");
    let mut node = Peer::leading("a", 5);
    lan.hear(node.sends(Body::Declaration { interval_us: 1_000_000, hold_us: 0 }));
    assert_eq!(lan.at("b").leader(), None);
    let reported = Event::VotersDisagree { node_id: id("a"), in_quorum_mode: false };
    assert!(lan.take("b").has_event(reported));
}

#[test]
fn voter_with_two_lives_does_not_count() {
    let mut lan = alone("b");
    let mut first = voter("a");
    let mut second = Peer { incarnation: Incarnation(2), ..voter("a") };
    lan.hear(first.sends(HEARTBEAT));
    lan.hear(second.sends(HEARTBEAT));
    lan.hear(first.sends(HEARTBEAT));
    let proposal = lan.take_proposal_of("b");
    lan.hear(second.answers(&proposal, true));
    assert_eq!(lan.at("b").term(), Term(0));
    let standings = lan.at("b").status(lan.now).quorum.unwrap().voters;
    assert_eq!(standings[0].standing, VoterStanding::DuplicateNodeId);
    lan.pass(secs(4));
    let proposal = lan.take_proposal_of("b");
    lan.hear(second.answers(&proposal, true));
    assert_eq!(lan.at("b").term(), Term(1), "the first one has been silent for long enough");
}

#[test]
fn voter_that_hears_its_duplicate_refuses() {
    let mut lan = alone("b");
    let mut duplicate = Peer { incarnation: Incarnation(9), ..voter("b") };
    lan.hear(duplicate.sends(HEARTBEAT));
    lan.take("b");
    lan.hear(voter_in("a", 5).asks_for_votes());
    assert_eq!(lan.take("b").votes(), [no("a")]);
    lan.hear(voter_in("c", 5).declares());
    assert_eq!(lan.take("b").acknowledgements(), 0);
}

#[test]
fn voter_that_hears_its_duplicate_while_it_writes_its_promise_does_not_make_it() {
    let mut a = voter_in("a", 5);
    for asked in [a.asks_for_votes(), a.declares()] {
        let mut lan = alone("b");
        lan.set_slow_disk("b", true);
        lan.hear(asked);
        let mut duplicate = Peer { incarnation: Incarnation(9), ..voter("b") };
        lan.hear(duplicate.sends(HEARTBEAT));
        lan.end_write("b");
        let outputs = lan.take("b");
        assert_eq!((outputs.votes(), outputs.acknowledgements()), (vec![], 0), "{asked:?}");
    }
}

#[test]
fn voter_promises_at_most_an_hour() {
    let mut lan = alone("b");
    let mut greedy = voter_in("a", 5);
    lan.hear(greedy.sends(Body::VoteRequest { hold_us: 3_600_000_001 }));
    assert_eq!(lan.take("b").votes(), [no("a")]);
    lan.hear(greedy.sends(Body::Declaration { interval_us: 1_000_000, hold_us: 3_600_000_001 }));
    assert_eq!(lan.take("b").acknowledgements(), 0);
}

impl Lan {
    /// Waits for `name` to ask for support.
    pub(super) fn take_proposal_of(&mut self, name: &str) -> Message {
        self.pass(secs(3));
        self.take(name).last_proposal()
    }
}

#[test]
fn two_lives_of_one_node_differ() {
    let life = |incarnation| Life { node_id: id("a"), incarnation: Incarnation(incarnation) };
    assert_ne!(life(1), life(2));
}
