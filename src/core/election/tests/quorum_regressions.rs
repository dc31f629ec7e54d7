//! Faults of quorum mode that the simulator or fuzzing found.

use super::*;
use crate::core::params::QuorumParams;
use crate::core::persist::Enrolment;
use crate::core::quorum::Voters;
use crate::types::DatagramId;

fn quorum(voters: &[&str]) -> Params {
    let voters = Voters::new(voters.iter().map(|name| id(name))).unwrap();
    Params { quorum: Some(QuorumParams { voters, demote_grace: secs(5) }), ..patient() }
}

const DECLARATION: Body = Body::Declaration { interval_us: 1_000_000, hold_us: 8_161_617 };

fn acknowledges(body: &Body) -> bool {
    matches!(body, Body::Heartbeat { acknowledged: Some(_), .. })
}

/// The id of a proposal; none for other datagrams.
fn proposal((_, message): (Time, Message)) -> Option<DatagramId> {
    let Message { incarnation, sequence, .. } = message;
    (message.body == Body::Proposal).then_some(DatagramId { incarnation, sequence })
}

/// An enrolled voter of a, b and c that a scenario plays.
fn voter(name: &str) -> Peer {
    let flags = Flags::CANDIDATE.with(Flags::ELIGIBLE, true).with(Flags::ENROLLED, true);
    let voters = quorum(&["a", "b", "c"]).quorum.map(|quorum| quorum.voters.digest());
    Peer { flags, voters, ..Peer::new(name) }
}

/// A declaration of such a voter.
fn leading(name: &str, term: u64) -> Message {
    Peer { role: Role::Leader, term: Term(term), ..voter(name) }.sends(DECLARATION)
}

/// A network on which only `name` is real, an enrolled voter of a, b and c.
fn lone_voter(name: &str) -> Lan {
    let mut lan = Lan::new();
    let disk = PersistentState { enrolment: Enrolment::Enrolled, ..PersistentState::default() };
    let hooks_end = Some(HookOutcome::Succeeded);
    lan.hosts.insert(id(name), Host { disk, hooks_end, ..Host::default() });
    lan.start(name, quorum(&["a", "b", "c"]));
    lan
}

/// The second voter has only the first one to ask.
#[test]
fn group_of_one_voter_enrols_a_second_one() {
    let mut lan = Lan::new();
    lan.start("a", quorum(&["a"]));
    lan.start("b", quorum(&["a"]));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    for name in ["a", "b"] {
        lan.crash(name);
        lan.start(name, quorum(&["a", "b"]));
    }
    lan.pass(secs(30));
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::Enrolled);
    assert_eq!(lan.leaders().len(), 1);
}

/// After a vote in the last term, a voter has no term in which its next life could vote.
#[test]
fn no_node_leads_after_the_last_term() {
    let mut lan = Lan::new();
    let disk = PersistentState {
        term: Term(u64::MAX - 1),
        enrolment: Enrolment::Enrolled,
        ..PersistentState::default()
    };
    let hooks_end = Some(HookOutcome::Succeeded);
    lan.hosts.insert(id("a"), Host { disk, hooks_end, ..Host::default() });
    lan.start("a", quorum(&["a"]));
    lan.pass(secs(10));
    assert_eq!(lan.leaders(), ["a"]);
    let ballot = lan.host("a").disk.ballot;
    lan.crash("a");
    lan.start("a", quorum(&["a"]));
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), Vec::<String>::new());
    assert_eq!(lan.host("a").disk.ballot, ballot, "a second vote in a term");
}

/// `post-stop` must use the new grace, too.
#[test]
fn crash_plan_is_updated_when_the_demote_grace_changes() {
    let mut lan = Lan::new();
    lan.start("a", quorum(&["a"]));
    lan.pass(secs(10));
    lan.take("a");
    let mut params = quorum(&["a"]);
    params.quorum.as_mut().unwrap().demote_grace = secs(9);
    lan.on("a", |election, now| election.reconfigure(now, params));
    assert_eq!(lan.at("a").crash_plan().unwrap().grace, Some(secs(9)));
    let outputs = lan.take("a").0;
    assert!(
        outputs.iter().any(|(_, output)| *output == Output::UpdateCrashPlan),
        "the old crash plan is still stored"
    );
}

