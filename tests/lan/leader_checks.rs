//! The leader's health check: a service that only the leader runs, and that takes its time to
//! start.

use std::fs;

use serde_json::Value;

use crate::harness::{Host, quorum_scenario, scenario, wait_until};

/// As often as it goes, and with more time than a loaded machine takes.
const OFTEN: &str = "check_interval = \"100ms\"\ncheck_timeout = \"30s\"\n";

/// Starts the service, which is up a few checks later.
const START: &str = "sleep 2 && echo up > $DIR/service";

/// Config lines of a service that only the leader runs. The hook runs `start` for `elected`, and
/// the leader's check passes while the service is up. It notes each result.
fn service(host: &Host, start: &str) -> String {
    let hook = format!(
        "{} || exit 1; case $LANELECT_EVENT in \
         elected) {start} ;; started | demoted) rm -f $DIR/service ;; esac",
        host.journal_hook()
    );
    let check = "echo $LANELECT_ROLE $LANELECT_EVENT >> $DIR/checks; test -e $DIR/service";
    let line = |key: &str, command: &str| {
        format!("{key} = {}\n", Value::from(command.replace("$DIR", &host.path(""))))
    };
    format!("{OFTEN}{}{}", line("hook", &hook), line("check_leader", check))
}

/// The state of the leader's check in the status.
fn state(host: &Host) -> String {
    host.status()["check_leader"]["state"].as_str().unwrap_or_default().to_owned()
}

/// How often the leader's check has run.
fn checks(host: &Host) -> usize {
    fs::read_to_string(host.path("checks")).unwrap_or_default().lines().count()
}

fn stop_service(host: &Host) {
    fs::remove_file(host.path("service")).unwrap();
}

#[test]
fn service_that_only_the_leader_runs_is_started_and_leadership_does_not_flap() {
    scenario(|lan, hosts: [_; 3]| {
        hosts.iter().for_each(|host| host.start(&service(host, START)));
        let leader = lan.sole_leader();
        wait_until("its service is healthy", || state(leader) == "healthy");
        assert!(hosts.iter().all(|host| host.ineligible_reason().is_empty()));
        lan.assert_calm_for(20);
        assert_eq!(leader.hooks(), ["started startup", "elected election"]);
        let followers = hosts.iter().filter(|host| host.number != leader.number);
        assert_eq!(followers.map(|host| checks(host)).sum::<usize>(), 0, "it checks leaders only");
        let noted = fs::read_to_string(leader.path("checks")).unwrap();
        assert!(noted.lines().all(|line| line == "leader check_leader"), "{noted}");
    });
}

#[test]
fn service_that_is_up_after_the_hook_has_ended_does_not_move_the_leadership() {
    scenario(|lan, [h1, h2]| {
        let in_background = format!("({START}) &");
        h1.start(&service(h1, &in_background));
        wait_until("the check has failed more than three times", || checks(h1) > 6);
        h2.start(&service(h2, &in_background));
        wait_until("the service is healthy", || state(h1) == "healthy");
        lan.wait_for_leader(h1);
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
    });
}

#[test]
fn service_that_fails_moves_the_leadership_once() {
    scenario(|lan, hosts: [_; 3]| {
        let [h1, h2, h3] = hosts;
        hosts.iter().for_each(|host| host.configure(&service(host, START)));
        h1.restart();
        lan.wait_for_leader(h1);
        h2.restart();
        h3.restart();
        lan.wait_for_leader(h1);
        wait_until("the service is healthy", || state(h1) == "healthy");
        let running = checks(h1);
        wait_until("it is checked again and again", || checks(h1) > running + 5);

        stop_service(h1);
        lan.wait_for_leader(h2);
        wait_until("the service is healthy there", || state(h2) == "healthy");
        assert_eq!(h1.hooks().last().unwrap(), "demoted check-failed");
        assert_eq!(h1.ineligible_reason(), "check-failed");
        assert_eq!(state(h1), "failing");
        assert_eq!(h1.status()["check_leader"]["last_exit"], 1);
        let in_all = checks(h1);
        lan.assert_calm_for(20);
        assert_eq!(checks(h1), in_all, "no check runs on a follower");
        assert_eq!(h2.hooks(), ["started startup", "elected handover"]);
        assert_eq!(h3.hooks(), ["started startup"]);
        assert_eq!(h3.ineligible_reason(), "");
        let log = h1.log();
        assert!(log.contains("check_leader failed (exit status 1 after"), "{log}");
    });
}

