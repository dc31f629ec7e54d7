//! Stops that take longer than the units allow, because a hook does.

use std::fs;

use crate::harness::wait_until;
use crate::hosts::{DAEMON, HOOK_RUNNER, Host, SHARED, Site, scenario};

/// Several times the time limit below, and what systemd waits between looks at a unit.
const SECONDS: &str = "12";

/// A leader whose units stop within three seconds, and whose hook for `demoted` takes longer.
fn start_slow_leader(site: &Site, hosts: [&Host; 2]) {
    let [h1, _] = hosts;
    site.start_led_by_first(&hosts, "");
    for unit in [DAEMON, HOOK_RUNNER] {
        let directory = h1.file(&format!("/etc/systemd/system/{unit}.d"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("limit.conf"), "[Service]\nTimeoutStopSec=3s\n").unwrap();
    }
    h1.systemctl("daemon-reload");
    assert_eq!(h1.show(DAEMON, "TimeoutStopUSec"), "3s");
    h1.slow_hook_on("demoted", SECONDS);
}

/// Whether the hook of `h1` for `demoted` has ended by itself, and successfully.
fn has_released(reason: &str) -> bool {
    let noted = fs::read_to_string(format!("{SHARED}/journal")).unwrap();
    noted.contains(&format!("h1 end demoted {reason} "))
}

fn log(host: &Host, unit: &str) -> String {
    host.run(&format!("journalctl --no-pager --unit={unit}"))
}

#[test]
fn stop_waits_for_a_hook_that_takes_longer_than_the_units_time_limit() {
    scenario(|site, [h1, h2]| {
        start_slow_leader(site, [h1, h2]);
        h1.systemctl(&format!("stop {DAEMON}"));
        assert!(has_released("shutdown"));
        assert_eq!(h1.show(DAEMON, "Result"), "success");
        wait_until("the other leads", || h2.leads());
        assert!(!log(h1, DAEMON).contains("timed out"), "{}", log(h1, DAEMON));
        site.check_overlaps();
    });
}

#[test]
fn host_that_shuts_down_waits_for_a_hook_that_takes_longer_than_the_units_time_limit() {
    scenario(|site, [h1, h2]| {
        start_slow_leader(site, [h1, h2]);
        h1.shut_down();
        assert!(has_released("shutdown"));
        wait_until("the other leads", || h2.leads());
        site.check_overlaps();
    });
}

#[test]
fn hook_runner_that_stops_waits_for_its_hook_longer_than_its_time_limit() {
    scenario(|site, [h1, h2]| {
        start_slow_leader(site, [h1, h2]);
        h1.run("lanelect yield --group lan0");
        wait_until("its hook runs", || h1.hooks().last().unwrap() == "demoted yield");
        h1.systemctl(&format!("stop {HOOK_RUNNER}"));
        assert!(has_released("yield"));
        assert!(!log(h1, HOOK_RUNNER).contains("timed out"), "{}", log(h1, HOOK_RUNNER));
        wait_until("the other leads", || h2.leads());
    });
}

#[test]
fn post_stop_waits_for_a_hook_that_takes_longer_than_the_units_time_limit() {
    scenario(|site, [h1, h2]| {
        start_slow_leader(site, [h1, h2]);
        h1.signal("KILL");
        let resigned = "resigned for the daemon that ended";
        wait_until("post-stop has resigned", || log(h1, DAEMON).contains(resigned));
        assert!(has_released("crashed"));
        site.wait_for_leader(h2);
        assert!(!log(h1, DAEMON).contains("timed out"), "{}", log(h1, DAEMON));
    });
}
