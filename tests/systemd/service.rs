//! The daemon as a service: what it may do, restarts, reloads.

use std::fs;

use serde_json::Value;

use crate::harness::wait_until;
use crate::hosts::{DAEMON, HOOK_RUNNER, Host, Site, scenario};

#[test]
fn the_daemon_has_no_privilege_and_its_hook_all() {
    scenario(|site, [h1]| {
        h1.install("");
        h1.configure(&format!("hook = \"id -un > /run/hook-user; {}\"", h1.hook()));
        h1.enable();
        site.wait_for_leader(h1);
        let status = h1.run(&format!("cat /proc/{}/status", h1.daemon()));
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_else(|| panic!("no {name}: {status}")).trim().to_owned()
        };
        for capabilities in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(u64::from_str_radix(&field(capabilities), 16), Ok(0), "{capabilities}");
        }
        assert_eq!(field("NoNewPrivs"), "1");
        assert_eq!(field("Seccomp"), "2");
        let user = h1.run("id -u lanelect");
        assert!(field("Uid").split_whitespace().all(|id| id == user.trim()), "{status}");
        assert_eq!(h1.run("cat /run/hook-user"), "root\n");
    });
}

#[test]
fn the_units_expose_little() {
    scenario(|_, [h1]| {
        // The threshold counts in tenths.
        for unit in ["lanelect@.service", "lanelect-http@.service"] {
            h1.run(&format!("systemd-analyze security --offline=true --threshold=15 {unit}"));
        }
        h1.run("systemd-analyze verify --man=no lanelect@lan0.service lanelect-hook@lan0.service");
    });
}

/// What a host's daemon and hooks look like to somebody whom nothing has disturbed.
fn view(host: &Host) -> String {
    let status = host.status();
    let (leader, term) = (&status["leader"]["node_id"], &status["term"]);
    format!("{} {leader} {term} {:?} {}", host.name, host.hooks(), host.daemon())
}

#[test]
fn the_restart_of_a_follower_disturbs_nobody() {
    scenario(|site, [h1, h2, h3]| {
        site.start_led_by_first(&[h1, h2, h3], "");
        let before = [h1, h3].map(view);
        for _ in 0..3 {
            h2.systemctl(&format!("restart {DAEMON}"));
            site.wait_for_leader(h1);
        }
        assert_eq!([h1, h3].map(view), before);
    });
}

#[test]
fn a_reload_changes_the_priority_and_keeps_the_leader() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        let before = [h1, h2].map(view);
        h1.configure("priority = 50");
        h1.systemctl(&format!("reload {DAEMON}"));
        wait_until("both see its priority", || {
            [h1, h2].iter().all(|host| priority_of_first(host) == 50)
        });
        assert_eq!([h1, h2].map(view), before);
    });
}

#[test]
fn a_reload_that_changes_the_hook_hands_over_and_lets_go_by_the_old_one() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        h1.configure(&format!("hook = \"touch /run/new-hook; {}\"", h1.hook()));
        h1.systemctl(&format!("reload {DAEMON}"));
        site.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().map(String::as_str), Some("demoted reconfigured"));
        assert!(!h1.file("/run/new-hook").exists(), "the new hook let go of what the old one took");
        h2.run("lanelect yield --group lan0");
        site.wait_for_leader(h1);
        assert!(h1.file("/run/new-hook").exists(), "the hook-runner has the old hook");
    });
}

#[test]
fn a_reload_lets_the_hook_that_runs_end() {
    scenario(|site, [h1]| {
        h1.install("");
        h1.slow_hook_on("elected", "5");
        h1.enable();
        wait_until("it runs", || h1.hooks().last().is_some_and(|hook| hook == "elected election"));
        h1.systemctl(&format!("reload {DAEMON}"));
        site.wait_for_leader(h1);
        let hook = h1.status()["hook"].take();
        assert_eq!((&hook["last_event"], &hook["last_exit"]), (&"elected".into(), &0.into()));
        assert_eq!(h1.hooks().last().unwrap(), "elected election");
    });
}

#[test]
fn daemon_with_a_capability_uses_a_port_that_only_root_can_take() {
    scenario(|site, [h1]| {
        h1.install("multicast = \"239.255.76.69:769\"");
        let directory = h1.file(&format!("/etc/systemd/system/{DAEMON}.d"));
        fs::create_dir_all(&directory).unwrap();
        let capability = "CapabilityBoundingSet=CAP_NET_BIND_SERVICE\n\
                          AmbientCapabilities=CAP_NET_BIND_SERVICE\n";
        fs::write(directory.join("port.conf"), format!("[Service]\n{capability}")).unwrap();
        h1.systemctl("daemon-reload");
        h1.enable();
        site.wait_for_leader(h1);
        assert_eq!(h1.status()["interfaces"][0]["up"], true);
    });
}

#[test]
fn files_that_are_removed_under_the_daemon_are_made_anew() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        h1.run("rm -r /run/lanelect/* /var/lib/lanelect/*");
        wait_until("it can be asked again", || h1.leads());
        h1.run("lanelect yield --group lan0");
        site.wait_for_leader(h2);
        wait_until("its state is on disk", || h1.file("/var/lib/lanelect/lan0.state").exists());
        assert!(h1.status()["state_failure"].is_null());
    });
}

