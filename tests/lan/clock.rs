//! A time of day that jumps: nothing goes by it.

use crate::harness::{Host, quorum_scenario, scenario, wait_until};
use crate::quorum::LEASE;

/// In seconds.
const YEAR: i64 = 365 * 24 * 3600;

const JUMPS: [i64; 3] = [YEAR, -YEAR, 0];

/// The number of the host's present life, which is its time of day in microseconds unless that
/// went back.
fn incarnation(host: &Host) -> u64 {
    let state = host.state();
    let line = state.lines().find_map(|line| line.strip_prefix("incarnation = "));
    line.unwrap_or_else(|| panic!("no incarnation: {state}")).parse().unwrap()
}

#[test]
fn a_time_of_day_that_jumps_by_a_year_changes_nothing() {
    scenario(|lan, [h1, h2]| {
        [h1, h2].iter().for_each(|host| host.fake_wall_clock());
        lan.start_led_by_first(&[h1, h2], "");
        for offset in JUMPS {
            h1.set_wall_clock(offset);
            h2.set_wall_clock(-offset);
            lan.assert_calm_for(20);
        }
    });
}

#[test]
fn a_lease_does_not_go_by_the_time_of_day() {
    quorum_scenario(|lan, hosts: [_; 3]| {
        hosts.iter().for_each(|host| host.fake_wall_clock());
        let names = hosts.map(|host| host.name.as_str());
        let lines =
            format!("mode = \"quorum\"\nvoters = {names:?}\ndemote_grace = \"0s\"\n{LEASE}");
        hosts.iter().for_each(|host| host.start(&lines));
        lan.sole_leader();
        for offset in JUMPS {
            hosts.iter().zip([0, offset, -offset]).for_each(|(host, to)| host.set_wall_clock(to));
            lan.assert_calm_for(10);
            hosts.iter().zip([offset, -offset, 0]).for_each(|(host, to)| host.set_wall_clock(to));
            lan.assert_calm_for(10);
        }
    });
}

#[test]
fn a_host_that_starts_with_an_earlier_time_of_day_is_heard() {
    scenario(|lan, [h1, h2]| {
        [h1, h2].iter().for_each(|host| host.fake_wall_clock());
        h2.set_wall_clock(YEAR);
        lan.start_led_by_first(&[h1, h2], "");
        wait_until("its life is on disk", || !h2.state().is_empty());
        let ahead = incarnation(h2);
        let lead = u64::try_from(YEAR).unwrap() * 1_000_000;
        assert!(ahead > incarnation(h1) + lead / 2, "its time of day is the true one");
        h2.crash();
        h2.set_wall_clock(-YEAR);
        h2.restart();
        lan.wait_for_leader(h1);
        wait_until("it is heard", || h1.member(h2)["state"] == "alive");
        wait_until("its life is on disk", || incarnation(h2) == ahead + 1);
        h1.crash();
        lan.wait_for_leader(h2);
        h1.restart();
        lan.wait_for_leader(h2);
    });
}

#[test]
fn a_host_that_has_lost_its_memory_and_the_time_is_heard_in_the_end() {
    scenario(|lan, [h1, h2]| {
        [h1, h2].iter().for_each(|host| host.fake_wall_clock());
        lan.start_led_by_first(&[h1, h2], "");
        h2.crash();
        h2.remove_state();
        h2.set_wall_clock(-YEAR);
        h2.restart();
        lan.wait_for_leader(h1);
        // Its former life counts until it has fallen silent for too long.
        let address = || h1.member(h2)["last_heard_ms"].as_u64();
        wait_until("it is heard", || h1.member(h2)["state"] == "alive" && address() < Some(1_000));
        assert_eq!(h1.command(&["yield"]), Some(0));
        lan.wait_for_leader(h2);
    });
}
