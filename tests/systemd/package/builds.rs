//! The leader's package replaced by one of another build, while a third host uses the address that
//! its hook holds.

use std::time::Duration;

use super::deb::{DEB, PACKAGE};
use super::missing;
use super::prober::Prober;
use crate::harness::inside;
use crate::hosts::{DAEMON, Host, Site, bare_scenario};

/// Names a package of a later version, of other binaries.
const NEXT: &str = "LANELECT_DEB_NEXT";

/// What the leader holds, and the third host asks.
const ADDRESS: &str = "10.77.0.100";

/// How often a leader's package is replaced: by the later build on both hosts, and then by turns.
const ROUNDS: usize = 5;

#[test]
fn leader_that_is_upgraded_to_another_build_hands_over_in_order() {
    if let Some(reason) = missing(&[PACKAGE, NEXT]) {
        return inside::skip(inside::test_name(&|| ()), &reason);
    }
    bare_scenario(|site, [h1, h2, h3]| {
        DEB.share(PACKAGE, "first");
        DEB.share(NEXT, "next");
        [h1, h2].into_iter().for_each(|host| DEB.install(host, "first"));
        let versions = versions(h3);
        start_with_address(site, [h1, h2]);
        let mut gaps = Vec::new();
        for round in 0..ROUNDS {
            let (leader, other) = if round % 2 == 0 { (h1, h2) } else { (h2, h1) };
            let (package, version) =
                [("next", &versions[1]), ("first", &versions[0])][round / 2 % 2];
            let prober = Prober::start(h3, ADDRESS);
            DEB.install(leader, package);
            site.wait_for_leader(other);
            prober.wait_until_answered();
            gaps.push(prober.longest_gap());
            assert_eq!(leader.status()["version"], version.as_str());
            assert_eq!(other.hooks().last().unwrap(), "elected handover");
            check_address(other, leader);
        }
        site.check_overlaps();
        [h1, h2].into_iter().for_each(check_daemon_was_not_killed);
        print(&mut gaps);
    });
}

/// Of the first package and of the next one, as `lanelect --version` prints it; they differ, and so
/// do the binaries.
fn versions(host: &Host) -> [String; 2] {
    let packages = ["first", "next"];
    let unpack = |name| format!("dpkg-deb --extract /run/site/shared/{name}.deb /tmp/{name}");
    packages.into_iter().for_each(|name| drop(host.run(&unpack(name))));
    assert!(
        !host
            .output(&["cmp", "/tmp/first/usr/bin/lanelect", "/tmp/next/usr/bin/lanelect"])
            .status
            .success()
    );
    let versions =
        packages.map(|name| host.run(&format!("/tmp/{name}/usr/bin/lanelect --version")));
    let versions = versions.map(|line| line.trim().trim_start_matches("lanelect ").to_owned());
    assert_ne!(versions[0], versions[1]);
    versions
}

/// The first host leads, and holds the address.
fn start_with_address(site: &Site, hosts: [&Host; 2]) {
    for host in hosts {
        let address = format!("floating-address lan0 {ADDRESS}/24");
        let hook = format!("/usr/share/lanelect/hooks/all '{}' '{address}'", host.hook());
        host.install(&format!("hook = \"{hook}\""));
    }
    let [first, second] = hosts;
    first.enable();
    site.wait_for_leader(first);
    second.enable();
    site.wait_for_leader(first);
    check_address(first, second);
}

fn check_address(holder: &Host, other: &Host) {
    let held = |host: &Host| host.run("ip -oneline address show dev lan0").contains(ADDRESS);
    assert!(held(holder) && !held(other), "{} alone must hold the address", holder.name);
}

fn check_daemon_was_not_killed(host: &Host) {
    let log = host.run(&format!("journalctl --no-pager --unit={DAEMON}"));
    for end in ["code=killed", "code=dumped", "SIGKILL", "Failed with result"] {
        assert!(!log.contains(end), "{}: {log}", host.name);
    }
}

/// For how long the third host got no answer, each time.
fn print(gaps: &mut [Duration]) {
    let all: Vec<_> = gaps.iter().map(|gap| format!("{} ms", gap.as_millis())).collect();
    gaps.sort();
    println!(
        "measured: no answer from the address for {}; median {} ms, worst {} ms",
        all.join(", "),
        gaps[ROUNDS / 2].as_millis(),
        gaps[ROUNDS - 1].as_millis()
    );
}
