//! The second implementation of the protocol among real daemons. It was written from the
//! documentation alone, so it shows what the documentation leaves out.

use std::process::Command;

use serde_json::{Value, json};

use crate::doctor;
use crate::harness::keys::{KEY, give_key};
use crate::harness::peer::{Peer, has_python};
use crate::harness::{BEST_SUCCEEDS, Host, Lan, PATIENT, quorum_scenario, scenario, wait_until};
use crate::quorum::voters;

const WIRE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peer/wire.py");
const PROTOCOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/protocol.md");

/// Settings of a peer that is the best of its group.
fn best() -> Value {
    json!({"priority": 200, "election": 1.0, "threshold": 3.0})
}

fn with_key(mut settings: Value) -> Value {
    settings["key"] = KEY.repeat(64).into();
    settings
}

/// Waits until these hosts follow the peer on `leader`, which leads.
#[track_caller]
fn wait_for_peer(peer: &Peer<'_>, leader: &Host, followers: &[&Host]) {
    wait_until("the peer leads and the others follow it", || {
        peer.leads() && followers.iter().all(|host| host.follows(leader))
    });
}

/// Waits until these hosts show the node on `other` as alive.
#[track_caller]
fn wait_until_alive(other: &Host, hosts: &[&Host]) {
    wait_until("the peer is alive", || {
        hosts.iter().all(|host| host.member(other)["state"] == "alive")
    });
}

/// Panics where a host has rejected a datagram for its form.
#[track_caller]
fn nothing_was_malformed(hosts: &[&Host]) {
    for host in hosts {
        let rejected = host.status()["counters"]["rejected"].take();
        for reason in ["malformed", "version", "auth", "foreign_group", "absurd_term"] {
            assert_eq!(rejected[reason], 0, "{}: {rejected}", host.name);
        }
    }
}

