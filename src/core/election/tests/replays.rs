//! What somebody may try who has recorded everything that was ever said.

use super::freshness::keyed;
use super::*;
use crate::core::params::QuorumParams;
use crate::core::persist::Enrolment;
use crate::core::quorum::Voters;
use crate::core::status::{MemberState, VoterStanding};
use crate::core::timers::Timer;
use crate::wire::echo::Echo;

const HEARTBEAT: Body =
    Body::Heartbeat { interval_us: 1_000_000, leader: None, conceded: None, acknowledged: None };

fn keyed_quorum() -> Params {
    let voters = Voters::new(["a", "b", "c"].map(id)).unwrap();
    Params { quorum: Some(QuorumParams { voters, demote_grace: secs(5) }), ..keyed() }
}

impl Lan {
    /// Every datagram of `name` that `fits`, since it was last asked.
    fn recorded(&mut self, name: &str, fits: impl Fn(&Body) -> bool) -> Vec<Message> {
        let sent = self.take(name);
        sent.sent().map(|(_, message)| message).filter(|message| fits(&message.body)).collect()
    }

    fn votes_that_count(&self, name: &str) -> usize {
        let voters = self.at(name).status(self.now).quorum.unwrap().voters;
        voters.iter().filter(|voter| voter.standing == VoterStanding::Counts).count()
    }

    /// Three keyed voters whose lives have the number 101.
    fn keyed_voters() -> Self {
        let mut lan = Lan::new();
        for name in ["a", "b", "c"] {
            let disk = PersistentState {
                enrolment: Enrolment::Enrolled,
                incarnation: Incarnation(100),
                ..PersistentState::default()
            };
            let hooks_end = Some(HookOutcome::Succeeded);
            lan.hosts.insert(id(name), Host { disk, hooks_end, ..Host::default() });
        }
        for name in ["a", "b", "c"] {
            lan.start(name, keyed_quorum());
        }
        lan.pass(secs(20));
        assert_eq!(lan.leaders(), ["a"]);
        for name in ["a", "b", "c"] {
            lan.take(name);
        }
        lan
    }
}

fn declares(body: &Body) -> bool {
    matches!(body, Body::Declaration { .. })
}

fn beats(body: &Body) -> bool {
    matches!(body, Body::Heartbeat { .. })
}

/// One datagram of a former life of each follower, just before each declaration.
#[test]
fn former_lives_of_the_voters_cost_a_leader_no_lease() {
    let mut lan = Lan::keyed_voters();
    let mut life = 0;
    for _ in 0..500 {
        let declares_at = lan.at("a").timers.get(Timer::Declare).unwrap_or(lan.now + secs(9));
        if declares_at <= lan.now + ms(10) && life < 100 {
            life += 1;
            for name in ["b", "c"] {
                let mut former = Peer { incarnation: Incarnation(life), ..Peer::new(name) };
                lan.hear(former.says(HEARTBEAT));
            }
        }
        lan.pass(ms(10));
        assert_eq!(lan.leaders(), ["a"], "deposed by {life} former lives");
    }
}

/// A single former life of each follower, and so many other strangers, all heard later, that nobody has
/// asked all of them yet.
#[test]
fn a_flood_of_strangers_does_not_keep_the_question_to_a_namesake_back() {
    let mut lan = Lan::keyed_voters();
    for round in 0..200 {
        if round == 20 {
            lan.hear(Peer::new("b").says(HEARTBEAT));
            lan.hear(Peer::new("c").says(HEARTBEAT));
        }
        for number in 0..16 {
            let name = format!("n{:02}", (round * 16 + number) % 64);
            let incarnation = Incarnation(1 + round / 4);
            lan.hear(Peer { incarnation, ..Peer::new(&name) }.says(HEARTBEAT));
        }
        lan.pass(ms(24));
        assert_eq!(lan.leaders(), ["a"], "deposed in round {round}");
    }
}

/// A restart within the time in which datagrams are recent.
#[test]
fn the_last_words_of_the_life_before_contest_no_vote() {
    let mut lan = Lan::keyed_voters();
    lan.pass(secs(3));
    let recorded = lan.recorded("c", beats);
    lan.crash("c");
    lan.start("c", keyed_quorum());
    lan.pass(ms(2500));
    assert_eq!(lan.sees("a", "c"), Some(MemberState::Alive));
    for message in recorded {
        lan.hear(message);
    }
    // Its own restart has contested it until now.
    lan.pass(ms(1000));
    assert_eq!(lan.votes_that_count("a"), 3);
}

/// The same, where the new life has left again.
#[test]
fn the_last_words_of_the_life_before_bring_nobody_back() {
    let mut lan = Lan::settled(&["a", "b"], &keyed());
    lan.pass(secs(3));
    let recorded = lan.recorded("b", beats);
    lan.crash("b");
    lan.start("b", keyed());
    lan.pass(ms(100));
    lan.tell("b", |election, now| election.stop(now));
    lan.crash("b");
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Left));
    for message in recorded {
        lan.hear(message);
    }
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Left));
}

