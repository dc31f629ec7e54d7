//! Hooks that hang or fail, and what else is run with the privileges of root: checks and fences.

use std::fs;
use std::time::Duration;

use crate::harness::wait_until;
use crate::hosts::{HOOK_RUNNER, Host, scenario};

#[test]
fn a_hook_that_hangs_delays_no_declaration_and_is_ended_at_its_limit() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "hook_timeout = \"20s\"");
        h1.slow_hook_on("reaffirmed", "600");
        h1.slow_hook_on("elected", "600");
        h1.run("lanelect yield --group lan0");
        site.wait_for_leader(h2);
        h2.run("lanelect yield --group lan0");
        wait_until("h1's hook hangs", || h1.status()["hook"]["running"] == true);
        let begun = site.switch().claims().len();
        wait_until("it was ended", || h1.hooks().last().unwrap() == "demoted hook-failed");

        let sent: Vec<_> = site.switch().claims().split_off(begun);
        let declared: Vec<_> = sent.iter().filter(|claim| claim.host == h1.number).collect();
        let gaps = declared.windows(2).map(|pair| pair[1].by - pair[0].by);
        let mut gaps: Vec<Duration> = gaps.collect();
        gaps.sort_unstable();
        println!(
            "{} declarations, {:?} to {:?} apart",
            declared.len(),
            gaps[0],
            gaps[gaps.len() - 1]
        );
        assert!(declared.len() > 10, "{} declarations while the hook hung", declared.len());
        site.wait_for_leader(h2);
        site.check_overlaps();
        assert_eq!(h2.hooks().iter().filter(|hook| hook.starts_with("elected")).count(), 2);
    });
}

#[test]
fn what_a_hook_prints_is_in_the_journal_line_by_line_with_the_event() {
    scenario(|site, [h1]| {
        h1.install("");
        let says = "echo out of $LANELECT_EVENT; echo \"<3>and badly\" >&2";
        h1.configure(&format!("hook = {:?}", format!("{says}; {}", h1.hook())));
        h1.enable();
        site.wait_for_leader(h1);
        let said = |event: &str, more: &str| {
            let unit = format!("--unit={HOOK_RUNNER} --output=cat {more}");
            h1.run(&format!("journalctl --sync; journalctl -t lanelect-{event} {unit}"))
        };
        assert_eq!(said("started", ""), "out of started\nand badly\n");
        assert_eq!(said("elected", ""), "out of elected\nand badly\n");
        assert_eq!(said("elected", "--priority=err"), "and badly\n");
    });
}

#[test]
fn journal_keeps_the_unit_of_a_hook_that_has_ended_before_it_reads() {
    scenario(|site, [h1]| {
        h1.install("");
        h1.configure(&format!(
            "hook = {:?}",
            format!("echo out of $LANELECT_EVENT; {}", h1.hook())
        ));
        h1.enable();
        site.wait_for_leader(h1);
        let journal = |signal: &str| {
            let signal = format!("--kill-who=main --signal={signal}");
            h1.systemctl(&format!("kill {signal} systemd-journald.service"));
        };
        journal("STOP");
        h1.run("lanelect yield --group lan0");
        wait_until("the hook has run", || {
            h1.hooks().last().unwrap() == "demoted yield" && h1.status()["hook"]["running"] == false
        });
        journal("CONT");
        let lines = format!("journalctl -t lanelect-demoted --unit={HOOK_RUNNER} --output=cat");
        assert_eq!(h1.run(&format!("journalctl --sync; {lines}")), "out of demoted\n");
    });
}

#[test]
fn attempts_to_lead_thin_out_where_every_hook_fails() {
    scenario(|_, hosts: [_; 2]| {
        for host in hosts {
            host.fail_hook_on("elected");
            host.install("");
            let note = "cut -d' ' -f1 /proc/uptime >> /run/elected";
            let hook = format!("[ $LANELECT_EVENT != elected ] || {note}; {}", host.hook());
            host.configure(&format!("failure_holdoff = \"2s\"\nhook = {hook:?}"));
            host.enable();
        }
        let attempts = |host: &Host| -> Vec<f64> {
            let noted = fs::read_to_string(host.file("/run/elected")).unwrap_or_default();
            noted.lines().map(|line| line.parse().unwrap()).collect()
        };
        wait_until("both have tried often", || hosts.iter().all(|host| attempts(host).len() >= 4));
        for host in hosts {
            let attempts = attempts(host);
            let mut holdoff = 2.0;
            for pair in attempts.windows(2) {
                // The clock counts in hundredths of a second.
                assert!(pair[1] - pair[0] >= holdoff - 0.02, "{}: {attempts:?}", host.name);
                holdoff *= 2.0;
            }
        }
    });
}

#[test]
fn a_failing_check_hands_over_and_runs_as_root() {
    scenario(|site, [h1, h2]| {
        let check =
            "check = \"id -un > /run/checked; test ! -e /run/sick\"\ncheck_interval = \"200ms\"";
        site.start_led_by_first(&[h1, h2], check);
        assert_eq!(h1.run("cat /run/checked"), "root\n");
        h1.run("touch /run/sick");
        site.wait_for_leader(h2);
        site.check_overlaps();
        assert_eq!(h1.hooks().last().unwrap(), "demoted check-failed");
        assert_eq!(h1.status()["ineligible_reason"], "check-failed");
        h1.run("rm /run/sick");
        wait_until("it may lead again", || h1.status()["eligible"] == true);
        site.wait_for_leader(h2);
    });
}

#[test]
fn a_host_whose_hook_does_not_let_go_is_powered_off_by_its_fence() {
    scenario(|site, hosts: [_; 3]| {
        let fence = "fence = \"systemctl poweroff --force --force\"";
        let voters = hosts.map(|host| host.name.as_str());
        let lines = format!("mode = \"quorum\"\nvoters = {voters:?}\n{fence}");
        hosts.iter().for_each(|host| host.install(&lines));
        hosts.iter().for_each(|host| host.enable());
        let old = site.sole_leader();
        site.wait_until_all_vote();
        old.slow_hook_on("demoted", "600");
        site.cut_off(old);
        old.wait_until_off();
        assert_eq!(old.hooks().last().unwrap(), "demoted lease-lost");
        let new = site.sole_leader();
        assert_ne!(new.name, old.name);
    });
}
