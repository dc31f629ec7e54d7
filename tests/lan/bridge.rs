//! The kernel's own bridge in place of the switch: one that snoops on IGMP, as most switches do.

use std::process::Command;

use lanelect::daemon::transport::{REJOIN_INTERVAL, RESCAN_INTERVAL};

use crate::harness::host::ip;
use crate::harness::patience::{LIMIT, holds_within};
use crate::harness::switch::Rule;
use crate::harness::{Host, Lan, scenario, wait_until};

/// As the bridge prints it.
const GROUP: &str = "grp 239.255.76.69";

/// Joins the hosts by a bridge that passes a group on only to those who asked for it. Its querier
/// asks once, at the beginning, and not again while a test lasts.
fn bridge(lan: &Lan, hosts: &[&Host]) {
    lan.everywhere(&Rule::cut());
    ip("link add br0 type bridge mcast_snooping 1 mcast_igmp_version 3 \
        mcast_query_response_interval 10 mcast_startup_query_count 1 mcast_query_interval 100000");
    ip("link set br0 type bridge mcast_querier 1");
    ip("link set br0 addrgenmode none up");
    for host in hosts {
        ip(&format!("link set {} master br0", host.port(0)));
    }
}

/// Whether the bridge passes the group on to the host.
fn is_known(host: &Host) -> bool {
    let entry = format!("port {} {GROUP}", host.port(0));
    mdb(&["show"]).contains(&entry)
}

/// Makes the bridge forget that the host asked for the group, also when the host has repeated
/// itself, as its kernel does once within a second.
fn forget(lan: &Lan, host: &Host) {
    let group = GROUP.split(' ').nth(1).unwrap();
    let mut forgotten_at = 0;
    wait_until("the bridge has forgotten the host for good", || {
        if is_known(host) {
            mdb(&["del", "dev", "br0", "port", &host.port(0), "grp", group]);
            forgotten_at = lan.datagrams_from(host);
        }
        lan.datagrams_from(host) >= forgotten_at + 30
    });
}

fn mdb(words: &[&str]) -> String {
    let output = Command::new("bridge").arg("mdb").args(words).output().unwrap();
    assert!(output.status.success(), "bridge mdb {words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_host_that_a_snooping_bridge_forgets_makes_itself_known_again() {
    // Nobody else is there to fall silent.
    scenario(|lan, [h1]| {
        bridge(lan, &[h1]);
        h1.start("");
        lan.wait_for_leader(h1);
        assert!(is_known(h1));
        forget(lan, h1);
        let patience = REJOIN_INTERVAL + RESCAN_INTERVAL + LIMIT;
        assert!(holds_within(patience, || is_known(h1)), "{}", mdb(&["show"]));
    });
}

#[test]
fn a_host_that_a_snooping_bridge_forgets_makes_itself_known_at_once_when_it_misses_the_others() {
    scenario(|lan, [h1, h2]| {
        bridge(lan, &[h1, h2]);
        // Slow enough that it is forgotten for good before it has missed anybody.
        lan.start_led_by_first(&[h1, h2], "leader_alive_threshold = \"10s\"");
        assert!(is_known(h1) && is_known(h2));
        forget(lan, h2);
        assert!(!is_known(h2));
        assert!(holds_within(REJOIN_INTERVAL / 2, || is_known(h2)), "{}", mdb(&["show"]));
        lan.wait_for_leader(h1);
        lan.assert_calm_for(20);
    });
}