/// Half of the voters, which is no majority, answer the one that lost its disk.
#[test]
fn one_of_two_voters_that_lost_its_disk_is_enrolled_again() {
    let mut lan = Lan::stable(&["a", "b"], &quorum(&["a", "b"]));
    lan.crash("b");
    lan.host("b").disk = PersistentState { incarnation: Incarnation(5), ..Default::default() };
    lan.start("b", quorum(&["a", "b"]));
    lan.pass(secs(30));
    assert_eq!(lan.host("b").disk.enrolment, Enrolment::Enrolled);
    assert_eq!(lan.leaders().len(), 1);
}

/// A vote for another node may have reached the disk before its end was reported. A restart would
/// restore that vote.
#[test]
fn repeated_pledge_is_acknowledged_once_it_is_on_disk_again() {
    let mut lan = lone_voter("b");
    lan.hear(leading("a", 5));
    lan.pass(secs(9));
    lan.take("b");
    lan.set_slow_disk("b", true);
    let mut candidate = Peer { term: Term(6), ..voter("c") };
    lan.hear(candidate.sends(Body::VoteRequest { hold_us: 3_060_607 }));
    lan.hear(candidate.sends(Body::Resignation { successor: None }));
    let mut leader =
        Peer { role: Role::Leader, term: Term(5), sequence: Sequence(9), ..voter("a") };
    lan.hear(leader.sends(DECLARATION));
    lan.pass(secs(1));
    assert!(!lan.take("b").bodies().iter().any(acknowledges));
    lan.end_write("b");
    assert!(lan.take("b").bodies().iter().any(acknowledges));
}

/// Once this voter stands itself, the declaration's request is void, however slow the disk is.
#[test]
fn voter_acknowledges_only_the_holder_of_its_pledge() {
    let mut lan = lone_voter("b");
    lan.pass(secs(2));
    lan.set_slow_disk("b", true);
    let mut leader = Peer { role: Role::Leader, term: Term(5), ..voter("a") };
    lan.hear(leader.sends(DECLARATION));
    let mut supporter = Peer { term: Term(5), ..voter("c") };
    for _ in 0..14 {
        lan.hear(supporter.sends(HEARTBEAT));
        lan.pass(secs(1));
        if let Some(request) = lan.take("b").sent().find_map(proposal) {
            lan.hear(supporter.sends(Body::Vote { candidate: id("b"), request, granted: true }));
        }
    }
    assert_eq!((lan.at("b").role(), lan.at("b").term()), (Role::Candidate, Term(6)));
    let mut duplicate = Peer { incarnation: Incarnation(9), ..voter("b") };
    lan.hear(duplicate.sends(HEARTBEAT));
    lan.hear(leader.sends(DECLARATION));
    assert_eq!(lan.at("b").leader(), Some(id("a")), "it follows without a pledge");
    lan.take("b");
    lan.end_write("b");
    lan.pass(ms(500));
    assert!(!lan.take("b").bodies().iter().any(acknowledges));
}

/// The candidate could not take over: the leader would resign again and again without effect.
#[test]
fn a_better_candidate_claims_nothing_before_its_hooks_have_let_go() {
    let voters = ["a", "b", "c"];
    let params = Params { preempt: true, ..quorum(&voters) };
    let mut lan = Lan::stable(&["b", "c", "a"], &params);
    lan.crash("a");
    lan.pass(secs(20));
    assert_eq!(lan.leaders(), ["b"]);
    lan.take("b");
    lan.set_hooks("a", None);
    lan.start("a", params);
    lan.pass(secs(30));
    assert_eq!(lan.take("b").hooks(), []);
    lan.set_hooks("a", Some(HookOutcome::Succeeded));
    lan.end_hook("a", HookOutcome::Succeeded);
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
}

/// It has voted, and its farewell overtakes the vote.
#[test]
fn duplicate_does_not_vote_after_its_farewell() {
    let (mut holder, mut duplicate) =
        (voter("c"), Peer { incarnation: Incarnation(9), ..voter("c") });
    let mut lan = lone_voter("b");
    lan.hear(holder.sends(HEARTBEAT));
    lan.pass(secs(2));
    lan.hear(holder.sends(HEARTBEAT));
    lan.pass(ms(500));
    let request = lan.take("b").sent().find_map(proposal).unwrap();
    let late = duplicate.sends(Body::Vote { candidate: id("b"), request, granted: true });
    lan.hear(duplicate.sends(Body::Farewell));
    lan.hear(late);
    let asks = |body: &Body| matches!(body, Body::VoteRequest { .. });
    assert!(!lan.take("b").bodies().iter().any(asks), "a duplicate's vote counts");
    lan.hear(holder.sends(Body::Vote { candidate: id("b"), request, granted: true }));
    assert!(!lan.take("b").bodies().iter().any(asks), "the id is duplicated");
}
