//! Units that follow leadership.

use std::fs;

use crate::harness::wait_until;
use crate::hosts::{Host, SHARED, scenario};

/// Runs where the target is up. Its start and its end take a while, and it leaves nothing behind
/// only when `ExecStopPost` has ended.
const UNIT: &str = "[Unit]
PartOf=lanelect-leader@lan0.target
[Service]
Type=exec
ExecStartPre=/bin/sh -c 'echo %H start >> /run/site/shared/unit; sleep 0.1'
ExecStart=/bin/sleep infinity
ExecStop=/bin/sleep 0.2
ExecStopPost=/bin/sh -c 'sleep 0.1; echo %H stop >> /run/site/shared/unit'
[Install]
WantedBy=lanelect-leader@lan0.target
";

#[test]
fn a_unit_under_the_target_runs_on_one_host_at_a_time() {
    scenario(|site, hosts: [_; 3]| {
        for host in hosts {
            fs::write(host.file("/etc/systemd/system/service-under-test.service"), UNIT).unwrap();
            host.systemctl("enable --quiet service-under-test.service");
            host.install("");
            let hook = format!("/usr/share/lanelect/hooks/leader-target && {}", host.hook());
            host.configure(&format!("hook = {hook:?}"));
        }
        hosts.iter().for_each(|host| host.enable());
        for handover in 0..20 {
            let leader = site.sole_leader();
            let running: Vec<_> = hosts.iter().filter(|host| runs(host)).map(|h| &h.name).collect();
            assert_eq!(running, [&leader.name], "after {handover} handovers");
            leader.run("lanelect yield --group lan0");
        }
        site.sole_leader();
        let noted = fs::read_to_string(format!("{SHARED}/unit")).unwrap();
        let mut holder = None;
        for line in noted.lines() {
            let (host, what) = line.split_once(' ').unwrap();
            let expected = if what == "start" { None } else { Some(host) };
            assert_eq!(holder, expected, "at {line}:\n{noted}");
            holder = (what == "start").then_some(host);
        }
        assert_eq!(noted.lines().count(), 41, "{noted}");
    });
}

#[test]
fn a_unit_that_dies_moves_leadership_at_once() {
    scenario(|site, hosts: [_; 2]| {
        for host in hosts {
            fs::write(host.file("/etc/systemd/system/service-under-test.service"), UNIT).unwrap();
            host.systemctl("enable --quiet service-under-test.service");
            host.install("");
            let hook = format!("/usr/share/lanelect/hooks/leader-target && {}", host.hook());
            host.configure(&format!("hook = {hook:?}"));
            host.enable();
        }
        for _ in 0..4 {
            let leader = site.sole_leader();
            wait_until("the unit runs", || runs(leader));
            leader.systemctl("kill --signal=KILL service-under-test.service");
            wait_until("the other host runs it", || {
                site.sole_leader().name != leader.name && runs(site.sole_leader())
            });
            assert_eq!(leader.hooks().last().unwrap(), "demoted yield");
            assert!(!runs(leader));
        }
    });
}

fn runs(host: &Host) -> bool {
    host.show("service-under-test.service", "ActiveState") == "active"
}
