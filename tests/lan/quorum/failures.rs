//! Hooks that overrun, and disks that fail.

use std::fs;

use super::{elect, voters, voters_with_grace};
use crate::harness::{Host, quorum_scenario, scenario, wait_until};

#[test]
fn a_demote_hook_that_overruns_its_grace_is_fenced() {
    quorum_scenario(|lan, hosts: [_; 2]| {
        for host in hosts {
            let says = "echo $LANELECT_EVENT $LANELECT_REASON $LANELECT_TERM";
            let (noted, file) = (host.journal_hook(), host.path("fenced"));
            let fence = format!("{noted} && {says} > {file}");
            let lines = voters_with_grace(&hosts, "1s");
            host.start(&format!("{lines}hook_timeout = \"6s\"\nfence = \"{fence}\""));
        }
        let old = lan.sole_leader();
        let expected = format!("fence grace-overrun {}\n", old.hook_term());
        old.slow_hook_on("demoted", "300");
        lan.cut(old);
        wait_until("the fence ran", || {
            fs::read_to_string(old.path("fenced")).is_ok_and(|text| text == expected)
        });
        assert_eq!(old.status()["counters"]["fences"], 1);
        assert!(old.log().contains("FENCING THIS NODE"), "{}", old.log());
        assert_eq!(old.hooks()[2..], ["demoted lease-lost", "fence grace-overrun"]);
        old.slow_hook_on("demoted", "0");
        lan.heal();
        lan.sole_leader();
    });
}

#[test]
fn a_slow_elected_hook_is_cut_short_when_the_lease_is_lost() {
    quorum_scenario(|lan, hosts: [_; 2]| {
        for host in hosts {
            host.slow_hook_on("elected", "300");
            host.start(&voters_with_grace(&hosts, "30s"));
        }
        let took_over = |host: &&Host| host.hooks().iter().any(|hook| hook.starts_with("elected"));
        wait_until("an elected hook runs", || hosts.iter().any(took_over));
        let old = hosts.into_iter().find(took_over).unwrap();
        lan.cut(old);
        wait_until("its hooks have let go", || {
            old.hooks().last().unwrap() == "demoted lease-lost" && old.hooks_match_role()
        });
        assert!(old.log().contains("is cut short"), "{}", old.log());
        assert_eq!(old.status()["counters"]["fences"], 0);
    });
}

#[test]
fn a_voter_with_a_full_disk_gives_no_vote_and_says_so() {
    quorum_scenario(|lan, hosts: [_; 3]| {
        hosts.iter().for_each(|host| host.use_tiny_disk());
        let (old, others) = elect(lan, &hosts);
        lan.assert_calm_for(20);
        let [sound, full] = others[..] else { panic!("two others") };
        full.fill_disk();
        old.crash_under_service_manager();
        wait_until("it cannot save", || {
            let status = full.status();
            status["state_failure"].as_str().is_some_and(|why| why.contains("free some space"))
        });
        assert!(full.log().contains("CANNOT SAVE ITS PROMISES"), "{}", full.log());
        let sent = lan.datagrams_from(sound);
        wait_until("the other stands in vain", || lan.datagrams_from(sound) > sent + 30);
        assert!(!sound.leads() && !full.leads());
        full.free_disk();
        let new = lan.sole_leader_of(&others);
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
        h1.start(&voters(&[h1]));
        assert_eq!(h1.exit_status(), Some(1));
        assert!(h1.log().contains("free some space"), "{}", h1.log());
        h1.free_disk();
        h1.damage_state();
        h1.start(&voters(&[h1]));
        assert_eq!(h1.exit_status(), Some(1));
        assert!(h1.log().contains("is damaged"), "{}", h1.log());
        assert_eq!(h1.hooks(), [""; 0]);
    });
}
