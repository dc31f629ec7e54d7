//! Health checks: who must not lead, who takes over, and what becomes of a check that hangs.

use std::fs;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::{Host, quorum_scenario, scenario, wait_until};

/// As often as it goes, and with more time than a loaded machine takes.
const OFTEN: &str = "check_interval = \"100ms\"\ncheck_timeout = \"30s\"\n";

/// Config lines of a check that passes as long as the host has no file `sick`.
fn checked(host: &Host) -> String {
    format!("{OFTEN}{}", check(host, "test ! -e $DIR/sick"))
}

/// The config line of a check in which `$DIR` stands for the host's directory.
fn check(host: &Host, command: &str) -> String {
    let command = command.replace("$DIR", &host.path(""));
    format!("check = {}\n", Value::from(command))
}

fn touch(host: &Host, file: &str) {
    fs::write(host.path(file), "").unwrap();
}

fn remove(host: &Host, file: &str) {
    fs::remove_file(host.path(file)).unwrap();
}

/// What the status says of the check.
fn state(host: &Host) -> String {
    host.status()["check"]["state"].as_str().unwrap_or_default().to_owned()
}

/// The words of a file, as many as there are.
fn words(host: &Host, file: &str) -> Vec<String> {
    let text = fs::read_to_string(host.path(file)).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
    whole.split_whitespace().map(str::to_owned).collect()
}

/// Whether none of these processes is left. In the scenario's process namespace they go by numbers
/// that `/proc` does not know.
fn are_gone(pids: &[String]) -> bool {
    pids.iter().all(|pid| kill(Pid::from_raw(pid.parse().unwrap()), None) == Err(Errno::ESRCH))
}

fn count(host: &Host, text: &str) -> usize {
    host.log().matches(text).count()
}

#[test]
fn a_leader_whose_check_fails_hands_over_and_stands_again_when_it_passes() {
    scenario(|lan, [h1, h2]| {
        h1.start(&checked(h1));
        lan.wait_for_leader(h1);
        h2.start(&checked(h2));
        wait_until("h2 is healthy and follows", || state(h2) == "healthy" && h2.follows(h1));

        touch(h1, "sick");
        lan.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "demoted check-failed");
        assert_eq!(h2.hooks().last().unwrap(), "elected handover");
        let status = h1.status();
        assert_eq!(status["ineligible_reason"], "check-failed");
        assert_eq!(status["check"]["state"], "failing");
        assert_eq!(status["check"]["last_exit"], 1);
        assert_eq!((&status["check"]["fall"], &status["check"]["rise"]), (&3.into(), &2.into()));
        assert!(status["check"]["failures"].as_u64() >= Some(3));

        remove(h1, "sick");
        wait_until("h1 is healthy", || state(h1) == "healthy");
        assert_eq!(h1.ineligible_reason(), "");
        lan.assert_calm_for(20);
        assert_eq!(count(h1, "check failed ("), 1, "{}", h1.log());
        assert_eq!(count(h1, "check passed again ("), 1, "{}", h1.log());
        h2.crash();
        lan.wait_for_leader(h1);
    });
}

#[test]
fn a_follower_whose_check_fails_is_passed_over() {
    scenario(|lan, [h1, h2, h3]| {
        touch(h2, "sick");
        h1.start(&checked(h1));
        lan.wait_for_leader(h1);
        h2.start(&checked(h2));
        h3.start(&checked(h3));
        wait_until("the first result has decided", || h2.ineligible_reason() == "check-failed");
        wait_until("h3 is healthy", || state(h3) == "healthy");
        wait_until("h1 knows both", || {
            h1.member(h2)["eligible"] == false && h1.member(h3)["eligible"] == true
        });
        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.wait_for_leader(h3);
        h3.crash();
        lan.wait_for_leader(h1);
    });
}

