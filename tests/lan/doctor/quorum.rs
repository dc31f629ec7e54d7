//! Faults of quorum mode.

use super::{assert_found, assert_found_with, doctor, lines};
use crate::harness::{Host, Lan, quorum_scenario, scenario};
use crate::quorum::LEASE;

const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

fn quorum(voters: &[&str]) -> String {
    format!("mode = \"quorum\"\nvoters = {voters:?}\ndemote_grace = \"200ms\"\n{LEASE}")
}

fn start(lan: &Lan, hosts: [&Host; 3]) {
    hosts.iter().for_each(|host| host.start(&quorum(&["h1", "h2", "h3"])));
    lan.sole_leader();
    lan.wait_until_all_vote(&hosts);
}

#[test]
fn majority_that_is_lost() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        start(lan, [h1, h2, h3]);
        lan.cut(h1);
        assert_found(h1, "Too few voters are heard");
        assert_found(h1, "A voter is silent");
        lan.heal();
        lan.sole_leader();
    });
}

#[test]
fn voters_that_disagree() {
    scenario(|lan, [h1, h2, h3]| {
        start(lan, [h1, h2, h3]);
        let others = quorum(&["h1", "h2", "h3", "h4"]);
        h3.start(&others);
        let follower = if h1.leads() { h2 } else { h1 };
        assert_found(follower, "The voters differ");
        h3.start(&quorum(&["h1", "h2", "h3"]));
        lan.sole_leader();
    });
}

#[test]
fn disk_that_is_too_slow_for_votes() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        start(lan, [h1, h2, h3]);
        let library = h1.build_library("slow_sync");
        let slow = [("LD_PRELOAD", library.as_str()), ("SLOW_SYNC_MS", "700")];
        assert_found_with(h1, "The disk is too slow for votes", &slow);
        assert_found(h1, "The state is in memory");
    });
}

#[test]
fn clock_source_that_may_drift() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        start(lan, [h1, h2, h3]);
        if !h1.replace_file(SOURCE, "acpi_pm\n") {
            println!("skipped: {:?}", lines(&doctor(h1, &[], &[])));
            return;
        }
        assert_found(h1, "The clock source is a last resort");
    });
}
