//! Daemons that stop, die, freeze, restart and are set up wrongly.

use std::fs;

use crate::harness::host::ip;
use crate::harness::{BEST_SUCCEEDS, scenario, wait_until};
use crate::partition::wait_until_settled;

#[test]
fn an_orderly_stop_hands_over_after_the_demote_hook() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], BEST_SUCCEEDS);
        h1.slow_hooks("0.5");
        assert_eq!(h1.stop(), Some(0));
        let sent = lan.all_datagrams_from(h1);
        lan.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "demoted shutdown");
        let journal = lan.journal();
        let demoted = journal.position("h1 end demoted shutdown");
        assert!(demoted < journal.position("h2 start elected"), "h2 did not wait for h1");
        lan.assert_calm_for(20);
        assert_eq!(lan.all_datagrams_from(h1), sent, "h1 sent after it had stopped");
    });
}

#[test]
fn a_killed_leader_is_replaced_and_may_come_back() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], BEST_SUCCEEDS);
        h1.crash();
        lan.wait_for_leader(h2);
        h1.restart();
        lan.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "started startup");
    });
}

#[test]
fn a_killed_leader_is_cleaned_up_after_and_resigned_for() {
    scenario(|lan, [h1, h2, h3]| {
        // So patient a follower would not take over by itself while the test looks.
        let lines = format!("leader_alive_threshold = \"50s\"\n{BEST_SUCCEEDS}");
        lan.start_led_by_first(&[h1, h2, h3], &lines);
        let (running, said) = h1.post_stop();
        assert_eq!(running, Some(1), "{said}");
        assert!(said.contains("the daemon still runs"), "{said}");
        h1.crash();
        assert_eq!(h1.post_stop().0, Some(0));
        assert_eq!(h1.hooks().last().unwrap(), "demoted crashed");
        lan.wait_for_leader(h2);
        assert_eq!(h2.hooks().last().unwrap(), "elected handover");
        let journal = lan.journal();
        let demoted = journal.position("h1 end demoted crashed");
        assert!(demoted < journal.position("h2 start elected"), "h2 did not wait for h1");
        h1.post_stop();
        assert_eq!(h1.hooks().last().unwrap(), "demoted crashed", "once is enough");
        h1.restart();
        lan.wait_for_leader(h2);
    });
}

#[test]
fn an_orderly_end_leaves_post_stop_nothing_to_do() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert_eq!(h1.stop(), Some(0));
        let hooks = h1.hooks();
        let sent = lan.all_datagrams_from(h1);
        assert_eq!(h1.post_stop().0, Some(0));
        assert_eq!(h1.hooks(), hooks);
        assert_eq!(lan.all_datagrams_from(h1), sent);
        h2.crash();
        h1.restart();
        lan.wait_for_leader(h1);
    });
}

#[test]
fn crash_plan_that_is_written_again_is_reported() {
    scenario(|lan, [h1, h2]| {
        h1.start("");
        lan.wait_for_leader(h1);
        let obstacle = h1.path("control.crash-plan.tmp");
        fs::create_dir(&obstacle).unwrap();
        // It is the successor that the plan names.
        h2.start("");
        wait_until("the log says so", || h1.log().contains("cannot write the crash plan"));
        fs::remove_dir(&obstacle).unwrap();
        h2.crash();
        wait_until("the log says so", || h1.log().contains("control.crash-plan is up to date"));
        h2.restart();
    });
}

/// The daemon found out itself by which interface the group is reached.
#[test]
fn who_cleans_up_tells_the_hook_of_the_interfaces_that_the_daemon_used() {
    scenario(|_, [h1, _]| {
        h1.run(|| ip("route add 239.255.76.69 dev eth0"));
        let told = h1.path("told");
        let hook = format!("echo $LANELECT_EVENT $LANELECT_INTERFACE >> {told}");
        let config = h1.config(&format!("hook = {hook:?}"));
        let without: Vec<_> = config.lines().filter(|it| !it.starts_with("interface")).collect();
        h1.write_config(&without.join("\n"));
        h1.restart();
        let has_told = |line: &str| fs::read_to_string(&told).unwrap_or_default().contains(line);
        wait_until("it leads", || has_told("elected eth0"));
        h1.crash();
        assert_eq!(h1.post_stop().0, Some(0));
        assert!(has_told("demoted eth0\n"), "{}", fs::read_to_string(&told).unwrap());
    });
}

#[test]
fn a_leader_that_freezes_and_wakes_leaves_one_leader() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], BEST_SUCCEEDS);
        h1.pause();
        wait_until("h2 leads h3", || h2.leads() && h3.follows(h2));
        h1.resume();
        wait_until_settled(lan);
        lan.assert_calm_for(20);
    });
}

#[test]
fn a_storm_of_restarts_ends_with_one_leader() {
    scenario(|lan, hosts: [_; 3]| {
        hosts.iter().for_each(|host| host.start(""));
        for n in [0, 1, 1, 2, 0, 2, 2, 1, 0, 0, 1, 2, 1, 0, 2] {
            // A signal in the first instant would end it before it can end in order.
            wait_until("it is up", || !hosts[n].status().is_null());
            hosts[n].restart();
        }
        wait_until("all are up", || hosts.iter().all(|host| !host.status().is_null()));
        wait_until_settled(lan);
        lan.assert_calm_for(20);
    });
}

#[test]
fn a_second_node_of_the_same_id_is_turned_away() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h3], "");
        h2.start("node_id = \"h1\"");
        assert_eq!(h2.exit_status(), Some(1));
        assert!(h2.log().contains("10.77.0.1"), "does not name the holder: {}", h2.log());
        lan.assert_calm_for(20);
        assert!(h1.leads());
    });
}

#[test]
fn a_better_follower_that_freezes_and_wakes_follows_on() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h2, h3], "");
        h1.start("");
        wait_until("h1 follows h2", || h1.follows(h2));
        h1.pause();
        wait_until("h1 is given up", || h2.member(h1)["state"] == "gone");
        h1.resume();
        lan.wait_for_leader(h2);
        lan.assert_calm_for(20);
        assert_eq!(h1.hooks(), ["started startup"]);
    });
}