#[test]
fn peer_codes_every_block_of_bytes_in_the_document() {
    if !has_python() {
        return;
    }
    let mut command = Command::new("python3");
    let output = command.args(["-B", WIRE, PROTOCOL]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn peer_follows_and_is_alive() {
    if has_python() {
        scenario(|lan, [h1, h2, h3]| follows(lan, [h1, h2, h3], &json!({}), ""));
    }
}

#[test]
fn peer_with_the_key_follows_and_is_alive() {
    if has_python() {
        scenario(|lan, [h1, h2, h3]| {
            let lines = give_key(h1, KEY);
            follows(lan, [h1, h2, h3], &with_key(json!({})), &lines);
        });
    }
}

/// The peer joins two daemons, and stays their follower.
fn follows(lan: &Lan, [h1, h2, h3]: [&Host; 3], settings: &Value, lines: &str) {
    lan.start_led_by_first(&[h1, h2], lines);
    let peer = Peer::start(h3, settings);
    wait_until("the peer follows", || peer.follows(h1));
    wait_until_alive(h3, &[h1, h2]);
    wait_until("the peer answers a ping", || {
        let hears = "ok hearers all 2 members that are heard also hear this node";
        doctor::lines(&doctor::doctor(h1, &[], &[])).iter().any(|line| line == hears)
    });
    lan.assert_calm_for(200);
    wait_until_alive(h3, &[h1, h2]);
    assert!(peer.follows(h1), "{}", peer.status());
    peer.stop();
    wait_until("it has left", || [h1, h2].iter().all(|h| h.member(h3)["state"] == "left"));
    nothing_was_malformed(&[h1, h2]);
}

#[test]
fn peer_that_is_the_best_leads_until_it_is_cut_off() {
    if has_python() {
        scenario(|lan, [h1, h2, h3]| leads(lan, [h1, h2, h3], &best(), ""));
    }
}

#[test]
fn peer_with_the_key_that_is_the_best_leads_until_it_is_cut_off() {
    if has_python() {
        scenario(|lan, [h1, h2, h3]| {
            let lines = give_key(h1, KEY);
            leads(lan, [h1, h2, h3], &with_key(best()), &lines);
        });
    }
}

/// The peer succeeds a leader that vanishes. While the peer is cut off, a daemon leads; when it is
/// back, it is the better leader.
fn leads(lan: &Lan, [h1, h2, h3]: [&Host; 3], settings: &Value, lines: &str) {
    let lines = format!("{PATIENT}{BEST_SUCCEEDS}{lines}");
    lan.start_led_by_first(&[h1, h2], &lines);
    let peer = Peer::start(h3, settings);
    wait_until("the peer follows", || peer.follows(h1));
    wait_until_alive(h3, &[h1, h2]);
    h1.crash();
    wait_for_peer(&peer, h3, &[h2]);
    h1.start(&lines);
    wait_for_peer(&peer, h3, &[h1, h2]);
    lan.assert_calm_for(100);
    nothing_was_malformed(&[h1, h2]);

    lan.cut(h3);
    let leader = lan.sole_leader_of(&[h1, h2]);
    let term = leader.status()["term"].as_u64();
    lan.heal();
    wait_for_peer(&peer, h3, &[h1, h2]);
    wait_until("its term is above both", || peer.status()["term"].as_u64() > term);
    peer.stop();
    lan.sole_leader_of(&[h1, h2]);
}

#[test]
fn peer_takes_over_and_hands_over_when_asked() {
    if !has_python() {
        return;
    }
    scenario(|lan, [h1, h2, h3]| {
        h1.start(PATIENT);
        lan.sole_leader();
        let peer = Peer::start(h3, &best());
        wait_until_alive(h3, &[h1]);
        assert_eq!(h1.stop(), Some(0));
        wait_until("the successor leads", || peer.leads());
        h1.start(PATIENT);
        wait_for_peer(&peer, h3, &[h1]);
        h2.start(&format!("{PATIENT}priority = 250\npreempt = true\n"));
        lan.wait_for_leader(h2);
        wait_until("the peer follows", || peer.follows(h2));
    });
}

/// A peer of a later release appends to all that it sends, and sends kinds that are unknown.
#[test]
fn peer_of_a_later_release_follows_and_is_alive() {
    if has_python() {
        scenario(|lan, [h1, h2, h3]| {
            follows(lan, [h1, h2, h3], &json!({"release": 2}), "");
        });
    }
}

/// Settings of a peer that votes together with these hosts, itself among them.
fn voter(hosts: &[&Host]) -> Value {
    let names: Vec<_> = hosts.iter().map(|host| host.name.as_str()).collect();
    json!({"candidate": false, "voters": names})
}

#[test]
fn peer_votes_for_the_daemon_that_is_left() {
    if has_python() {
        quorum_scenario(|lan, hosts: [_; 3]| votes(lan, hosts, &voter(&hosts), ""));
    }
}

#[test]
fn peer_with_the_key_votes_for_the_daemon_that_is_left() {
    if has_python() {
        quorum_scenario(|lan, hosts: [_; 3]| {
            let lines = give_key(hosts[0], KEY);
            votes(lan, hosts, &with_key(voter(&hosts)), &lines);
        });
    }
}

/// A new group of two daemons and the peer. Each daemon is cut off in turn, and the other one leads
/// with the peer's vote; then the peer restarts, and loses its state.
fn votes(lan: &Lan, [h1, h2, h3]: [&Host; 3], settings: &Value, lines: &str) {
    let lines = format!("{}{lines}", voters(&[h1, h2, h3]));
    let peer = Peer::start(h3, settings);
    [h1, h2].iter().for_each(|host| host.start(&lines));
    let mut leader = lan.sole_leader_of(&[h1, h2]);
    for _ in 0..2 {
        let other = if leader.number == h1.number { h2 } else { h1 };
        wait_until_three_vote(&[h1, h2], &peer);
        wait_until("the peer follows", || peer.follows(leader));
        lan.cut(leader);
        wait_until("the other one leads", || other.leads() && peer.follows(other));
        wait_until("the one that is cut off has stepped down", || !leader.leads());
        lan.heal();
        leader = other;
        assert_eq!(lan.sole_leader_of(&[h1, h2]).name, leader.name);
    }
    nothing_was_malformed(&[h1, h2]);

    peer.stop();
    let peer = Peer::start(h3, settings);
    wait_until_three_vote(&[h1, h2], &peer);
    drop(peer);
    Peer::lose_state(h3);
    let peer = Peer::start(h3, settings);
    wait_until_three_vote(&[h1, h2], &peer);
    assert_eq!(lan.sole_leader_of(&[h1, h2]).name, leader.name);
}

#[track_caller]
fn wait_until_three_vote(hosts: &[&Host], peer: &Peer<'_>) {
    wait_until("all three votes count", || {
        peer.is_enrolled() && hosts.iter().all(|host| host.counted_votes() == 3)
    });
}
