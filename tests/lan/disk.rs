//! State directories that fill up, turn read-only, go away or are spoilt, in available mode: the
//! group has its leader all the same. What a voter does without its memory is in `quorum::memory`.

use std::fs;

use crate::harness::{Host, scenario, wait_until};

const TOLD: &str = "continuing without saved state: a restart would lose the current term";

fn times_told(host: &Host) -> usize {
    host.log().matches(TOLD).count()
}

fn state_failure(host: &Host) -> String {
    host.status()["state_failure"].as_str().unwrap_or_default().to_owned()
}

/// Has leadership go from one to the other, which each of them has to save.
fn hand_over(from: &Host, to: &Host) {
    assert_eq!(from.command(&["yield"]), Some(0));
    wait_until("the other leads", || to.leads() && from.follows(to) && to.hooks_match_role());
}

#[test]
fn a_full_disk_is_told_once_and_costs_no_leader() {
    scenario(|lan, [h1, h2]| {
        h2.use_tiny_disk();
        lan.start_led_by_first(&[h1, h2], "");
        h2.fill_disk();
        h2.restart();
        lan.wait_for_leader(h1);
        check_available(h1, h2, "free some space");
        assert_eq!(h2.command(&["maintenance", "on"]), Some(3), "it would not outlive a restart");
        assert_eq!(h2.command(&["maintenance", "off"]), Some(3));
        h2.free_disk();
        check_healed(h1, h2);
    });
}

#[test]
fn a_disk_that_turns_read_only_is_told_once_and_costs_no_leader() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h2.make_disk_read_only();
        h2.restart();
        lan.wait_for_leader(h1);
        check_available(h1, h2, "writable file system");
        h2.make_disk_writable();
        check_healed(h1, h2);
    });
}

/// Has the host with the bad disk lead twice.
fn check_available(good: &Host, bad: &Host, advice: &str) {
    for _ in 0..2 {
        hand_over(good, bad);
        wait_until("it tells why", || state_failure(bad).contains(advice));
        hand_over(bad, good);
    }
    assert_eq!(times_told(bad), 1, "{}", bad.log());
}

/// Without any change that it would have to save.
fn check_healed(good: &Host, bad: &Host) {
    wait_until("it is saved", || state_failure(bad).is_empty());
    assert!(bad.log().contains("the state is saved again"), "{}", bad.log());
    hand_over(good, bad);
    let term = format!("\nterm = {}\n", bad.hook_term());
    wait_until("its term is on disk", || bad.state().contains(&term));
}

#[test]
fn a_disk_that_hangs_is_reported_until_the_save_ends() {
    scenario(|lan, [h1, h2]| {
        let Some(stuck) = h2.make_stuck_file() else { return };
        lan.start_led_by_first(&[h1, h2], "");
        h2.hang_disk();
        let mut client = h2.client(&["maintenance", "on"]).spawn().unwrap();
        wait_until("it tells that", || state_failure(h2).contains("the disk hangs"));
        let check = h2.ask(&["status", "--check"]);
        let said = String::from_utf8_lossy(&check.stdout);
        assert!(said.contains("WARNING") && said.contains("not saved: the disk hangs"), "{said}");
        h2.revive_disk();
        wait_until("it is saved", || {
            stuck.release();
            state_failure(h2).is_empty()
        });
        let log = h2.log();
        assert_eq!(log.matches("a save has not ended").count(), 1, "{log}");
        assert!(log.contains("the state is saved again"), "{log}");
        client.wait().unwrap();
    });
}

#[test]
fn a_daemon_that_starts_while_the_disk_hangs_says_so() {
    scenario(|lan, [h1]| {
        let Some(stuck) = h1.make_stuck_file() else { return };
        lan.start_led_by_first(&[h1], "");
        assert_eq!(h1.stop(), Some(0));
        h1.hang_disk();
        h1.restart();
        wait_until("it says so", || h1.log().contains("waiting for the state directory"));
        h1.revive_disk();
        wait_until("it leads", || {
            stuck.release();
            h1.leads()
        });
    });
}

#[test]
fn a_state_directory_that_is_removed_is_made_anew() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        [h1, h2].iter().for_each(|host| host.remove_state());
        hand_over(h1, h2);
        for host in [h1, h2] {
            let term = format!("\nterm = {}\n", h2.hook_term());
            wait_until("its term is on disk", || host.state().contains(&term));
            assert_eq!(host.log().matches("was removed; created it again").count(), 1);
            assert_eq!(state_failure(host), "");
        }
        [h1, h2].iter().for_each(|host| host.restart());
        lan.sole_leader();
    });
}

#[test]
fn a_damaged_state_keeps_nobody_else_and_is_told_with_what_to_do() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert_eq!(h2.stop(), Some(0));
        h2.damage_state();
        for _ in 0..2 {
            h2.restart();
            assert_eq!(h2.exit_status(), Some(1));
            let log = h2.log();
            assert!(
                log.lines().last().unwrap().contains("stop the daemon and remove the file"),
                "{log}"
            );
        }
        lan.assert_calm_for(10);
        h2.remove_state();
        h2.restart();
        lan.wait_for_leader(h1);
    });
}

#[test]
fn sockets_that_are_removed_are_made_anew() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        h1.remove_control_files();
        h1.stir_interfaces();
        wait_until("it can be asked again", || h1.leads());
        lan.wait_for_leader(h1);
        assert_eq!(h1.log().matches("was removed; created it again").count(), 1);
        assert!(fs::exists(h1.path("control.sock.took-over")).unwrap());

        // What is to be done if it dies is there again, too.
        h1.crash();
        assert_eq!(h1.post_stop().0, Some(0));
        assert_eq!(h1.hooks().last().unwrap(), "demoted crashed");
    });
}