#[test]
fn in_quorum_mode_a_leader_whose_check_fails_is_succeeded_under_a_higher_term() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let hosts = [h1, h2, h3];
        let quorum = "mode = \"quorum\"\nvoters = [\"h1\", \"h2\", \"h3\"]\n\
                      demote_grace = \"500ms\"\nleader_alive_threshold = \"2s\"\n";
        hosts.iter().for_each(|host| host.start(&format!("{quorum}{}", checked(host))));
        let leader = lan.sole_leader_of(&hosts);
        let term = leader.hook_term();
        touch(leader, "sick");
        let others: Vec<_> =
            hosts.into_iter().filter(|host| host.number != leader.number).collect();
        wait_until("another leads, and it follows", || {
            others.iter().any(|other| other.leads() && leader.follows(other))
        });
        assert_eq!(leader.hooks().last().unwrap(), "demoted check-failed");
        assert!(lan.sole_leader().hook_term() > term);
    });
}

#[test]
fn until_the_first_result_a_node_starts_up_and_does_not_stand() {
    scenario(|lan, [h1]| {
        let lines = check(h1, "while [ ! -e $DIR/go ]; do sleep 0.05; done");
        h1.start(&format!("{OFTEN}{lines}"));
        wait_until("its start-up is over", || h1.role() == "follower");
        let status = h1.status();
        assert_eq!(status["ineligible_reason"], "check-pending");
        assert_eq!(status["check"]["state"], "pending");
        assert_eq!(status["check"]["running"], true);
        lan.assert_leaderless_for(&[h1], 3);
        touch(h1, "go");
        lan.wait_for_leader(h1);
    });
}

#[test]
fn a_check_that_hangs_has_failed_and_is_ended_with_its_process_group() {
    scenario(|lan, [h1, h2]| {
        let hang = "if [ -e $DIR/hang ]; then sleep 1000 & echo $$ $! >> $DIR/pids; wait; fi";
        let times = "check_interval = \"100ms\"\ncheck_timeout = \"2s\"\ncheck_fall = 2\n";
        h1.start(&format!("{times}{}", check(h1, hang)));
        lan.wait_for_leader(h1);
        h2.start("");
        wait_until("h2 follows", || h2.follows(h1));
        touch(h1, "hang");
        lan.wait_for_leader(h2);
        assert_eq!(h1.ineligible_reason(), "check-failed");
        remove(h1, "hang");
        wait_until("h1 is healthy", || state(h1) == "healthy");
        let pids = words(h1, "pids");
        assert!(pids.len() >= 4, "{pids:?}");
        wait_until("all of them are gone", || are_gone(&pids));
        assert_eq!(count(h1, "check failed ("), 1, "{}", h1.log());
    });
}

#[test]
fn a_check_that_does_not_end_on_term_counts_as_failed_again_and_again() {
    scenario(|_, [h1]| {
        let hang =
            "trap '' TERM; echo $$ >> $DIR/pids; while [ ! -e $DIR/go ]; do sleep 0.05; done";
        // The first result has failed long before the second check can begin.
        let times = "check_interval = \"100ms\"\ncheck_timeout = \"100ms\"\ncheck_fall = 9\n";
        h1.start(&format!("{times}{}", check(h1, hang)));
        wait_until("the first result has decided", || h1.ineligible_reason() == "check-failed");
        wait_until("it has failed nine times", || {
            h1.status()["check"]["failures"].as_u64() >= Some(9)
        });
        let hanging = words(h1, "pids");
        touch(h1, "go");
        wait_until("it is over", || are_gone(&hanging));
        wait_until("h1 is healthy", || state(h1) == "healthy");
    });
}

#[test]
fn a_reload_adds_changes_and_removes_the_check_and_moves_no_leadership() {
    scenario(|lan, [h1, h2]| {
        lan.start_led_by_first(&[h1, h2], "");
        assert!(h1.status()["check"].is_null());

        let reload = |command: &str, times: &str| {
            h1.configure(&format!("{times}{}", check(h1, command)));
            h1.reload();
        };
        reload("echo first >> $DIR/checks", OFTEN);
        wait_until("it runs", || words(h1, "checks").len() > 3);
        assert_eq!(state(h1), "healthy");

        // One that hangs in the way of the next, with an hour to go.
        reload("echo second $$ >> $DIR/checks; sleep 1000", "check_timeout = \"1h\"\n");
        wait_until("the second runs", || words(h1, "checks").contains(&"second".to_owned()));
        reload("echo third >> $DIR/checks", OFTEN);
        wait_until("the third runs", || words(h1, "checks").contains(&"third".to_owned()));
        let words = words(h1, "checks");
        let second = words.iter().position(|word| word == "second").unwrap();
        assert!(are_gone(&words[second + 1..=second + 1]));

        h1.configure("");
        h1.reload();
        wait_until("there is no check", || h1.status()["check"].is_null());
        lan.wait_for_leader(h1);
        lan.assert_calm_for(20);
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
    });
}

