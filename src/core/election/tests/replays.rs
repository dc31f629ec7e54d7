//! Attacks by an attacker who has recorded every datagram ever sent.

use super::replay_protection::{echoes, keyed};
use super::*;
use crate::core::params::QuorumParams;
use crate::core::persist::Enrolment;
use crate::core::quorum::Voters;
use crate::core::status::{MemberState, VoterStanding};
use crate::core::timers::Timer;
use crate::types::DatagramId;
use crate::wire::echo::Echo;

const HEARTBEAT: Body =
    Body::Heartbeat { interval_us: 1_000_000, leader: None, conceded: None, acknowledged: None };

fn keyed_quorum() -> Params {
    let voters = Voters::new(["a", "b", "c"].map(id)).unwrap();
    Params { quorum: Some(QuorumParams { voters, demote_grace: secs(5) }), ..keyed() }
}

impl Lan {
    /// Every datagram of `name` since the last call for which `fits` holds.
    fn recorded(&mut self, name: &str, fits: impl Fn(&Body) -> bool) -> Vec<Message> {
        let sent = self.take(name);
        sent.sent().map(|(_, message)| message).filter(|message| fits(&message.body)).collect()
    }

    /// The attacker sends the recorded datagrams again, all at once.
    fn hear_again(&mut self, recorded: Vec<Message>) {
        for message in recorded {
            self.hear(message);
        }
    }

    /// A heartbeat of the present life of `name`, newer than all that it has sent.
    fn last_of(&self, name: &str) -> Message {
        let election = self.at(name);
        let (incarnation, sequence) = (election.life.incarnation, election.sent.newest);
        Peer { incarnation, sequence, ..Peer::new(name) }.sends(HEARTBEAT)
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
                lan.hear(former.sends(HEARTBEAT));
            }
        }
        lan.pass(ms(10));
        assert_eq!(lan.leaders(), ["a"], "lost its lease to {life} former lives");
    }
}

/// One former life of each follower, and many other unproven nodes heard later, more than have been
/// challenged.
#[test]
fn flood_of_unproven_nodes_does_not_delay_the_challenge_of_a_duplicate() {
    let mut lan = Lan::keyed_voters();
    for round in 0..200 {
        if round == 20 {
            lan.hear(Peer::new("b").sends(HEARTBEAT));
            lan.hear(Peer::new("c").sends(HEARTBEAT));
        }
        for number in 0..16 {
            let name = format!("n{:02}", (round * 16 + number) % 64);
            let incarnation = Incarnation(1 + round / 4);
            lan.hear(Peer { incarnation, ..Peer::new(&name) }.sends(HEARTBEAT));
        }
        lan.pass(ms(24));
        assert_eq!(lan.leaders(), ["a"], "deposed in round {round}");
    }
}

/// A restart within the time in which datagrams are recent.
#[test]
fn late_datagrams_of_the_earlier_life_contest_no_vote() {
    let mut lan = Lan::keyed_voters();
    lan.pass(secs(3));
    let recorded = lan.recorded("c", beats);
    lan.crash("c");
    lan.start("c", keyed_quorum());
    lan.pass(ms(2500));
    assert_eq!(lan.sees("a", "c"), Some(MemberState::Alive));
    lan.hear_again(recorded);
    assert_eq!(lan.votes_that_count("a"), 3);
}

/// The same after the new life has left.
#[test]
fn late_datagrams_of_the_earlier_life_restore_no_member() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
    lan.pass(secs(3));
    let recorded = lan.recorded("b", beats);
    lan.crash("b");
    lan.start("b", keyed());
    lan.pass(ms(100));
    lan.on("b", |election, now| election.stop(now));
    lan.crash("b");
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Left));
    lan.hear_again(recorded);
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Left));
}

/// A suspended host, or a daemon that was stopped until its socket overflowed.
#[test]
fn datagrams_received_during_a_suspend_are_ignored() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
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

