//! Replayed datagrams are ignored, and nodes that are alive are soon believed.

use super::replays::echoing_newest;
use super::*;
use crate::core::params::QuorumParams;
use crate::core::quorum::Voters;
use crate::core::status::MemberState;
use crate::types::KeyMode;

pub(super) fn keyed() -> Params {
    Params { key_mode: Some(KeyMode::Require), ..patient() }
}

const HEARTBEAT: Body =
    Body::Heartbeat { interval_us: 2_000_000, leader: None, conceded: None, acknowledged: None };

impl Lan {
    /// A network of keyed nodes, of which the first leads and the others follow.
    fn keyed(names: &[&str]) -> Self {
        let mut lan = Lan::stable(names, &keyed());
        assert_eq!(lan.leaders(), [names[0]]);
        lan.pass(ms(500));
        for name in names {
            lan.take(name);
        }
        lan
    }

    pub(super) fn sees(&self, name: &str, other: &str) -> Option<MemberState> {
        let members = self.at(name).status(self.now).members;
        members.iter().find(|member| member.node_id == id(other)).map(|member| member.state)
    }

    /// The last datagram of a host for which `fits` holds.
    fn last_said(&self, name: &str, fits: impl Fn(&Body) -> bool) -> Message {
        let sent: Vec<_> = self.hosts[&id(name)].outputs.sent().collect();
        sent.iter().rev().find(|(_, message)| fits(&message.body)).unwrap().1
    }
}

impl Outputs {
    fn challenges(&self) -> Vec<Message> {
        let sent = self.sent().map(|(_, message)| message);
        sent.filter(|message| message.body == Body::Challenge).collect()
    }
}

/// `message` with an echo of `heard`.
pub(super) fn echoing(mut message: Message, heard: &Message) -> Message {
    message.echoes = [heard.echo()].into_iter().collect();
    message
}

/// Whether `message` echoes `heard`.
pub(super) fn echoes(message: &Message, heard: &Message) -> bool {
    message.echoes.iter().any(|echo| *echo == heard.echo())
}

fn is_heartbeat(body: &Body) -> bool {
    matches!(body, Body::Heartbeat { .. })
}

#[test]
fn declaration_of_an_unproven_leader_is_ignored_until_it_answers() {
    let mut lan = Lan::keyed(&["b"]);
    let mut better = Peer::leading("a", 50);
    let declaration = better.sends(EVERY_SECOND);
    lan.hear(declaration);
    assert!(lan.at("b").is_leader());
    assert_eq!(lan.at("b").term(), Term(1));
    assert_eq!(lan.sees("b", "a"), None);
    assert_eq!(lan.at("b").ignored().unproven, 1);
    let challenges = lan.take("b").challenges();
    assert_eq!(challenges.len(), 1);
    assert!(challenges[0].echoes.iter().eq([&declaration.echo()]));

    let answer = better.sends(EVERY_SECOND);
    lan.hear(echoing(answer, &challenges[0]));
    assert_eq!(lan.at("b").leader(), Some(id("a")));
}

#[test]
fn without_a_key_all_nodes_are_believed_and_nothing_is_echoed() {
    let mut lan = Lan::led_by("b");
    lan.hear(Peer::leading("a", 50).sends(EVERY_SECOND));
    assert_eq!(lan.at("b").leader(), Some(id("a")));
    assert!(lan.take("b").sent().all(|(_, message)| message.echoes.is_empty()));
}

#[test]
fn a_newcomer_follows_after_two_round_trips() {
    let mut lan = Lan::keyed(&["a"]);
    lan.start("b", keyed());
    assert_eq!(lan.at("b").leader(), Some(id("a")), "no time has passed");
    let (leader, newcomer) = (lan.take("a"), lan.take("b"));
    let declared = |body: &Body| matches!(body, Body::Declaration { .. });
    assert!(matches!(leader.bodies()[..], [Body::Challenge, ref last] if declared(last)));
    assert!(newcomer.bodies().len() == 3 && newcomer.bodies().iter().all(is_heartbeat));
}