#[test]
fn a_failing_check_that_is_removed_lets_the_node_lead_again() {
    scenario(|lan, [h1]| {
        h1.start(&format!("{OFTEN}{}", check(h1, "exit 3")));
        wait_until("its check fails", || h1.ineligible_reason() == "check-failed");
        assert_eq!(h1.status()["check"]["last_exit"], 3);
        lan.assert_leaderless_for(&[h1], 3);
        h1.configure("");
        h1.reload();
        lan.wait_for_leader(h1);
    });
}

#[test]
fn checks_leave_log_and_disk_alone_as_long_as_nothing_changes() {
    scenario(|lan, [h1]| {
        let chatter = "echo chatter; echo chatter >&2; echo >> $DIR/checks run";
        h1.start(&format!("{OFTEN}{}", check(h1, chatter)));
        lan.wait_for_leader(h1);
        let (log, saves) = (h1.log(), h1.status()["counters"]["state_saves"].clone());
        let before = words(h1, "checks").len();
        wait_until("it has run again and again", || words(h1, "checks").len() > before + 20);
        assert_eq!(h1.log(), log);
        assert_eq!(h1.status()["counters"]["state_saves"], saves);
    });
}

#[test]
fn a_daemon_that_stops_ends_its_check() {
    scenario(|_, [h1]| {
        let hang = "sleep 1000 & echo $$ $! >> $DIR/pids; wait";
        h1.start(&format!("{OFTEN}{}", check(h1, hang)));
        wait_until("the check runs", || !words(h1, "pids").is_empty());
        assert_eq!(h1.stop(), Some(0));
        let pids = words(h1, "pids");
        assert_eq!(pids.len(), 2, "{pids:?}");
        wait_until("all of it is gone", || are_gone(&pids));
    });
}

#[test]
fn a_check_that_cannot_be_run_has_failed_and_the_reason_is_told_once() {
    scenario(|_, [h1]| {
        let socket = format!("hook_socket = {}\n", Value::from(h1.path("nobody.sock")));
        let times = "check_interval = \"100ms\"\ncheck_timeout = \"100ms\"\n\
                     hook_timeout = \"100ms\"\n";
        h1.start(&format!("{socket}{times}{}", check(h1, "exit 0")));
        wait_until("it has failed", || state(h1) == "failing");
        assert_eq!(h1.ineligible_reason(), "no-hook-runner");
        wait_until("it has failed again and again", || {
            h1.status()["check"]["failures"].as_u64() >= Some(9)
        });
        assert_eq!(count(h1, "check did not run: cannot reach the hook-runner"), 1);
        assert_eq!(count(h1, "check failed ("), 1);
    });
}

#[test]
fn a_daemon_without_privileges_has_its_checks_run_by_the_hook_runner() {
    scenario(|lan, [h1, h2]| {
        let socket = format!("hook_socket = {}\n", Value::from(h1.path("hook.sock")));
        h1.configure(&format!("{socket}{}", checked(h1)));
        let runner = h1.start_hook_runner();
        h1.restart();
        lan.wait_for_leader(h1);
        h2.start("");
        wait_until("h2 follows", || h2.follows(h1));
        touch(h1, "sick");
        lan.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "demoted check-failed");
        assert_eq!(h1.status()["check"]["last_exit"], 1);

        let times = "check_interval = \"100ms\"\ncheck_timeout = \"2s\"\ncheck_fall = 1\n";
        h1.configure(&format!("{socket}{times}{}", check(h1, "test -e $DIR/sick")));
        h1.reload();
        wait_until("h1 is healthy by the other command", || state(h1) == "healthy");
        drop(runner);
        wait_until("it is not without a hook-runner", || state(h1) == "failing");
        let _runner = h1.start_hook_runner();
        wait_until("h1 is healthy again", || state(h1) == "healthy");
    });
}