/// Two hosts whose clocks are set back and whose states are lost, as without a battery-backed
/// clock.
#[test]
fn replayed_later_lives_do_not_keep_nodes_apart() {
    let mut lan = Lan::new();
    let later = |name| Peer { incarnation: Incarnation(9), ..Peer::leading(name, 3) };
    let (mut a, mut b) = (later("a"), later("b"));
    lan.start("a", keyed());
    lan.hear(b.sends(EVERY_SECOND));
    lan.pass(secs(5));
    lan.cut_off("a");
    lan.start("b", keyed());
    lan.hear(a.sends(EVERY_SECOND));
    lan.pass(ms(600));
    lan.reconnect("a");
    lan.pass_with(secs(60), &mut [(&mut a, EVERY_SECOND), (&mut b, EVERY_SECOND)]);
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn new_node_joins_a_keyed_group_in_a_high_term() {
    let mut lan = Lan::new();
    for name in ["a", "b"] {
        let disk = PersistentState { term: Term(1 << 31), ..PersistentState::default() };
        let hooks_end = Some(HookOutcome::Succeeded);
        lan.hosts.insert(id(name), Host { disk, hooks_end, ..Host::default() });
        lan.start(name, keyed());
    }
    lan.pass(secs(20));
    lan.start("c", keyed());
    lan.pass(secs(60));
    assert_eq!(lan.leaders(), ["a"]);
}

#[test]
fn many_former_lives_are_challenged_ever_more_rarely() {
    let mut lan = Lan::stable(&["a"], &keyed());
    lan.take("a");
    for life in 1..400 {
        let mut former = Peer { incarnation: Incarnation(life), ..Peer::new("b") };
        lan.hear(former.sends(HEARTBEAT));
        lan.pass(ms(25));
    }
    let challenges = lan.take("a").bodies().iter().filter(|body| **body == Body::Challenge).count();
    assert!(challenges <= 17, "{challenges} in ten seconds");
}

/// A reload removes the key while a challenge is due.
#[test]
fn removed_key_ends_all_challenges() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
    lan.take("b");
    lan.hear(Peer::new("z").sends(HEARTBEAT));
    lan.hosts.get_mut(&id("a")).unwrap().election = None;
    lan.hear(Peer::new("y").sends(HEARTBEAT));
    lan.on("b", |election, now| election.reconfigure(now, patient()));
    lan.take("b");
    lan.pass(secs(1));
    assert!(!lan.take("b").bodies().contains(&Body::Challenge));
}

/// A reload adds a key: members must prove again that they are alive.
#[test]
fn member_must_prove_itself_after_a_key_is_added() {
    let mut lan = Lan::stable(&["b"], &patient());
    let mut forged = Peer { incarnation: Incarnation(3), ..Peer::new("a") };
    lan.hear(forged.sends(HEARTBEAT));
    lan.on("b", |election, now| election.reconfigure(now, keyed()));
    // A datagram of that life, sealed with the key, and recorded while it still ran.
    let mut recorded =
        Peer { incarnation: Incarnation(3), sequence: Sequence(70), ..Peer::leading("a", 9) };
    lan.hear(recorded.sends(EVERY_SECOND));
    assert!(lan.at("b").is_leader());
}

/// An echo alone does not make an earlier datagram of an unproven node count.
#[test]
fn replayed_datagram_of_an_unproven_node_stays_ignored() {
    let mut lan = Lan::stable(&["b"], &keyed());
    lan.take("b");
    let mut a = Peer::leading("a", 9);
    let first = a.sends(EVERY_SECOND);
    lan.hear(first);
    let challenge = lan.take("b").sent().map(|(_, it)| it).last().unwrap();
    let mut late = first;
    late.echoes = [challenge.echo()].into_iter().collect();
    lan.hear(late);
    assert!(lan.at("b").is_leader());
}

/// A suspended host on which a deadline passes before any datagram arrives.
#[test]
fn resumed_host_believes_no_echo_from_before_the_suspend() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
    let suspended = lan.host("a").election.take();
    lan.take("b");
    lan.pass(ms(2900));
    let recorded = lan.recorded("b", |_| true);
    lan.crash("b");
    lan.pass(secs(60));
    lan.host("a").election = suspended;
    lan.pass(ms(10));
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Gone));
    lan.hear_again(recorded);
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Gone));
}

