//! Two releases in one group: some hosts send what a later release may add to version 1.

use crate::harness::keys::{KEY, give_key};
use crate::harness::{Host, Lan, PATIENT, quorum_scenario, scenario, wait_until};
use crate::quorum::{elect_with, voters};
use crate::trust::rejected;
use crate::trust::rotation::everyone_counts_everyone;

#[test]
fn group_is_upgraded_and_downgraded_host_by_host_without_a_transition() {
    scenario(|lan, [h1, h2, h3, h4, h5]| {
        let group = [h1, h2, h3, h4, h5];
        for host in group {
            host.start(PATIENT);
            lan.sole_leader();
        }
        upgrade_and_downgrade(lan, &group);
    });
}

#[test]
fn quorum_is_upgraded_and_downgraded_host_by_host_without_a_transition() {
    quorum_scenario(|lan, [h1, h2, h3, h4, h5]| {
        let group = [h1, h2, h3, h4, h5];
        elect_with(lan, &group, &format!("{}{}", voters(&group), give_key(h1, KEY)));
        upgrade_and_downgrade(lan, &group);
    });
}

#[test]
fn group_of_two_releases_replaces_its_leader() {
    scenario(|lan, [h1, h2, h3, h4, h5]| {
        let (group, lines) = ([h1, h2, h3, h4, h5], format!("{PATIENT}{}", give_key(h1, KEY)));
        lan.start_led_by_first(&group, &lines);
        replace_leaders(lan, &group, &lines);
    });
}

#[test]
fn quorum_of_two_releases_replaces_its_leader() {
    quorum_scenario(|lan, [h1, h2, h3, h4, h5]| {
        let (group, lines) = ([h1, h2, h3, h4, h5], voters(&[h1, h2, h3, h4, h5]));
        elect_with(lan, &group, &lines);
        replace_leaders(lan, &group, &lines);
    });
}

fn upgrade_and_downgrade(lan: &Lan, group: &[&Host]) {
    let leader = lan.sole_leader_of(group);
    let term = leader.status()["term"].take();
    let hooks = lan.journal().text();
    let watches: Vec<_> = group.iter().map(|host| host.watch()).collect();
    for is_later in [true, false] {
        for host in group {
            lan.upgrade(host, is_later);
            everyone_counts_everyone(group);
        }
        if is_later {
            wait_until_all_skip(group);
        }
    }
    assert_eq!(lan.journal().text(), hooks, "a hook ran");
    for (host, watch) in group.iter().zip(&watches) {
        assert!(watch.transitions().is_empty(), "{}: {:?}", host.name, watch.transitions());
        assert_eq!(host.status()["term"], term, "{}", host.name);
        for reason in ["auth", "malformed", "version"] {
            assert_eq!(rejected(host, reason), 0, "{}", host.log());
        }
    }
}

/// Waits until each host has skipped what it does not know, in several more datagrams.
fn wait_until_all_skip(group: &[&Host]) {
    let skipped =
        |host: &Host| host.status()["counters"]["datagrams_extended"].as_u64().unwrap_or_default();
    for host in group {
        let before = skipped(host);
        wait_until("it skips what it does not know", || skipped(host) >= before + 40);
    }
}

/// Each release in turn loses the leader: by a crash, and by an orderly stop.
fn replace_leaders(lan: &Lan, group: &[&Host], lines: &str) {
    for later in [&group[..2], &group[2..]] {
        for host in group {
            lan.upgrade(host, later.iter().any(|other| other.number == host.number));
        }
        for end in [Host::crash_under_service_manager, stop] {
            let leader = lan.sole_leader_of(group);
            end(leader);
            let others: Vec<_> =
                group.iter().copied().filter(|host| host.number != leader.number).collect();
            lan.sole_leader_of(&others);
            leader.start(lines);
            lan.sole_leader_of(group);
            everyone_counts_everyone(group);
        }
    }
}

fn stop(host: &Host) {
    assert_eq!(host.stop(), Some(0));
}
