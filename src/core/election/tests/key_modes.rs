//! Nodes that accept open datagrams, next to nodes that require a key, and after they did.

use super::replay_protection::{echoing, keyed};
use super::*;
use crate::core::status::MemberState;
use crate::types::{DatagramId, KeyMode};
use crate::wire::echo::Echo;

/// A sequence number that no node reaches.
const FAR: Sequence = Sequence(1 << 60);

fn mode(key_mode: Option<KeyMode>) -> Params {
    Params { key_mode, ..patient() }
}

fn heartbeat(interval: Duration) -> Body {
    let interval_us = interval.as_micros() as u32;
    Body::Heartbeat { interval_us, leader: None, conceded: None, acknowledged: None }
}

impl Lan {
    /// An open datagram arrives at one host.
    fn hear_open(&mut self, name: &str, message: &Message) {
        self.on(name, |election, now| {
            election.handle_open_datagram(now, address(message.sender), message);
        });
    }

    /// What an attacker sends in the name of `name`, in its present life.
    fn forger(&self, name: &str) -> Peer {
        let incarnation = self.at(name).life.incarnation;
        Peer { incarnation, sequence: FAR, ..Peer::new(name) }
    }

    fn set_key_mode(&mut self, names: &[&str], key_mode: KeyMode) {
        for name in names {
            let params = mode(Some(key_mode));
            self.on(name, |election, now| election.reconfigure(now, params));
        }
    }
}

/// Such an echo would prove for ever that its sender is alive, as long as the echoed life runs.
#[test]
fn open_datagram_is_never_echoed() {
    let mut lan = Lan::stable(&["a", "b", "c"], &mode(Some(KeyMode::Prefer)));
    let a = lan.at("a");
    let datagram = DatagramId { incarnation: a.life.incarnation, sequence: a.sent.newest };
    let echoes = [Echo { node_id: id("a"), datagram }].into_iter().collect();
    let challenge = Message { echoes, ..lan.forger("c").sends(Body::Challenge) };
    lan.hear_open("a", &challenge);
    let mut leader = Peer { role: Role::Leader, term: Term(1), ..lan.forger("a") };
    lan.hear_open("b", &leader.sends(EVERY_SECOND));
    lan.pass(secs(5));
    // Without a leader, nodes echo what they hear.
    lan.crash("a");
    lan.pass(secs(2));
    let mut stranger = Peer { sequence: FAR, ..Peer::new("z") };
    for _ in 0..20 {
        lan.hear_open("b", &lan.forger("c").sends(heartbeat(secs(1))));
        lan.hear_open("b", &stranger.sends(heartbeat(secs(1))));
        lan.pass(ms(100));
    }
    for name in ["a", "b", "c"] {
        let sent: Vec<_> = lan.take(name).sent().map(|(_, message)| message).collect();
        let echoes = sent.iter().any(|message| !message.echoes.is_empty());
        assert!(echoes || name != "c", "it hears sealed datagrams only");
        for message in sent {
            let forged = message.echoes.iter().any(|echo| echo.datagram.sequence > FAR);
            assert!(!forged, "{message:?}");
        }
    }
}

/// Its number is noted all the same. The leader comes to that number some day, and an echo of it
/// would be a proof then.
#[test]
fn open_datagram_with_an_absurd_term_is_not_echoed() {
    let mut lan = Lan::stable(&["a", "b"], &mode(Some(KeyMode::Prefer)));
    let mut forger = Peer { role: Role::Leader, term: Term(u64::MAX), ..lan.forger("a") };
    lan.hear_open("b", &forger.sends(EVERY_SECOND));
    assert_eq!(lan.at("b").ignored().absurd_term, 1);
    lan.pass(secs(5));
    for (_, message) in lan.take("b").sent() {
        let forged = message.echoes.iter().any(|echo| echo.datagram.sequence > FAR);
        assert!(!forged, "{message:?}");
    }
}

/// Nodes that seal report the datagrams of a leader that does not, and the other way round.
#[test]
fn follower_that_is_deaf_to_the_leader_follows_on_while_keys_come_and_go() {
    let (none, accept, prefer) = (None, Some(KeyMode::Accept), Some(KeyMode::Prefer));
    for modes in [[none, accept, prefer], [prefer, accept, none]] {
        for order in [["a", "b", "c"], ["c", "b", "a"]] {
            let mut lan = Lan::stable(&["a", "b", "c"], &mode(modes[0]));
            lan.deaf.insert((id("a"), id("c")));
            for (key_mode, name) in modes.iter().flat_map(|mode| order.map(|name| (*mode, name))) {
                lan.on(name, |election, now| election.reconfigure(now, mode(key_mode)));
                for _ in 0..100 {
                    lan.pass(ms(100));
                    let seen = (lan.leaders(), lan.at("c").leader());
                    let wanted = (vec!["a".to_string()], Some(id("a")));
                    assert_eq!(seen, wanted, "{key_mode:?} on {name}, {order:?}");
                }
            }
        }
    }
}

/// An attacker without the key forges a number, or a later life with a long interval, of a node
/// that seals, before all nodes require a key.
#[test]
fn forged_number_does_not_shut_a_node_out_once_keys_are_required() {
    let modes = [None, Some(KeyMode::Accept), Some(KeyMode::Prefer)];
    for (key_mode, later) in modes.into_iter().flat_map(|mode| [(mode, 0), (mode, 1)]) {
        let mut lan = Lan::stable(&["a", "b"], &mode(key_mode));
        assert_eq!(lan.leaders(), ["a"]);
        let mut forger = lan.forger("a");
        forger.incarnation.0 += later;
        lan.hear_open("b", &forger.sends(heartbeat(secs(600))));
        lan.set_key_mode(&["a", "b"], KeyMode::Require);
        // A forged life would have failed after six.
        lan.pass(secs(4));
        assert_eq!(lan.leaders(), ["a"], "{key_mode:?} {later}");
        assert_eq!(lan.sees("b", "a"), Some(MemberState::Alive), "{key_mode:?} {later}");
    }
}

