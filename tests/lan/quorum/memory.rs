//! State directories that are lost, spoilt or read-only.

use std::fs;
use std::process::Command;

use super::{count, elect};
use crate::harness::{Host, quorum_scenario, wait_until};

fn lose_state(host: &Host) {
    assert!(!host.is_running());
    fs::remove_dir_all(host.path("state")).unwrap();
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
        wait_until("it counts", || other.status()["quorum"]["reachable"] == 3);
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
fn a_voter_whose_state_directory_is_removed_votes_again_once_it_can_be_made_anew() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (old, others) = elect(lan, &[h1, h2, h3]);
        let [sound, robbed] = others[..] else { unreachable!() };
        robbed.remove_state();
        fs::write(robbed.path("state"), "in the way").unwrap();
        old.crash_under_service_manager();
        let told = "CANNOT SAVE ITS PROMISES";
        wait_until("it cannot save", || robbed.log().contains(told));
        let sent = lan.datagrams_from(sound);
        wait_until("the other stands in vain", || lan.datagrams_from(sound) > sent + 30);
        assert!(!sound.leads() && !robbed.leads());

        fs::remove_file(robbed.path("state")).unwrap();
        lan.sole_leader_of(&others);
        let log = robbed.log();
        assert_eq!(log.matches(told).count(), 1, "{log}");
        assert_eq!(log.matches("was removed; created it again").count(), 1, "{log}");
        old.restart();
        lan.sole_leader();
    });
}

#[test]
fn a_state_directory_that_is_read_only_is_refused() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let (leader, others) = elect(lan, &[h1, h2, h3]);
        let refused = others[0];
        assert_eq!(refused.stop(), Some(0));
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "ro", "tmpfs"]).arg(refused.path("state"));
        assert!(mount.status().unwrap().success(), "cannot mount a read-only file system");
        refused.restart();
        assert_eq!(refused.exit_status(), Some(1));
        let log = refused.log();
        assert!(log.lines().last().unwrap().contains(&refused.path("state")), "{log}");
        lan.sole_leader_of(&[leader, others[1]]);
    });
}
