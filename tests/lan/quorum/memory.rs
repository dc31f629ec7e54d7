//! State directories that are lost, spoilt, read-only or full.

use std::fs;
use std::process::Command;

use super::{count, elect, voters};
use crate::harness::{Host, quorum_scenario, wait_until};

fn lose_state(host: &Host) {
    assert!(!host.is_running());
    fs::remove_dir_all(host.path("state")).unwrap();
}

fn mount_on_state(host: &Host, options: &str) {
    let _ = fs::create_dir(host.path("state"));
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(host.path("state"));
    assert!(mount.status().unwrap().success(), "cannot mount a tmpfs with {options}");
}

/// The state file's content, whatever its name.
fn state_file(host: &Host) -> std::path::PathBuf {
    fs::canonicalize(host.path("state/default.state")).unwrap()
}

#[test]
fn a_voter_that_lost_its_disk_does_not_vote_until_a_majority_has_told_it_the_term() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (leader, others) = elect(lan, &[h1, h2, h3]);
        let [lost, other] = others[..] else { unreachable!() };
        assert_eq!(lost.stop(), Some(0));
        lose_state(lost);
        leader.crash_under_service_manager();
        lost.restart();
        wait_until("it says that it does not count", || {
            let reason = serde_json::json!({"node_id": lost.name, "reason": "unenrolled"});
            let quorum = lost.status()["quorum"].take();
            quorum["not_counting"].as_array().is_some_and(|list| list.contains(&reason))
        });
        assert_eq!(lost.ineligible_reason(), "unenrolled");
        // Two of three are there, but only one of them remembers.
        lan.assert_leaderless_for(&[lost, other], 60);
        assert_eq!(count(lan, "elected"), 1);
        assert!(lost.log().contains("does not vote yet"), "{}", lost.log());

        leader.restart();
        lan.sole_leader();
        wait_until("it has been taken in", || lost.ineligible_reason().is_empty());
        assert!(lost.log().contains("votes from now on"), "{}", lost.log());
        assert_eq!(other.status()["quorum"]["reachable"], 3);
    });
}

#[test]
fn a_spoilt_state_file_is_refused() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (_, others) = elect(lan, &[h1, h2, h3]);
        let spoilt = others[0];
        assert_eq!(spoilt.stop(), Some(0));
        let path = state_file(spoilt);
        let content = fs::read_to_string(&path).unwrap();
        for broken in [content.replace("term = ", "term = 1"), content[..20].into(), "".into()] {
            fs::write(&path, broken).unwrap();
            spoilt.restart();
            assert_eq!(spoilt.exit_status(), Some(1));
            assert!(spoilt.log().contains("default.state"), "{}", spoilt.log());
        }
        fs::write(&path, content).unwrap();
        spoilt.restart();
        lan.sole_leader();
        assert_eq!(count(lan, "elected"), 1);
    });
}

#[test]
fn a_state_directory_that_cannot_be_written_is_refused() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (leader, others) = elect(lan, &[h1, h2, h3]);
        let refused = others[0];
        for options in ["ro", "size=4k"] {
            assert_eq!(if refused.is_running() { refused.stop() } else { Some(0) }, Some(0));
            mount_on_state(refused, options);
            if options != "ro" {
                fs::write(refused.path("state/ballast"), [0; 4096]).unwrap();
            }
            refused.restart();
            assert_eq!(refused.exit_status(), Some(1), "{options}");
            let log = refused.log();
            assert!(log.lines().last().unwrap().contains(&refused.path("state")), "{log}");
        }
        lan.sole_leader_of(&[leader, others[1]]);
    });
}

/// What is not on disk is not promised: a voter whose disk fills up while it runs gives no vote.
#[test]
fn a_disk_that_fills_up_costs_a_vote_and_nothing_else() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let hosts = [h1, h2, h3];
        mount_on_state(h3, "size=64k");
        hosts.iter().for_each(|host| host.start(&voters(&hosts)));
        h3.start(&(voters(&hosts) + "priority = 1\n"));
        let leader = lan.sole_leader();
        assert_ne!(leader.name, "h3", "the lowest priority leads only in need");
        let ballast = h3.path("state/ballast");
        // As much as there is room for.
        let _ = fs::write(&ballast, vec![0; 1 << 20]);
        leader.crash_under_service_manager();
        let survivors = super::without(&hosts, leader);
        lan.assert_leaderless_for(&survivors, 40);
        assert!(h3.log().contains("No space left"), "{}", h3.log());

        fs::remove_file(&ballast).unwrap();
        lan.sole_leader_of(&survivors);
    });
}