/// What was forged of a node that has died would hold its followers for a minute, and its place
/// among the members for most of an hour.
#[test]
fn forged_interval_does_not_count_once_keys_are_required() {
    for key_mode in [None, Some(KeyMode::Accept), Some(KeyMode::Prefer)] {
        let mut lan = Lan::stable(&["a", "b", "c"], &mode(key_mode));
        let mut forger = Peer { role: Role::Leader, ..lan.forger("a") };
        lan.crash("a");
        let interval_us = u32::MAX;
        lan.hear_open("c", &forger.sends(Body::Declaration { interval_us, hold_us: 0 }));
        lan.pass(secs(5));
        assert_eq!(lan.leaders(), ["b"]);
        assert_eq!(lan.at("c").leader(), Some(id("a")), "{key_mode:?}: it is deceived");
        lan.set_key_mode(&["b", "c"], KeyMode::Require);
        lan.pass(secs(20));
        assert_eq!(lan.at("c").leader(), Some(id("b")), "{key_mode:?}");
        assert_eq!(lan.sees("c", "a"), Some(MemberState::Gone), "{key_mode:?}");
    }
}

/// A node that does not hear the leader knows it by the replies of another one. For that one, which
/// does not require a key yet, an attacker forges a number, and it reports that.
#[test]
fn forged_number_that_others_report_hides_no_leader_once_keys_are_required() {
    let steps = [
        |lan: &mut Lan| lan.set_key_mode(&["a", "c"], KeyMode::Require),
        |lan: &mut Lan| {
            lan.deaf.insert((id("a"), id("c")));
        },
    ];
    for order in [[0, 1], [1, 0]] {
        let mut lan = Lan::stable(&["a", "b", "c"], &mode(Some(KeyMode::Prefer)));
        for step in order {
            steps[step](&mut lan);
            lan.pass(secs(5));
        }
        let mut forger = Peer { role: Role::Leader, term: Term(1), ..lan.forger("a") };
        let mut reported = false;
        for round in 0..150 {
            if round < 50 {
                lan.hear_open("b", &forger.sends(EVERY_SECOND));
            } else if round == 50 {
                lan.set_key_mode(&["b"], KeyMode::Require);
            }
            lan.pass(ms(100));
            let seen = (lan.leaders(), lan.at("c").leader());
            assert_eq!(seen, (vec!["a".to_string()], Some(id("a"))), "{order:?}, {round}");
            reported |= lan.take("b").bodies().iter().any(
                |body| matches!(body, Body::ProbeReply { newest, .. } if newest.sequence > FAR),
            );
        }
        assert!(reported);
    }
}

/// An attacker tells of a leadership before it begins, so that it would not be outbid later.
#[test]
fn forged_leadership_counts_as_none_once_keys_are_required() {
    for key_mode in [None, Some(KeyMode::Accept), Some(KeyMode::Prefer)] {
        let mut lan = Lan::stable(&["a"], &mode(key_mode));
        let mut forger = Peer { sequence: FAR, ..Peer::leading("b", 2) };
        lan.hear_open("a", &forger.sends(EVERY_SECOND));
        let deceived = lan.at("a").term();
        lan.pass(secs(20));
        lan.set_key_mode(&["a"], KeyMode::Require);
        let (_, heard) = lan.take("a").sent().last().unwrap();
        lan.hear(echoing(Peer::leading("b", 2).sends(EVERY_SECOND), &heard));
        assert_eq!(lan.sees("a", "b"), Some(MemberState::Alive));
        lan.pass(secs(1));
        assert_eq!(lan.at("a").term(), deceived.next(), "{key_mode:?}");
    }
}

/// A starting life has numbers of its own. An attacker announces it before it begins.
#[test]
fn forged_starting_life_does_not_shut_a_node_out_once_keys_are_required() {
    for key_mode in [None, Some(KeyMode::Accept), Some(KeyMode::Prefer)] {
        let mut lan = Lan::stable(&["a", "b"], &mode(key_mode));
        let mut forger = Peer { role: Role::Starting, ..lan.forger("b") };
        forger.incarnation.0 += 1;
        lan.hear_open("a", &forger.sends(heartbeat(secs(1))));
        lan.set_key_mode(&["a", "b"], KeyMode::Require);
        lan.crash("b");
        lan.start("b", keyed());
        lan.pass(secs(20));
        assert_eq!(lan.sees("a", "b"), Some(MemberState::Alive), "{key_mode:?}");
    }
}

/// The numbers that a node has learned from sealed datagrams need no protection: each node must
/// prove itself again.
#[test]
fn recording_changes_nothing_after_keys_are_required() {
    let mut lan = Lan::stable(&["a", "b"], &mode(Some(KeyMode::Prefer)));
    lan.pass(secs(10));
    let recorded: Vec<_> = lan.take("b").sent().map(|(_, message)| message).collect();
    lan.set_key_mode(&["a", "b"], KeyMode::Require);
    lan.crash("b");
    lan.pass(secs(60));
    for message in recorded {
        lan.hear(message);
        assert_eq!(lan.sees("a", "b"), Some(MemberState::Gone));
    }
    lan.start("b", keyed());
    lan.pass(secs(20));
    assert_eq!(lan.sees("a", "b"), Some(MemberState::Alive));
}
