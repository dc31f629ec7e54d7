//! Everything that a group with a key has sent is sent once more, by somebody who has no key.

use std::thread;
use std::time::Duration;

use crate::harness::host::Watch;
use crate::harness::inside::{Needs, test_name};
use crate::harness::keys::{KEY, give_key};
use crate::harness::lan::named_scenario;
use crate::harness::patience::{endurance, now, pass};
use crate::harness::tap::{Heard, Recorder, Tap};
use crate::harness::{Host, Lan, wait_until};

/// How long is recorded, such as `10m`; long enough for each fault once where it is not set.
///
/// ```text
/// LANELECT_REPLAY=10m cargo test --test lan -- trust::replay --nocapture
/// ```
const REPLAY: &str = "LANELECT_REPLAY";

/// How much faster than it was recorded a capture is played: a datagram is no truer for being late.
const SPEED: u32 = 3;

/// As short as it may be, so that there are many elections in a recording.
const THRESHOLD: &str = "leader_alive_threshold = \"1s\"\n";

/// Between two faults of a recording.
const FAULT_LASTS: Duration = Duration::from_secs(1);

#[test]
fn a_replayed_capture_moves_nothing() {
    replay(|lan, group, player| {
        group.iter().for_each(|host| host.restart());
        lan.sole_leader();
        nothing_moves(lan, &group, "after a restart of everyone", || player.play());
        change_leader(lan);
        nothing_moves(lan, &group, "under another leader", || player.play());
    });
}

#[test]
fn a_capture_that_is_replayed_into_an_election_moves_nothing() {
    replay(|lan, group, player| {
        thread::scope(|scope| {
            let playing = scope.spawn(|| player.play());
            crash_leader(lan, &group);
            let rest = || playing.join().unwrap();
            nothing_moves(lan, &group, "after an election", rest);
        });
        thread::scope(|scope| {
            let playing = scope.spawn(|| player.play());
            group.iter().for_each(|host| host.crash());
            group.iter().for_each(|host| host.restart());
            lan.sole_leader();
            let rest = || playing.join().unwrap();
            nothing_moves(lan, &group, "after everyone has started", rest);
        });
    });
}

#[test]
fn the_dead_do_not_depose_the_last_of_a_group() {
    replay(|lan, [h1, h2, h3], player| {
        assert_eq!(h1.stop(), Some(0));
        h2.crash();
        lan.wait_for_leader(h3);
        nothing_moves(lan, &[h3], "to the one that has known them", || player.play());
        h3.restart();
        lan.wait_for_leader(h3);
        nothing_moves(lan, &[h3], "to one that has not", || player.play());
    });
}

/// Records a group with a key, and runs `body` with who plays it again.
fn replay(body: impl FnOnce(&Lan, [&Host; 3], &Player)) {
    let needs = Needs { limit: Needs::default().limit + 3 * recording(), ..Needs::default() };
    let test = test_name(&body);
    named_scenario(needs, test, |lan, [h1, h2, h3, attacker]| {
        let group = [h1, h2, h3];
        let lines = format!("{THRESHOLD}{}", give_key(h1, KEY));
        lan.start_led_by_first(&group, &lines);
        let captured = record(lan, &group, attacker);
        body(lan, group, &Player { captured, tap: Tap::deaf_on(attacker) });
    });
}

/// Runs `replay`, and panics where anybody's role, leader or term change meanwhile.
fn nothing_moves(lan: &Lan, group: &[&Host], when: &str, replay: impl FnOnce()) {
    let terms = || group.iter().map(|host| host.status()["term"].take()).collect::<Vec<_>>();
    let watches: Vec<Watch> = group.iter().map(|host| host.watch()).collect();
    let (hooks, before) = (lan.journal().text(), terms());
    replay();
    assert_eq!(lan.journal().text(), hooks, "{when}: a hook ran");
    assert_eq!(terms(), before, "{when}");
    for (host, watch) in group.iter().zip(watches) {
        assert!(watch.transitions().is_empty(), "{when}, {}: {:?}", host.name, watch.transitions());
    }
}

/// What a group says in which leaders yield, die, end and are cut off.
fn record(lan: &Lan, group: &[&Host; 3], listener: &Host) -> Vec<Heard> {
    let recorder = Recorder::start(Tap::on(listener));
    let started = now();
    let faults: [fn(&Lan); 3] = [change_leader, stop_leader, cut_leader_off];
    for fault in faults.iter().cycle() {
        fault(lan);
        crash_leader(lan, group);
        pass(FAULT_LASTS);
        if started.elapsed() >= recording() {
            break;
        }
    }
    let captured = recorder.datagrams();
    let elections = lan.journal().text().matches("start elected").count();
    println!(
        "recorded {} datagrams with {elections} elections in {:.0?}",
        captured.len(),
        started.elapsed()
    );
    captured
}

fn recording() -> Duration {
    endurance(REPLAY)
}

fn change_leader(lan: &Lan) {
    let leader = lan.sole_leader();
    assert_eq!(leader.command(&["yield"]), Some(0));
    wait_until("another leads", || !leader.leads());
    lan.sole_leader();
}

fn stop_leader(lan: &Lan) {
    lan.sole_leader().restart();
    lan.sole_leader();
}

fn cut_leader_off(lan: &Lan) {
    let leader = lan.sole_leader();
    lan.cut(leader);
    pass(2 * FAULT_LASTS);
    lan.heal();
    lan.sole_leader();
}

fn crash_leader(lan: &Lan, group: &[&Host; 3]) {
    let leader = lan.sole_leader();
    leader.crash();
    let rest: Vec<&Host> = group.iter().copied().filter(|h| h.name != leader.name).collect();
    lan.sole_leader_of(&rest);
    leader.restart();
    lan.sole_leader();
}

/// Plays a capture, from the addresses that it was sent from.
struct Player {
    captured: Vec<Heard>,
    tap: Tap,
}

impl Player {
    fn play(&self) {
        let started = now();
        for heard in &self.captured {
            let due = (heard.at - self.captured[0].at) / SPEED;
            pass(due.saturating_sub(started.elapsed()));
            assert_eq!(self.tap.send(&[&heard.frame]), 1);
        }
    }
}