#[test]
fn directories_that_are_removed_under_the_daemon_cost_no_leader() {
    scenario(|site, [h1, h2]| {
        // So patient that a stall of the machine moves no leader.
        site.start_led_by_first(&[h1, h2], "leader_alive_threshold = \"30s\"");
        // The sandbox is made around them, so that only a new one has them again.
        h2.run("rm -r /run/lanelect /var/lib/lanelect");
        let log = || h2.run(&format!("journalctl --no-pager --unit={DAEMON}"));
        let told = "the control socket was removed, and clients cannot connect";
        // It looks around with every change of its interface, besides from time to time.
        for (command, says) in [("down", "lan0: down"), ("up", "lan0: up again")] {
            h2.run(&format!("ip link set lan0 {command}"));
            wait_until("it has looked", || log().contains(says));
        }
        assert!(log().contains(told), "{}", log());
        assert!(h1.leads());
        h2.systemctl(&format!("restart {DAEMON}"));
        site.wait_for_leader(h1);
        assert_eq!(log().matches(told).count(), 1);
        assert_eq!(h2.show(DAEMON, "NRestarts"), "0", "it did not end by itself");
    });
}

#[test]
fn a_bad_file_fails_the_reload_and_changes_nothing() {
    scenario(|site, [h1]| {
        site.start_led_by_first(&[h1], "priority = 50");
        let before = view(h1);
        let refusal = || h1.status()["config"]["reload_failure"].take();
        assert_eq!(refusal(), Value::Null);
        let file = h1.file("/etc/lanelect/lan0.toml");
        let good = fs::read_to_string(&file).unwrap();
        let good = good.replace("priority = 50", "priority = 60");
        fs::write(&file, format!("hartbeat_interval = \"1s\"\n{good}")).unwrap();
        assert!(!h1.output(&["systemctl", "reload", DAEMON]).status.success());
        let told = "/etc/lanelect/lan0.toml:1: hartbeat_interval: unknown key; did you mean \
                    heartbeat_interval?";
        wait_until("the status shows that it was refused", || refusal() == told);
        let log = h1.run(&format!("journalctl --no-pager --unit={DAEMON}"));
        // The daemon's line, and that of check-config.
        assert_eq!(log.matches(told).count(), 2, "{log}");
        assert_eq!(priority_of_first(h1), 50);
        assert_eq!(view(h1), before);
        fs::write(&file, good).unwrap();
        h1.systemctl(&format!("reload {DAEMON}"));
        wait_until("the mended file is taken", || priority_of_first(h1) == 60);
        assert_eq!(refusal(), Value::Null);
        assert_daemon_leads(site, h1);
    });
}

#[test]
fn reload_checks_the_key_and_the_commands_with_the_daemons_rights() {
    scenario(|site, [h1]| {
        h1.install("");
        h1.run(
            "umask 077 && mkdir -m 700 /etc/lanelect/hooks && lanelect keygen > /etc/lanelect/key",
        );
        h1.run("printf '#!/bin/sh\n' > /etc/lanelect/hooks/check && chmod 755 /etc/lanelect/hooks/check");
        h1.configure("key_file = \"/etc/lanelect/key\"\ncheck = \"/etc/lanelect/hooks/check\"");
        let checked = h1.output(&["lanelect", "check-config", "/etc/lanelect/lan0.toml"]);
        let told = String::from_utf8_lossy(&checked.stderr).into_owned();
        let expected = "warning: key_file /etc/lanelect/key does not belong to lanelect, and the \
                        daemon of lanelect@.service, which runs as that user, cannot read it; run: \
                        chown lanelect /etc/lanelect/key\n";
        assert_eq!((told.as_str(), checked.status.success()), (expected, true));
        h1.run("chown lanelect /etc/lanelect/key");
        h1.enable();
        site.wait_for_leader(h1);
        h1.systemctl(&format!("reload {DAEMON}"));
        // The daemon's user cannot see the check, and the hook-runner can.
        let log = h1.run("journalctl --no-pager");
        assert!(!log.contains("cannot find /etc/lanelect/hooks/check"), "{log}");
        h1.run("chown root /etc/lanelect/key");
        assert!(!h1.output(&["systemctl", "reload", DAEMON]).status.success());
        let refused = || h1.status()["config"]["reload_failure"].as_str().map(str::to_owned);
        wait_until("the status shows why", || {
            refused().is_some_and(|why| why.ends_with("run: chown lanelect /etc/lanelect/key"))
        });
        h1.run("chown lanelect /etc/lanelect/key");
        h1.systemctl(&format!("reload {DAEMON}"));
        wait_until("it was reloaded", || refused().is_none());
    });
}

fn assert_daemon_leads(site: &Site, host: &Host) {
    site.wait_for_leader(host);
    let said = host.show(DAEMON, "StatusText");
    assert!(said.starts_with("leader"), "the service's status is {said:?}");
}

