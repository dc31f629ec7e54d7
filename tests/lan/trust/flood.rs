//! A flood of everything that is not to count.

use fastrand::Rng;

use super::rejected;
use crate::harness::flood::{Flood, Mix};
use crate::harness::keys::{KEY, give_key};
use crate::harness::tap::{Heard, Recorder, Tap};
use crate::harness::usage::Usage;
use crate::harness::{Host, Lan, PATIENT, scenario, wait_until};

/// Frames a second: many for a group that needs thirty, few for two cores that do other things too.
const RATE: u32 = 20_000;

/// Datagrams that each daemon has dropped in the end.
const DROPPED: u64 = 50_000;

/// Datagrams of the leader's that others have heard meanwhile.
const DECLARED: usize = 20;

/// The reasons for which a daemon with a key drops what is in the flood.
const REASONS: [&str; 6] = ["malformed", "auth", "replayed", "foreign_group", "version", "hops"];

/// Most lines of log: what is told of each reason, however many addresses are forged.
const LINES_MAX: usize = 80;

#[test]
fn a_flood_moves_nothing_and_leaves_nothing() {
    scenario(|lan, [h1, h2, h3, attacker]| {
        lan.use_bridges();
        let group = [h1, h2, h3];
        let captured = two_lives(lan, &group, attacker);
        let random = Rng::with_seed(lan.seed);
        let mix =
            Mix { random, mac: Tap::deaf_on(attacker).mac(), members: &group, captured: &captured };
        let watches = group.map(Host::watch);
        let (hooks, before) = (lan.journal().text(), group.map(Kept::by));
        let leader = Tap::on(attacker).hearing_only(Tap::deaf_on(h1).mac());
        let leader = Recorder::start(leader);
        let flood = Flood::start(attacker, mix.frames(), RATE, 1);
        wait_until("every daemon has dropped its share, and the leader is heard", || {
            group.iter().all(|host| all_rejected(host) > DROPPED)
                && leader.datagrams().len() > DECLARED
        });
        println!("{} frames were sent", flood.sent());
        assert_eq!(lan.journal().text(), hooks, "a hook ran");
        for (host, before) in group.iter().zip(before) {
            before.check(host);
            for reason in REASONS {
                assert!(rejected(host, reason) > 0, "{reason}: {}", host.status());
            }
        }
        drop(flood);
        for (host, watch) in group.iter().zip(&watches) {
            assert!(watch.transitions().is_empty(), "{}: {:?}", host.name, watch.transitions());
            assert_eq!(host.status()["members"].as_array().map(Vec::len), Some(group.len()));
        }
        // The group is none the worse for it.
        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.sole_leader();
        assert!(!h1.leads());
    });
}

/// Starts the group twice, with a key; returns what was heard of both lives.
fn two_lives(lan: &Lan, group: &[&Host; 3], listener: &Host) -> Vec<Heard> {
    let recorder = Recorder::start(Tap::on(listener));
    let lines = format!("{PATIENT}{}", give_key(group[0], KEY));
    lan.start_led_by_first(group, &lines);
    group.iter().for_each(|host| host.restart());
    lan.sole_leader();
    let first = group[0];
    if !first.leads() {
        assert_eq!(lan.sole_leader().command(&["yield"]), Some(0));
        lan.wait_for_leader(first);
    }
    recorder.datagrams()
}

/// Datagrams that a host has dropped, for whatever reason.
fn all_rejected(host: &Host) -> u64 {
    let status = host.status();
    let reasons = status["counters"]["rejected"].as_object().unwrap();
    reasons.values().filter_map(serde_json::Value::as_u64).sum()
}

/// What a daemon kept before the flood.
struct Kept {
    usage: Usage,
    lines: usize,
}

impl Kept {
    fn by(host: &Host) -> Kept {
        Kept { usage: Usage::of(host), lines: host.log().lines().count() }
    }

    fn check(&self, host: &Host) {
        let now = Kept::by(host);
        self.usage.check_growth(now.usage);
        assert!(now.lines <= self.lines + LINES_MAX, "{}", host.log());
    }
}
