//! Units that follow leadership.

use std::fs;
use std::path::Path;

use crate::harness::{inside, wait_until};
use crate::hosts::{Host, SHARED, Site, scenario};

const README: &str = include_str!("../../README.md");

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
            install(host);
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
            install_without_holdoff(host);
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

/// Takes a while to start, so that the hook still runs when another unit has failed.
const SLOW_UNIT: &str = "[Unit]
PartOf=lanelect-leader@lan0.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sleep 1
[Install]
WantedBy=lanelect-leader@lan0.target
";

/// As [`UNIT`], but it never starts.
fn broken_unit() -> String {
    UNIT.replace("ExecStart=", "ExecStartPre=/bin/false\nExecStart=")
}

/// systemd's notice of the failure arrives while the hook still runs, which then fails too.
#[test]
fn unit_that_does_not_start_costs_its_host_the_holdoff() {
    scenario(|site, hosts: [_; 2]| {
        let [broken, other] = hosts;
        for (host, unit) in [(broken, broken_unit()), (other, UNIT.to_owned())] {
            for (name, text) in [("service-under-test", unit.as_str()), ("slow", SLOW_UNIT)] {
                let file = host.file(&format!("/etc/systemd/system/{name}.service"));
                fs::write(file, text).unwrap();
                host.systemctl(&format!("enable --quiet {name}.service"));
            }
            install_noting_failures(host);
        }
        other.enable();
        site.wait_for_leader(other);
        broken.enable();
        site.wait_for_leader(other);
        other.run("lanelect yield --group lan0");
        wait_until("the broken host has led", || broken.hooks().len() == 3);
        site.wait_for_leader(other);
        let why = broken.status()["ineligible_reason"].take();
        assert!(["hook-failed", "service-failed"].iter().any(|word| why == *word), "{why}");
    });
}

#[test]
fn masked_unit_costs_its_host_the_leadership_and_odd_names_do_not() {
    scenario(|site, hosts: [_; 2]| {
        let [masked, other] = hosts;
        let odd = r"/etc/systemd/system/odd\x2dname@a:b_c.service";
        for host in hosts {
            fs::write(host.file(odd), UNIT).unwrap();
            host.run(
                r"systemctl add-wants lanelect-leader@lan0.target 'odd\x2dname@a:b_c.service'",
            );
            install_noting_failures(host);
        }
        fs::write(masked.file("/usr/lib/systemd/system/put-away.service"), UNIT).unwrap();
        masked.systemctl("add-wants lanelect-leader@lan0.target put-away.service");
        masked.systemctl("mask --quiet put-away.service");
        other.enable();
        site.wait_for_leader(other);
        masked.enable();
        site.wait_for_leader(other);
        other.run(r"systemctl kill --signal=KILL 'odd\x2dname@a:b_c.service'");
        wait_until("the masked host has failed", || {
            masked.status()["ineligible_reason"] == "hook-failed"
        });
        assert_eq!(other.status()["ineligible_reason"], "service-failed");
    });
}

#[test]
fn unit_that_fails_after_its_start_moves_leadership_to_the_host_where_it_works() {
    scenario(|site, hosts: [_; 3]| {
        for host in hosts {
            // So long that the hook has ended before.
            let works = "/bin/sh -c 'sleep 1; test -e /works && sleep infinity'";
            let unit = UNIT.replace("/bin/sleep infinity", works);
            fs::write(host.file("/etc/systemd/system/service-under-test.service"), unit).unwrap();
            host.systemctl("enable --quiet service-under-test.service");
            install(host);
        }
        let [first, second, last] = hosts;
        last.run("touch /works");
        for host in hosts {
            host.enable();
        }
        site.wait_for_leader(last);
        wait_until("the unit works", || runs(last));
        site.wait_for_leader(last);
        // With the lowest ids they led first, unless the last one was first to start.
        for host in [first, second].into_iter().filter(|host| host.hooks().len() > 1) {
            assert_eq!(host.hooks().last().unwrap(), "demoted yield");
            assert_eq!(host.status()["ineligible_reason"], "service-failed");
        }
    });
}