/// The priority of h1 as `host` sees it.
fn priority_of_first(host: &Host) -> u64 {
    let status = host.status();
    let members = status["members"].as_array().cloned().unwrap_or_default();
    let first = members.iter().find(|member| member["node_id"] == "h1");
    first.and_then(|member| member["priority"].as_u64()).unwrap_or_default()
}

/// A hook that besides the usual notes `word`.
fn hook_noting(host: &Host, word: &str) -> String {
    format!("hook = \"echo {word} $LANELECT_EVENT >> /run/noted; {}\"", host.hook())
}

#[test]
fn a_restart_brings_the_new_hook_and_a_stop_takes_the_hook_runner_along() {
    scenario(|site, [h1]| {
        h1.install("");
        h1.configure(&hook_noting(h1, "old"));
        h1.enable();
        site.wait_for_leader(h1);
        h1.configure(&hook_noting(h1, "new"));
        h1.systemctl(&format!("restart {DAEMON}"));
        site.wait_for_leader(h1);
        let noted = "old started\nold elected\nold demoted\nnew started\nnew elected\n";
        assert_eq!(h1.run("cat /run/noted"), noted);
        h1.systemctl(&format!("stop {DAEMON}"));
        assert_eq!(h1.run("cat /run/noted"), format!("{noted}new demoted\n"));
        wait_until("the hook-runner has ended", || {
            h1.show(HOOK_RUNNER, "ActiveState") == "inactive"
        });
        h1.configure("");
        h1.systemctl(&format!("start {DAEMON}"));
        site.wait_for_leader(h1);
        assert_eq!(h1.run("cat /run/noted"), format!("{noted}new demoted\n"));
    });
}

#[test]
fn a_check_that_is_added_counts_after_a_restart_and_somebody_leads() {
    scenario(|site, hosts: [_; 2]| {
        site.start_led_by_first(&hosts, "");
        for host in hosts {
            host.configure("check = \"touch /run/checked\"");
            host.systemctl(&format!("restart {DAEMON}"));
        }
        let leader = site.sole_leader();
        assert!(leader.file("/run/checked").exists());
    });
}

#[test]
fn a_fence_that_is_added_fences_after_a_restart() {
    scenario(|site, hosts: [_; 3]| {
        let voters = hosts.map(|host| host.name.as_str());
        let lines = format!("mode = \"quorum\"\nvoters = {voters:?}");
        hosts.iter().for_each(|host| host.install(&lines));
        hosts.iter().for_each(|host| host.enable());
        site.sole_leader();
        site.wait_until_all_vote();
        for host in hosts {
            host.configure(&format!("{lines}\nfence = \"systemctl poweroff --force --force\""));
            host.systemctl(&format!("restart {DAEMON}"));
        }
        let old = site.sole_leader();
        site.wait_until_all_vote();
        old.slow_hook_on("demoted", "600");
        site.cut_off(old);
        old.wait_until_off();
    });
}

#[test]
fn a_node_whose_hook_runner_refuses_its_file_does_not_lead_and_says_why() {
    scenario(|site, [h1, h2]| {
        h1.install("priority = 200");
        h2.install("");
        // The daemon may believe its own user, the hook-runner must not.
        h1.run("chown lanelect /etc/lanelect/lan0.toml");
        h1.enable();
        wait_until("it is not eligible", || h1.status()["ineligible_reason"] == "no-hook-runner");
        h2.enable();
        wait_until("the other leads", || h2.leads());
        assert_eq!(h1.show(HOOK_RUNNER, "NRestarts"), "0");
        let log = h1.run(&format!("journalctl --no-pager --unit={DAEMON}"));
        assert!(log.contains("chown root /etc/lanelect/lan0.toml"), "{log}");
        h1.run("chown root /etc/lanelect/lan0.toml");
        wait_until("it may lead", || h1.status()["eligible"] == true);
        site.wait_for_leader(h2);
    });
}

#[test]
fn a_shutdown_beside_a_dead_hook_runner_lets_go() {
    scenario(|site, [h1, h2]| {
        site.start_led_by_first(&[h1, h2], "");
        h1.systemctl(&format!("kill --signal=SIGKILL {HOOK_RUNNER}"));
        wait_until("it is back", || h1.show(HOOK_RUNNER, "SubState") == "running");
        h1.shut_down();
        site.wait_for_leader(h2);
        assert_eq!(h1.hooks().last().unwrap(), "demoted shutdown");
    });
}

#[test]
fn who_is_in_the_daemons_group_cannot_have_hooks_run() {
    scenario(|site, [h1]| {
        site.start_led_by_first(&[h1], "");
        let mode = h1.run("stat -c '%a %U' /run/lanelect-hook/lan0.sock");
        assert_eq!(mode, "600 lanelect\n");
        // Neither a reload that comes early nor a hook out of memory ends it.
        assert_eq!(h1.show(HOOK_RUNNER, "OOMPolicy"), "continue");
        h1.systemctl(&format!("kill --signal=SIGHUP {HOOK_RUNNER}"));
        h1.run("lanelect yield --group lan0");
        wait_until("its hook has run", || h1.hooks().last().unwrap() == "demoted yield");
        assert_eq!(h1.show(HOOK_RUNNER, "NRestarts"), "0");
    });
}
