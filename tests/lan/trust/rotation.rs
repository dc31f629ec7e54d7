//! Keys change while the group runs, by the procedure of the documentation.

use serde_json::Value;

use super::{rejected, times_told};
use crate::harness::keys::{give_key, give_keys};
use crate::harness::patience::now;
use crate::harness::{Host, Lan, PATIENT, quorum_scenario, scenario, wait_until};
use crate::quorum::{elect_with, voters};

const OLD: &str = "1";
const NEW: &str = "2";

/// What each host's key file holds in each round, the signing key first.
const ROUNDS: [&[&str]; 3] = [&[OLD, NEW], &[NEW, OLD], &[NEW]];

#[test]
fn keys_change_on_a_running_group_without_a_transition() {
    scenario(|lan, [h1, h2, h3, h4, h5, left_out]| {
        let group = [h1, h2, h3, h4, h5];
        for host in group {
            host.start(&format!("{PATIENT}{}", give_key(host, OLD)));
            lan.sole_leader();
        }
        let term = h1.status()["term"].take();
        let (hooks, watches) = (lan.journal().text(), group.map(Host::watch));
        for keys in ROUNDS {
            for host in group {
                change_keys(host, keys);
                everyone_counts_everyone(&group);
            }
        }
        assert_eq!(lan.journal().text(), hooks, "a hook ran");
        for (host, watch) in group.iter().zip(&watches) {
            assert!(watch.transitions().is_empty(), "{}: {:?}", host.name, watch.transitions());
            assert_eq!(host.status()["term"], term, "{}", host.name);
            assert_eq!(rejected(host, "auth"), 0, "{}", host.log());
        }
        left_out.start(&give_key(left_out, OLD));
        is_left_out(left_out, &group);
        assert_eq!(lan.sole_leader_of(&group).name, h1.name);
    });
}

/// The steps by which a group gets keys, and loses them again.
const STEPS: [Option<&str>; 6] =
    [Some("accept"), Some("prefer"), Some("require"), Some("prefer"), Some("accept"), None];

#[test]
fn keys_are_introduced_and_removed_without_a_transition() {
    scenario(|lan, [h1, h2, h3, h4, h5]| {
        let group = [h1, h2, h3, h4, h5];
        for host in group {
            host.start(PATIENT);
            lan.sole_leader();
        }
        introduce_and_remove_keys(lan, &group, PATIENT);
    });
}

#[test]
fn keys_are_introduced_and_removed_in_quorum_mode_without_a_transition() {
    quorum_scenario(|lan, [h1, h2, h3, h4, h5]| {
        let group = [h1, h2, h3, h4, h5];
        let lines = voters(&group);
        elect_with(lan, &group, &lines);
        introduce_and_remove_keys(lan, &group, &lines);
    });
}

/// Takes every step on each host, by a reload.
fn introduce_and_remove_keys(lan: &Lan, group: &[&Host], lines: &str) {
    let leader = lan.sole_leader_of(group);
    let term = leader.status()["term"].take();
    let hooks = lan.journal().text();
    let watches: Vec<_> = group.iter().map(|host| host.watch()).collect();
    for key_mode in STEPS {
        for host in group {
            let keys = key_mode.map(|mode| format!("key_mode = {mode:?}\n{}", give_key(host, OLD)));
            host.configure(&format!("{lines}{}", keys.unwrap_or_default()));
            reload(host);
            assert_eq!(host.status()["key_mode"].as_str(), key_mode, "{}", host.name);
            everyone_counts_everyone(group);
        }
    }
    assert_eq!(lan.journal().text(), hooks, "a hook ran");
    for (host, watch) in group.iter().zip(&watches) {
        assert!(watch.transitions().is_empty(), "{}: {:?}", host.name, watch.transitions());
        assert_eq!(host.status()["term"], term, "{}", host.name);
        assert_eq!(rejected(host, "auth"), 0, "{}", host.log());
        assert_eq!(times_told(host, "protects nothing"), 4, "{}", host.log());
    }
}

fn change_keys(host: &Host, keys: &[&str]) {
    give_keys(host, keys);
    reload(host);
}

fn reload(host: &Host) {
    let reloads = || host.log().matches("configuration reloaded").count();
    let before = reloads();
    host.reload();
    wait_until(&format!("{} has reloaded", host.name), || reloads() > before);
}

/// Waits until each host has taken in a datagram of each other one that was sent from now on.
pub(crate) fn everyone_counts_everyone(group: &[&Host]) {
    let asked = now();
    for host in group {
        wait_until(&format!("{} counts everyone", host.name), || {
            let (passed, status) = (asked.elapsed().as_millis(), host.status());
            let members = status["members"].as_array().map_or(&[][..], Vec::as_slice);
            let others = members.iter().filter(|member| member["node_id"] != host.name.as_str());
            let heard = |member: &Value| member["last_heard_ms"].as_u64().map(u128::from);
            others.filter(|member| heard(member).is_some_and(|ago| ago < passed)).count()
                == group.len() - 1
        });
    }
}

/// Waits until the group and this host, which has a key of its own, drop what the other sends and
/// have said so.
fn is_left_out(host: &Host, group: &[&Host]) {
    wait_until(&format!("{} leads nobody but itself", host.name), || host.leads());
    for other in group {
        let told = format!("{} at {}: they have a key that this node", host.name, host.address(0));
        wait_until(&format!("{} says: {told}", other.name), || times_told(other, &told) == 1);
        assert!(host.member(other).is_null() && other.member(host).is_null());
    }
    assert!(rejected(host, "auth") > 0);
}
