//! How a node becomes the leader.

use super::*;
use crate::core::params::Thresholds;

#[test]
fn best_candidate_is_elected_and_the_others_follow() {
    let lan = three();
    for name in THREE {
        assert_eq!(lan.at(name).leader(), Some(id("a")), "{name}");
        assert_eq!(lan.at(name).term(), Term(1), "{name}");
    }
}

#[test]
fn a_lone_voter_leads_by_itself() {
    let mut lan = Lan::new();
    lan.start("a", quorum(&["a"]));
    lan.pass(secs(4));
    assert_eq!(lan.leaders(), ["a"]);
    let hooks = lan.take("a").hooks();
    assert_eq!(hooks.last(), Some(&(HookEvent::Elected, Reason::Election)));
}

#[test]
fn no_term_is_taken_before_a_majority_would_vote() {
    let mut lan = alone("b");
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.at("b").term(), Term(0));
    let proposal = lan.take("b").last_proposal();
    lan.hear(voter("a").answers(&proposal, true));
    assert_eq!(lan.at("b").term(), Term(1));
}

#[test]
fn a_refusal_is_no_support() {
    let mut lan = alone("b");
    let proposal = lan.take_proposal("b");
    lan.hear(voter("a").answers(&proposal, false));
    lan.hear(voter("c").answers(&proposal, false));
    assert_eq!(lan.at("b").term(), Term(0));
}

#[test]
fn candidate_asks_for_votes_once_its_own_is_on_disk() {
    let mut lan = alone("b");
    let proposal = lan.take_proposal("b");
    lan.set_slow_disk("b", true);
    lan.hear(voter("a").answers(&proposal, true));
    lan.pass(secs(1));
    let waiting = lan.take("b");
    assert!(!waiting.bodies().iter().any(|body| matches!(body, Body::VoteRequest { .. })));
    lan.end_write("b");
    let request = lan.take("b").last_vote_request();
    assert_eq!(request.term, Term(1));
    let ballot = lan.hosts[&id("b")].disk.ballot.unwrap();
    assert_eq!((ballot.term, ballot.candidate), (Term(1), request.life()));
}