/// A host that was suspended, or whose daemon was stopped for so long that its socket overflowed.
#[test]
fn what_a_dead_leader_said_while_this_host_was_suspended_counts_no_more() {
    let mut lan = Lan::settled(&["a", "b"], &keyed());
    let suspended = lan.host("b").election.take();
    lan.take("a");
    lan.pass(secs(60));
    let recorded = lan.recorded("a", declares);
    lan.crash("a");
    lan.pass(secs(3600));
    lan.host("b").election = suspended;
    for message in recorded {
        lan.hear(message);
        lan.pass(secs(1));
    }
    assert_eq!(lan.leaders(), ["b"], "an hour after the death of its leader");
}

/// Two hosts whose clocks are set back and whose states are lost, as where no clock runs without power.
#[test]
fn later_lives_that_are_replayed_keep_no_two_nodes_apart() {
    let mut lan = Lan::new();
    let later = |name| Peer { incarnation: Incarnation(9), ..Peer::leading(name, 3) };
    let (mut a, mut b) = (later("a"), later("b"));
    lan.start("a", keyed());
    lan.hear(b.says(EVERY_SECOND));
    lan.pass(secs(5));
    lan.cut_off("a");
    lan.start("b", keyed());
    lan.hear(a.says(EVERY_SECOND));
    lan.pass(ms(600));
    lan.reconnect("a");
    lan.pass_with(secs(60), &mut [(&mut a, EVERY_SECOND), (&mut b, EVERY_SECOND)]);
    assert_eq!(lan.leaders(), ["a"]);
}

/// Who was behind catches up in a keyed group too.
#[test]
fn who_is_far_behind_catches_up_with_keys() {
    let mut lan = Lan::new();
    for name in ["a", "b"] {
        let disk = PersistentState { term: Term(1 << 40), ..PersistentState::default() };
        let hooks_end = Some(HookOutcome::Succeeded);
        lan.hosts.insert(id(name), Host { disk, hooks_end, ..Host::default() });
        lan.start(name, keyed());
    }
    lan.pass(secs(20));
    lan.start("c", keyed());
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["a"]);
}

/// Many former lives of one node.
#[test]
fn a_row_of_former_lives_is_asked_less_and_less() {
    let mut lan = Lan::settled(&["a"], &keyed());
    lan.take("a");
    for life in 1..400 {
        let mut former = Peer { incarnation: Incarnation(life), ..Peer::new("b") };
        lan.hear(former.says(HEARTBEAT));
        lan.pass(ms(25));
    }
    let challenges = lan.take("a").bodies().iter().filter(|body| **body == Body::Challenge).count();
    assert!(challenges <= 17, "{challenges} in ten seconds");
}

/// A key is given up by a reload while somebody is to be challenged.
#[test]
fn without_keys_nobody_is_challenged_any_more() {
    let mut lan = Lan::settled(&["a", "b"], &keyed());
    lan.take("b");
    lan.hear(Peer::new("z").says(HEARTBEAT));
    lan.hosts.get_mut(&id("a")).unwrap().election = None;
    lan.hear(Peer::new("y").says(HEARTBEAT));
    lan.tell("b", |election, now| election.reconfigure(now, patient()));
    lan.take("b");
    lan.pass(secs(1));
    assert!(!lan.take("b").bodies().contains(&Body::Challenge));
}

/// A key is taken up by a reload: who was there before must show it.
#[test]
fn who_was_believed_without_a_key_is_no_member_with_one() {
    let mut lan = Lan::settled(&["b"], &patient());
    let mut forged = Peer { incarnation: Incarnation(3), ..Peer::new("a") };
    lan.hear(forged.says(HEARTBEAT));
    lan.tell("b", |election, now| election.reconfigure(now, keyed()));
    // Of that life, sealed with the key, and recorded when it still ran.
    let mut recorded =
        Peer { incarnation: Incarnation(3), sequence: Sequence(70), ..Peer::leading("a", 9) };
    lan.hear(recorded.says(EVERY_SECOND));
    assert!(lan.at("b").is_leader());
}

/// Not an effect, a guard: an echo alone does not make count what was heard of a stranger before.
#[test]
fn what_was_heard_of_a_stranger_counts_no_more_when_it_is_sent_again() {
    let mut lan = Lan::settled(&["b"], &keyed());
    lan.take("b");
    let mut a = Peer::leading("a", 9);
    let first = a.says(EVERY_SECOND);
    lan.hear(first);
    let challenge = lan.take("b").sent().map(|(_, it)| it).last().unwrap();
    let mut late = first;
    late.echoes = [Echo::of(&challenge)].into_iter().collect();
    lan.hear(late);
    assert!(lan.at("b").is_leader());
}
