//! The package for Debian, from its installation to its removal.

use std::env;
use std::fs;
use std::path::Path;

use crate::harness::{inside, wait_until};
use crate::hosts::{DAEMON, HOOK_RUNNER, Host, SHARED, Site, bare_scenario};

/// Names the package that `packaging/build deb` has made.
const PACKAGE: &str = "LANELECT_DEB";

/// Makes the same package once more, as a later version.
const REPACK: &str = "cd /tmp && dpkg-deb --raw-extract /run/site/shared/lanelect.deb next &&
    sed -i 's/^Version: .*/Version: 999-1/' next/DEBIAN/control &&
    dpkg-deb --build --root-owner-group next /run/site/shared/next.deb";

/// Every file that could be the package's, or the daemon's.
const FILES: &str = "find /etc /etc/systemd/system /run /usr /var -xdev -path /run/site -prune -o -name '*lanelect*' -print";

#[test]
fn the_package_is_installed_upgraded_and_purged_without_a_trace() {
    let Some(package) = env::var_os(PACKAGE) else {
        let reason = format!("{PACKAGE} names no package; make one by `packaging/build deb`");
        return inside::skip(inside::test_name(&|| ()), &reason);
    };
    bare_scenario(|site, [h1, h2]| {
        fs::copy(&package, Path::new(SHARED).join("lanelect.deb")).expect("the package");
        h1.run(REPACK);
        let before = h1.run(FILES);
        for host in [h1, h2] {
            dpkg(host, "--install /run/site/shared/lanelect.deb");
            assert_eq!(host.run("systemctl list-units --all --quiet 'lanelect*'"), "");
        }
        the_example_starts(h1);
        site.start_led_by_first(&[h1, h2], "");
        the_web_server_answers(h1);
        a_reboot_hands_over(site, h1, h2);
        an_upgrade_of_a_follower_disturbs_nobody(site, h1, h2);
        an_upgrade_of_the_leader_hands_over(site, h1, h2);
        dpkg(h1, "--purge lanelect");
        site.wait_for_leader(h2);
        site.check_overlaps();
        assert_eq!(h1.hooks().last().unwrap(), "demoted shutdown");
        assert_eq!(h1.run(FILES), before);
        assert_eq!(h1.run("systemctl list-units --all --quiet 'lanelect*'"), "");
        assert_eq!(h1.run("ps -e -o comm= | grep -c lanelect || true"), "0\n");
    });
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

fn an_upgrade_of_a_follower_disturbs_nobody(site: &Site, follower: &Host, leader: &Host) {
    let (daemon, hooks, term) = (leader.daemon(), leader.hooks(), leader.status()["term"].take());
    upgrade(site, follower);
    site.wait_for_leader(leader);
    assert_eq!((leader.daemon(), leader.hooks()), (daemon, hooks));
    assert_eq!(leader.status()["term"], term);
}

fn an_upgrade_of_the_leader_hands_over(site: &Site, other: &Host, leader: &Host) {
    upgrade(site, leader);
    site.wait_for_leader(other);
    site.check_overlaps();
    assert_eq!(leader.hooks()[leader.hooks().len() - 2..], ["demoted shutdown", "started startup"]);
    assert_eq!(other.hooks().last().unwrap(), "elected handover");
}

/// Upgrades a host; afterwards nothing runs there that was started before.
fn upgrade(site: &Site, host: &Host) {
    let config = host.run("cat /etc/lanelect/lan0.toml");
    let processes = || [DAEMON, HOOK_RUNNER].map(|unit| host.show(unit, "MainPID"));
    let before = processes();
    dpkg(host, "--install /run/site/shared/next.deb");
    site.sole_leader();
    for (old, new) in before.iter().zip(processes()) {
        assert!(*old != new || new == "0", "{} still runs process {old}", host.name);
    }
    assert_eq!(host.run("cat /etc/lanelect/lan0.toml"), config);
}

fn dpkg(host: &Host, words: &str) {
    host.run(&format!("dpkg --force-unsafe-io {words}"));
}
