//! Leases by the clock, fences, and disks that fail.

use std::fs;

use crate::harness::lan::Lan;
use crate::harness::{Host, scenario, wait_until};

const THREE: &str = "mode = \"quorum\"\nvoters = [\"h1\", \"h2\", \"h3\"]\ndemote_grace = \"2s\"";
const TWO: &str = "mode = \"quorum\"\nvoters = [\"h1\", \"h2\"]\ndemote_grace = \"1s\"";

/// Waits for a leader; returns it and the others. Who of equals leads first is a matter of who is up
/// first.
fn led<'a, const N: usize>(lan: &'a Lan, hosts: [&'a Host; N]) -> (&'a Host, Vec<&'a Host>) {
    let leader = lan.sole_leader();
    (leader, hosts.into_iter().filter(|host| host.name != leader.name).collect())
}

/// The one of these that leads the others, once one does.
fn successor<'a>(hosts: &[&'a Host]) -> &'a Host {
    let mut found = None;
    wait_until("one of the others leads", || {
        found = hosts.iter().copied().find(|leader| {
            let follows = |host: &&Host| host.name == leader.name || host.follows(leader);
            leader.leads() && hosts.iter().all(follows)
        });
        found.is_some()
    });
    found.unwrap()
}

#[test]
fn a_settled_group_saves_nothing_and_its_leader_lets_go_before_another_takes_over() {
    scenario(|lan, hosts: [_; 3]| {
        hosts.iter().for_each(|host| host.start(THREE));
        let (old, others) = led(lan, hosts);
        let saves = || hosts.map(|host| host.status()["counters"]["state_saves"].as_u64().unwrap());
        // What the new reign is remembered by may still be on its way to the disks.
        lan.assert_calm_for(20);
        let before = saves();
        assert!(before.iter().all(|&count| count > 0), "{before:?}");
        lan.assert_calm_for(60);
        assert_eq!(saves(), before);

        old.slow_hooks("0.5");
        lan.cut(old);
        let new = successor(&others);
        let journal = lan.journal();
        let demoted = journal.position(&format!("{} end demoted lease-lost", old.name));
        let elected = journal.position(&format!("{} start elected", new.name));
        assert!(demoted < elected, "the successor did not wait");
        assert_eq!(old.command(&["is-leader"]), Some(1));
        lan.heal();
        lan.wait_for_leader(new);
    });
}

#[test]
fn a_leader_that_was_frozen_beyond_its_lease_says_nothing_of_it() {
    scenario(|lan, hosts: [_; 3]| {
        hosts.iter().for_each(|host| host.start(THREE));
        let (old, others) = led(lan, hosts);
        old.pause();
        let new = successor(&others);
        let mut asked = old.begin(&["is-leader"]);
        let status = old.begin(&["status", "--json"]);
        old.resume();
        assert_eq!(asked.wait().unwrap().code(), Some(1));
        let status = status.wait_with_output().unwrap().stdout;
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
        assert_ne!(status["role"], "leader");
        lan.wait_for_leader(new);
        assert_eq!(old.hooks().last().unwrap(), "demoted lease-lost");
    });
}

#[test]
fn a_demote_hook_that_overruns_its_grace_is_fenced() {
    scenario(|lan, hosts: [_; 2]| {
        for host in hosts {
            let fence = "echo $LANELECT_EVENT $LANELECT_REASON $LANELECT_TERM";
            let file = host.path("fenced");
            host.start(&format!("{TWO}\nhook_timeout = \"6s\"\nfence = \"{fence} > {file}\""));
        }
        let (old, _) = led(lan, hosts);
        let expected = format!("fence grace-overrun {}\n", old.hook_term());
        old.slow_hooks("300");
        lan.cut(old);
        wait_until("the fence ran", || {
            fs::read_to_string(old.path("fenced")).is_ok_and(|text| text == expected)
        });
        assert_eq!(old.status()["counters"]["fences"], 1);
        assert!(old.log().contains("FENCING THIS NODE"), "{}", old.log());
        assert_eq!(old.hooks().last().unwrap(), "demoted lease-lost");
        old.slow_hooks("0");
        lan.heal();
        lan.sole_leader();
    });
}

#[test]
fn a_slow_elected_hook_is_cut_short_when_the_lease_is_lost() {
    scenario(|lan, hosts: [_; 2]| {
        for host in hosts {
            let hook = lan.journal().hook(&host.name);
            let slow = "if [ $LANELECT_EVENT = elected ]; then sleep 300; fi";
            let patient = TWO.replace("1s", "30s");
            host.start(&format!("{patient}\nhook = \"{hook}; {slow}\""));
        }
        let took_over = |host: &&Host| host.hooks().iter().any(|hook| hook.starts_with("elected"));
        wait_until("an elected hook runs", || hosts.iter().any(took_over));
        let old = hosts.into_iter().find(took_over).unwrap();
        lan.cut(old);
        wait_until("its scripts have let go", || {
            old.hooks().last().unwrap() == "demoted lease-lost" && old.hooks_match_role()
        });
        assert!(old.log().contains("is cut short"), "{}", old.log());
        assert_eq!(old.status()["counters"]["fences"], 0);
    });
}

#[test]
fn a_voter_with_a_full_disk_gives_no_vote_and_says_so() {
    scenario(|lan, hosts: [_; 3]| {
        for host in hosts {
            host.use_tiny_disk();
            host.start(THREE);
        }
        let (old, others) = led(lan, hosts);
        lan.assert_calm_for(20);
        let [sound, full] = others[..] else { panic!("two others") };
        full.fill_disk();
        old.crash();
        wait_until("it cannot save", || {
            let status = full.status();
            status["state_failure"].as_str().is_some_and(|why| why.contains("free some space"))
        });
        assert!(full.log().contains("CANNOT REMEMBER ITS PROMISES"), "{}", full.log());
        let sent = lan.datagrams_from(sound);
        wait_until("the other stands in vain", || lan.datagrams_from(sound) > sent + 30);
        assert!(!sound.leads() && !full.leads());
        full.free_disk();
        let new = successor(&others);
        assert!(full.status()["state_failure"].is_null());
        old.restart();
        lan.wait_for_leader(new);
    });
}

#[test]
fn nothing_starts_that_cannot_remember() {
    scenario(|_, [h1]| {
        h1.use_tiny_disk();
        h1.fill_disk();
        h1.start(THREE);
        assert_eq!(h1.exit_status(), Some(1));
        assert!(h1.log().contains("free some space"), "{}", h1.log());
        h1.free_disk();
        h1.damage_state();
        h1.start(THREE);
        assert_eq!(h1.exit_status(), Some(1));
        assert!(h1.log().contains("is damaged"), "{}", h1.log());
        assert_eq!(h1.hooks(), [""; 0]);
    });
}