/// One former life of each follower, followed by new ids without end.
#[test]
fn endless_new_ids_do_not_delay_the_challenge_of_a_duplicate() {
    let mut lan = Lan::keyed_voters();
    for round in 0..200 {
        if round == 20 {
            lan.hear(Peer::new("b").sends(HEARTBEAT));
            lan.hear(Peer::new("c").sends(HEARTBEAT));
        }
        lan.pass(ms(1));
        for number in 0..16 {
            lan.hear(Peer::new(&format!("n{}", round * 16 + number)).sends(HEARTBEAT));
        }
        lan.pass(ms(23));
        assert_eq!(lan.leaders(), ["a"], "deposed in round {round}");
    }
}

/// More later lives than a node remembers are replayed, so fast that none of them is ever silent.
#[test]
fn later_lives_replayed_without_pause_do_not_keep_nodes_apart() {
    let mut lan = Lan::new();
    let later = |name, life| Peer { incarnation: Incarnation(life), ..Peer::leading(name, 3) };
    let lives = |name| (7..40).map(|life| later(name, life)).collect::<Vec<_>>();
    let (mut a, mut b) = (lives("a"), lives("b"));
    lan.start("a", keyed());
    lan.hear(b[0].sends(EVERY_SECOND));
    lan.pass(secs(5));
    lan.cut_off("a");
    lan.start("b", keyed());
    lan.hear(a[0].sends(EVERY_SECOND));
    lan.pass(ms(600));
    lan.reconnect("a");
    for _ in 0..1500 {
        for former in a.iter_mut().chain(&mut b) {
            lan.hear(former.sends(EVERY_SECOND));
        }
        lan.pass(ms(20));
    }
    assert_eq!(lan.leaders(), ["a"]);
}

/// The challenger is unproven: its challenge may itself be a recording.
#[test]
fn unproven_challenge_is_answered_only_if_it_names_a_later_life() {
    for (life, answers) in [(1, 0), (101, 0), (102, 1)] {
        let mut lan = Lan::keyed_voters();
        let challenge = Peer::new("z").sends(Body::Challenge);
        lan.hear(echoing(challenge, "b", Incarnation(life), 1));
        let sent = lan.take("b").bodies();
        assert_eq!(sent.iter().filter(|body| beats(body)).count(), answers, "{life}: {sent:?}");
    }
}

/// `message` with an echo of the datagram `sequence` of that life of `name`.
fn echoing(message: Message, name: &str, incarnation: Incarnation, sequence: u64) -> Message {
    let datagram = DatagramId { incarnation, sequence: Sequence(sequence) };
    Message { echoes: [Echo { node_id: id(name), datagram }].into_iter().collect(), ..message }
}

/// The same with an echo of the newest datagram of `name`.
pub(super) fn echoing_newest(lan: &Lan, message: Message, name: &str) -> Message {
    let election = lan.at(name);
    echoing(message, name, election.life.incarnation, election.sent.newest.0)
}

/// Two lives of `b`, one after the other, that end before `a`'s group believes them.
fn hellos_of_two_lives(lan: &mut Lan) -> [Message; 2] {
    [2, 3].map(|life| {
        let incarnation = Incarnation(life);
        let mut newcomer = Peer { incarnation, role: Role::Starting, ..Peer::new("b") };
        let hello = echoing_newest(lan, newcomer.sends(HEARTBEAT), "a");
        lan.hear(hello);
        hello
    })
}

#[test]
fn alternating_replayed_hellos_of_two_lives_do_not_hurry_the_leader() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
    let hellos = hellos_of_two_lives(&mut lan);
    lan.take("a");
    for _ in 0..100 {
        for hello in hellos {
            lan.hear(hello);
        }
        lan.pass(ms(10));
    }
    let declared = lan.take("a").declarations();
    assert!(declared.len() <= 2, "{declared:?}");
}

