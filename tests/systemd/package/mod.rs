//! The packages, from their installation to their removal.

mod builds;
mod deb;
mod prober;
mod readme;
mod rpm;

use std::env;
use std::fs;
use std::path::Path;

use crate::harness::wait_until;
use crate::hosts::{DAEMON, HOOK_RUNNER, Host, SHARED, Site};

/// Every file that could be the package's, or the daemon's.
const FILES: &str = "find /etc /etc/systemd/system /run /usr /var -xdev -path /run/site -prune -o \
                     -name '*lanelect*' -print";

/// Packages of one kind: the commands that install one, also over another, and that remove it.
struct Kind {
    /// How their files end.
    ending: &'static str,
    install: &'static str,
    remove: &'static str,
}

impl Kind {
    /// Installs the package that is shared under this name, over an earlier or later one too.
    fn install(&self, host: &Host, name: &str) {
        host.run(&format!("{} {SHARED}/{name}.{}", self.install, self.ending));
    }

    /// Removes what is installed.
    fn remove(&self, host: &Host) {
        host.run(self.remove);
    }

    /// Gives all hosts the file that this variable names, under this name. False if it names none.
    fn share(&self, variable: &str, name: &str) {
        let file = env::var_os(variable).expect("a package");
        let shared = Path::new(SHARED).join(format!("{name}.{}", self.ending));
        fs::copy(&file, shared).unwrap_or_else(|error| panic!("{variable}={file:?}: {error}"));
    }
}

/// Why a test is skipped that takes the packages that these variables name.
fn missing(variables: &[&str]) -> Option<String> {
    let missing = variables.iter().find(|name| env::var_os(name).is_none())?;
    Some(format!("{missing} names no package; `packaging/test` makes it"))
}

/// Two hosts live with the packages `first` and `next`, and `h1` loses its own in the end.
fn live_with_package(site: &Site, [h1, h2]: [&Host; 2], kind: &Kind) {
    for host in [h1, h2] {
        kind.install(host, "first");
        assert_eq!(host.run("systemctl list-units --all --quiet 'lanelect*'"), "");
    }
    the_example_starts(h1);
    site.start_led_by_first(&[h1, h2], "");
    the_web_server_answers(h1);
    a_reboot_hands_over(site, h1, h2);
    an_upgrade_of_a_follower_disturbs_nobody(site, kind, h1, h2);
    an_upgrade_of_the_leader_hands_over(site, kind, h1, h2);
    h1.systemctl(&format!("is-enabled --quiet {DAEMON}"));
    kind.remove(h1);
    site.wait_for_leader(h2);
    site.check_overlaps();
    assert_eq!(h1.hooks().last().unwrap(), "demoted shutdown");
    assert_eq!(h1.run("systemctl list-units --all --quiet 'lanelect*'"), "");
    assert_eq!(h1.run("ps -e -o comm= | grep -c lanelect || true"), "0\n");
}

/// Under the user that exists only while it runs.
fn the_web_server_answers(leader: &Host) {
    let unit = DAEMON.replace("lanelect@", "lanelect-http@");
    leader.systemctl(&format!("enable --now {unit}"));
    let ask = "curl --silent --output /dev/null --write-out '%{http_code}' \
               http://127.0.0.1:7680/leader || true";
    wait_until("the web server says that its node leads", || leader.run(ask) == "200");
    let user = leader.show(&unit, "DynamicUser");
    assert_eq!(user, "yes");
}

fn the_example_starts(host: &Host) {
    host.run("cp /usr/share/doc/lanelect/examples/example.toml /etc/lanelect/");
    host.systemctl("start lanelect@example.service");
    host.run("lanelect status --group example");
    host.systemctl("stop lanelect@example.service");
    host.run("rm /etc/lanelect/example.toml");
}

fn a_reboot_hands_over(site: &Site, leader: &Host, other: &Host) {
    leader.shut_down();
    site.wait_for_leader(other);
    leader.power_on();
    leader.wait_until_up();
    wait_until("the rebooted host follows", || leader.follows(other));
}

fn an_upgrade_of_a_follower_disturbs_nobody(
    site: &Site,
    kind: &Kind,
    follower: &Host,
    leader: &Host,
) {
    let (daemon, hooks, term) = (leader.daemon(), leader.hooks(), leader.status()["term"].take());
    upgrade(site, kind, follower);
    site.wait_for_leader(leader);
    assert_eq!((leader.daemon(), leader.hooks()), (daemon, hooks));
    assert_eq!(leader.status()["term"], term);
}

fn an_upgrade_of_the_leader_hands_over(site: &Site, kind: &Kind, other: &Host, leader: &Host) {
    upgrade(site, kind, leader);
    site.wait_for_leader(other);
    site.check_overlaps();
    assert_eq!(leader.hooks()[leader.hooks().len() - 2..], ["demoted shutdown", "started startup"]);
    assert_eq!(other.hooks().last().unwrap(), "elected handover");
}

/// Upgrades a host; afterwards nothing runs there that was started before.
fn upgrade(site: &Site, kind: &Kind, host: &Host) {
    let config = host.run("cat /etc/lanelect/lan0.toml");
    let processes = || [DAEMON, HOOK_RUNNER].map(|unit| host.show(unit, "MainPID"));
    let before = processes();
    kind.install(host, "next");
    site.sole_leader();
    for (old, new) in before.iter().zip(processes()) {
        assert!(*old != new || new == "0", "{} still runs process {old}", host.name);
    }
    assert_eq!(host.run("cat /etc/lanelect/lan0.toml"), config);
}