#[test]
fn nodes_that_start_together_know_each_other_by_the_first_sample() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let mut lan = Lan::new();
    for name in names {
        lan.start(name, keyed());
        lan.pass(ms(1));
    }
    lan.pass(keyed().membership_sample_interval - ms(11));
    for name in names {
        assert_eq!(lan.at(name).status(lan.now).members.len(), names.len(), "{name}");
    }
    lan.pass(keyed().membership_sample_interval + keyed().answer_time() + ms(20));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn followers_believe_each_other_by_the_echoes_of_their_leader() {
    let mut lan = Lan::keyed(&["a", "b"]);
    lan.start("c", keyed());
    lan.pass(secs(5));
    assert_eq!(lan.sees("c", "b"), Some(MemberState::Alive));
    assert_eq!(lan.sees("b", "c"), Some(MemberState::Alive));
    assert!(lan.take("b").challenges().is_empty() && lan.take("c").challenges().is_empty());
}

#[test]
fn two_merging_groups_need_few_challenges() {
    let mut lan = Lan::new();
    let (left, right) = (["a", "b", "c", "d"], ["e", "f", "g", "h"]);
    for from in left {
        for to in right {
            lan.deaf.insert((id(from), id(to)));
            lan.deaf.insert((id(to), id(from)));
        }
    }
    for name in left.iter().chain(&right) {
        lan.start(name, keyed());
    }
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["a", "e"]);
    for name in left.iter().chain(&right) {
        lan.take(name);
    }
    lan.deaf.clear();
    lan.pass(secs(5));
    assert_eq!(lan.leaders(), ["a"]);
    let mut challenges = 0;
    for name in left.iter().chain(&right) {
        assert_eq!(lan.at(name).leader(), Some(id("a")));
        assert_eq!(lan.at(name).status(lan.now).members.len(), 8, "{name}");
        challenges += lan.take(name).challenges().len();
    }
    assert!(challenges <= 4, "{challenges}");
}

#[test]
fn missed_datagrams_of_a_failed_member_are_ignored() {
    let mut lan = Lan::keyed(&["a", "b"]);
    lan.deaf.insert((id("b"), id("a")));
    lan.pass(secs(3));
    let missed = lan.last_said("b", is_heartbeat);
    lan.crash("b");
    lan.pass(secs(60));
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Gone));
    lan.take("a");
    lan.deaf.clear();
    lan.hear(missed);
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Gone), "it echoes {:?}", missed.echoes);
    assert_eq!(lan.take("a").challenges().len(), 1);
}

#[test]
fn member_that_was_cut_off_is_believed_again_after_its_answer() {
    let mut lan = Lan::keyed(&["a", "b"]);
    lan.cut_off("b");
    lan.pass(secs(60));
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Gone));
    lan.reconnect("b");
    lan.pass(secs(3));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Alive));
}

#[test]
fn unproven_challenge_gets_a_challenge_and_no_answer() {
    let mut lan = Lan::keyed(&["b"]);
    let declaration = lan.last_declaration_of("b");
    let mut peer = Peer::new("c");
    let earlier = peer.sends(Body::Challenge);
    // The replayed challenge echoes a datagram of this node that was recent then.
    lan.pass(secs(60));
    lan.take("b");
    lan.hear(echoing(earlier, &declaration));
    assert_eq!(lan.take("b").bodies(), [Body::Challenge]);
    assert_eq!(lan.sees("b", "c"), None);
}

impl Lan {
    fn last_declaration_of(&mut self, name: &str) -> Message {
        self.pass(secs(1));
        self.last_said(name, |body| matches!(body, Body::Declaration { .. }))
    }
}

#[test]
fn replayed_hellos_are_challenged_ever_more_rarely() {
    let mut lan = Lan::keyed(&["a"]);
    let mut gone = Peer { role: Role::Starting, ..Peer::new("b") };
    for _ in 0..2000 {
        let hello = gone.sends(HEARTBEAT);
        lan.hear(hello);
        lan.pass(ms(5));
    }
    let said = lan.take("a");
    let declared = said.declarations();
    assert!(declared.windows(2).all(|pair| pair[1].since(pair[0]) == secs(1)), "{declared:?}");
    let challenges = said.challenges().len();
    assert!((5..=17).contains(&challenges), "{challenges} in ten seconds");
    let silent = Event::NoProof { node_id: id("b") };
    assert_eq!(said.events().filter(|event| *event == silent).count(), 1);
}