/// A host with a taken id that received an objection and stopped.
#[test]
fn replayed_hellos_contest_no_vote() {
    let mut lan = Lan::keyed_voters();
    let mut duplicate =
        Peer { incarnation: Incarnation(900), role: Role::Starting, ..Peer::new("c") };
    let hello = echoing_newest(&lan, duplicate.sends(HEARTBEAT), "a");
    lan.hear(hello);
    assert_eq!(lan.votes_that_count("a"), 2);
    for _ in 0..30 {
        lan.pass(ms(100));
        lan.hear(hello);
    }
    lan.pass(ms(100));
    assert_eq!([lan.votes_that_count("a"), lan.votes_that_count("c")], [3, 3]);
}

/// The same two lives, when no daemon with their id is left.
#[test]
fn hello_of_an_earlier_life_restores_no_member() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
    lan.crash("b");
    lan.pass(secs(10));
    let hellos = hellos_of_two_lives(&mut lan);
    lan.pass(secs(2));
    for hello in hellos {
        lan.hear(hello);
        assert_ne!(lan.sees("a", "b"), Some(MemberState::Alive));
    }
}

/// The host hears a node that the leader does not hear, and that is then silent for long, as in a
/// large group.
#[test]
fn datagram_after_a_rare_heartbeat_is_not_recent_for_longer() {
    let mut lan = Lan::stable(&["a"], &keyed());
    let seldom = Body::Heartbeat {
        interval_us: 60_000_000,
        leader: None,
        conceded: None,
        acknowledged: None,
    };
    let word = echoing_newest(&lan, Peer::new("c").sends(seldom), "a");
    lan.hear(word);
    let late = echoing(Peer::new("b").sends(HEARTBEAT), "c", Incarnation(1), 1);
    lan.pass(secs(7));
    assert_eq!(lan.sees("a", "c"), Some(MemberState::Alive));
    lan.hear(late);
    assert_eq!(lan.sees("a", "b"), None);
}

/// An echo of a datagram that a member sent while it was not believed proves nothing.
#[test]
fn echo_of_a_datagram_from_before_the_proof_proves_nothing() {
    for (life, pause, is_suspended) in [(1, 60, false), (2, 1, false), (1, 20, true)] {
        let mut lan = Lan::stable(&["a"], &keyed());
        let mut c = Peer::new("c");
        let first = echoing_newest(&lan, c.sends(HEARTBEAT), "a");
        lan.hear(first);
        assert_eq!(lan.sees("a", "c"), Some(MemberState::Alive));
        let suspended = is_suspended.then(|| lan.host("a").election.take());
        lan.pass(secs(pause));
        if let Some(election) = suspended {
            lan.host("a").election = election;
            // It challenges the sender before its next sweep.
            let doubted = c.sends(HEARTBEAT);
            lan.hear(doubted);
        }
        let mut c = Peer { incarnation: Incarnation(life), sequence: Sequence(100), ..c };
        let back = echoing_newest(&lan, c.sends(HEARTBEAT), "a");
        lan.hear(back);
        assert_eq!(lan.sees("a", "c"), Some(MemberState::Alive));
        let missed = echoing(Peer::new("b").sends(HEARTBEAT), "c", Incarnation(life), 50);
        lan.hear(missed);
        assert_eq!(lan.sees("a", "b"), None, "{life} {pause}");
        let new = echoing(Peer::new("d").sends(HEARTBEAT), "c", Incarnation(life), 101);
        lan.hear(new);
        assert_eq!(lan.sees("a", "d"), Some(MemberState::Alive));
    }
}

#[test]
fn echo_of_this_nodes_former_life_proves_nothing() {
    let mut lan = Lan::stable(&["a"], &keyed());
    let (former, newest) = (Incarnation(7), lan.at("a").sent.newest.0);
    let message = echoing(Peer::new("b").sends(HEARTBEAT), "a", former, newest);
    lan.hear(message);
    assert_eq!(lan.sees("a", "b"), None);
}

