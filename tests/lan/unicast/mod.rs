//! Groups whose datagrams go to peers one by one, in place of multicast or besides.

mod hostile;
mod lists;
mod routed;

use std::process::Command;

use crate::harness::{BEST_SUCCEEDS, Host, quorum_scenario, scenario, wait_until};
use crate::quorum::{elect_with, voters};

/// Multicast alone, whatever carries the other scenarios: the harness leaves an empty list out.
pub(crate) const MULTICAST: &str = "multicast = \"239.255.76.69:7669\"\npeers = []\n";

fn addresses(hosts: &[&Host]) -> Vec<String> {
    hosts.iter().map(|host| host.address(0)).collect()
}

/// Multicast, and unicast to these hosts.
fn peers(hosts: &[&Host]) -> String {
    format!("multicast = \"239.255.76.69:7669\"\npeers = {:?}\n", addresses(hosts))
}

/// Unicast to these hosts alone.
fn peers_alone(hosts: &[&Host]) -> String {
    peers_at(&addresses(hosts))
}

/// Unicast to these addresses alone.
fn peers_at(addresses: &[String]) -> String {
    format!("multicast = \"none\"\npeers = {addresses:?}\n")
}

/// What the status says of the peer at this place in the list.
fn problem(host: &Host, peer: usize) -> String {
    host.status()["peers"][peer]["problem"].as_str().unwrap_or_default().to_owned()
}

/// What `check-config` warns of on a host.
fn warnings(host: &Host) -> String {
    let config = host.path("config.toml");
    let check = host.run(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lanelect"));
        command.args(["check-config", &config]).output().unwrap()
    });
    String::from_utf8_lossy(&check.stderr).into_owned()
}

fn rejected(host: &Host, kind: &str) -> u64 {
    host.status()["counters"]["rejected"][kind].as_u64().unwrap_or_default()
}

#[test]
fn peers_alone_elect_fail_over_and_hand_over() {
    scenario(|lan, [h1, h2, h3]| {
        lan.start_led_by_first(&[h1, h2, h3], &peers_alone(&[h1, h2, h3]));
        wait_until("all know all", || {
            [h1, h2, h3].iter().all(|host| host.status()["members"].as_array().unwrap().len() == 3)
        });
        h1.crash();
        lan.sole_leader();
        assert!(h2.leads());
        assert_eq!(h2.command(&["yield"]), Some(0));
        wait_until("h3 leads", || h3.leads() && h2.follows(h3));
    });
}

#[test]
fn voters_are_counted_by_peers_alone() {
    quorum_scenario(|lan, [h1, h2, h3]| {
        let settings = voters(&[h1, h2, h3]) + &peers_alone(&[h1, h2, h3]);
        let (leader, others) = elect_with(lan, &[h1, h2, h3], &settings);
        leader.stop();
        lan.sole_leader_of(&others);
    });
}

#[test]
fn dead_leader_s_resignation_reaches_its_peers() {
    scenario(|lan, [h1, h2, h3]| {
        let settings = format!(
            "{}leader_alive_threshold = \"50s\"\n{BEST_SUCCEEDS}",
            peers_alone(&[h1, h2, h3])
        );
        lan.start_led_by_first(&[h1, h2, h3], &settings);
        wait_until("it has taken over", || h1.hooks_match_role());
        h1.crash();
        let (status, log) = h1.post_stop();
        assert_eq!(status, Some(0), "{log}");
        // Nothing but the resignation ends so long a wait.
        lan.wait_for_leader(h2);
    });
}

/// h3 hears no multicast. h1 and h2 hear each other twice.
#[test]
fn mixed_group_elects_as_one_and_counts_nobody_twice() {
    scenario(|lan, [h1, h2, h3]| {
        let both = peers(&[h1, h2, h3]);
        h1.start(&both);
        h2.start(&both);
        h3.start(&peers_alone(&[h1, h2, h3]));
        lan.sole_leader();
        for host in [h1, h2, h3] {
            wait_until("all are members, once", || {
                host.status()["members"].as_array().is_some_and(|members| members.len() == 3)
            });
            assert!(host.status()["duplicate"].is_null());
        }
        let leader = *[h1, h2, h3].iter().find(|host| host.leads()).unwrap();
        leader.crash();
        lan.sole_leader();
    });
}

#[test]
fn host_that_a_list_misses_is_told_apart() {
    scenario(|_, [h1, h2]| {
        h1.start(&peers_alone(&[h1]));
        h2.start(&peers_alone(&[h1, h2]));
        wait_until("h1 counts what h2 sends", || rejected(h1, "source") > 0);
        let from = h1.status()["rejected_from"][0].clone();
        assert_eq!(from["address"], h2.address(0).as_str());
        assert!(from["why"].as_str().unwrap().contains("not in peers"), "{from}");
        assert!(h1.member(h2).is_null());
    });
}

#[test]
fn peer_without_an_address_or_a_key_is_told() {
    scenario(|lan, [h1, h2]| {
        let mut ip = Command::new("ip");
        ip.args(["-n", &h1.name, "route", "add", "default", "via", &h2.address(0)]);
        assert!(ip.status().unwrap().success());
        let list = [h1.address(0), h2.address(0), "no-such.invalid".into(), "192.0.2.7".into()];
        h1.start(&format!("multicast = \"none\"\npeers = {list:?}\n"));
        h2.start(&peers_alone(&[h1, h2]));
        lan.sole_leader();
        wait_until("the name is looked up", || problem(h1, 2).contains("its name has no address"));
        assert!(problem(h1, 3).contains("a peer beyond a router needs key_file"));
        assert_eq!(problem(h1, 1), "");
        let told = warnings(h1);
        assert!(told.contains("not sent to without a key: 192.0.2.7"), "{told}");
    });
}
