//! Leaders that die, freeze, and lose their power.

use std::fs;

use crate::harness::wait_until;
use crate::hosts::{DAEMON, HOOK_RUNNER, Host, Site, scenario};

/// Waits for a leader other than `old`; checks that its hook waited for that of `old`.
fn successor<'a>(site: &'a Site, old: &Host) -> &'a Host {
    let new = site.sole_leader();
    assert_ne!(new.name, old.name, "it leads again");
    site.check_overlaps();
    new
}

/// Whether `post-stop` has begun to let go for a daemon of this host.
fn has_crashed(host: &Host) -> bool {
    host.hooks().contains(&"demoted crashed".to_owned())
}

/// Waits until `old`, which was elected once and killed, is back and follows `new`; checks that its
/// hooks let go in between.
fn check_cleaned_up(old: &Host, new: &Host) {
    wait_until("it has been started again and follows", || old.follows(new));
    let expected = ["started startup", "elected election", "demoted crashed", "started startup"];
    assert_eq!(old.hooks(), expected);
}

#[test]
fn a_killed_leader_lets_go_before_another_takes_over() {
    scenario(|site, [h1, h2, h3]| {
        h1.slow_hook_on("demoted", "1");
        site.start_led_by_first(&[h1, h2, h3], "");
        h1.systemctl(&format!("kill --signal=SIGKILL {DAEMON}"));
        let new = successor(site, h1);
        check_cleaned_up(h1, new);
    });
}

#[test]
fn a_leader_killed_while_it_takes_over_lets_go_before_another_takes_over() {
    scenario(|site, [h1, h2]| {
        h1.slow_hook_on("elected", "3");
        [h1, h2].iter().for_each(|host| host.install(""));
        h1.enable();
        wait_until("it takes over", || h1.hooks().last().is_some_and(|h| h == "elected election"));
        h2.enable();
        wait_until("the other follows", || h2.status()["leader"]["node_id"] == "h1");
        h1.systemctl(&format!("kill --signal=SIGKILL {DAEMON}"));
        let new = successor(site, h1);
        check_cleaned_up(h1, new);
    });
}

#[test]
fn a_leader_that_is_killed_along_with_its_hook_runner_lets_go() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        h1.systemctl(&format!("kill --signal=SIGKILL {DAEMON} {HOOK_RUNNER}"));
        let new = successor(site, h1);
        check_cleaned_up(h1, new);
    });
}

#[test]
fn a_leader_that_is_restarted_while_its_hook_runner_does_not_run_lets_go() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        h1.systemctl(&format!("stop {HOOK_RUNNER}"));
        h1.systemctl(&format!("restart {DAEMON}"));
        let new = successor(site, h1);
        wait_until("it follows", || h1.follows(new));
        let expected =
            ["started startup", "elected election", "demoted shutdown", "started startup"];
        assert_eq!(h1.hooks(), expected);
    });
}

#[test]
fn a_leader_that_is_stopped_right_after_its_hook_runner_was_killed_lets_go() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        h1.systemctl(&format!("kill --signal=SIGKILL {HOOK_RUNNER}"));
        h1.systemctl(&format!("stop {DAEMON}"));
        assert_eq!(h1.hooks(), ["started startup", "elected election", "demoted shutdown"]);
        site.wait_for_leader(h2);
        wait_until("nothing of it runs", || h1.show(HOOK_RUNNER, "ActiveState") == "inactive");
    });
}

#[test]
fn a_leader_that_is_killed_over_a_broken_config_lets_go() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        let file = h1.file("/etc/lanelect/lan0.toml");
        let good = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("hartbeat_interval = \"1s\"\n{good}")).unwrap();
        h1.systemctl(&format!("kill --signal=SIGKILL {DAEMON}"));
        let new = successor(site, h1);
        assert_eq!(h1.hooks().last().unwrap(), "demoted crashed");
        wait_until("it is not started by that again", || {
            h1.show(DAEMON, "ActiveState") == "failed"
        });
        fs::write(&file, good).unwrap();
        h1.systemctl(&format!("start {DAEMON}"));
        wait_until("it follows", || h1.follows(new));
    });
}