/// The earlier life may know datagrams up to the newest one at the time when its successor was
/// heard.
#[test]
fn echo_that_an_earlier_life_may_know_proves_nothing() {
    let mut lan = Lan::stable(&["a"], &keyed());
    let mut later = Peer { incarnation: Incarnation(2), ..Peer::new("b") };
    let joins = echoing_newest(&lan, later.sends(HEARTBEAT), "a");
    let heard_by_both = lan.at("a").sent.newest.0;
    lan.hear(joins);
    let leaves = later.sends(Body::Farewell);
    lan.hear(leaves);
    let mut former = Peer::new("b");
    let last_words = echoing(former.sends(HEARTBEAT), "a", Incarnation(1), heard_by_both);
    lan.hear(last_words);
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Left));
    lan.pass(secs(1));
    let answer = echoing_newest(&lan, former.sends(HEARTBEAT), "a");
    lan.hear(answer);
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Alive));
}

#[test]
fn old_datagrams_of_a_failed_member_cause_no_challenge() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
    lan.pass(secs(5));
    let recorded = lan.recorded("b", |_| true);
    lan.crash("b");
    lan.pass(secs(60));
    lan.take("a");
    lan.hear_again(recorded);
    lan.pass(secs(1));
    assert!(!lan.take("a").bodies().contains(&Body::Challenge));
}

#[test]
fn doubt_about_a_duplicate_ends_with_its_answer_time_and_then_pauses() {
    let mut lan = Lan::keyed_voters();
    let doubted = |lan: &Lan| !lan.at("b").own_vote_counts(lan.now);
    let began = lan.now;
    lan.hear(Peer::new("b").sends(HEARTBEAT));
    assert!(doubted(&lan));
    lan.pass(ms(24));
    assert!(doubted(&lan));
    lan.pass(ms(1));
    for life in 2..100 {
        assert!(!doubted(&lan), "{:?} after the first", lan.now.since(began));
        lan.pass(ms(100));
        lan.hear(Peer { incarnation: Incarnation(life), ..Peer::new("b") }.sends(HEARTBEAT));
    }
    lan.pass(secs(3));
    lan.hear(Peer { incarnation: Incarnation(100), ..Peer::new("b") }.sends(HEARTBEAT));
    assert!(doubted(&lan));
}

/// A daemon that may not send yet challenges no node, and must not wait for ever for an answer.
#[test]
fn doubt_ends_even_if_the_node_cannot_challenge() {
    let mut lan = Lan::new();
    let hooks_end = Some(HookOutcome::Succeeded);
    lan.hosts.insert(id("a"), Host { hooks_end, disk_is_slow: true, ..Host::default() });
    lan.start("a", keyed_quorum());
    lan.hear(Peer { incarnation: Incarnation(0), ..Peer::new("a") }.sends(HEARTBEAT));
    assert!(lan.at("a").duplicates.is_in_doubt(lan.now));
    lan.pass(secs(12));
    assert!(!lan.at("a").duplicates.is_in_doubt(lan.now));
    assert_eq!(lan.take("a").bodies(), []);
}

/// A broken member challenges without end.
#[test]
fn endless_challenges_are_answered_at_most_once_a_gap() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
    let mut broken = Peer::new("z");
    let hello = echoing_newest(&lan, broken.sends(HEARTBEAT), "a");
    lan.hear(hello);
    let asks_b = |lan: &mut Lan, broken: &mut Peer| {
        let challenge = echoing_newest(lan, broken.sends(Body::Challenge), "b");
        lan.hear(challenge);
    };
    lan.pass(secs(2));
    asks_b(&mut lan, &mut broken);
    lan.take("b");
    for _ in 0..200 {
        asks_b(&mut lan, &mut broken);
        lan.pass(ms(5));
    }
    let answers = lan.take("b").bodies().len();
    assert!((30..=42).contains(&answers), "{answers} in a second");
}

/// Otherwise the newcomer would not believe its duplicate, and in a group of one voter it would
/// lead.
#[test]
fn objection_echoes_the_newcomer_and_not_an_earlier_one() {
    let mut lan = Lan::new();
    lan.start("m", Params { candidate: false, ..keyed() });
    lan.pass(secs(30));
    let [mut earlier, mut newcomer] = [10, 20].map(|life| {
        let incarnation = Incarnation(life);
        Peer { incarnation, role: Role::Starting, ..Peer::new("m") }
    });
    lan.hear(earlier.sends(HEARTBEAT));
    lan.pass(secs(2));
    lan.take("m");
    let hello = echoing_newest(&lan, newcomer.sends(HEARTBEAT), "m");
    lan.hear(hello);
    let told = lan.take("m");
    let (_, objection) = told.sent().next().unwrap();
    assert_eq!(objection.body, Body::Objection { newcomer: newcomer.incarnation });
    assert!(echoes(&objection, &hello), "{objection:?}");
}

