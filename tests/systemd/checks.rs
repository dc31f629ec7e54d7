//! Health checks of units that run on the leader only.

use std::fs;

use crate::harness::wait_until;
use crate::hosts::{Host, scenario};

/// A service that listens three seconds after it was started.
const SERVICE: &str = "[Unit]\nPartOf=lanelect-leader@lan0.target\n\
    [Service]\nRuntimeDirectory=app\n\
    ExecStart=/bin/sh -c 'sleep 3; touch /run/app/listens; exec sleep infinity'\n";

/// What the README does, with a file for the port.
fn install(host: &Host) {
    let hook =
        format!("{} && /usr/share/lanelect/hooks/leader-target", host.hook().replace('"', "'"));
    host.install(&format!(
        "hook = {hook:?}\ncheck_leader = \"test -e /run/app/listens\"\n\
         check_interval = \"250ms\"\ncheck_timeout = \"10s\""
    ));
    fs::write(host.file("/etc/systemd/system/app.service"), SERVICE).unwrap();
    host.systemctl("daemon-reload");
    host.systemctl("add-wants lanelect-leader@lan0.target app.service");
}

fn is_healthy(host: &Host) -> bool {
    host.status()["check_leader"]["state"] == "healthy"
}

#[test]
fn unit_that_only_the_leader_runs_is_checked_there_and_moves_once_when_it_fails() {
    scenario(|site, hosts: [_; 3]| {
        let [h1, h2, h3] = hosts;
        hosts.iter().for_each(|host| install(host));
        h1.enable();
        site.wait_for_leader(h1);
        h2.enable();
        h3.enable();
        wait_until("the service is up", || is_healthy(h1));
        site.wait_for_leader(h1);
        assert_eq!(h1.hooks(), ["started startup", "elected election"]);
        for host in hosts {
            assert_eq!(host.status()["eligible"], true, "{}", host.name);
        }

        h1.run("rm /run/app/listens");
        wait_until("another leads", || site.sole_leader().name != h1.name);
        let successor = site.sole_leader();
        wait_until("the service is up there", || is_healthy(successor));
        assert_eq!(h1.hooks().last().unwrap(), "demoted check-failed");
        assert_eq!(h1.show("app.service", "ActiveState"), "inactive");
        assert_eq!(h1.status()["ineligible_reason"], "check-failed");
        assert_eq!(successor.hooks(), ["started startup", "elected handover"]);
        let hooks = hosts.map(|host| host.hooks().len()).iter().sum::<usize>();
        assert_eq!(hooks, 3 + 2 + 1, "each started; two led, and one of them no longer does");
    });
}