#[test]
fn postgresql_moves_when_it_is_killed() {
    let Some(version) = postgresql() else {
        return inside::skip(inside::test_name(&|| ()), "there is no PostgreSQL cluster `main`");
    };
    scenario(|site, hosts: [_; 2]| {
        let unit = format!("postgresql@{version}-main.service");
        let answers = "setpriv --reuid=postgres --clear-groups psql --command='SELECT 1'";
        killed_service_moves(site, hosts, &unit, answers);
    });
}

#[test]
fn nginx_moves_when_it_is_killed() {
    if !Path::new("/usr/sbin/nginx").exists() {
        return inside::skip(inside::test_name(&|| ()), "there is no nginx");
    }
    scenario(|site, hosts: [_; 2]| {
        let answers = "curl --fail --silent --output /dev/null http://localhost/";
        killed_service_moves(site, hosts, "nginx.service", answers);
    });
}

/// Sets a service up as the README shows it, and kills it on each host.
fn killed_service_moves(site: &Site, hosts: [&Host; 2], unit: &str, answers: &str) {
    for host in hosts {
        install_without_holdoff(host);
        for command in commands(unit) {
            host.run(&command);
        }
        host.enable();
    }
    let answers = |host: &Host| host.output(&["sh", "-c", answers]).status.success();
    for _ in 0..2 {
        let leader = site.sole_leader();
        let other = hosts.into_iter().find(|host| host.name != leader.name).unwrap();
        wait_until("the service answers", || answers(leader));
        assert!(!answers(other), "{} answers too", other.name);
        leader.systemctl(&format!("kill --signal=KILL {unit}"));
        wait_until("the other host's answers", || answers(other));
        assert!(!answers(leader), "{} answers still", leader.name);
        site.wait_for_leader(other);
    }
}

/// The commands by which the README has a unit follow leadership, as a script runs them.
fn commands(unit: &str) -> Vec<String> {
    let name = unit.split(['@', '.']).next().unwrap();
    let blocks = README.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let block = blocks.into_iter().find(|block| block.contains(&format!("--now {name}"))).unwrap();
    let shown = if name == "postgresql" { "postgresql@15-main" } else { name };
    let commands = block.lines().map(|line| {
        let line = line.replace("@web", "@lan0").replace(shown, unit.trim_end_matches(".service"));
        let Some(edit) = line.strip_prefix("systemctl edit ") else { return line };
        // An administrator types this into the editor.
        let (unit, settings) = edit.split_once('#').unwrap();
        let settings = settings.trim().replace("]  ", "]\\n");
        let directory = format!("/etc/systemd/system/{}.service.d", unit.trim());
        format!("mkdir -p {directory} && printf '{settings}\\n' > {directory}/override.conf")
    });
    commands.chain(["systemctl daemon-reload".to_owned()]).collect()
}

/// The version of a cluster that this machine has.
fn postgresql() -> Option<String> {
    let versions = fs::read_dir("/etc/postgresql").ok()?;
    let found = versions.flatten().find(|version| version.path().join("main").is_dir())?;
    found.file_name().into_string().ok()
}

/// Installs the daemon with `leader-target` before the usual hook.
fn install(host: &Host) {
    install_with(host, "");
}

/// As [`install`], but the usual hook notes also those runs that fail.
fn install_noting_failures(host: &Host) {
    host.install("");
    let hook = format!("{} && /usr/share/lanelect/hooks/leader-target", host.hook());
    host.configure(&format!("hook = {hook:?}"));
}

/// As [`install`], for hosts whose units are killed in turn, faster than a holdoff ends.
fn install_without_holdoff(host: &Host) {
    install_with(host, "failure_holdoff = \"1ms\"");
}

fn install_with(host: &Host, lines: &str) {
    host.install("");
    let hook = format!("/usr/share/lanelect/hooks/leader-target && {}", host.hook());
    host.configure(&format!("hook = {hook:?}\n{lines}"));
}

fn runs(host: &Host) -> bool {
    host.show("service-under-test.service", "ActiveState") == "active"
}