#[test]
fn a_majority_of_votes_makes_a_leader_and_a_minority_does_not() {
    let mut lan = alone("b");
    let request = lan.take_vote_request("b");
    assert_eq!(lan.leaders(), Vec::<String>::new());
    lan.hear(voter("c").answers(&request, true));
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn answers_to_other_questions_do_not_count() {
    let mut lan = alone("b");
    let proposal = lan.take_proposal("b");
    lan.hear(voter("a").answers(&proposal, true));
    let request = lan.take("b").last_vote_request();
    // Support is not a vote.
    lan.hear(voter("c").answers(&proposal, true));
    let mut other_life = request;
    other_life.incarnation.0 += 1;
    lan.hear(voter("c").answers(&other_life, true));
    let mut other_candidate = request;
    other_candidate.sender = id("a");
    lan.hear(voter("c").answers(&other_candidate, true));
    assert_eq!(lan.leaders(), Vec::<String>::new());
}

#[test]
fn votes_whose_lease_has_expired_win_nothing() {
    let mut lan = alone("b");
    let request = lan.take_vote_request("b");
    // The process is held, so no timeout is handled meanwhile.
    lan.now += secs(3);
    lan.hear(voter("c").answers(&request, true));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert!(lan.take("b").declarations().is_empty());
}

#[test]
fn lost_question_is_repeated_and_an_answer_to_either_counts() {
    let mut lan = alone("b");
    let first = lan.take_proposal("b");
    lan.pass(ms(500));
    assert_ne!(lan.take("b").last_proposal().sequence, first.sequence);
    lan.hear(voter("a").answers(&first, true));
    let first = lan.take("b").last_vote_request();
    lan.pass(ms(500));
    let second = lan.take("b").last_vote_request();
    assert_ne!(second.sequence, first.sequence);
    assert_eq!(second.term, first.term);
    lan.hear(voter("c").answers(&second, true));
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn candidate_that_loses_releases_its_voters() {
    let mut lan = alone("b");
    lan.take_vote_request("b");
    lan.pass(secs(2));
    let bodies = lan.take("b").bodies();
    assert!(bodies.contains(&Body::Resignation { successor: None }), "{bodies:?}");
    assert_eq!(lan.at("b").term(), Term(1), "and takes no further term without support");
}

#[test]
fn candidate_defers_to_a_better_one_once() {
    let mut lan = alone("b");
    let mut better = voter("a");
    lan.take_proposal("b");
    lan.hear(better.sends(Body::Proposal));
    assert_eq!(lan.at("b").role(), Role::Follower);
    assert!(lan.take("b").votes().contains(&yes("a")));
    lan.pass(secs(4));
    lan.take_proposal("b");
    lan.hear(better.sends(Body::Proposal));
    assert_eq!(lan.at("b").role(), Role::Candidate, "a may hear no node");
}

#[test]
fn candidate_that_withdraws_releases_its_voters() {
    let mut lan = alone("b");
    lan.take_vote_request("b");
    lan.on("b", |election, now| election.set_maintenance(now, true));
    let bodies = lan.take("b").bodies();
    assert!(bodies.contains(&Body::Resignation { successor: None }), "{bodies:?}");
}

/// A leadership of its own is one after which a candidate defers and refuses anew.
#[test]
fn candidate_that_has_led_meanwhile_defers_and_refuses_once_more() {
    let mut lan = alone("b");
    let (mut better, mut worse) = (voter("a"), voter("c"));
    lan.take_proposal("b");
    lan.hear(better.sends(Body::Proposal));
    lan.pass(secs(8));
    let proposal = lan.take_proposal("b");
    lan.hear(worse.sends(Body::Proposal));
    assert_eq!(lan.take("b").votes(), [no("c")]);
    lan.hear(worse.answers(&proposal, true));
    let request = lan.take("b").last_vote_request();
    lan.hear(worse.answers(&request, true));
    assert_eq!(lan.leaders(), ["b"]);
    lan.pass(secs(5));
    lan.take_proposal("b");
    lan.hear(worse.sends(Body::Proposal));
    assert_eq!(lan.take("b").votes(), [no("c")]);
    lan.hear(better.sends(Body::Proposal));
    assert_eq!(lan.at("b").role(), Role::Follower);
}

#[test]
fn node_that_was_cut_off_disturbs_no_leader() {
    let mut lan = three();
    lan.cut_off("c");
    lan.pass(secs(100));
    assert_eq!(lan.at("c").term(), Term(1), "it takes no term without support");
    lan.take("a");
    lan.reconnect("c");
    lan.pass(secs(3));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.at("c").leader(), Some(id("a")));
    let leader = lan.take("a");
    assert_eq!(leader.hooks(), []);
    assert_eq!(leader.transitions(), []);
    assert_eq!(lan.at("a").term(), Term(1));
}

#[test]
fn an_orderly_handover_takes_no_time() {
    let mut lan = three();
    let before = lan.now;
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    assert_eq!((lan.leaders(), lan.now), (vec!["b".to_owned()], before));
    assert_eq!(lan.at("c").leader(), Some(id("b")));
    assert_eq!(lan.take("b").hooks(), [(HookEvent::Elected, Reason::Handover)]);
    assert_eq!(lan.at("b").term(), Term(2));
}

#[test]
fn a_successor_waits_for_the_demote_hook() {
    let mut lan = three();
    lan.set_hooks("a", None);
    lan.on("a", |election, now| election.yield_leadership(now)).unwrap();
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert!(lan.take("a").declarations().len() >= 20, "it keeps declaring");
    lan.end_hook("a", HookOutcome::Succeeded);
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn an_observer_votes_and_never_leads() {
    let mut lan = Lan::new();
    lan.start("a", Params { candidate: false, ..quorum(&THREE) });
    lan.start("b", quorum(&THREE));
    lan.start("c", quorum(&THREE));
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["b"]);
    lan.cut_off("c");
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["b"], "the observer's vote renews its lease");
    lan.crash("b");
    lan.reconnect("c");
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["c"]);
}

#[test]
fn a_node_without_a_vote_follows_only() {
    let mut lan = three();
    lan.start("0", quorum(&THREE));
    lan.pass(secs(5));
    assert_eq!(lan.at("0").leader(), Some(id("a")));
    for name in ["a", "b"] {
        lan.crash(name);
    }
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    let bodies = lan.take("0").bodies();
    assert!(bodies.iter().all(|body| matches!(body, Body::Heartbeat { acknowledged: None, .. })));
}