#[test]
fn a_leader_that_runs_out_of_memory_lets_go_before_another_takes_over() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        h1.exhaust_memory();
        // Short enough to be read, and more than it can take in.
        h1.configure(&format!("check = \"true {}\"", "x".repeat(50_000)));
        h1.signal("SIGHUP");
        // The file is read beside the event loop, which leads on until then.
        wait_until("it has died", || has_crashed(h1));
        let new = successor(site, h1);
        check_cleaned_up(h1, new);
        assert_eq!(h1.show(DAEMON, "NRestarts"), "1");
    });
}

#[test]
fn a_daemon_that_is_killed_again_and_again_comes_back_every_time() {
    scenario(|site, [h1, h2]| {
        // So patient that a stall of the machine moves no leader.
        site.start_led_by_first(&[h1, h2], "leader_alive_threshold = \"30s\"");
        // More often than systemd itself would put up with.
        for kills in 1..=7 {
            h2.systemctl(&format!("kill --signal=SIGKILL {DAEMON}"));
            wait_until("it has been started again and follows", || {
                h2.show(DAEMON, "NRestarts") == kills.to_string() && h2.follows(h1)
            });
        }
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
    });
}

#[test]
fn a_frozen_leader_of_a_quorum_is_killed_within_its_lease() {
    scenario(|site, hosts: [_; 3]| {
        let voters = hosts.map(|host| host.name.as_str());
        let lines = format!("mode = \"quorum\"\nvoters = {voters:?}");
        hosts.iter().for_each(|host| host.install(&lines));
        hosts.iter().for_each(|host| host.enable());
        let old = site.sole_leader();
        site.wait_until_all_vote();
        old.slow_hook_on("demoted", "2");
        old.signal("SIGSTOP");
        wait_until("its watchdog ended it and its hook let go", || has_crashed(old));
        let new = successor(site, old);
        wait_until("it has been started again and follows", || old.follows(new));
        assert_eq!(old.show(DAEMON, "NRestarts"), "1");
    });
}

#[test]
fn a_host_without_power_is_replaced_and_comes_back_as_a_follower() {
    scenario(|site, [h1, h2, h3]| {
        site.start_led_by_first(&[h1, h2, h3], "");
        h1.cut_power();
        let new = successor(site, h1);
        h1.power_on();
        h1.wait_until_up();
        site.wait_for_leader(new);
        assert_eq!(h1.hooks(), ["started startup", "elected election", "started startup"]);
    });
}

#[test]
fn a_leader_that_boots_again_before_it_is_missed_leaves_one_leader() {
    scenario(|site, [h1, h2, h3]| {
        site.start_led_by_first(&[h1, h2, h3], "");
        h1.cut_power();
        h1.power_on();
        h1.wait_until_up();
        wait_until("its daemon is up", || !h1.status().is_null());
        site.sole_leader();
        site.check_overlaps();
        assert_eq!(h1.hooks()[..3], ["started startup", "elected election", "started startup"]);
    });
}

#[test]
fn a_host_that_shuts_down_hands_over_and_follows_when_it_is_back() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        h1.shut_down();
        site.wait_for_leader(h2);
        site.check_overlaps();
        assert_eq!(h1.hooks().last().unwrap(), "demoted shutdown");
        assert_eq!(h2.hooks().last().unwrap(), "elected handover");
        h1.power_on();
        h1.wait_until_up();
        site.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "started startup");
    });
}

#[test]
fn a_killed_hook_runner_is_back_for_the_next_hook() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        let before = h1.show(HOOK_RUNNER, "MainPID");
        h1.systemctl(&format!("kill --signal=SIGKILL {HOOK_RUNNER}"));
        wait_until("another is there", || {
            h1.show(HOOK_RUNNER, "ActiveState") == "active"
                && h1.show(HOOK_RUNNER, "MainPID") != before
        });
        assert!(h1.leads(), "it took the leader along");
        h1.run("lanelect yield --group lan0");
        site.wait_for_leader(h2);
        site.check_overlaps();
        assert_eq!(h1.hooks().last().unwrap(), "demoted yield");
    });
}