#[test]
fn many_unproven_nodes_are_challenged_one_datagram_at_a_time() {
    let mut lan = Lan::keyed(&["a"]);
    for number in 0..100 {
        lan.hear(Peer::new(&format!("n{number:02}")).sends(HEARTBEAT));
    }
    assert_eq!(lan.take("a").challenges().len(), 1);
    lan.pass(secs(1));
    let challenges = lan.take("a").challenges();
    let asked: BTreeSet<_> =
        challenges.iter().flat_map(|it| it.echoes.iter().map(|echo| echo.node_id)).collect();
    assert_eq!((challenges.len(), asked.len()), (25, 99));
}

#[test]
fn an_older_life_of_a_member_neither_displaces_nor_contests_it() {
    let mut lan = Lan::keyed(&["a", "b"]);
    lan.crash("b");
    lan.start("b", keyed());
    lan.pass(secs(30));
    let mut former = Peer { role: Role::Leader, term: Term(9), ..Peer::new("b") };
    assert!(former.incarnation < lan.at("b").life.incarnation);
    lan.hear(former.sends(EVERY_SECOND));
    lan.hear(former.sends(Body::Resignation { successor: None }));
    assert_eq!(lan.leaders(), ["a"]);
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Alive));
    assert_eq!(lan.at("a").term(), Term(1));
}

#[test]
fn replayed_former_lives_of_a_node_do_not_stop_it() {
    let mut lan = Lan::keyed(&["a", "b"]);
    lan.crash("b");
    lan.start("b", keyed());
    lan.pass(secs(30));
    lan.take("b");
    let mut former = Peer::new("b");
    lan.hear(former.sends(HEARTBEAT));
    lan.hear(former.sends(Body::Objection { newcomer: Incarnation(2) }));
    let said = lan.take("b");
    assert_eq!(said.stopped(), None);
    assert!(said.bodies().iter().all(|body| !matches!(body, Body::Objection { .. })));
    assert_eq!(said.challenges().len(), 1);
}

#[test]
fn duplicate_that_answers_receives_an_objection_that_it_believes() {
    let mut lan = Lan::keyed(&["a"]);
    let mut newcomer = Peer { role: Role::Starting, incarnation: Incarnation(9), ..Peer::new("a") };
    lan.hear(newcomer.sends(HEARTBEAT));
    let challenge = lan.take("a").challenges()[0];
    let answer = echoing(newcomer.sends(HEARTBEAT), &challenge);
    lan.hear(answer);
    let objection = lan.last_said("a", |body| matches!(body, Body::Objection { .. }));
    assert_eq!(objection.body, Body::Objection { newcomer: Incarnation(9) });
    assert!(echoes(&objection, &answer));
}

#[test]
fn objection_proves_that_the_holder_of_the_id_outlived_the_newcomer() {
    let mut lan = Lan::keyed(&["m"]);
    let mut usurper = Peer { incarnation: Incarnation(9), ..Peer::new("a") };
    let mut holder = Peer::leading("a", 4);
    lan.pass(secs(2));
    let follows = echoing_newest(&lan, usurper.sends(HEARTBEAT), "m");
    lan.hear(follows);
    lan.hear(echoing(holder.sends(Body::Objection { newcomer: Incarnation(9) }), &follows));
    lan.hear(holder.sends(EVERY_SECOND));
    assert_eq!(lan.at("m").leader(), Some(id("a")));
}

/// Its first hello and its challenge were lost. The second hello has a proof, so nobody challenges
/// it.
#[test]
fn leader_proves_itself_to_a_node_that_starts_with_a_proof() {
    for is_known in [false, true] {
        let mut lan = Lan::keyed(&["m"]);
        lan.pass(secs(2));
        let mut starting = Peer { role: Role::Starting, ..Peer::new("a") };
        if is_known {
            lan.hear(echoing_newest(&lan, Peer::new("a").sends(HEARTBEAT), "m"));
            starting.incarnation = Incarnation(2);
            lan.pass(ms(500));
            lan.take("m");
        }
        let hello = echoing_newest(&lan, starting.sends(HEARTBEAT), "m");
        lan.hear(hello);
        lan.pass(ms(100));
        assert!(lan.take("m").declared().any(|(_, it)| echoes(&it, &hello)), "{is_known}");
    }
}