impl Lan {
    /// Waits for `name` to ask for support.
    fn take_proposal(&mut self, name: &str) -> Message {
        for _ in 0..1000 {
            let outputs = self.take(name);
            if outputs.bodies().contains(&Body::Proposal) && self.at(name).role() == Role::Candidate
            {
                return outputs.last_proposal();
            }
            self.pass(ms(10));
        }
        panic!("{name} does not stand");
    }

    /// Waits for `name` to ask for votes, which `a` or `c` supports.
    pub(super) fn take_vote_request(&mut self, name: &str) -> Message {
        let proposal = self.take_proposal(name);
        self.hear(voter("a").answers(&proposal, true));
        self.take(name).last_vote_request()
    }
}

#[test]
fn leader_with_failing_check_is_succeeded_by_the_named_node() {
    let mut lan = three();
    let checked = Params { check: Some(Thresholds { fall: 2, rise: 1 }), ..quorum(&THREE) };
    lan.on("a", |election, now| election.reconfigure(now, checked));
    lan.take("a");
    for _ in 0..2 {
        lan.on("a", |election, now| election.handle_check(now, false));
    }
    assert_eq!(lan.leaders(), ["b"]);
    let outputs = lan.take("a");
    assert_eq!(outputs.hooks(), [(HookEvent::Demoted, Reason::CheckFailed)]);
    assert!(outputs.bodies().contains(&Body::Resignation { successor: Some(id("b")) }));
    lan.crash("b");
    lan.pass(secs(30));
    assert_eq!(lan.leaders(), ["c"], "a votes, and does not stand");
}

#[test]
fn node_that_is_no_voter_is_no_successor() {
    let mut lan = three();
    let mut broken = voter("x");
    broken.priority = Priority(u8::MAX);
    let hello = Body::Heartbeat {
        interval_us: 0,
        leader: Some(id("a")),
        conceded: None,
        acknowledged: None,
    };
    lan.hear(broken.sends(hello));
    lan.on("a", Election::yield_leadership).unwrap();
    let named = lan.take("a").last(|body| matches!(body, Body::Resignation { .. })).body;
    assert_eq!(named, Body::Resignation { successor: Some(id("b")) });
    assert_eq!(lan.leaders(), ["b"]);
}

/// The others would wait for its declaration.
#[test]
fn successor_that_is_no_voter_is_ignored() {
    let mut lan = alone("b");
    let mut leader = voter_in("a", 5);
    lan.hear(leader.declares());
    lan.take("b");
    leader.role = Role::Follower;
    lan.hear(leader.sends(Body::Resignation { successor: Some(id("x")) }));
    // Only its own turn is left, behind the node that resigned.
    lan.pass(ms(125));
    assert!(lan.take("b").bodies().contains(&Body::Proposal));
}

#[test]
fn probe_replies_of_a_node_without_a_vote_keep_no_leader_alive() {
    let mut lan = three();
    lan.pass(secs(1));
    let mut newest = lan.take("a").last_declaration().id();
    lan.crash("a");
    let mut broken = voter("x");
    for _ in 0..200 {
        newest.sequence.0 += 1;
        let claim = broken.sends(Body::ProbeReply { leader: id("a"), newest });
        lan.hear(claim);
        lan.pass(ms(100));
    }
    assert_eq!(lan.leaders(), ["b"]);
}

#[test]
fn successor_that_was_still_starting_sends_declarations_alone() {
    let mut lan = three();
    lan.crash("a");
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["b"]);
    lan.deaf.insert((id("b"), id("a")));
    lan.start("a", quorum(&THREE));
    lan.deaf.clear();
    assert_eq!(lan.at("a").role(), Role::Starting);
    lan.on("b", |election, now| election.yield_to(now, id("a"))).unwrap();
    assert_eq!(lan.leaders(), ["a"]);
    lan.take("a");
    lan.pass(secs(60));
    let bodies = lan.take("a").bodies();
    assert!(!bodies.iter().any(|body| matches!(body, Body::Heartbeat { .. })));
}