/// Between the pauses it had the time for one datagram, but not for a sweep.
#[test]
fn a_second_pause_right_after_the_first_is_noticed_too() {
    let mut lan = Lan::stable(&["a", "b"], &keyed());
    lan.now += secs(60);
    let doubted = lan.last_of("b");
    lan.on("a", |election, now| election.handle_datagram(now, address(id("b")), &doubted));
    let next = Message { sequence: Sequence(doubted.sequence.0 + 1), ..doubted };
    let next = echoing_newest(&lan, next, "a");
    assert!(lan.at("a").is_proven(lan.now, &next));
    assert!(!lan.at("a").is_proven(lan.now + secs(60), &next));
}

/// The caller may ask for a proof before the first input after a pause.
#[test]
fn after_a_pause_no_datagram_is_proven_before_all_members_are_doubted() {
    let lan = Lan::stable(&["a", "b"], &keyed());
    let next = echoing_newest(&lan, lan.last_of("b"), "a");
    assert!(lan.at("a").is_proven(lan.now, &next));
    assert!(!lan.at("a").is_proven(lan.now + secs(60), &next));
}

/// Keyed nodes in their second life, all of which know each other.
fn restarted_group(names: &[String]) -> Lan {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut lan = Lan::stable(&names, &keyed());
    for name in &names {
        lan.crash(name);
    }
    for name in &names {
        lan.start(name, keyed());
    }
    lan.pass(secs(60));
    for name in &names {
        lan.take(name);
    }
    lan
}

/// How many datagrams of `names` fit while `former` send 300 datagrams a second for `duration`.
fn sent_while_replayed(
    lan: &mut Lan,
    names: &[String],
    former: &mut [Peer],
    duration: Duration,
    fits: impl Fn(&Body) -> bool,
) -> usize {
    let end = lan.now + duration;
    for number in 0.. {
        if lan.now >= end {
            break;
        }
        let at = number % former.len();
        let message = former[at].sends(HEARTBEAT);
        lan.hear(message);
        lan.pass(Duration::from_micros(3333));
    }
    names.iter().map(|name| lan.recorded(name, &fits).len()).sum()
}

fn group_of(size: usize) -> Vec<String> {
    (0..size).map(|number| format!("n{number:02}")).collect()
}

/// Before, each node challenged on its own, and anew after each datagram of the running life.
#[test]
fn former_life_is_challenged_once_an_interval_by_the_whole_group() {
    let names = group_of(24);
    let mut lan = restarted_group(&names);
    let cases = [
        ("n00", Role::Follower, 30),
        ("n07", Role::Follower, 30),
        ("n00", Role::Starting, 30),
        // Both the leader and the node itself challenge it at once.
        ("n07", Role::Starting, 50),
    ];
    for (replayed, role, most) in cases {
        let mut former = [Peer { role, ..Peer::new(replayed) }];
        let challenges = sent_while_replayed(&mut lan, &names, &mut former, secs(20), |body| {
            *body == Body::Challenge
        });
        let fits = (10..=most).contains(&challenges);
        assert!(fits, "{challenges} challenges for {replayed} ({role:?}) in 20 s");
    }
}

#[test]
fn former_lives_of_a_whole_group_cost_one_challenge_an_interval_for_each() {
    let names = group_of(24);
    let mut lan = restarted_group(&names);
    let quiet = sent_while_replayed(&mut lan, &names, &mut [Peer::new("gone")], secs(10), |_| true);
    let mut former: Vec<_> = names.iter().map(|name| Peer::new(name)).collect();
    let sent = sent_while_replayed(&mut lan, &names, &mut former, secs(10), |_| true);
    assert!(sent < quiet + names.len() * 15, "{sent} datagrams in 10 s instead of {quiet}");
}