/// The second daemon has ended its start-up, and its next datagram overtook the objection.
#[test]
fn objection_to_a_hello_is_believed_after_a_later_datagram() {
    let mut lan = Lan::keyed(&["m"]);
    lan.pass(secs(2));
    let mut holder = Peer::new("a");
    let mut second = Peer { incarnation: Incarnation(9), role: Role::Starting, ..Peer::new("a") };
    lan.hear(echoing_newest(&lan, holder.sends(HEARTBEAT), "m"));
    let hello = echoing_newest(&lan, second.sends(HEARTBEAT), "m");
    lan.hear(hello);
    lan.hear(echoing_newest(&lan, second.sends(HEARTBEAT), "m"));
    second.role = Role::Follower;
    lan.hear(echoing_newest(&lan, second.sends(HEARTBEAT), "m"));
    let known = |lan: &Lan| lan.at("m").members.newest(&id("a")).unwrap().incarnation;
    assert_eq!(known(&lan), second.incarnation);
    lan.hear(echoing(holder.sends(Body::Objection { newcomer: Incarnation(9) }), &hello));
    assert_eq!(known(&lan), holder.incarnation);
}

/// Its hello has a proof, so it is believed to start, and it still has to believe this node, which
/// may lead a moment later.
#[test]
fn member_answers_the_challenge_of_its_restarted_leader() {
    let mut lan = Lan::keyed(&["m"]);
    lan.pass(secs(2));
    let mut leader = Peer { priority: Priority(200), ..Peer::leading("z", 4) };
    lan.hear(echoing_newest(&lan, leader.sends(EVERY_SECOND), "m"));
    assert_eq!(lan.at("m").leader(), Some(id("z")));
    lan.pass(ms(300));
    lan.on("m", Election::ping);
    lan.take("m");
    let mut restarted = Peer { incarnation: Incarnation(2), role: Role::Starting, ..leader };
    let challenge = echoing_newest(&lan, restarted.sends(Body::Challenge), "m");
    lan.hear(challenge);
    lan.pass(ms(500));
    assert!(lan.take("m").sent().any(|(_, it)| echoes(&it, &challenge)));
}

/// A second daemon's clock was ahead, and it was refused. Then the holder of the id restarts.
#[test]
fn hello_of_a_holder_that_refused_a_later_life_is_answered() {
    let mut lan = Lan::keyed(&["m"]);
    lan.pass(secs(2));
    let mut holder = Peer::new("a");
    lan.hear(echoing_newest(&lan, holder.sends(HEARTBEAT), "m"));
    let mut second = Peer { incarnation: Incarnation(9), role: Role::Starting, ..Peer::new("a") };
    lan.hear(echoing_newest(&lan, second.sends(HEARTBEAT), "m"));
    lan.hear(holder.sends(Body::Objection { newcomer: Incarnation(9) }));
    lan.pass(ms(500));
    holder.incarnation = Incarnation(2);
    holder.role = Role::Starting;
    let hello = echoing_newest(&lan, holder.sends(HEARTBEAT), "m");
    lan.hear(hello);
    lan.pass(ms(100));
    assert!(lan.take("m").declared().any(|(_, it)| echoes(&it, &hello)));
}

/// A leader `m` with a key, which knows a later life of `a` than [`Peer::new`] has.
fn beside_a_later_life() -> Lan {
    let mut lan = Lan::keyed(&["m"]);
    let mut known = Peer { incarnation: Incarnation(9), ..Peer::new("a") };
    lan.hear(echoing_newest(&lan, known.sends(HEARTBEAT), "m"));
    lan.pass(secs(2));
    lan.take("m");
    lan
}

/// A host has lost its state, and its clock was set back, so its daemon has a life before the known
/// one. Nothing of it counts yet, but it has to believe the leader, or it would lead too.
#[test]
fn challenge_and_hello_of_a_life_before_the_known_one_are_answered() {
    let mut lan = beside_a_later_life();
    let mut restarted = Peer { role: Role::Starting, ..Peer::new("a") };
    let hello = echoing_newest(&lan, restarted.sends(HEARTBEAT), "m");
    lan.hear(hello);
    lan.pass(ms(100));
    assert!(lan.take("m").declared().any(|(_, it)| echoes(&it, &hello)));
    restarted.role = Role::Leader;
    let challenge = echoing_newest(&lan, restarted.sends(Body::Challenge), "m");
    lan.hear(challenge);
    lan.pass(ms(100));
    assert!(lan.take("m").declared().any(|(_, it)| echoes(&it, &challenge)));
    assert_eq!(lan.sees("m", "a"), Some(MemberState::Alive), "the known life");
}