#[test]
fn node_held_off_by_its_check_is_eligible_again_when_the_time_is_over() {
    scenario(|lan, [h1, h2]| {
        let lines = |host| format!("failure_holdoff = \"3s\"\n{}", service(host, START));
        h1.start(&lines(h1));
        wait_until("the service is healthy", || state(h1) == "healthy");
        h2.start(&lines(h2));
        lan.wait_for_leader(h1);
        stop_service(h1);
        lan.wait_for_leader(h2);
        wait_until("h1 is eligible", || h1.ineligible_reason().is_empty());
        assert_eq!(state(h1), "pending");
        wait_until("the service is healthy there", || state(h2) == "healthy");
        stop_service(h2);
        lan.wait_for_leader(h1);
        wait_until("the service is healthy again", || state(h1) == "healthy");
    });
}

#[test]
fn in_quorum_mode_a_leader_whose_service_fails_is_succeeded() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let hosts = [h1, h2, h3];
        let quorum = "mode = \"quorum\"\nvoters = [\"h1\", \"h2\", \"h3\"]\n\
                      demote_grace = \"500ms\"\nleader_alive_threshold = \"2s\"\n";
        hosts.iter().for_each(|host| host.start(&format!("{quorum}{}", service(host, START))));
        let leader = lan.sole_leader_of(&hosts);
        wait_until("its service is healthy", || state(leader) == "healthy");
        stop_service(leader);
        wait_until("another leads", || lan.sole_leader().number != leader.number);
        assert_eq!(leader.hooks().last().unwrap(), "demoted check-failed");
    });
}

#[test]
fn check_of_a_leader_that_runs_when_the_leadership_ends_is_ended() {
    scenario(|lan, [h1, h2]| {
        let hang = "echo $$ > $DIR/pid; sleep 1000".replace("$DIR", &h1.path(""));
        h1.start(&format!("check_timeout = \"1h\"\ncheck_leader = {}\n", Value::from(hang)));
        lan.wait_for_leader(h1);
        h2.start("");
        lan.wait_for_leader(h1);
        wait_until("it runs", || h1.status()["check_leader"]["running"] == true);
        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.wait_for_leader(h2);
        wait_until("it is ended", || h1.status()["check_leader"]["running"] == false);
        assert_eq!(state(h1), "pending");
        assert_eq!(h1.ineligible_reason(), "");
    });
}

#[test]
fn reload_adds_and_removes_the_leaders_check_and_moves_no_leadership() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert!(h1.status()["check_leader"].is_null());
        let check = format!("touch {}", h1.path("checked"));
        h1.configure(&format!("{OFTEN}check_leader = {}\n", Value::from(check)));
        h1.reload();
        wait_until("it has passed", || state(h1) == "healthy");
        assert!(fs::exists(h1.path("checked")).unwrap());
        h1.configure("");
        h1.reload();
        wait_until("there is none", || h1.status()["check_leader"].is_null());
        lan.assert_calm_for(20);
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
    });
}

#[test]
fn check_of_every_role_waits_for_the_leaders_hook() {
    scenario(|lan, [h1, h2]| {
        // Passes on a follower, and on a leader whose service is up.
        let command = "[ $LANELECT_ROLE = follower ] || test -e $DIR/service";
        let lines = |host: &Host| {
            let check = Value::from(command.replace("$DIR", &host.path("")));
            format!("check_fall = 1\n{}check = {check}\n", service(host, START))
        };
        h1.start(&lines(h1));
        h2.start(&lines(h2));
        let leader = lan.sole_leader();
        wait_until("its service is healthy", || state(leader) == "healthy");
        lan.assert_calm_for(20);
        assert_eq!(leader.hooks(), ["started startup", "elected election"]);
        stop_service(leader);
        wait_until("another leads", || lan.sole_leader().number != leader.number);
    });
}

#[test]
fn hook_runner_runs_the_leaders_check() {
    scenario(|lan, [h1, h2]| {
        let socket = format!("hook_socket = {}\n", Value::from(h1.path("hook.sock")));
        h1.configure(&format!("{socket}{}", service(h1, START)));
        let _runner = h1.start_hook_runner();
        h1.restart();
        lan.wait_for_leader(h1);
        wait_until("the service is healthy", || state(h1) == "healthy");
        h2.start("");
        lan.wait_for_leader(h1);
        stop_service(h1);
        lan.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "demoted check-failed");
    });
}