/// The restarted daemon needs two round trips to believe the leader, and its start-up may last only
/// one interval.
#[test]
fn leader_challenges_a_life_before_the_known_one_at_once() {
    let mut lan = beside_a_later_life();
    let hello = Peer { role: Role::Starting, ..Peer::new("a") }.sends(HEARTBEAT);
    lan.hear(hello);
    assert!(lan.take("m").challenges().iter().any(|challenge| echoes(challenge, &hello)));
}

/// The process of a follower was stalled, so it doubts its leader. It probes, and it would give the
/// leader up before it challenges it.
#[test]
fn answer_to_a_probe_proves_that_the_leader_is_alive() {
    let params =
        Params { leader_alive_threshold: ms(1250), leader_election_duration: secs(1), ..keyed() };
    let mut lan = Lan::stable(&["b"], &params);
    lan.start("a", params);
    lan.pass(secs(20));
    let stalled = lan.host("a").election.take();
    lan.pass(secs(6));
    lan.take("b");
    lan.host("a").election = stalled;
    lan.on("a", Election::handle_timeout);
    lan.pass(secs(10));
    assert_eq!((lan.leaders(), lan.take("b").hooks()), (vec!["b".to_owned()], vec![]));
}

#[test]
fn a_candidate_answers_a_challenge_with_its_proposal() {
    let mut lan = Lan::new();
    let params = Params { min_candidates: 2, ..keyed() };
    lan.start("b", params);
    let mut worse = Peer::new("c");
    lan.hear(worse.sends(HEARTBEAT));
    lan.pass(secs(1));
    let challenge = lan.take("b").challenges()[0];
    lan.hear(echoing(worse.sends(HEARTBEAT), &challenge));
    while lan.at("b").role() != Role::Candidate {
        lan.pass(ms(10));
        lan.hear(worse.sends(HEARTBEAT));
    }
    let proposal = lan.last_said("b", |body| *body == Body::Proposal);
    lan.take("b");
    let question = echoing(worse.sends(Body::Challenge), &proposal);
    lan.hear(question);
    let answer = lan.last_said("b", |body| *body == Body::Proposal);
    assert!(echoes(&answer, &question));
}

#[test]
fn resignation_in_a_crash_plan_counts_without_an_echo() {
    let mut lan = Lan::keyed(&["a", "b"]);
    lan.pass(secs(2));
    let plan = lan.at("a").crash_plan().unwrap();
    lan.crash("a");
    let resignation = plan.resignation.unwrap();
    assert!(resignation.echoes.is_empty());
    lan.hear(resignation);
    assert_eq!(lan.leaders(), ["b"]);
}

/// Each step, on one host after the other, as an operator reloads them.
#[test]
fn keys_are_introduced_and_removed_without_a_transition() {
    let steps = [
        Some(KeyMode::Accept),
        Some(KeyMode::Prefer),
        Some(KeyMode::Require),
        Some(KeyMode::Prefer),
        Some(KeyMode::Accept),
        None,
    ];
    let voters = Voters::new(["a", "b", "c"].map(id)).unwrap();
    for quorum in [None, Some(QuorumParams { voters, demote_grace: secs(5) })] {
        let params = Params { quorum, ..patient() };
        let mut lan = Lan::stable(&["a", "b", "c"], &params);
        lan.pass(secs(30));
        let term = lan.at("a").term();
        for key_mode in steps {
            for name in ["a", "b", "c"] {
                let params = Params { key_mode, ..params.clone() };
                lan.on(name, |election, now| election.reconfigure(now, params));
                for _ in 0..40 {
                    lan.pass(ms(100));
                    assert_eq!(lan.leaders(), ["a"], "{key_mode:?} on {name}");
                }
                let members = ["a", "b", "c"].map(|other| lan.sees(name, other));
                assert!(!members.contains(&Some(MemberState::Gone)), "{key_mode:?}: {members:?}");
            }
        }
        assert_eq!(lan.at("c").term(), term);
    }
}
